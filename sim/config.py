"""The settings an environment is built with; datasets and policies carry them along."""

from __future__ import annotations

from dataclasses import dataclass

from fetchlab.errors import UserError, unknown

ACTION_MODES = ("joint", "ee")
MAX_HISTORY = 4


@dataclass(frozen=True, kw_only=True)
class EnvConfig:
    """What a policy's world looks like; a policy only runs in the world it was trained in."""

    task: str = "fetch"
    cameras: tuple[str, ...] = ("front", "wrist")
    """names from the camera registry (`fetchlab list cameras`); () renders nothing"""
    image_size: int = 64
    """pixels a side of every camera image"""
    action_mode: str = "joint"
    """`joint`: 7 joint-position targets [rad] + gripper opening target [m];
    `ee`: end-effector position target [m] + gripper opening target [m]"""
    control_hz: int = 10
    """actions a second; must divide the physics rate of 240 Hz"""
    history: int = 1
    """frames that every camera shows, the newest last; before the first step all show the start"""

    def __post_init__(self) -> None:
        from fetchlab.sim.cameras import CAMERAS
        from fetchlab.sim.tasks.registry import TASKS

        if self.task not in TASKS:
            raise unknown("task", self.task, TASKS)
        for camera in self.cameras:
            if camera not in CAMERAS:
                raise unknown("camera", camera, CAMERAS)
        if len(set(self.cameras)) != len(self.cameras):
            raise UserError(f"cameras name one twice: {', '.join(self.cameras)}")
        if self.action_mode not in ACTION_MODES:
            raise unknown("action mode", self.action_mode, ACTION_MODES)
        if not 8 <= self.image_size <= 1024:
            raise UserError(f"image_size must be 8 to 1024 pixels, got {self.image_size}")
        if self.control_hz < 1 or 240 % self.control_hz:
            raise UserError(f"control_hz must divide 240 (physics), got {self.control_hz}")
        if not 1 <= self.history <= MAX_HISTORY:
            raise UserError(f"history must be 1 to {MAX_HISTORY} frames, got {self.history}")

    @property
    def n_views(self) -> int:
        """V: images in an observation."""
        return self.history * len(self.cameras)

    @property
    def action_dim(self) -> int:
        return 8 if self.action_mode == "joint" else 4
