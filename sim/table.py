"""A scene as bodies in the world, and what is known of them afterwards."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fetchlab.sim.footprint import Pose
from fetchlab.sim.geometry import Box, Surface
from fetchlab.sim.observation import IS_BOX, MAX_ROWS, OBJECT_FEATURES, POLICY_FEATURES, POSITION
from fetchlab.sim.robot import Panda
from fetchlab.sim.scene import COLOURS, Scene, SceneObject
from fetchlab.sim.shapes import BOX_RGBA, SHAPES, open_box
from fetchlab.sim.spaces import ROW
from fetchlab.sim.variations import Conditions
from fetchlab.sim.world import TABLE, World

SETTLE_SUBSTEPS = 24
BOX = "box"
HEIGHT_AND_YAW = slice(POLICY_FEATURES.stop, None)
BOX_SURFACE = Surface(friction=1.0)
# Boards that are only seen, and hide the whole table from one camera: half extents, middle [m].
SCREENS = {
    "front": ((0.01, 0.45, 0.35), (0.95, 0.0, 0.33)),
    "overhead": ((0.12, 0.12, 0.005), (0.5, 0.0, 0.9)),
}
SCREEN_RGBA = (0.42, 0.44, 0.47, 1.0)

Array = NDArray[np.float64]


class Table:
    """What lies on the world's table."""

    def __init__(self, world: World, robot: Panda) -> None:
        self._world, self._robot = world, robot
        self._objects: list[str] = []
        self._box: list[str] = []
        self._screens: list[str] = []
        self._looks: NDArray[np.float32] = np.zeros((MAX_ROWS, ROW), np.float32)

    def lay(self, scene: Scene, conditions: Conditions) -> None:
        """Put this scene in place of what lies there, with the robot at home."""
        # The last first, so that the engine hands the same slots to the new ones.
        for name in reversed([*self._objects, *self._box, *self._screens]):
            self._world.remove(name)
        self._robot.reset()
        self._world.step(1)  # clears the engine's memory of old contacts
        self._robot.reset()
        self._objects = [object_name(row) for row in range(len(scene.objects))]
        self._box = [BOX] if scene.box is not None else []
        for name, thing in zip(self._objects, scene.objects, strict=True):
            self._add(name, thing)
        if scene.box is not None:
            place = (*scene.box, 0.0)
            self._world.add_body(BOX, open_box(), BOX_SURFACE, 0, place, 0, BOX_RGBA)
        self._world.step(SETTLE_SUBSTEPS)
        for name in self._objects:
            self._world.put_to_sleep(name)
        self._looks = _looks(scene)
        self._world.paint(TABLE, conditions.table_rgba)
        self._screens = [f"{camera}_screen" for camera in conditions.screened]
        for name, camera in zip(self._screens, conditions.screened, strict=True):
            half, middle = SCREENS[camera]
            self._world.add_body(
                name, Box(half), Surface(0.0), 0, middle, 0, SCREEN_RGBA, hollow=True
            )

    def paint_objects(self, rgb: tuple[float, float, float]) -> None:
        """Give all objects one colour, as cameras see them; `rows` still tells their own."""
        for name in self._objects:
            self._world.paint(name, (*rgb, 1.0))

    def set_down(self, row: int, shape: str, pose: Pose) -> None:
        """Lay an object somewhere else, at rest."""
        x, y, yaw = pose
        self._world.set_down(object_name(row), (x, y, SHAPES[shape].base), yaw)

    def _add(self, name: str, thing: SceneObject) -> None:
        shape, colour = SHAPES[thing.shape], (*COLOURS[thing.colour], 1.0)
        place = thing.x, thing.y, shape.base
        self._world.add_body(
            name, shape.geometry, shape.surface, shape.mass, place, thing.yaw, colour
        )

    def poses(self) -> Array:
        """(n, 4) origin x, y, z [m] and yaw [rad] of the objects, and of the box after them."""
        poses = [self._world.pose(name) for name in (*self._objects, *self._box)]
        return np.array([(*position, yaw) for position, yaw in poses])

    def rows(self, poses: Array) -> NDArray[np.float32]:
        """(M, 1 + F) whether there is one, then what OBJECT_FEATURES names."""
        rows, n = self._looks.copy(), len(poses)
        rows[:n, 1:][:, POSITION] = poses[:, :2]
        rows[:n, 1:][:, HEIGHT_AND_YAW] = np.stack(
            [poses[:, 2], np.cos(poses[:, 3]), np.sin(poses[:, 3])], axis=1
        )
        return rows


def object_name(row: int) -> str:
    """What the world calls the object in this row of the scene."""
    return f"object_{row}"


def _looks(scene: Scene) -> NDArray[np.float32]:
    """(M, 1 + F) what does not change: presence, colour, shape."""
    rows = np.zeros((MAX_ROWS, ROW), np.float32)
    for row, thing in enumerate(scene.objects):
        looks = [OBJECT_FEATURES.index(f"is_{look}") for look in (thing.colour, thing.shape)]
        rows[row, [0, *(1 + look for look in looks)]] = 1.0
    if scene.box is not None:
        rows[len(scene.objects), [0, 1 + IS_BOX]] = 1.0
    return rows
