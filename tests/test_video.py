"""Films: what is drawn, and that players can play it."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.factories import make_act_pointers

from fetchlab.errors import UserError
from fetchlab.eval.overlay import Image, action_attention, draw_heat, draw_views, enlarge
from fetchlab.eval.rollout import EpisodeResult, EpisodeSpec
from fetchlab.eval.video import (
    BAR,
    RolloutConfig,
    cast_rollout,
    compose,
    film,
    outcome,
    run_rollout,
    write_video,
)
from fetchlab.policy.base import Array
from fetchlab.policy.expert import Expert
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.observation import ObservationBatch

GREY = np.full((64, 64, 3), 128, np.uint8)


class Gazer(Expert):
    """The expert, pretending to look at one patch of the front camera with its first layer."""

    n_frames = 1

    def attention(self, observations: ObservationBatch) -> Sequence[torch.Tensor]:
        weights = torch.zeros(len(observations), 4, 8, 129)  # (B, H, K, N)
        weights[..., 9] = 1.0  # row 1, column 1 of the first camera
        return [weights, torch.full_like(weights, 1 / 129)]

    def camera_maps(self, weights: torch.Tensor) -> torch.Tensor:
        return weights[..., :128].reshape(*weights.shape[:-1], 2, 8, 8)


def observe(policy: Expert) -> ObservationBatch:
    batches: list[ObservationBatch] = []

    class Watching(Expert):
        def act_batch(self, observations: ObservationBatch, slots: Sequence[int]) -> Array:
            batches.append(observations)
            return super().act_batch(observations, slots)

    film(Watching(policy.env_config), EpisodeSpec(seed=3, n_objects=2))
    return batches[0]


def test_attention_is_averaged_over_heads_and_queries_by_camera_and_layer() -> None:
    policy = Gazer(EnvConfig())
    observations = observe(policy)
    first = action_attention(policy, observations)
    last = action_attention(policy, observations, layer=-1)
    assert last is not None and first is not None
    assert list(first) == ["front", "wrist"]
    assert first["front"][1, 1] == pytest.approx(1.0) and first["front"].sum() == pytest.approx(1.0)
    assert first["wrist"].sum() == 0
    np.testing.assert_allclose(last["wrist"], 1 / 129, rtol=1e-6)
    with pytest.raises(UserError, match="2 decoder layers"):
        action_attention(policy, observations, layer=2)


def test_policies_that_see_no_pixels_have_no_attention_to_draw() -> None:
    observations = observe(Expert(EnvConfig()))
    assert action_attention(Expert(EnvConfig()), observations) is None
    assert action_attention(Gazer(EnvConfig(cameras=())), observations) is None


def test_heat_is_drawn_where_the_weight_is_and_nowhere_else() -> None:
    heat = np.zeros((8, 8), np.float32)
    heat[1, 6] = 0.4
    drawn = draw_heat(GREY, heat, strongest=0.4, size=160).astype(int)
    changed = np.abs(drawn - enlarge(GREY, 160)).sum(axis=2)
    assert changed[30, 130] > 100  # the middle of that patch
    assert changed[80:, :80].max() == 0


def test_one_scale_for_all_cameras_keeps_an_ignored_camera_calm() -> None:
    heats = {"front": np.full((8, 8), 0.01, np.float32), "wrist": np.full((8, 8), 1e-5, np.float32)}
    views = draw_views({"front": GREY, "wrist": GREY}, heats, size=120).astype(int)
    change = np.abs(views - 128).sum(axis=2)
    assert views.shape == (240, 120, 3)
    assert change[20:100].mean() > 3 * change[140:220].mean()


def test_a_frame_has_even_sides_as_h264_needs() -> None:
    table = np.zeros((480, 640, 3), np.uint8)
    for n_cameras in (1, 2, 3):
        size = 480 // max(2, n_cameras) // 2 * 2
        frame = compose(table, np.zeros((n_cameras * size, size, 3), np.uint8), "a", "b")
        assert frame.shape == (480 + 2 * BAR, 640 + size, 3)
        assert frame.shape[0] % 2 == frame.shape[1] % 2 == 0


def decode(path: Path) -> list[Image]:
    import av

    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        assert (stream.codec_context.name, stream.codec_context.pix_fmt) == ("h264", "yuv420p")
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(stream)]
        return [frame.astype(np.uint8) for frame in frames]


def test_a_video_plays_back_every_frame_in_its_colours(tmp_path: Path) -> None:
    frames = [np.full((64, 96, 3), (20 * i, 90, 255 - 20 * i), np.uint8) for i in range(12)]
    write_video(tmp_path / "new" / "film.mp4", frames, fps=5)
    played = decode(tmp_path / "new" / "film.mp4")
    assert len(played) == 12
    assert max(np.abs(a.astype(int) - b).max() for a, b in zip(frames, played, strict=True)) < 12
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["film.mp4"]


def test_a_folder_in_the_way_is_named_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    film = tmp_path / "film.mp4"
    film.mkdir()
    with pytest.raises(UserError, match=r"cannot write .*film\.mp4"):
        write_video(film, [np.zeros((16, 16, 3), np.uint8)], fps=5)
    assert list(tmp_path.iterdir()) == [film]


def test_rollout_films_an_episode_and_writes_its_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    video, still = tmp_path / "e.mp4", tmp_path / "e.png"
    run_rollout(
        RolloutConfig(
            policy="expert", instruction="fetch the blue block", seed=5, video=video, still=still
        )
    )
    result = json.loads(video.with_suffix(".json").read_text())
    assert result["success"] and result["instruction"] == "fetch the blue block"
    assert len(decode(video)) == result["steps"] + 1 + round(1.5 * 5)
    assert still.read_bytes().startswith(b"\x89PNG")
    assert f"done in {result['steps']} steps" in capsys.readouterr().out


def test_attention_changes_the_cameras_column_only() -> None:
    spec = EpisodeSpec(seed=3, n_objects=3)
    plain, looked = film(Expert(EnvConfig()), spec), film(Gazer(EnvConfig()), spec)
    assert plain.result == looked.result
    np.testing.assert_array_equal(plain.frames[0][:, :640], looked.frames[0][:, :640])
    assert (plain.frames[0][BAR : BAR + 240, 640:] != looked.frames[0][BAR : BAR + 240, 640:]).any()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"instruction": "fetch the pink block"}, "pink"),
        ({"instruction": "fetch the red block", "objects": 2}, "names no object of this scene"),
        ({"objects": 21}, "2 to 20, got 21"),
        ({"video": Path("film.avi")}, r"must end in \.mp4"),
        ({"policy": "nobody"}, "unknown policy"),
    ],
)
def test_mistakes_are_named_and_leave_no_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, object],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = {"policy": "expert", "seed": 7, "video": Path("film.mp4"), **settings}
    with pytest.raises(UserError, match=message):
        run_rollout(RolloutConfig(**asked))  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_trained_policy_plays_what_it_was_made_for(tmp_path: Path) -> None:
    for task in ("fetch", "mixed"):
        make_act_pointers(task=task).save_pretrained(tmp_path / task)
    fetching, every = (str(tmp_path / task) for task in ("fetch", "mixed"))
    for source, task, part in [
        (fetching, "fetch", None),
        (every, "mixed", None),
        (every, "fetch", "fetch"),
        ("expert", "reach", None),
    ]:
        policy, spec = cast_rollout(RolloutConfig(policy=source, task=task))
        assert policy.env_config.task == (task if part is None else "mixed")
        assert spec.task == part
    for source, task in [(fetching, "reach"), (every, "reach"), (fetching, "mixed")]:
        with pytest.raises(UserError, match=f"was made for task .*, not '?{task}'?"):
            cast_rollout(RolloutConfig(policy=source, task=task))


def test_a_count_beyond_the_slots_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Expert, "max_objects", 6)
    with pytest.raises(UserError, match=r"cannot take 8 objects \(6 slots\)"):
        run_rollout(RolloutConfig(policy="expert", objects=8))


def test_endings_are_told_in_words() -> None:
    ended = {"seed": 1, "n_objects": 2, "steps": 9, "instruction": "", "target": 0}
    won = EpisodeResult(**ended, success=True, reason="")  # type: ignore[arg-type]
    lost = EpisodeResult(**ended, success=False, reason="wrong_object")  # type: ignore[arg-type]
    assert outcome(won) == "done in 9 steps"
    assert outcome(lost) == "failed after 9 steps: wrong object"
