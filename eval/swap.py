"""The instruction swap: the same scene twice, and only the colour word changes."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from fetchlab.eval.rollout import EpisodeSpec
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.scene import Scene
from fetchlab.sim.tasks.registry import TASKS

Pair = tuple[EpisodeSpec, EpisodeSpec]


def swap_pairs(config: EnvConfig, scenes: Sequence[EpisodeSpec]) -> tuple[Pair, ...]:
    """Each scene as it comes, and with another of its blocks named."""
    from fetchlab.sim.env import Tabletop

    with contextlib.closing(Tabletop.from_config(replace(config, cameras=()))) as env:
        pairs = []
        for spec in scenes:
            env.reset(seed=spec.seed, options={"n_objects": spec.n_objects})
            other = another_sentence(config.task, env.scene, choice=spec.seed // 2)
            pairs.append((spec, replace(spec, instruction=other)))
    return tuple(pairs)


def another_sentence(task: str, scene: Scene, choice: int) -> str:
    """A sentence that names another block: one whose colour no other block shares.

    Raises ValueError where there is none, which takes a scene with more blocks than colours.
    """
    colours = Counter(block.colour for block in scene.blocks)
    others = [
        row
        for row, block in enumerate(scene.blocks)
        if row != scene.target and colours[block.colour] == 1
    ]
    if not others:
        raise ValueError("every other block of this scene shares its colour")
    named = replace(scene, target=others[choice % len(others)])
    return TASKS[task].instruction(named)
