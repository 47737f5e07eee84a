"""The instruction swap: the same scene twice, and only the words for the object change."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fetchlab.eval.rollout import EpisodeSpec
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.language import LANGUAGES, Reference, minimal
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


def another_sentence(
    task: str, scene: Scene, sentence: str, choice: int, *, even_doubles: bool = False
) -> str:
    """The sentence with another object in place of the one to act on.

    With `even_doubles` there always is one: if need be, it may be mistaken for its double.
    Raises ValueError where there is none, as in scenes in which all others have a double.
    """
    others = nameable(scene)
    if not others and even_doubles:
        others = doubles(scene)
    if not others:
        raise ValueError("every other object of this scene has a double, or lies there already")
    asked = TASKS[task].request(sentence)
    row = others[choice % len(others)]
    thing = scene.objects[row]
    other = Reference(colour=thing.colour, shape=thing.shape)
    if other.rows(scene.objects) == [row]:
        other = minimal(scene.objects, row, np.random.default_rng(choice))
    say = LANGUAGES[asked.language].say
    return sentence.replace(say(asked.target), say(other), 1)


def doubles(scene: Scene) -> list[int]:
    """Rows of all objects but those that the goal names; of the second one, if no other is left."""
    named = (scene.target, scene.goal.other)
    free = [row for row in range(len(scene.objects)) if row not in named]
    return free or [row for row in range(len(scene.objects)) if row != scene.target]


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
