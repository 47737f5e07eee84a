"""The instruction swap: the same scene twice, and only the words for the object change."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fetchlab.eval.rollout import EpisodeSpec
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.language import LANGUAGES, minimal
from fetchlab.sim.scene import Scene, is_reached
from fetchlab.sim.tasks.registry import TASKS

Pair = tuple[EpisodeSpec, EpisodeSpec]


def swap_pairs(config: EnvConfig, scenes: Sequence[EpisodeSpec]) -> tuple[Pair, ...]:
    """Each scene as it comes, and with another of its objects named, if there is one to name."""
    from fetchlab.sim.env import Tabletop

    with contextlib.closing(Tabletop.from_config(replace(config, cameras=()))) as env:
        pairs = []
        for spec in scenes:
            env.reset(seed=spec.seed, options={"n_objects": spec.n_objects})
            said, choice = env.task_description, spec.seed // 2
            if nameable(env.scene):
                other = another_sentence(config.task, env.scene, said, choice)
                pairs.append((spec, replace(spec, instruction=other)))
    return tuple(pairs)


def another_sentence(task: str, scene: Scene, sentence: str, choice: int) -> str:
    """The sentence with another object in place of the one to act on.

    Raises ValueError where there is none, as in scenes in which all others have a double.
    """
    others = nameable(scene)
    if not others:
        raise ValueError("every other object of this scene has a double, or lies there already")
    asked = TASKS[task].request(sentence)
    row = others[choice % len(others)]
    other = minimal(scene.objects, row, np.random.default_rng(choice))
    say = LANGUAGES[asked.language].say
    return sentence.replace(say(asked.target), say(other), 1)


def nameable(scene: Scene) -> list[int]:
    """Rows of the objects that a sentence could tell to act on instead."""
    kinds = [(thing.colour, thing.shape) for thing in scene.objects]
    return [
        row
        for row, kind in enumerate(kinds)
        if row not in (scene.target, scene.goal.other)
        and kinds.count(kind) == 1
        and not is_reached(scene.objects, replace(scene.goal, target=row))
    ]
