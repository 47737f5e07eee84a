"""The Gymnasium environment `fetchlab/Tabletop-v0`."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any, SupportsFloat

import gymnasium
import numpy as np
from numpy.typing import NDArray

from fetchlab.errors import UserError, unknown
from fetchlab.sim.actions import checked
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.disturbances import Disturbances
from fetchlab.sim.kinematics import joints_for
from fetchlab.sim.language import normalized
from fetchlab.sim.pictures import Image, Picture
from fetchlab.sim.robot import Panda
from fetchlab.sim.scene import GREY, Goal, Scene
from fetchlab.sim.spaces import action_space, count_range, observation_space
from fetchlab.sim.table import Table, object_name
from fetchlab.sim.tasks.base import TableState
from fetchlab.sim.tasks.registry import TASKS
from fetchlab.sim.variations import VARIATIONS
from fetchlab.sim.views import Views
from fetchlab.sim.world import PHYSICS_HZ, World

RESET_OPTIONS = ("n_objects", "instruction", "task")


class Tabletop(gymnasium.Env[dict[str, Any], NDArray[np.float32]]):
    """A Panda, a table with 2 to 20 objects, an instruction.

    Its settings are the fields of EnvConfig, as keywords.
    Actions are absolute targets, held for one control period and clipped to the action space:
    `joint` (8,) 7 joint angles [rad] + gripper opening [m]; `ee` (4,) position [m] + opening [m].
    Observations: `pixels/<camera>` (H, W, 3) uint8, or with history > 1 (T, H, W, 3), the newest
    last; with depth also `depth/<camera>` (H, W) or (T, H, W) float32, distances along the optical
    axis [m]; `agent_pos` (11,) proprioception, `environment_state` (378,) privileged object rows,
    `instruction`.
    `info`: `is_success`, `failure_reason`, `target` (row of the named object), and `cameras`:
    {camera: {"pose": (4, 4) from the camera to the world [m], with x to the right, y down and z
    forwards, "intrinsics": (3, 3) [pixels]}}. Where objects fade (task `remember`), reset's `info`
    holds `before`: {camera: image} of the frame with colours.
    Reward 1 on success. Success and the lifting of a wrong object terminate an episode, the task's
    time limit truncates it; a finished episode stays as it is until `reset`.
    Each environment owns its physics client: create it in the process that uses it.

    Raises UserError for settings and actions that cannot be.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012 (as in Env)

    def __init__(
        self,
        *,
        n_objects: int | tuple[int, int] = (2, 5),
        render_mode: str | None = None,
        **settings: Any,
    ) -> None:
        self.config = EnvConfig.of(settings)
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise unknown("render mode", str(render_mode), self.metadata["render_modes"])
        self._counts = count_range(n_objects)
        self.render_mode = render_mode
        self.metadata = {**self.metadata, "render_fps": self.config.control_hz}
        self._task = TASKS[self.config.task]
        self.action_space = action_space(self.config)
        self.observation_space = observation_space(self.config, tuple(self._task.every_form()))
        self._world = World()
        self._robot = Panda(self._world)
        self._table = Table(self._world, self._robot)
        self._views = Views(self._world, self.config)
        self._disturbances = Disturbances(self._table, self._robot, self.config.shapes)
        self.scene = Scene(objects=(), goal=Goal(task=self.config.task, target=0))
        self._result: tuple[dict[str, Any], float, bool, bool, dict[str, Any]] | None = None

    @classmethod
    def from_config(
        cls,
        config: EnvConfig,
        n_objects: int | tuple[int, int] = (2, 5),
        render_mode: str | None = None,
    ) -> Tabletop:
        return cls(n_objects=n_objects, render_mode=render_mode, **asdict(config))

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
                raise unknown("reset option", str(key), RESET_OPTIONS)
        # The variation draws from a stream of its own, which takes nothing from the scene's.
        (generator,) = self.np_random.spawn(1)
        conditions = VARIATIONS[self.config.variation].draw(generator)
        self.scene, self._instruction = self._draw(**options)
        self._table.lay(self.scene, conditions)
        self._views.begin(conditions, generator)
        self._disturbances.begin(self.scene, conditions, generator)
        task = self._task.part(self.scene.goal.task)
        self._time_limit = round(task.time_limit * self.config.control_hz)
        self._reading, self._poses = self._robot.read(), self._table.poses()
        self._judge = task.judge(self.scene, self._state())
        self._steps = 0
        self._result = None
        before = self._fade() if task.fades else {}
        return self._observation(), self._info("") | before

    def _fade(self) -> dict[str, Any]:
        """Show one frame with colours, then paint all objects grey."""
        frame = self._views.look(self._reading)
        self._table.paint_objects(GREY)
        return {"before": frame["pixels"]}

    def _draw(
        self,
        n_objects: int | tuple[int, int] | None = None,
        instruction: str | None = None,
        task: str | None = None,
    ) -> tuple[Scene, str]:
        """A scene and what is said about it."""
        if not isinstance(task, str | None):
            raise UserError(f"the option task is the name of a task, got {task!r}")
        low, high = self._counts if n_objects is None else count_range(n_objects)
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
        targets = checked(action, self.config.action_mode)
        self._disturbances.strike(self._steps, self._reading, self._poses)
        self._drive(targets)
        self._world.step(PHYSICS_HZ // self.config.control_hz)
        self._steps += 1
        self._reading, self._poses = self._robot.read(), self._table.poses()
        self._judge.watch(self._state())
        terminated = self._judge.success or self._judge.failed
        truncated = not terminated and self._steps >= self._time_limit
        failed = (terminated or truncated) and not self._judge.success
        info = self._info(self._judge.failure_reason() if failed else "")
        observation = self._observation()
        result = observation, float(self._judge.success), terminated, truncated, info
        if terminated or truncated:
            self._result = result
        return result

    def _drive(self, action: NDArray[np.float64]) -> None:
        *arm, opening = action
        joints = joints_for(np.array(arm)) if self.config.action_mode == "ee" else np.array(arm)
        self._robot.drive(self._disturbances.led_astray(joints), opening)

    def _state(self) -> TableState:
        return TableState(
            positions=self._poses[: len(self.scene.objects), :3],
            tool=self._reading.tool,
            opening=self._reading.gripper_opening,
            holds=lambda row: self._robot.holds(object_name(row)),
        )

    # What leaves the environment ----------------------------------------------------------

    def _observation(self) -> dict[str, Any]:
        observation: dict[str, Any] = {
            "agent_pos": self._reading.proprioception(),
            "environment_state": self._table.rows(self._poses).reshape(-1),
            "instruction": self._instruction,
        }
        if self.config.cameras:
            self._views.look(self._reading)
            observation |= self._views.frames()
        return observation

    def _info(self, failure_reason: str) -> dict[str, Any]:
        return {
            "is_success": self._judge.success,
            "failure_reason": failure_reason,
            "target": self.scene.target,
            "cameras": self._views.geometry(self._reading),
        }

    def picture(self, camera: str, size: int) -> Picture:
        """Colours, depth [m] and segmentation (body names) of a registered camera, at any size."""
        return self._views.picture(camera, size, self._robot.read())

    def render(self) -> Image | None:
        """A larger view of the table (480, 640, 3), with shadows."""
        if self.render_mode is None:
            return None
        return self._views.studio(640, 480, self._robot.read())

    def close(self) -> None:
        self._world.close()
