"""What leaves the simulator: one typed observation, and a batch of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fetchlab.sim.scene import COLOURS, MAX_OBJECTS
from fetchlab.sim.shapes import SHAPES

PROPRIOCEPTION = (
    *(f"joint_{i} [rad]" for i in range(1, 8)),
    "gripper_opening [m]",
    "end_effector_x [m]",
    "end_effector_y [m]",
    "end_effector_z [m]",
)
TOOL = slice(8, 11)  # x, y, z
OBJECT_FEATURES = (
    "x [m]",
    "y [m]",
    *(f"is_{colour}" for colour in COLOURS),
    *(f"is_{shape}" for shape in SHAPES),
    "is_box",
    "z [m]",  # of the body's origin
    "cos_yaw",
    "sin_yaw",
)
POSITION = slice(0, 2)
COLOUR = slice(POSITION.stop, POSITION.stop + len(COLOURS))
SHAPE = slice(COLOUR.stop, COLOUR.stop + len(SHAPES))
LOOK = slice(COLOUR.start, SHAPE.stop)
IS_BOX, HEIGHT = SHAPE.stop, SHAPE.stop + 1
POLICY_FEATURES = slice(0, IS_BOX + 1)  # height and yaw are for the scripted expert alone
MAX_ROWS = MAX_OBJECTS + 1  # M: the objects, and the open box after them if there is one


@dataclass(frozen=True, kw_only=True)
class Observation:
    """One moment as a policy may see it; `objects` is privileged state for state policies."""

    # (V, H, W, 3) V = T·C views: frame after frame, the newest last, each from all cameras in the
    # order of the environment's
    images: NDArray[np.uint8]
    proprioception: NDArray[np.float32]  # (P,), named in PROPRIOCEPTION
    objects: NDArray[np.float32]  # (M, F), named in OBJECT_FEATURES; rows past the mask are 0
    objects_mask: NDArray[np.bool_]  # (M,), True where there is an object
    instruction: str

    @classmethod
    def from_gym(cls, observation: Mapping[str, Any]) -> Observation:
        """The same moment from the Gymnasium environment's dictionary."""
        return ObservationBatch.from_gyms([observation])[0]


@dataclass(frozen=True, kw_only=True)
class ObservationBatch:
    """Observations with a leading batch dimension."""

    images: NDArray[np.uint8]  # (B, V, H, W, 3)
    proprioception: NDArray[np.float32]  # (B, P)
    objects: NDArray[np.float32]  # (B, M, F)
    objects_mask: NDArray[np.bool_]  # (B, M)
    instructions: tuple[str, ...]  # B sentences

    def __len__(self) -> int:
        return len(self.instructions)

    def __getitem__(self, row: int) -> Observation:
        return Observation(
            images=self.images[row],
            proprioception=self.proprioception[row],
            objects=self.objects[row],
            objects_mask=self.objects_mask[row],
            instruction=self.instructions[row],
        )

    def select(self, rows: Sequence[int] | NDArray[np.int_]) -> ObservationBatch:
        """The observations at these rows, in this order."""
        index = np.asarray(rows, dtype=np.int64)
        return ObservationBatch(
            images=self.images[index],
            proprioception=self.proprioception[index],
            objects=self.objects[index],
            objects_mask=self.objects_mask[index],
            instructions=tuple(self.instructions[i] for i in index),
        )

    @classmethod
    def stack(cls, observations: Sequence[Observation]) -> ObservationBatch:
        return cls(
            images=np.stack([o.images for o in observations]),
            proprioception=np.stack([o.proprioception for o in observations]),
            objects=np.stack([o.objects for o in observations]),
            objects_mask=np.stack([o.objects_mask for o in observations]),
            instructions=tuple(o.instruction for o in observations),
        )

    @classmethod
    def from_gym(cls, observations: Mapping[str, Any]) -> ObservationBatch:
        """From a vector environment's dictionary, whose arrays already have the leading B."""
        state = np.asarray(observations["environment_state"], dtype=np.float32)
        state = state.reshape(len(state), MAX_ROWS, 1 + len(OBJECT_FEATURES))
        cameras = observations.get("pixels", {}).values()
        pixels = [as_frames(np.asarray(image)) for image in cameras]  # C of (B, T, H, W, 3)
        empty = np.zeros((len(state), 0, 1, 1, 3), np.uint8)
        return cls(
            images=as_views(np.stack(pixels, axis=2)) if pixels else empty,
            proprioception=np.asarray(observations["agent_pos"], dtype=np.float32),
            objects=state[:, :, 1:],
            objects_mask=state[:, :, 0] > 0.5,
            instructions=tuple(observations["instruction"]),
        )

    @classmethod
    def from_gyms(cls, observations: Sequence[Mapping[str, Any]]) -> ObservationBatch:
        """From single environments' dictionaries."""
        cameras = observations[0].get("pixels", {})
        merged: dict[str, Any] = {
            key: np.stack([o[key] for o in observations])
            for key in ("environment_state", "agent_pos")
        }
        merged["pixels"] = {c: np.stack([o["pixels"][c] for o in observations]) for c in cameras}
        merged["instruction"] = [o["instruction"] for o in observations]
        return cls.from_gym(merged)


def as_frames(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A camera's images with a frame axis: (B, H, W, 3) or (B, T, H, W, 3) -> (B, T, H, W, 3)."""
    return images[:, None] if images.ndim == 4 else images


def as_views(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Frames and cameras one after another: (B, T, C, H, W, 3) -> (B, V, H, W, 3)."""
    return images.reshape(len(images), -1, *images.shape[3:])
