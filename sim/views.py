"""What the cameras see under an episode's conditions: now, before, and from where."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fetchlab.errors import unknown
from fetchlab.sim.cameras import CAMERAS, STUDIO, Camera, View
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.pictures import FAR, Image, Picture, noisy, with_hue_shifted
from fetchlab.sim.robot import Reading
from fetchlab.sim.variations import Conditions
from fetchlab.sim.world import World

Frame = dict[str, dict[str, NDArray[Any]]]  # pixels or depth → camera → one image
Geometry = dict[str, NDArray[np.float64]]  # pose (4, 4) [m] and intrinsics (3, 3) [pixels]


class Views:
    """The eyes of an environment, and their memory."""

    def __init__(self, world: World, config: EnvConfig) -> None:
        self._world, self._config = world, config
        self._newest: deque[Frame] = deque(maxlen=config.history)
        self.begin(Conditions(), np.random.default_rng(0))

    def begin(self, conditions: Conditions, generator: np.random.Generator) -> None:
        """Forget the last episode; noise is drawn from the generator."""
        self._conditions, self._generator = conditions, generator
        self._cameras = {**CAMERAS, **conditions.cameras}
        self._standing = {
            name: self._told(self._cameras[name].view(np.zeros(3), np.eye(3)))
            for name in self._config.cameras
            if not self._cameras[name].on_hand
        }
        self._first: Frame | None = None
        self._newest.clear()

    def look(self, reading: Reading) -> Frame:
        """Take one frame, which becomes the newest."""
        frame: Frame = {"pixels": {}, "depth": {}} if self._config.depth else {"pixels": {}}
        for camera in self._config.cameras:
            seen = self._seen(camera, reading)
            for kind, images in frame.items():
                images[camera] = seen[kind]
        self._first = self._first or frame
        self._newest.append(frame)
        return frame

    def frames(self) -> Frame:
        """What is remembered of each camera, the newest last; with a history, along a first axis T.

        The first frame stands for all that was before it.
        """
        assert self._first is not None  # somebody has looked
        if self._config.history == 1:
            return self._newest[-1]
        kept = [self._first] if self._config.memory == "first" else []
        n = self._config.history - len(kept)
        shown = [*kept, *[*[self._first] * n, *self._newest][-n:]]
        return {
            kind: {camera: np.stack([frame[kind][camera] for frame in shown]) for camera in cameras}
            for kind, cameras in self._first.items()
        }

    def _seen(self, camera: str, reading: Reading) -> dict[str, NDArray[Any]]:
        """One image of each kind that is asked for."""
        size, conditions = self._config.image_size, self._conditions
        if camera in conditions.dark:
            dark = np.zeros((size, size, 3), np.uint8)
            return {"pixels": dark, "depth": dark[..., 0].astype(np.float32)}
        view, light = self._view(self._cameras[camera], reading), conditions.light
        shot = (
            self._world.shot(view, size, size, light)
            if self._cameras[camera].on_hand
            else self._world.still_shot(view, size, light)
        )
        seen: dict[str, NDArray[Any]] = {"pixels": self._disturbed(shot.image)}
        if self._config.depth:  # which takes time to work out
            seen["depth"] = np.minimum(shot.depth, np.float32(FAR))  # rounding leads past it
        return seen

    def _disturbed(self, image: Image) -> Image:
        if self._conditions.hue_shift:
            image = with_hue_shifted(image, self._conditions.hue_shift)
        if self._conditions.noise:
            image = noisy(image, self._conditions.noise, self._generator)
        return image

    def _view(self, camera: Camera, reading: Reading) -> View:
        return camera.view(reading.hand_position, reading.hand_rotation)

    def geometry(self, reading: Reading) -> dict[str, Geometry]:
        """Where each camera stands and looks, as the environment's `info` tells it."""
        return {
            name: {key: array.copy() for key, array in self._standing[name].items()}
            if name in self._standing
            else self._told(self._view(self._cameras[name], reading))
            for name in self._config.cameras
        }

    def _told(self, view: View) -> Geometry:
        return {"pose": view.pose(), "intrinsics": view.intrinsics(self._config.image_size)}

    def picture(self, camera: str, size: int, reading: Reading) -> Picture:
        """Colours, depth and segmentation, as if nothing were wrong with the camera itself.

        Raises UserError for a camera that is not registered.
        """
        if camera not in CAMERAS:
            raise unknown("camera", camera, CAMERAS)
        view = self._view(self._cameras[camera], reading)
        return self._world.picture(view, size, size, self._conditions.light)

    def studio(self, width: int, height: int, reading: Reading) -> Image:
        """A larger view of the table, with shadows."""
        light = self._conditions.light
        view = self._view(STUDIO, reading)
        return self._world.shot(view, width, height, light, shadow=True).image
