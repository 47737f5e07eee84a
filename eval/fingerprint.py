"""What the test scenes and their pictures come from, as short hashes that travel with results.

Two results can be paired only if the same seeds meant the same scenes and looked the same.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.utils.seeding import np_random

from fetchlab.errors import UserError
from fetchlab.sim.assets import object_meshes, panda_urdf
from fetchlab.sim.cameras import CAMERAS
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.language import LANGUAGES
from fetchlab.sim.looks import DISTRACTORS, PAIRS
from fetchlab.sim.scene import Scene
from fetchlab.sim.shapes import SHAPES
from fetchlab.sim.tasks.registry import TASKS
from fetchlab.sim.variations import VARIATIONS
from fetchlab.train.provenance import versions

LIBRARIES = ("pybullet", "numpy", "torch")
SCENES = ((1, 3), (3, 6), (5, 12))  # seed and number of objects
CHANGES: tuple[dict[str, Any], ...] = (
    {},
    {"crowding": "touching"},
    *({"pairs": pairs} for pairs in PAIRS),
    *({"distractors": distractors} for distractors in DISTRACTORS),
)
DIGITS = 6  # micrometres: another processor may differ in the last bit
SHORT = 8  # hexadecimal digits of a hash

Fingerprint = Mapping[str, str]


@functools.cache
def fingerprint() -> dict[str, str]:
    """Hashes of scene generator, renderer and meshes, and the versions that numbers depend on."""
    found = versions(*LIBRARIES)
    return {
        "scenes": _hash(_scene_text()),
        "renderer": _hash(_pixels()),
        "meshes": _hash(_mesh_bytes()),
        **{name: found[name] for name in ("fetchlab", *LIBRARIES)},
    }


def difference(mine: Fingerprint, theirs: Fingerprint) -> str:
    """The first way in which they differ ("renderer 3fa2 there, 91bc here"); empty if equal."""
    for key in {**mine, **theirs}:
        there, here = theirs.get(key, "unknown"), mine.get(key, "unknown")
        if there != here:
            return f"{key} {there} there, {here} here"
    return ""


def refuse_difference(what: str, mine: Fingerprint, theirs: Fingerprint) -> None:
    """UserError, saying what cannot be compared and naming the difference, unless they agree."""
    differing = difference(mine, theirs)
    if differing:
        raise UserError(f"{what} cannot be compared: {differing}; run both with the same versions")


def _hash(parts: Iterator[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()[:SHORT]


def _worlds() -> Iterator[EnvConfig]:
    """Every task as a beginner meets it, and with all that scenes can be asked to be."""
    everything = EnvConfig(
        cameras=(), shapes=tuple(SHAPES), languages=tuple(LANGUAGES), phrasings="training"
    )
    for task in TASKS:
        yield EnvConfig(task=task, cameras=())
        for changes in CHANGES:
            yield replace(everything, task=task, **changes)


def _scene_text() -> Iterator[bytes]:
    for world in _worlds():
        for seed, n_objects in SCENES:
            generator, _ = np_random(seed)
            scene = TASKS[world.task].scene(generator, world, n_objects)
            sentence = TASKS[world.task].say(scene, generator, world)
            yield f"{_rounded(scene)} {sentence}".encode()
    for variation in VARIATIONS.values():  # what happens in mid-episode shows on no first picture
        yield str(variation.draw(np.random.default_rng(0))).encode()


def _rounded(scene: Scene) -> str:
    """The scene as JSON, numbers to the micrometre."""

    def plain(value: Any) -> Any:
        if isinstance(value, float):
            return round(value, DIGITS) + 0.0  # no negative zero
        if isinstance(value, dict):
            return {key: plain(inner) for key, inner in value.items()}
        return [plain(inner) for inner in value] if isinstance(value, (list, tuple)) else value

    return json.dumps(plain(asdict(scene)))


def _pixels() -> Iterator[bytes]:
    """What all cameras see of tables with all shapes, as they are and as they can be varied."""
    from fetchlab.sim.env import Tabletop

    world = EnvConfig(task="place_in_box", cameras=tuple(CAMERAS), shapes=tuple(SHAPES))
    for variation in VARIATIONS:
        with contextlib.closing(Tabletop.from_config(replace(world, variation=variation))) as env:
            for seed, n_objects in SCENES if variation == "none" else SCENES[:1]:
                observation, _ = env.reset(seed=seed, options={"n_objects": n_objects})
                yield from (observation["pixels"][camera].tobytes() for camera in CAMERAS)


def _mesh_bytes() -> Iterator[bytes]:
    """The generated files of the robot and the mug, in the order of their names."""
    robot = panda_urdf().parent
    files = sorted(path for path in robot.rglob("*") if path.is_file())
    for path in (*files, *map(Path, object_meshes("mug"))):
        yield path.read_bytes()
