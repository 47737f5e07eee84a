"""Settings of the transformer policy with pointers."""

from __future__ import annotations

from dataclasses import dataclass, field

from fetchlab.errors import UserError
from fetchlab.policy.act import ActConfig
from fetchlab.sim.cameras import CAMERAS
from fetchlab.sim.tasks.registry import TASKS
from fetchlab.tokenizers.patch import PatchConfig


@dataclass(frozen=True, kw_only=True)
class ActPointersConfig(ActConfig):
    """Settings of the transformer policy with pointers; their losses are weighted in training.

    It looks at the newest frame. With a history of 2 and `memory="first"` it also recalls where
    the named objects were seen in the episode's first one, of which it keeps nothing else; where a
    task's colours fade, that is where it looks for them.
    """

    name: str = "act_pointers"
    patch: PatchConfig = field(
        default_factory=lambda: PatchConfig(
            patch_size=4, first_channels=24, refinement=3, pooling=2
        )
    )
    """finer than act's: a patch must not hold two objects, and shapes differ by a few pixels"""
    position_query_weight: float = 0.0
    pointing_weight: float = 0.0
    d_feedforward: int = 384
    place_weight: float = 4.0
    """of the distances from where the simulator has the objects, and wants the named one"""
    map_weight: float = 0.5
    """of the maps' cross-entropy with the patches that show them"""
    spot_weight: float = 0.25
    """of the cross-entropy of what the cameras say together with the spots where they are"""
    naming_weight: float = 0.25
    """of telling what each object's patch shows"""
    words_weight: float = 0.5
    """of telling which words name an object"""
    word_dropout: float = 0.15
    """chance in training that a word which names no object is not heard: people say it otherwise"""
    mirror: float = 0.5
    """chance in training that a demonstration is seen in the mirror: more scenes from as many"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.inputs != "pixels":
            raise UserError(f"pointers look at pixels, got inputs {self.inputs!r}")
        still, cameras = [c for c in CAMERAS if not CAMERAS[c].on_hand], self.env_config.cameras
        if not set(still) & set(cameras):
            raise UserError(
                f"pointers need a camera that stands still, {' or '.join(still)}, got "
                f"{', '.join(cameras)}: collect with --cameras {' '.join((still[0], *cameras))}"
            )
        for name in ("word_dropout", "mirror"):
            if not 0 <= getattr(self, name) < 1:
                raise UserError(f"{name} must be 0 to below 1, got {getattr(self, name)}")
        env_config = self.env_config
        if (env_config.history, env_config.memory) not in ((1, "recent"), (2, "first")):
            raise UserError(
                "pointers look at the newest frame, or at it and the first one: give "
                "--history 2 --memory first, or --history 1"
            )
        if self.position_query_weight or self.pointing_weight:
            raise UserError("pointers take the place of position queries: leave their weights at 0")
        if not self.phrases:
            raise UserError("pointers are taught with phrases: give some")

    @property
    def n_views(self) -> int:
        """One frame at a time."""
        return len(self.env_config.cameras)

    @property
    def sees_first(self) -> bool:
        """Whether it sees the episode's first frame beside the newest."""
        return self.env_config.memory == "first"

    @property
    def looks_back(self) -> bool:
        """Whether names are looked for in the first frame: the later ones have lost the colours."""
        return self.sees_first and TASKS[self.env_config.task].fades

    @property
    def recalls(self) -> bool:
        """Whether places seen in the newest frame are weighed with those of the first."""
        return self.sees_first and not self.looks_back
