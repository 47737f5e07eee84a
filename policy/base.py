"""The contract of a policy, and the shape letters used everywhere.

B batch, C cameras, N tokens, D width, H heads, K chunk steps, A action, P proprioception,
M objects, F object features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fetchlab.sim.config import EnvConfig
from fetchlab.sim.observation import Observation, ObservationBatch

Array = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class TrainingBatch:
    """Observations and what the expert wanted next."""

    observations: ObservationBatch
    actions: Array  # (B, K, A) absolute targets in the environment's units
    actions_mask: NDArray[np.bool_]  # (B, K), False past the end of the episode

    def __len__(self) -> int:
        return len(self.observations)


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """Normalisation constants of a dataset; policies keep them as buffers."""

    proprioception_mean: Array  # (P,)
    proprioception_std: Array  # (P,)
    action_mean: Array  # (A,) of actions as the policy predicts them (relative or absolute)
    action_std: Array  # (A,)


class Policy(Protocol):
    """What a rollout asks of anything that acts: expert, baseline or transformer.

    A policy serves several episodes at once; each has a slot (0, 1, …) that keeps its memory
    (chunk queue, phase of the expert) apart.
    """

    name: str
    env_config: EnvConfig  # the world it acts in
    max_objects: int  # scenes with more are refused

    def reset(self, slots: Sequence[int] | None = None) -> None:
        """Forget these episodes; all of them if None."""
        ...

    def act_batch(self, observations: ObservationBatch, slots: Sequence[int]) -> Array:
        """(B, A) next absolute action targets for the episodes in these slots."""
        ...

    def act(self, observation: Observation) -> Array:
        """(A,) the next action of a single episode, kept in slot 0."""
        ...
