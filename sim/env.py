"""The Gymnasium environment `fetchlab/Tabletop-v0`."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from numbers import Integral
from typing import Any, SupportsFloat

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from fetchlab.errors import UserError, unknown
from fetchlab.sim.actions import ACTION_BOUNDS, checked
from fetchlab.sim.cameras import CAMERAS, STUDIO, Camera
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.kinematics import joints_for
from fetchlab.sim.observation import OBJECT_FEATURES, PROPRIOCEPTION
from fetchlab.sim.robot import Panda, Reading
from fetchlab.sim.scene import BLOCK_MASS, BLOCK_SIZE, COLOURS, MAX_OBJECTS, Scene, draw_scene
from fetchlab.sim.sentence import Sentence
from fetchlab.sim.tasks.base import TableState
from fetchlab.sim.tasks.registry import TASKS
from fetchlab.sim.world import PHYSICS_HZ, Image, Picture, View, World

SETTLE_SUBSTEPS = 24
ROW = 1 + len(OBJECT_FEATURES)  # a row of environment_state: present, then the features


class Tabletop(gymnasium.Env[dict[str, Any], NDArray[np.float32]]):
    """A Panda, a table with 2 to 20 blocks, an instruction.

    Actions are absolute targets, held for one control period and clipped to the action space:
    `joint` (8,) 7 joint angles [rad] + gripper opening [m]; `ee` (4,) position [m] + opening [m].
    Observations: `pixels/<camera>` (H, W, 3) uint8, or with history > 1 (T, H, W, 3), the newest
    last; `agent_pos` (11,) proprioception,
    `environment_state` (180,) privileged object rows, `instruction`.
    Reward 1 on success. Success and the lifting of a wrong block terminate an episode, the task's
    time limit truncates it; a finished episode stays as it is until `reset`.
    Each environment owns its physics client: create it in the process that uses it.

    Raises UserError for settings and actions that cannot be.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012 (as in Env)

    def __init__(
        self,
        task: str = "fetch",
        n_objects: int | tuple[int, int] = (2, 5),
        cameras: Sequence[str] = ("front", "wrist"),
        image_size: int = 64,
        action_mode: str = "joint",
        control_hz: int = 10,
        history: int = 1,
        render_mode: str | None = None,
    ) -> None:
        self.config = EnvConfig(
            task=task,
            cameras=tuple(cameras),
            image_size=image_size,
            action_mode=action_mode,
            control_hz=control_hz,
            history=history,
        )
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise unknown("render mode", str(render_mode), self.metadata["render_modes"])
        self._counts = _count_range(n_objects)
        self.render_mode = render_mode
        self.metadata = {**self.metadata, "render_fps": control_hz}
        self._task = TASKS[task]
        self._time_limit = round(self._task.time_limit * control_hz)
        low, high = ACTION_BOUNDS[action_mode]
        self.action_space = spaces.Box(np.array(low, np.float32), np.array(high, np.float32))
        self.observation_space = self._observation_space()
        self._world = World()
        self._robot = Panda(self._world)
        self.scene = Scene(blocks=(), target=0)
        self._frames: deque[dict[str, Image]] = deque(maxlen=history)
        self._result: tuple[dict[str, Any], float, bool, bool, dict[str, Any]] | None = None

    @classmethod
    def from_config(
        cls,
        config: EnvConfig,
        n_objects: int | tuple[int, int] = (2, 5),
        render_mode: str | None = None,
    ) -> Tabletop:
        return cls(
            task=config.task,
            n_objects=n_objects,
            cameras=config.cameras,
            image_size=config.image_size,
            action_mode=config.action_mode,
            control_hz=config.control_hz,
            history=config.history,
            render_mode=render_mode,
        )

    @property
    def task(self) -> str:
        return self.config.task

    @property
    def task_description(self) -> str:
        return self._instruction

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """A new scene. Options: `n_objects` (int or range), `instruction` (a sentence)."""
        super().reset(seed=seed)
        options = options or {}
        for key in options:
            if key not in ("n_objects", "instruction"):
                raise unknown("reset option", key, ("n_objects", "instruction"))
        low, high = _count_range(options.get("n_objects", self._counts))
        scene = draw_scene(self.np_random, int(self.np_random.integers(low, high + 1)))
        if options.get("instruction") is not None:
            target = self._task.target_named(options["instruction"], scene)
            scene = Scene(blocks=scene.blocks, target=target)
        self._lay(scene)
        self._instruction = self._task.instruction(scene)
        reading = self._robot.read()
        state = self._state(reading)
        self._judge = self._task.judge(scene, state)
        self._steps = 0
        self._result = None
        self._frames.clear()
        return self._observation(reading, state), self._info("")

    def _lay(self, scene: Scene) -> None:
        # The last first, so that the engine hands the same slots to the new ones.
        for index in reversed(range(len(self.scene.blocks))):
            self._world.remove(_name(index))
        self.scene = scene
        self._robot.reset()
        self._world.step(1)  # clears the engine's memory of old contacts
        self._robot.reset()
        half = (BLOCK_SIZE / 2,) * 3
        for index, block in enumerate(scene.blocks):
            self._world.add_box(
                _name(index),
                half,
                BLOCK_MASS,
                (block.x, block.y, BLOCK_SIZE / 2),
                block.yaw,
                (*COLOURS[block.colour], 1.0),
                friction=1.0,
            )
        self._world.step(SETTLE_SUBSTEPS)
        for index in range(len(scene.blocks)):
            self._world.put_to_sleep(_name(index))

    def step(
        self, action: NDArray[np.float32]
    ) -> tuple[dict[str, Any], SupportsFloat, bool, bool, dict[str, Any]]:
        """One control period. Raises UserError naming the dimension that is wrong."""
        if self._result is not None:
            return self._result
        if not self.scene.blocks:
            raise UserError("the table is empty: call reset before the first step")
        self._drive(checked(action, self.config.action_mode))
        self._world.step(PHYSICS_HZ // self.config.control_hz)
        self._steps += 1
        reading = self._robot.read()
        state = self._state(reading)
        self._judge.watch(state)
        terminated = self._judge.success or self._judge.failed
        truncated = not terminated and self._steps >= self._time_limit
        failed = (terminated or truncated) and not self._judge.success
        info = self._info(self._judge.failure_reason() if failed else "")
        observation = self._observation(reading, state)
        result = observation, float(self._judge.success), terminated, truncated, info
        if terminated or truncated:
            self._result = result
        return result

    def _drive(self, action: NDArray[np.float64]) -> None:
        *arm, opening = action
        joints = joints_for(np.array(arm)) if self.config.action_mode == "ee" else np.array(arm)
        self._robot.drive(joints, opening)

    def _state(self, reading: Reading) -> TableState:
        names = [_name(index) for index in range(len(self.scene.blocks))]
        return TableState(
            positions=np.array([self._world.position(name) for name in names]),
            tool=reading.tool,
            holds=lambda index: self._robot.holds(names[index]),
        )

    # What leaves the environment ----------------------------------------------------------

    def _observation(self, reading: Reading, state: TableState) -> dict[str, Any]:
        observation: dict[str, Any] = {
            "agent_pos": reading.proprioception(),
            "environment_state": self._object_rows(state).reshape(-1),
            "instruction": self._instruction,
        }
        if self.config.cameras:
            observation["pixels"] = self._pixels(reading)
        return observation

    def _pixels(self, reading: Reading) -> dict[str, Image]:
        """What each camera sees: (H, W, 3), or (T, H, W, 3) with history."""
        size = self.config.image_size
        frame = {
            camera: self._world.image(_view(CAMERAS[camera], reading), size, size)
            for camera in self.config.cameras
        }
        if self.config.history == 1:
            return frame
        self._frames.append(frame)
        while len(self._frames) < self.config.history:  # nothing happened before the start
            self._frames.append(frame)
        return {camera: np.stack([past[camera] for past in self._frames]) for camera in frame}

    def _object_rows(self, state: TableState) -> NDArray[np.float32]:
        rows = np.zeros((MAX_OBJECTS, ROW), np.float32)  # (M, 1 + F)
        for index, block in enumerate(self.scene.blocks):
            rows[index, 0] = 1.0
            rows[index, 1:3] = state.positions[index, :2]
            rows[index, 3 + list(COLOURS).index(block.colour)] = 1.0
        return rows

    def _info(self, failure_reason: str) -> dict[str, Any]:
        return {
            "is_success": self._judge.success,
            "failure_reason": failure_reason,
            "target": self.scene.target,
        }

    def picture(self, camera: str, size: int) -> Picture:
        """Colours, depth [m] and segmentation (body names) of a registered camera, at any size."""
        if camera not in CAMERAS:
            raise unknown("camera", camera, CAMERAS)
        return self._world.picture(_view(CAMERAS[camera], self._robot.read()), size, size)

    def render(self) -> Image | None:
        """A larger view of the table (480, 640, 3), with shadows."""
        if self.render_mode is None:
            return None
        return self._world.image(_view(STUDIO, self._robot.read()), 640, 480, shadow=True)

    def close(self) -> None:
        self._world.close()

    def _observation_space(self) -> spaces.Dict:
        size, history = self.config.image_size, self.config.history
        frames = () if history == 1 else (history,)
        image = spaces.Box(0, 255, (*frames, size, size, 3), np.uint8)
        parts: dict[str, spaces.Space[Any]] = {
            "agent_pos": spaces.Box(-4.0, 4.0, (len(PROPRIOCEPTION),), np.float32),
            "environment_state": spaces.Box(-10.0, 10.0, (MAX_OBJECTS * ROW,), np.float32),
            "instruction": Sentence(self._task.sentences()),
        }
        if self.config.cameras:
            parts["pixels"] = spaces.Dict({camera: image for camera in self.config.cameras})
        return spaces.Dict(parts)


def _view(camera: Camera, reading: Reading) -> View:
    return View(*camera.placed(reading.hand_position, reading.hand_rotation), camera.fov)


def _name(index: int) -> str:
    return f"object_{index}"


def _count_range(n_objects: object) -> tuple[int, int]:
    bounds = n_objects if isinstance(n_objects, (tuple, list)) else (n_objects, n_objects)
    whole = len(bounds) == 2 and all(isinstance(bound, Integral) for bound in bounds)
    if not whole or not 2 <= bounds[0] <= bounds[1] <= MAX_OBJECTS:
        raise UserError(f"n_objects must be 2 to {MAX_OBJECTS} or a range within, got {n_objects}")
    return int(bounds[0]), int(bounds[1])
