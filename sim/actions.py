"""What can be asked of the robot: the numbers of an action, their names, units and bounds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fetchlab.errors import UserError
from fetchlab.sim.kinematics import JOINT_LOWER, JOINT_UPPER, WORKSPACE_LOWER, WORKSPACE_UPPER
from fetchlab.sim.robot import MAX_OPENING

ACTION_NAMES = {
    "joint": (*(f"joint_{i} [rad]" for i in range(1, 8)), "gripper_opening [m]"),
    "ee": ("x [m]", "y [m]", "z [m]", "gripper_opening [m]"),
}
ACTION_BOUNDS = {
    "joint": ((*JOINT_LOWER, 0.0), (*JOINT_UPPER, MAX_OPENING)),
    "ee": ((*WORKSPACE_LOWER, 0.0), (*WORKSPACE_UPPER, MAX_OPENING)),
}


def checked(action: NDArray[np.float32], mode: str) -> NDArray[np.float64]:
    """The action within its bounds. Raises UserError naming the dimension that is wrong."""
    names = ACTION_NAMES[mode]
    try:
        values = np.asarray(action, dtype=np.float64)
    except (TypeError, ValueError):
        raise UserError(f"an action is numbers: {', '.join(names)}; got {action!r}") from None
    if values.shape != (len(names),):
        raise UserError(
            f"an action has shape ({len(names)},): {', '.join(names)}; got {values.shape}"
        )
    for name, value in zip(names, values, strict=True):
        if not np.isfinite(value):
            raise UserError(f"action dimension {name} is {value}; targets must be finite")
    return np.clip(values, *ACTION_BOUNDS[mode])
