"""The stages of the ring, each on its own: simulate, demonstrate, train, infer, evaluate."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fetchlab.eval.bench.measure import Measurement, Ticks, milliseconds, rates
from fetchlab.eval.parallel import one_thread, usable_cores
from fetchlab.eval.rollout import EpisodeSpec, make_worlds, rollout
from fetchlab.policy.expert import Expert
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.env import Tabletop
from fetchlab.sim.observation import Observation
from fetchlab.sim.scene import MAX_OBJECTS
from fetchlab.sim.shapes import SHAPES

if TYPE_CHECKING:
    from fetchlab.train.loop import Progress

CAMERAS = ("front", "wrist", "overhead")
SIZES = (64, 96, 128)
N_OBJECTS = 5
TRAINED = "act"
REFERENCE = "step without cameras"
WARM_UP = 3  # calls before a latency is taken


def simulation(repeats: int, episodes: int) -> Iterator[Measurement]:
    """Control steps a second on one core, by cameras; expert and kinematics included."""
    yield _steps(REFERENCE, EnvConfig(cameras=()), repeats, episodes)
    for n_cameras in range(1, len(CAMERAS) + 1):
        for size in SIZES:
            config = EnvConfig(cameras=CAMERAS[:n_cameras], image_size=size)
            plural = "s" if n_cameras > 1 else ""
            name = f"step, {n_cameras} camera{plural} {size} × {size}"
            yield _steps(name, config, repeats, episodes)
    fullest = EnvConfig(task="mixed", cameras=CAMERAS, image_size=96, shapes=tuple(SHAPES))
    name = f"step, 3 cameras 96 × 96, all shapes, {MAX_OBJECTS} objects"
    yield _steps(name, fullest, repeats, episodes, MAX_OBJECTS)


def _steps(
    name: str, config: EnvConfig, repeats: int, episodes: int, n_objects: int = N_OBJECTS
) -> Measurement:
    expert = Expert(config)
    with contextlib.closing(Tabletop.from_config(config, n_objects=n_objects)) as env:
        values = []
        for _ in range(repeats):
            played = [_play(env, expert, seed) for seed in range(episodes)]
            values.append(sum(steps for steps, _ in played) / sum(spent for _, spent in played))
    return Measurement(name=name, unit="1/s", values=tuple(values))


def _play(env: Tabletop, expert: Expert, seed: int) -> tuple[int, float]:
    """Control steps of an episode, and the seconds from its first observation to its end."""
    moment, _ = env.reset(seed=seed)
    expert.reset()
    steps, over = 0, False
    started = time.perf_counter()
    while not over:
        action = expert.act(Observation.from_gym(moment))
        moment, _, terminated, truncated, _ = env.step(action)
        steps, over = steps + 1, terminated or truncated
    return steps, time.perf_counter() - started


def resetting(repeats: int, resets: int) -> Measurement:
    """Time of a reset, the first observation from two cameras included."""
    with contextlib.closing(Tabletop.from_config(EnvConfig(), n_objects=N_OBJECTS)) as env:
        values = [
            statistics.median(milliseconds(partial(env.reset, seed=seed)) for seed in range(resets))
            for _ in range(repeats)
        ]
    return Measurement(name="reset", unit="ms", values=tuple(values))


def demonstrating(repeats: int, episodes: int, folder: Path) -> Measurement:
    """Demonstrations a second on all usable cores, once they are at work; `folder`/0 stays."""
    from fetchlab.train.collection import collect
    from fetchlab.train.demonstrate import CollectConfig

    values = []
    for repeat in range(repeats):
        ticks = Ticks()
        out = folder / str(repeat)
        config = CollectConfig(out=out, episodes=episodes, workers=usable_cores())
        collect(config, lambda done, total, ticks=ticks: ticks.tell(done))  # type: ignore[misc]
        values.append(ticks.rate())
    name = f"demonstration, {usable_cores()} processes"
    return Measurement(name=name, unit="1/s", values=tuple(values))


def training(data: Path, repeats: int, steps: int, folder: Path) -> Measurement:
    """Samples a second of `act` on this dataset, on all usable cores; `folder`/0 keeps a policy."""
    from fetchlab.train.commands import TrainCommand, load_for, train_policy, training_config

    shown = load_for(TRAINED, data)
    values = []
    for repeat in range(repeats):
        command = TrainCommand(data=data, out=folder / str(repeat), policy=TRAINED, steps=steps)
        batch_size, ticks = training_config(command).batch_size, Ticks()

        def tell(now: Progress, ticks: Ticks = ticks, batch_size: int = batch_size) -> None:
            if now.step < now.steps:  # the last one also measures the held-out loss
                ticks.tell(now.step * batch_size)

        train_policy(command, shown, tell)
        values.append(ticks.rate())
    return Measurement(name=f"training sample of {TRAINED}", unit="1/s", values=tuple(values))


def inferring(policy: Any, repeats: int, calls: int) -> Iterator[Measurement]:
    """Time from one observation to an action, the chunk predicted anew; on one core."""
    observation = first_observation(policy.env_config)

    def decide() -> None:
        policy.reset()
        policy.act(observation)

    with one_thread():
        for _ in range(WARM_UP):
            decide()
        runs = [sorted(milliseconds(decide) for _ in range(calls)) for _ in range(repeats)]
    for percent in (50, 95):
        values = tuple(run[len(run) * percent // 100] for run in runs)
        yield Measurement(name=f"action of {policy.name}, p{percent}", unit="ms", values=values)


def first_observation(config: EnvConfig) -> Observation:
    """What a policy sees first."""
    with contextlib.closing(Tabletop.from_config(config, n_objects=N_OBJECTS)) as env:
        return Observation.from_gym(env.reset(seed=0)[0])


def evaluating(policy: Any, repeats: int, episodes: int) -> Measurement:
    """Evaluation episodes a second on one core, in the policy's own world."""
    seeds = range(1, 2 * episodes, 2)
    specs = [EpisodeSpec(seed=seed, n_objects=N_OBJECTS) for seed in seeds]
    with contextlib.closing(make_worlds(policy.env_config)) as worlds, one_thread():
        return rates(
            f"evaluation episode of {policy.name}",
            repeats,
            lambda repeat: len(rollout(policy, specs, worlds)),
        )
