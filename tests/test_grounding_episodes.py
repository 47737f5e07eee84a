"""Heads measured in whole episodes: a policy that knows colours, and what the commands show."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from tests.factories import make_act
from tests.test_report import make_results, make_story

from fetchlab.errors import UserError
from fetchlab.eval import generalization
from fetchlab.eval.compare import CompareConfig, run_compare
from fetchlab.eval.gaze import WHOLE, Gaze, finder, gaze_sentence
from fetchlab.eval.generalization import EvalConfig, run_eval
from fetchlab.eval.grounding import CLASSES, PHASES, Numbers, frame_shares, measure_grounding
from fetchlab.eval.plan import evaluation_specs
from fetchlab.eval.report.page import render
from fetchlab.eval.results import RESULTS, read_results
from fetchlab.eval.video import RolloutConfig, run_rollout
from fetchlab.policy.expert import Expert
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.env import Tabletop
from fetchlab.sim.observation import ObservationBatch
from fetchlab.sim.scene import COLOURS


def hue_and_saturation(rgb: Any) -> tuple[Numbers, Numbers]:
    """(H, W) each, in degrees and from 0 to 1; rgb (H, W, 3) from 0 to 1."""
    converted = np.array(cv2.cvtColor(np.array(rgb, np.float32), cv2.COLOR_RGB2HSV), np.float64)
    return converted[..., 0], converted[..., 1]


HUES, _ = hue_and_saturation([list(COLOURS.values())])  # (1, colours)


class Painter(Expert):
    """The expert, with one head for pixels of the named colour and one for every patch alike."""

    @property
    def n_frames(self) -> int:
        return self.env_config.history

    def attention(self, observations: ObservationBatch) -> Sequence[torch.Tensor]:
        rows = [
            [self._found(image, instruction) for image in images]
            for images, instruction in zip(
                observations.images, observations.instructions, strict=True
            )
        ]
        found = torch.tensor(np.array(rows)).flatten(1)  # (B, V·64)
        found = found / found.sum(dim=1, keepdim=True)
        even = torch.full_like(found, 1 / found.shape[1])
        weights = torch.stack([even, found], dim=1)[:, :, None]  # (B, 2, 1, V·64)
        return [torch.nn.functional.pad(weights, (0, 1))]  # (B, 2, 1, V·64 + 1)

    def _found(self, image: Any, instruction: str) -> Numbers:
        hue, saturation = hue_and_saturation(image / 255)
        nearest = np.abs(hue[..., None] - HUES[0]).argmin(axis=-1)
        colour = next(i for i, name in enumerate(COLOURS) if name in instruction)
        pixels = (nearest == colour) & (saturation > 0.35)
        counts: Numbers = pixels.reshape(8, 8, 8, 8).sum(axis=(1, 3)) + 1e-9
        return counts

    def camera_maps(self, weights: torch.Tensor) -> torch.Tensor:
        n_views = self.env_config.n_views
        maps = weights[..., : 64 * n_views].reshape(*weights.shape[:-1], n_views, 8, 8)
        return maps[..., -len(self.env_config.cameras) :, :, :]


@pytest.fixture(scope="module")
def painted() -> tuple[Gaze, ...]:
    return measure_grounding(Painter(EnvConfig()), evaluation_specs(0, 4, 4))


def test_who_looks_at_the_named_colour_is_found_looking_at_the_named_object(
    painted: Sequence[Gaze],
) -> None:
    best = finder(painted)
    assert (best.layer, best.head, best.n_episodes, best.n_objects) == (1, 2, 4, 4)
    assert best.on_named_patches > 0.999 and 0.01 < best.named_patches < 0.1
    assert best.others < 0.01 and 0.4 < best.named < 0.8  # the block fills no patch
    assert {gaze.phase for gaze in painted} == {WHOLE, *PHASES}
    frames = {gaze.phase: gaze.n_frames for gaze in painted}
    assert sum(frames[phase] for phase in PHASES) == frames[WHOLE]


def test_who_looks_everywhere_alike_is_at_chance(painted: Sequence[Gaze]) -> None:
    for gaze in (gaze for gaze in painted if gaze.head == 1):
        assert [getattr(gaze, name) for name in CLASSES] == pytest.approx([*gaze.area.values()])
        assert (gaze.on_named_patches, gaze.robot_token) == pytest.approx((gaze.named_patches, 0))


@pytest.mark.parametrize("memory", ["recent", "first"])
def test_frames_of_the_past_are_measured_with_what_they_showed(memory: str) -> None:
    world = EnvConfig(history=3, memory=memory)
    gazes = measure_grounding(Painter(world), evaluation_specs(0, 4, 2))
    assert finder(gazes).on_named_patches > 0.999


def test_a_screen_is_no_object() -> None:
    world = EnvConfig(variation="front_screened")
    with contextlib.closing(Tabletop.from_config(world)) as env:
        env.reset(seed=1)
        front, wrist = frame_shares(env, (8, 8))
    assert front[..., CLASSES.index("background")].mean() > 0.5
    assert front[..., CLASSES.index("named")].max() == 0 and wrist[..., :2].max() > 0


def test_policies_that_see_no_pixels_are_not_measured() -> None:
    specs = evaluation_specs(0, 2, 1)
    assert measure_grounding(Expert(EnvConfig(cameras=())), specs) == ()
    assert measure_grounding(make_act(), []) == ()


def test_results_survive_the_file_and_older_ones_are_still_read(
    painted: tuple[Gaze, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new, old = tmp_path / "new", tmp_path / "old"
    results = replace(make_results(), grounding=painted)
    results.write(new)
    assert read_results(new) == results
    content = json.loads((new / RESULTS).read_text())
    assert {"policy", "layer", "head", "phase", "named", "others", "arm", "table"} <= set(
        content["grounding"][0]
    )
    del content["grounding"]
    old.mkdir()
    (old / RESULTS).write_text(json.dumps(content))
    assert read_results(old) == replace(results, grounding=())
    run_compare(CompareConfig(folders=(new, old)))
    assert "A minus B" in capsys.readouterr().out


def test_the_report_shows_it_where_it_was_measured(painted: tuple[Gaze, ...]) -> None:
    page = render(make_story(results=replace(make_results(), grounding=painted)))
    assert gaze_sentence(painted) in page
    best = finder(painted)
    assert f">{100 * best.on_named_patches:.0f} %</text>" in page  # in the picture
    assert page.count("layer\u00a01, head\u00a02") == 2 + 2  # both tables, two labels of pictures
    assert all(f">{phase}<small" in page for phase in PHASES)
    assert "Which head finds the block" not in render(make_story())


@pytest.fixture
def small_act(tmp_path: Path) -> Path:
    """A policy that has learned nothing, in a folder."""
    make_act().save_pretrained(tmp_path / "act")
    return tmp_path / "act"


def test_eval_measures_it_unless_told_not_to(
    small_act: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(generalization, "SWAP_PAIRS", 0)
    settings: dict[str, Any] = {"counts": (2,), "episodes": 1, "workers": 1, "grounding_objects": 3}
    for n in (2, 0):
        out = tmp_path / str(n)
        run_eval(EvalConfig(policy=str(small_act), out=out, grounding_episodes=n, **settings))
    measured, skipped = (read_results(tmp_path / str(n)).grounding for n in (2, 0))
    whole = [gaze for gaze in measured if gaze.phase == WHOLE]
    assert len(whole) == 2 * 4 and {gaze.n_episodes for gaze in whole} == {2}
    assert {gaze.n_objects for gaze in whole} == {3} and skipped == ()
    assert capsys.readouterr().out.count("finds the named object") == 1


def test_rollout_names_the_head_that_looked_most(
    small_act: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    video = tmp_path / "film.mp4"
    run_rollout(RolloutConfig(policy=str(small_act), objects=3, video=video))
    assert "looks most at it" in " ".join(capsys.readouterr().out.split())
    written = json.loads(video.with_suffix(".json").read_text())["grounding"]
    assert {(row["layer"], row["head"]) for row in written} == {
        (layer, head) for layer in (1, 2) for head in (1, 2, 3, 4)
    }


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"grounding_episodes": -1}, "--grounding-episodes must be 0 to"),
        ({"grounding_objects": 21}, "--grounding-objects must be 2 to 20, got 21"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        EvalConfig(policy="expert", out=tmp_path, **settings)
