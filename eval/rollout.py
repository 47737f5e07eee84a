"""The one episode loop: expert, transformer and baseline all meet the simulator here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from numpy.typing import NDArray

from fetchlab.policy.base import Array, Policy
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.observation import ObservationBatch

BATCH = 10  # episodes played side by side; larger batches gain little on a CPU

Gym = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class EpisodeSpec:
    """Which scene to play, and what to say."""

    seed: int
    n_objects: int
    instruction: str | None = None
    """None: the sentence that the scene's seed draws"""
    task: str | None = None
    """which part of a task like `mixed`; None: the one that the scene's seed draws"""


@dataclass(frozen=True, kw_only=True)
class EpisodeResult:
    """How an episode ended."""

    seed: int
    n_objects: int
    success: bool
    steps: int
    """control steps until the end"""
    reason: str
    """why it failed; empty on success"""
    instruction: str
    target: int
    """row of the named object"""


@dataclass(frozen=True)
class Moment:
    """What an observer of a rollout sees: a decision, just before it is carried out."""

    observations: ObservationBatch
    actions: Array  # (B, A)
    slots: Sequence[int]  # B


class Parkable(gymnasium.Wrapper[Gym, Array, Gym, Array]):
    """Lets a sub-environment sit out: parked, it costs no physics and shows a blank observation.

    Without automatic reset a vector environment refuses to step a finished sub-environment, but
    when no episode is left its neighbours still have to go on.
    """

    def __init__(self, env: gymnasium.Env[Gym, Array]) -> None:
        super().__init__(env)
        self.parked = False
        spaces: dict[str, Any] = dict(env.observation_space.spaces)  # type: ignore[attr-defined]
        self._blank: Gym = {key: _blank(space) for key, space in spaces.items()}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Gym, dict[str, Any]]:
        self.parked = bool(options and options.get("park"))
        return (self._blank, {}) if self.parked else super().reset(seed=seed, options=options)

    def step(self, action: Array) -> tuple[Gym, float, bool, bool, dict[str, Any]]:
        if self.parked:
            return self._blank, 0.0, False, False, {}
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, float(reward), terminated, truncated, info


def _blank(space: gymnasium.Space[Any]) -> Any:
    if isinstance(space, gymnasium.spaces.Dict):
        return {key: _blank(inner) for key, inner in space.spaces.items()}
    if isinstance(space, gymnasium.spaces.Text):
        return ""
    return np.zeros(space.shape or (), space.dtype)


def make_worlds(
    config: EnvConfig, n_worlds: int = BATCH, render_mode: str | None = None
) -> SyncVectorEnv:
    """Simulators side by side, for `rollout`; close them after use."""
    from fetchlab.sim.env import Tabletop

    def make() -> gymnasium.Env[Gym, Array]:
        return Parkable(Tabletop.from_config(config, render_mode=render_mode))

    return SyncVectorEnv([make] * n_worlds, autoreset_mode=AutoresetMode.DISABLED)


def rollout(
    policy: Policy,
    specs: Sequence[EpisodeSpec],
    worlds: SyncVectorEnv,
    on_step: Callable[[Moment], None] | None = None,
) -> list[EpisodeResult]:
    """Play every episode once, several side by side; results come in the order of `specs`.

    `on_step` sees each decision before it is carried out.
    """
    table = _Table(policy, specs, worlds)
    while table.running:
        slots = sorted(table.running)
        observations = ObservationBatch.from_gym(table.observations).select(slots)
        actions = policy.act_batch(observations, slots)  # (B, A)
        if on_step is not None:
            on_step(Moment(observations, actions, slots))
        table.step(actions, slots)
    return [table.results[row] for row in range(len(specs))]


class _Table:
    """Which slot plays which episode, and what has come out so far."""

    def __init__(self, policy: Policy, specs: Sequence[EpisodeSpec], worlds: SyncVectorEnv) -> None:
        self._policy, self._worlds = policy, worlds
        self._waiting = list(enumerate(specs))[::-1]
        self.running: dict[int, partial[EpisodeResult]] = {}  # slot → result, ending missing
        self.results: dict[int, EpisodeResult] = {}
        self._row: dict[int, int] = {}
        self._steps = np.zeros(worlds.num_envs, np.int64)
        self.observations, _ = worlds.reset(options={"park": True})
        for slot in range(worlds.num_envs):
            self._seat(slot)

    def step(self, actions: Array, slots: Sequence[int]) -> None:
        """Carry out one action a running slot; finished ones start the next waiting episode."""
        everyone = np.zeros((self._worlds.num_envs, actions.shape[1]), np.float32)
        everyone[slots] = actions
        self.observations, _, terminated, truncated, infos = self._worlds.step(everyone)
        self._steps[slots] += 1
        for slot in slots:
            if terminated[slot] or truncated[slot]:
                self._finish(slot, infos)

    def _finish(self, slot: int, infos: dict[str, NDArray[Any]]) -> None:
        self.results[self._row[slot]] = self.running.pop(slot)(
            success=bool(infos["is_success"][slot]),
            steps=int(self._steps[slot]),
            reason=str(infos["failure_reason"][slot]),
        )
        self._seat(slot)

    def _seat(self, slot: int) -> None:
        """Start the next waiting episode in this slot, or park it."""
        if not self._waiting:
            self._reset(slot, None, {"park": True})
            return
        row, spec = self._waiting.pop()
        asked = {"instruction": spec.instruction, "task": spec.task}
        options: dict[str, Any] = {
            name: value for name, value in asked.items() if value is not None
        }
        options["n_objects"] = spec.n_objects
        infos = self._reset(slot, spec.seed, options)
        self._policy.reset([slot])
        self._steps[slot], self._row[slot] = 0, row
        self.running[slot] = partial(
            EpisodeResult,
            seed=spec.seed,
            n_objects=spec.n_objects,
            instruction=str(self.observations["instruction"][slot]),
            target=int(infos["target"][slot]),
        )

    def _reset(
        self, slot: int, seed: int | None, options: dict[str, Any]
    ) -> dict[str, NDArray[Any]]:
        """Reset one sub-environment alone: all that are reset together get the same options."""
        n_worlds = self._worlds.num_envs
        mask = np.arange(n_worlds) == slot
        seeds = [seed if mine else None for mine in mask]
        self.observations, infos = self._worlds.reset(
            seed=seeds, options={**options, "reset_mask": mask}
        )
        return infos
