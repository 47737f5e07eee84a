"""The benchmark's own test scenes and sentences, pinned: who changes them changes every result."""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import replace

import pytest

from fetchlab.eval.benchmark.recipe import SCENES_SEED, WORLD
from fetchlab.eval.fingerprint import fingerprint
from fetchlab.eval.plan import evaluation_specs, without_cameras
from fetchlab.eval.suites import SUITES
from fetchlab.sim.env import Tabletop
from fetchlab.sim.tasks.registry import TASKS

PINNED = {
    "counts": "90653c06089a",
    "compositions": "5c17c9a8956d",
    "distractors": "85ae7a73cc64",
    "phrasings": "aa7aa8edd1ec",
    "languages": "910a3eecbe69",
    "crowding": "12d3147a8264",
    "cameras": "898422ade197",
    "appearance": "9141eb75fa78",
    "disturbance": "8b373b63d4ce",
    "memory": "99bca8f7c4d4",
    "ablations": "b224428b9a5c",
    "data": "590d8fdac0ca",
}


def drawn(suite: str) -> str:
    """A hash of the first two episodes of each cell, as they begin in the benchmark's world."""
    digest = hashlib.sha256()
    for arm in SUITES[suite].arms:
        world = replace(without_cameras(WORLD), **arm.env)
        parts = TASKS[world.task].parts
        with contextlib.closing(Tabletop.from_config(world)) as env:
            for part in parts:
                for count in SUITES[suite].counts:
                    for spec in evaluation_specs(SCENES_SEED, count, 2, part.name):
                        env.reset(seed=spec.seed, options={"n_objects": count, "task": spec.task})
                        digest.update(f"{spec.seed} {env.task_description}".encode())
                        for thing in env.scene.objects:
                            place = f"{thing.x:.6f} {thing.y:.6f} {thing.yaw:.6f}"
                            digest.update(f"{thing.colour} {thing.shape} {place}".encode())
    return digest.hexdigest()[:12]


@pytest.mark.parametrize("suite", SUITES)
def test_the_scenes_of_the_benchmark_are_those_of_ever(suite: str) -> None:
    assert drawn(suite) == PINNED[suite]


def test_the_scenes_part_of_the_fingerprint_is_that_of_ever() -> None:
    assert fingerprint()["scenes"] == "08815a0d"
