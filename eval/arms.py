"""What a suite is made of: arms that change a policy's world, conditions it is trained under."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fetchlab.sim.config import EnvConfig

CONTROL = "control"
NOMINAL = "nominal"

NEEDS: Mapping[str, Callable[[EnvConfig], bool]] = {
    "images": lambda env: bool(env.cameras),
    "several shapes": lambda env: len(env.shapes) > 1,
    "several languages": lambda env: len(env.languages) > 1,
    "the front camera": lambda env: "front" in env.cameras,
    "the overhead camera": lambda env: "overhead" in env.cameras,
    "the wrist camera": lambda env: "wrist" in env.cameras,
}
"""what the world of a policy may have to hold"""


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One way to play a suite."""

    name: str
    """empty for the policy's own world, where a suite changes nothing"""
    description: str
    env: Mapping[str, Any] = field(default_factory=dict)
    """settings of EnvConfig that replace the policy's own"""
    ablation: str | None = None
    """what the policy is not told or shown: a name of ABLATIONS"""
    control: str = ""
    """the arm that it is measured against; empty for a control"""
    needs: tuple[str, ...] = ()
    """what a policy must have for it: names of NEEDS"""


@dataclass(frozen=True, kw_only=True)
class Condition:
    """What a policy was trained on."""

    name: str
    description: str
    env: Mapping[str, Any] = field(default_factory=dict)
    """settings of EnvConfig for the demonstrations that differ from the usual ones"""
    demonstrations: int | None = None
    """how many; None: as many as usual"""
    policy: Mapping[str, Any] = field(default_factory=dict)
    """settings of EnvConfig that the policy chooses for itself: history, memory"""
    least_steps: int = 0
    """training steps, where a policy usually takes fewer"""
    control: str = ""
    """the condition that it is measured against, if there is one"""


USUAL = Condition(name=NOMINAL, description="the usual demonstrations")


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A question about generalization, and the arms that answer it."""

    name: str
    description: str
    arms: tuple[Arm, ...]
    counts: tuple[int, ...] = (5,)
    """numbers of objects on the table, unless others are asked for"""
    tasks: tuple[str, ...] = ()
    """what its cells are called; empty: the parts of the policy's own task, each by its name"""
    needs: tuple[str, ...] = ()
    """what a policy must have for any of its arms: names of NEEDS"""
    trained: tuple[Condition, ...] = (USUAL,)
    """what the benchmark trains policies on for this suite"""
    same_scenes: bool = True
    """whether a seed gives every arm the same scene; else only the same seed, drawn otherwise"""
    remark: str = ""
    """what to bear in mind about its control"""

    def __post_init__(self) -> None:
        names = [arm.name for arm in self.arms]
        controls = [arm.name for arm in self.arms if not arm.control]
        for arm in self.arms:
            if arm.control and arm.control not in controls:
                raise ValueError(f"{self.name}: {arm.name} has no control {arm.control!r}")
        if len(set(names)) != len(names):
            raise ValueError(f"{self.name}: two arms of the same name")

    def arm(self, name: str) -> Arm:
        """The arm of this name."""
        return next(arm for arm in self.arms if arm.name == name)

    def is_control(self, arm: Arm) -> bool:
        """Whether other arms are measured against it."""
        return any(other.control == arm.name for other in self.arms if other.control)
