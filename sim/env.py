"""The Gymnasium environment `fetchlab/Tabletop-v0`."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import fields, replace
from numbers import Integral
from typing import Any, SupportsFloat

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from fetchlab.errors import UserError, unknown
from fetchlab.sim.actions import ACTION_BOUNDS, checked
from fetchlab.sim.cameras import CAMERAS, STUDIO, Camera, View
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.kinematics import joints_for
from fetchlab.sim.language import normalized
from fetchlab.sim.observation import MAX_ROWS, PROPRIOCEPTION
from fetchlab.sim.robot import Panda, Reading
from fetchlab.sim.scene import MAX_OBJECTS, Goal, Scene
from fetchlab.sim.sentence import Sentence
from fetchlab.sim.table import ROW, Table, object_name
from fetchlab.sim.tasks.base import TableState
from fetchlab.sim.tasks.registry import TASKS
from fetchlab.sim.world import PHYSICS_HZ, Image, Picture, World

RESET_OPTIONS = ("n_objects", "instruction", "task")


class Tabletop(gymnasium.Env[dict[str, Any], NDArray[np.float32]]):
    """A Panda, a table with 2 to 20 objects, an instruction.

    Actions are absolute targets, held for one control period and clipped to the action space:
    `joint` (8,) 7 joint angles [rad] + gripper opening [m]; `ee` (4,) position [m] + opening [m].
    Observations: `pixels/<camera>` (H, W, 3) uint8, or with history > 1 (T, H, W, 3), the newest
    last; `agent_pos` (11,) proprioception,
    `environment_state` (378,) privileged object rows, `instruction`.
    Reward 1 on success. Success and the lifting of a wrong object terminate an episode, the task's
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
        shapes: Sequence[str] = ("block",),
        languages: Sequence[str] = ("english",),
        phrasings: str = "plain",
        crowding: str = "apart",
        render_mode: str | None = None,
    ) -> None:
        self.config = EnvConfig(
            task=task,
            cameras=tuple(cameras),
            image_size=image_size,
            action_mode=action_mode,
            control_hz=control_hz,
            history=history,
            shapes=tuple(shapes),
            languages=tuple(languages),
            phrasings=phrasings,
            crowding=crowding,
        )
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise unknown("render mode", str(render_mode), self.metadata["render_modes"])
        self._counts = _count_range(n_objects)
        self.render_mode = render_mode
        self.metadata = {**self.metadata, "render_fps": control_hz}
        self._task = TASKS[task]
        low, high = ACTION_BOUNDS[action_mode]
        self.action_space = spaces.Box(np.array(low, np.float32), np.array(high, np.float32))
        self.observation_space = self._observation_space()
        self._world = World()
        self._robot = Panda(self._world)
        self._table = Table(self._world, self._robot)
        self.scene = Scene(objects=(), goal=Goal(task=task, target=0))
        self._frames: deque[dict[str, Image]] = deque(maxlen=history)
        self._result: tuple[dict[str, Any], float, bool, bool, dict[str, Any]] | None = None

    @classmethod
    def from_config(
        cls,
        config: EnvConfig,
        n_objects: int | tuple[int, int] = (2, 5),
        render_mode: str | None = None,
    ) -> Tabletop:
        settings = {field.name: getattr(config, field.name) for field in fields(config)}
        return cls(n_objects=n_objects, render_mode=render_mode, **settings)

    @property
    def task(self) -> str:
        return self.config.task

    @property
    def task_description(self) -> str:
        return self._instruction

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """A new scene. Options: `n_objects` (int or range), `instruction` (a sentence), `task` (one
        of those that the environment's task is made of).
        """
        super().reset(seed=seed)
        options = options or {}
        for key in options:
            if key not in RESET_OPTIONS:
                raise unknown("reset option", key, RESET_OPTIONS)
        self.scene, self._instruction = self._draw(**options)
        self._table.lay(self.scene)
        task = self._task.part(self.scene.goal.task)
        self._time_limit = round(task.time_limit * self.config.control_hz)
        reading, poses = self._robot.read(), self._table.poses()
        self._judge = task.judge(self.scene, self._state(reading, poses))
        self._steps = 0
        self._result = None
        self._frames.clear()
        return self._observation(reading, poses), self._info("")

    def _draw(
        self,
        n_objects: int | tuple[int, int] | None = None,
        instruction: str | None = None,
        task: str | None = None,
    ) -> tuple[Scene, str]:
        """A scene and what is said about it."""
        low, high = self._counts if n_objects is None else _count_range(n_objects)
        count = int(self.np_random.integers(low, high + 1))
        if instruction is None:
            scene = self._task.scene(self.np_random, self.config, count, task)
            return scene, self._task.say(scene, self.np_random, self.config)
        if not isinstance(instruction, str):
            raise UserError(f"an instruction is a sentence, got {instruction!r}")
        asked = self._task.request(instruction).task
        if task not in (None, asked):
            raise UserError(f"{instruction!r} asks for {asked}, but the option task says {task}")
        scene = self._task.scene(self.np_random, self.config, count, asked)
        goal = self._task.goal(instruction, scene)
        return replace(scene, goal=goal), normalized(instruction)

    def step(
        self, action: NDArray[np.float32]
    ) -> tuple[dict[str, Any], SupportsFloat, bool, bool, dict[str, Any]]:
        """One control period. Raises UserError naming the dimension that is wrong."""
        if self._result is not None:
            return self._result
        if not self.scene.objects:
            raise UserError("the table is empty: call reset before the first step")
        self._drive(checked(action, self.config.action_mode))
        self._world.step(PHYSICS_HZ // self.config.control_hz)
        self._steps += 1
        reading, poses = self._robot.read(), self._table.poses()
        self._judge.watch(self._state(reading, poses))
        terminated = self._judge.success or self._judge.failed
        truncated = not terminated and self._steps >= self._time_limit
        failed = (terminated or truncated) and not self._judge.success
        info = self._info(self._judge.failure_reason() if failed else "")
        observation = self._observation(reading, poses)
        result = observation, float(self._judge.success), terminated, truncated, info
        if terminated or truncated:
            self._result = result
        return result

    def _drive(self, action: NDArray[np.float64]) -> None:
        *arm, opening = action
        joints = joints_for(np.array(arm)) if self.config.action_mode == "ee" else np.array(arm)
        self._robot.drive(joints, opening)

    def _state(self, reading: Reading, poses: NDArray[np.float64]) -> TableState:
        return TableState(
            positions=poses[: len(self.scene.objects), :3],
            tool=reading.tool,
            opening=reading.gripper_opening,
            holds=lambda row: self._robot.holds(object_name(row)),
        )

    # What leaves the environment ----------------------------------------------------------

    def _observation(self, reading: Reading, poses: NDArray[np.float64]) -> dict[str, Any]:
        observation: dict[str, Any] = {
            "agent_pos": reading.proprioception(),
            "environment_state": self._table.rows(poses).reshape(-1),
            "instruction": self._instruction,
        }
        if self.config.cameras:
            observation["pixels"] = self._pixels(reading)
        return observation

    def _pixels(self, reading: Reading) -> dict[str, Image]:
        """What each camera sees: (H, W, 3), or (T, H, W, 3) with history."""
        size = self.config.image_size
        frame = {
            camera: self._world.image(self._view(CAMERAS[camera], reading), size, size)
            for camera in self.config.cameras
        }
        if self.config.history == 1:
            return frame
        self._frames.append(frame)
        while len(self._frames) < self.config.history:  # nothing happened before the start
            self._frames.append(frame)
        return {camera: np.stack([past[camera] for past in self._frames]) for camera in frame}

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
        return self._world.picture(self._view(CAMERAS[camera]), size, size)

    def render(self) -> Image | None:
        """A larger view of the table (480, 640, 3), with shadows."""
        if self.render_mode is None:
            return None
        return self._world.image(self._view(STUDIO), 640, 480, shadow=True)

    def _view(self, camera: Camera, reading: Reading | None = None) -> View:
        reading = reading or self._robot.read()
        return camera.view(reading.hand_position, reading.hand_rotation)

    def close(self) -> None:
        self._world.close()

    def _observation_space(self) -> spaces.Dict:
        size, history = self.config.image_size, self.config.history
        frames = () if history == 1 else (history,)
        image = spaces.Box(0, 255, (*frames, size, size, 3), np.uint8)
        parts: dict[str, spaces.Space[Any]] = {
            "agent_pos": spaces.Box(-4.0, 4.0, (len(PROPRIOCEPTION),), np.float32),
            "environment_state": spaces.Box(-10.0, 10.0, (MAX_ROWS * ROW,), np.float32),
            "instruction": Sentence(tuple(self._task.every_form())),
        }
        if self.config.cameras:
            parts["pixels"] = spaces.Dict({camera: image for camera in self.config.cameras})
        return spaces.Dict(parts)


def _count_range(n_objects: object) -> tuple[int, int]:
    bounds = n_objects if isinstance(n_objects, (tuple, list)) else (n_objects, n_objects)
    whole = len(bounds) == 2 and all(isinstance(bound, Integral) for bound in bounds)
    if not whole or not 2 <= bounds[0] <= bounds[1] <= MAX_OBJECTS:
        raise UserError(f"n_objects must be 2 to {MAX_OBJECTS} or a range within, got {n_objects}")
    return int(bounds[0]), int(bounds[1])
