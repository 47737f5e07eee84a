"""What the report shows beside the numbers: films, moments of attention, learning curves."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fetchlab.eval.overlay import Image
from fetchlab.eval.parallel import load, process_pool
from fetchlab.eval.report.charts import Curve
from fetchlab.eval.report.page import LABELS, Clip, Look
from fetchlab.eval.results import Cell, Results
from fetchlab.eval.rollout import EpisodeSpec
from fetchlab.eval.video import Film, film, outcome, png, write_video

MOMENTS = (0.0, 0.35, 0.6)  # of an episode, shown as stills


@dataclass(frozen=True)
class Scene:
    """An episode worth showing."""

    source: str
    policy: str
    n_objects: int
    seed: int
    success: bool


def choose(results: Results) -> list[Scene]:
    """Successes of the first policy at few, more and most blocks, and the first failures of all."""
    first = results.policies[0].policy
    cells = [cell for cell in results.cells if cell.policy == first and cell.n_episodes]
    rows = sorted({0, len(cells) // 2, len(cells) - 1}) if cells else []
    wanted = [(cells[row], True) for row in rows]
    for facts in results.policies:
        failed = [c for c in results.cells if c.policy == facts.policy and c.failures]
        wanted += [(max(failed, key=_failure_rate), False)] if failed else []
    sources = {facts.policy: facts.source for facts in results.policies}
    scenes = [_scene(cell, sources[cell.policy], success) for cell, success in wanted]
    return [scene for scene in scenes if scene is not None]


def _failure_rate(cell: Cell) -> float:
    return sum(cell.failures.values()) / cell.n_episodes


def _scene(cell: Cell, source: str, success: bool) -> Scene | None:
    seeds = [episode.seed for episode in cell.episodes if episode.success == success]
    if not seeds:
        return None
    return Scene(source, cell.policy, cell.n_objects, seeds[0], success)


def film_scenes(scenes: Sequence[Scene], workers: int) -> tuple[tuple[Clip, ...], tuple[Look, ...]]:
    """The films, and stills of the first policy's first one."""
    if not scenes:
        return (), ()
    with process_pool(min(workers, len(scenes))) as pool:
        shot = list(pool.map(_shoot, scenes))
    # A replay may end otherwise than in the evaluation, whose batches round differently.
    kept = [
        (scene, clip, looks)
        for scene, (clip, looks) in zip(scenes, shot, strict=True)
        if scene.success == clip.success
    ]
    first = [looks for scene, _, looks in kept if scene.policy == scenes[0].policy]
    return tuple(clip for _, clip, _ in kept), tuple(first[0] if first else ())


def _shoot(scene: Scene) -> tuple[Clip, list[Look]]:
    shown = film(load(scene.source), EpisodeSpec(seed=scene.seed, n_objects=scene.n_objects))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "film.mp4"
        write_video(path, shown.playback(), shown.fps)
        clip = Clip(
            title=f"{scene.n_objects} blocks, {LABELS.get(scene.policy, scene.policy)}",
            caption=f"“{shown.result.instruction}”: {outcome(shown.result)}",
            success=shown.result.success,
            mp4=path.read_bytes(),
            poster=png(shown.frames[len(shown.frames) // 2]),
        )
    return clip, stills(shown)


def stills(shown: Film) -> list[Look]:
    """A few moments of a film."""
    steps = [round(moment * (len(shown.frames) - 2)) for moment in MOMENTS]
    return [
        Look(
            caption=f"“{shown.result.instruction}”, step {step + 1}",
            png=png(side_by_side(shown.views[step])),
        )
        for step in dict.fromkeys(steps)
    ]


def side_by_side(views: Image) -> Image:
    """Square pictures that stand one above the other, in a row instead."""
    return np.concatenate(np.split(views, len(views) // views.shape[1]), axis=1)


def read_curve(policy: str, folder: Path) -> Curve:
    """The losses that a training wrote down."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    learned = [line for line in lines if "loss" in line]
    held_out = [line for line in lines if "held_out_loss" in line]
    return Curve(
        policy=policy,
        steps=[line["step"] for line in learned],
        loss=[line["loss"] for line in learned],
        held_out_steps=[line["step"] for line in held_out],
        held_out_loss=[line["held_out_loss"] for line in held_out],
    )
