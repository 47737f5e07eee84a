"""One scripted demonstration: the expert acts, noise disturbs it, its clean wish is the label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Protocol

import numpy as np
import tyro
from numpy.typing import NDArray

from fetchlab.errors import UserError
from fetchlab.policy.base import Array
from fetchlab.policy.expert import Noise
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.observation import Observation
from fetchlab.sim.scene import MAX_OBJECTS
from fetchlab.train.writer import AboutEpisode, Episode

MAX_ATTEMPTS = 20
"""attempts at one demonstration; an expert this unlucky is broken"""


@dataclass(frozen=True, kw_only=True)
class RecordedWorld(EnvConfig):
    """A world as `fetchlab collect` offers it, without what a dataset cannot keep."""

    history: tyro.conf.Suppress[int] = 1
    memory: tyro.conf.Suppress[str] = "recent"
    depth: tyro.conf.Suppress[bool] = False


@dataclass(frozen=True, kw_only=True)
class CollectConfig:
    """What to demonstrate; the same settings give the same bytes, whatever the workers."""

    out: Path
    """folder of the dataset; must be empty or absent"""
    episodes: int = 300
    """demonstrations to collect"""
    counts: tuple[int, ...] = (2, 3, 4, 5)
    """numbers of objects in the scenes, taken in turn"""
    seed: int = 0
    """every scene and all noise follow from it"""
    workers: int = 2
    """processes that demonstrate side by side; best one a core"""
    resume: bool = False
    """go on with a collection that was interrupted"""
    env: Annotated[EnvConfig, tyro.conf.arg(name="", constructor=RecordedWorld)] = field(
        default_factory=EnvConfig
    )
    noise: Noise = field(default_factory=Noise)
    """disturbs the executed actions, so that the policy sees how to recover"""

    def __post_init__(self) -> None:
        if self.episodes < 1:
            raise UserError(f"episodes must be at least 1, got {self.episodes}")
        if self.workers < 1:
            raise UserError(f"workers must be at least 1, got {self.workers}")
        if self.seed < 0:
            raise UserError(f"seed must not be negative, got {self.seed}")
        if not self.counts or not all(2 <= count <= MAX_OBJECTS for count in self.counts):
            counts = " ".join(map(str, self.counts)) or "none"
            raise UserError(f"counts must be 2 to {MAX_OBJECTS} objects each, got {counts}")
        if self.env.history != 1:
            raise UserError("a dataset keeps every frame once: give --history to train, not here")
        if self.env.depth:
            raise UserError("demonstrations keep no depth images: collect without --depth")
        for name, value in asdict(self.noise).items():
            if not 0 <= value <= 1:  # metres, a factor and two chances
                raise UserError(f"noise.{name} must be 0 to 1, got {value:g}")


class Demonstrator(Protocol):
    """The expert, as far as a demonstration needs it."""

    def reset(self) -> None: ...

    def demonstrate(
        self, observation: Observation, noise: Noise, generator: np.random.Generator
    ) -> tuple[Array, Array]:
        """The clean action, which is the label, and the disturbed one to execute."""
        ...


class Environment(Protocol):
    """The part of a Gymnasium environment that a demonstration needs."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Mapping[str, Any], Mapping[str, Any]]: ...

    def step(
        self, action: NDArray[np.float32]
    ) -> tuple[Mapping[str, Any], Any, bool, bool, Mapping[str, Any]]: ...


@dataclass(kw_only=True)
class Recording:
    """An attempt while it runs."""

    scene_seed: int
    before: dict[str, NDArray[np.uint8]]
    observations: list[Mapping[str, Any]] = field(default_factory=list)
    actions: list[Array] = field(default_factory=list)
    executed_actions: list[Array] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    failure_reason: str = ""  # empty when it succeeded

    def episode(self, about: AboutEpisode) -> Episode:
        cameras = self.observations[0].get("pixels", {})
        return Episode(
            about=about,
            images={c: np.stack([o["pixels"][c] for o in self.observations]) for c in cameras},
            before=self.before,
            proprioception=np.stack([o["agent_pos"] for o in self.observations]),
            environment_state=np.stack([o["environment_state"] for o in self.observations]),
            actions=np.stack(self.actions),
            executed_actions=np.stack(self.executed_actions),
            rewards=np.array(self.rewards, np.float32),
        )


def demonstrate(
    environment: Environment, expert: Demonstrator, config: CollectConfig, episode_index: int
) -> Episode:
    """The first attempt that succeeds; each has its own random stream, so nothing before matters.

    Raises UserError when none does.
    """
    n_objects = config.counts[episode_index % len(config.counts)]
    failures: list[str] = []
    for attempt in range(MAX_ATTEMPTS):
        generator = np.random.default_rng((config.seed, episode_index, attempt))
        recording = _attempt(environment, expert, n_objects, config.noise, generator)
        if not recording.failure_reason:
            about = AboutEpisode(
                episode_index=episode_index,
                instruction=recording.observations[0]["instruction"],
                scene_seed=recording.scene_seed,
                n_objects=n_objects,
                failures=tuple(failures),
            )
            return recording.episode(about)
        failures.append(recording.failure_reason)
    raise UserError(
        f"the expert failed {MAX_ATTEMPTS} times at demonstration {episode_index} with {n_objects} "
        f"objects ({', '.join(sorted(set(failures)))}); `fetchlab eval --policy expert` shows more"
    )


def _attempt(
    environment: Environment,
    expert: Demonstrator,
    n_objects: int,
    noise: Noise,
    generator: np.random.Generator,
) -> Recording:
    scene_seed = 2 * int(generator.integers(2**30))  # even; evaluation takes odd seeds only
    moment, info = environment.reset(seed=scene_seed, options={"n_objects": n_objects})
    recording = Recording(scene_seed=scene_seed, before=info.get("before", {}))
    expert.reset()
    finished = False
    while not finished:
        action, executed = expert.demonstrate(Observation.from_gym(moment), noise, generator)
        recording.observations.append(moment)
        recording.actions.append(action)
        recording.executed_actions.append(executed)
        moment, reward, terminated, truncated, info = environment.step(executed)
        recording.rewards.append(float(reward))
        finished = terminated or truncated
    if not info["is_success"]:
        recording.failure_reason = info["failure_reason"] or "unknown"
    return recording
