"""Does the simulator draw, repeat itself, and let the expert lift a block?"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from fetchlab.eval.doctor.finding import Finding, fail, ok
from fetchlab.eval.rollout import EpisodeSpec, make_worlds, rollout
from fetchlab.policy.expert import Expert
from fetchlab.sim.cameras import CAMERAS
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.env import Tabletop
from fetchlab.sim.observation import Observation

SEED = 7
N_SCENES = 5
FEWEST_COLOURS = 8  # a view of the table has dozens; a blank frame has one
REINSTALL = "reinstall pybullet: pip install --force-reinstall --no-cache-dir pybullet"

Moment = dict[str, Any]


def renderer() -> Finding:
    """No camera shows a blank frame."""
    with contextlib.closing(Tabletop(cameras=tuple(CAMERAS))) as env:
        observation, _ = env.reset(seed=SEED)
    colours = {camera: count_colours(image) for camera, image in observation["pixels"].items()}
    blank = [camera for camera, n in colours.items() if n < FEWEST_COLOURS]
    if blank:
        return fail("renderer", f"blank frame from {', '.join(blank)}", REINSTALL)
    said = ", ".join(f"{camera} {n} colours" for camera, n in colours.items())
    return ok("renderer", f"TinyRenderer: {said}")


def count_colours(image: np.ndarray) -> int:
    """How many different colours an image (H, W, 3) has."""
    return len(np.unique(image.reshape(-1, 3), axis=0))


def determinism() -> Finding:
    """The same seed gives the same bits, also after an episode of another count."""
    config = EnvConfig()
    with contextlib.closing(Tabletop.from_config(config)) as env:
        first = episode(env, config, SEED, 3)
        episode(env, config, SEED + 1, 8)
        again = episode(env, config, SEED, 3)
    if len(first) != len(again) or not all(map(same, first, again)):
        return fail("determinism", f"seed {SEED} gave two different episodes", REINSTALL)
    return ok("determinism", f"seed {SEED} twice: {len(first)} moments equal to the last bit")


def episode(env: Tabletop, config: EnvConfig, seed: int, n_objects: int) -> list[Moment]:
    """Every observation of an episode that the expert plays."""
    expert = Expert(config)
    observation, _ = env.reset(seed=seed, options={"n_objects": n_objects})
    expert.reset()
    seen, over = [observation], False
    while not over:
        observation, _, terminated, truncated, _ = env.step(
            expert.act(Observation.from_gym(observation))
        )
        seen.append(observation)
        over = terminated or truncated
    return seen


def same(one: Any, other: Any) -> bool:
    """Equal to the last bit, through dictionaries of arrays."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return bool(np.array_equal(one, other))


def grasping() -> Finding:
    """The expert fetches the named block in every scene."""
    config = EnvConfig(cameras=())
    specs = [EpisodeSpec(seed=SEED + row, n_objects=2 + row) for row in range(N_SCENES)]
    with contextlib.closing(make_worlds(config, n_worlds=N_SCENES)) as worlds:
        results = rollout(Expert(config), specs, worlds)
    failures = [f"seed {r.seed}: {r.reason}" for r in results if not r.success]
    if failures:
        remedy = "is it pybullet 3.2.7? " + REINSTALL
        return fail("grasping", f"expert failed {len(failures)} of {N_SCENES}: {failures}", remedy)
    return ok("grasping", f"the expert fetched {N_SCENES} of {N_SCENES}")
