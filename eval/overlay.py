"""Attention drawn over what the cameras saw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

import cv2
import numpy as np
from numpy.typing import NDArray

from fetchlab.errors import UserError
from fetchlab.policy.base import Policy
from fetchlab.sim.observation import ObservationBatch

Image = NDArray[np.uint8]  # (H, W, 3)
Heat = NDArray[np.float32]  # (h, w), sums to at most 1 over all cameras

STRENGTH = 0.75  # how much of the strongest spot's colour covers the picture


class Watchable(Protocol):
    """A policy whose attention over camera patches can be seen."""

    @property
    def n_frames(self) -> int:
        """How many frames of its memory make patches that can be looked at, the newest last."""
        ...

    def attention(self, observations: ObservationBatch) -> Sequence[Any]:
        """Of each decoder layer, a tensor (B, H, K, N)."""
        ...

    def camera_maps(self, weights: Any) -> Any:
        """Tensor (..., N) to (..., C, h, w)."""
        ...


def watchable(policy: Policy) -> Watchable | None:
    """The policy, if its attention over camera patches can be seen."""
    if hasattr(policy, "camera_maps") and policy.env_config.cameras:
        return cast(Watchable, policy)
    return None


def action_attention(
    policy: Policy, observations: ObservationBatch, layer: int = 0
) -> dict[str, Heat] | None:
    """Where the action queries of the first episode look, mean over heads and queries.

    None for a policy that sees no pixels. Raises UserError if there is no such decoder layer.
    """
    watched = watchable(policy)
    if watched is None:
        return None
    layers = watched.attention(observations)  # L times (B, H, K, N)
    if not -len(layers) <= layer < len(layers):
        raise UserError(f"{policy.name} has {len(layers)} decoder layers, there is no {layer}")
    maps = watched.camera_maps(layers[layer][0].mean(dim=(0, 1)))  # (C, h, w)
    return dict(zip(policy.env_config.cameras, maps.cpu().numpy(), strict=True))


def draw_heat(image: Image, heat: Heat, strongest: float, size: int) -> Image:
    """The picture enlarged to (size, size, 3), hotter where the weight is larger.

    `strongest` is the weight that gets the hottest colour; one value for all cameras keeps a
    camera that is hardly looked at dark.
    """
    picture = enlarge(image, size).astype(np.float32)
    grown = cv2.resize(heat, (size, size), interpolation=cv2.INTER_LINEAR)
    share = np.clip(grown / max(strongest, 1e-9), 0.0, 1.0)  # (size, size)
    bgr = cv2.applyColorMap((share * 255).astype(np.uint8), cv2.COLORMAP_INFERNO)
    alpha = (STRENGTH * np.sqrt(share))[:, :, None]  # the root lifts faint regions into sight
    mixed = (1 - alpha) * picture + alpha * bgr[:, :, ::-1]
    drawn: Image = np.clip(np.round(mixed), 0, 255).astype(np.uint8)
    return drawn


def enlarge(image: Image, size: int) -> Image:
    """The picture at (size, size, 3), its pixels smoothed."""
    enlarged = cv2.resize(image, (size, size), interpolation=cv2.INTER_CUBIC)
    return enlarged.astype(np.uint8)


def draw_views(images: Mapping[str, Image], heats: Mapping[str, Heat] | None, size: int) -> Image:
    """The cameras one above the other, (cameras * size, size, 3), each with its name."""
    strongest = max((float(heat.max()) for heat in heats.values()), default=0.0) if heats else 0.0
    views = []
    for camera, image in images.items():
        if heats is None or camera not in heats:
            view = enlarge(image, size)
        else:
            view = draw_heat(image, heats[camera], strongest, size)
        write(view, camera, (8, size - 9), scale=0.42)
        views.append(view)
    return np.concatenate(views)


def write(image: Image, text: str, at: tuple[int, int], scale: float = 0.6, grey: int = 45) -> None:
    """Write into the picture, with a light rim that keeps it readable on dark parts."""
    font = cv2.FONT_HERSHEY_DUPLEX
    cv2.putText(image, text, at, font, scale, (255, 255, 255), 4, cv2.LINE_AA)
    cv2.putText(image, text, at, font, scale, (grey, grey, grey), 1, cv2.LINE_AA)
