"""The physics engine behind one door: no other file imports it, and bodies have names."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fetchlab.sim.backdrop import Shot, backdrops_of
from fetchlab.sim.cameras import View
from fetchlab.sim.geometry import Box, Geometry, Plates, Solid, Surface, upright
from fetchlab.sim.pictures import FAR, NEAR, Light, Picture
from fetchlab.sim.quiet import silenced_stderr
from fetchlab.sim.scene import TABLE_RGBA

with silenced_stderr():  # PyBullet announces its build time when it is imported
    import pybullet

PHYSICS_HZ = 240
TABLE = "table"  # the name of its top
TABLE_SIZE = 0.8  # edge of the square table top [m]
TABLE_CENTRE = (0.4, 0.0)  # its centre; the robot stands at the origin, on the near edge [m]
OUT_OF_SIGHT = (0.0, 0.0, -50.0)  # m

Vector = Sequence[float] | NDArray[np.floating]


def has_fast_images() -> bool:
    """Whether this PyBullet was built with numpy, and hands over images as arrays, not tuples."""
    return bool(pybullet.isNumpyEnabled())


class World:
    """A table in a PyBullet client of its own (DIRECT mode: no display, no OpenGL)."""

    def __init__(self) -> None:
        self._client = pybullet.connect(pybullet.DIRECT)
        self._bodies: dict[str, int] = {}
        self._links: dict[tuple[str, str], int] = {}
        self._solids: dict[tuple[Geometry, tuple[float, ...]], tuple[int, int]] = {}
        # The default broad phase tidies up a little at every step, from where it left off, so that
        # old episodes change the order in which new contacts are solved, and with it the last bit.
        pybullet.resetSimulation(pybullet.RESET_USE_SIMPLE_BROADPHASE, physicsClientId=self._client)
        pybullet.setPhysicsEngineParameter(
            fixedTimeStep=1 / PHYSICS_HZ,
            deterministicOverlappingPairs=1,
            # Bullet's default of 50 buys nothing here; at 10 blocks slip (docs/decisions.md).
            numSolverIterations=25,
            physicsClientId=self._client,
        )
        pybullet.setGravity(0, 0, -9.81, physicsClientId=self._client)
        half, place = TABLE_SIZE / 2, (*TABLE_CENTRE, -0.02)
        self._table_place, self._table_rgba = place, TABLE_RGBA
        self.add_body(TABLE, Box((half, half, 0.02)), Surface(0.8), 0, place, 0, TABLE_RGBA)

    def close(self) -> None:
        if self._client >= 0:
            pybullet.disconnect(physicsClientId=self._client)
            self._client = -1

    def step(self, n_substeps: int) -> None:
        for _ in range(n_substeps):
            pybullet.stepSimulation(physicsClientId=self._client)

    # Bodies -------------------------------------------------------------------------------

    def load_robot(self, name: str, urdf: Path) -> None:
        """Fix the robot of this URDF at the origin."""
        body = pybullet.loadURDF(str(urdf), useFixedBase=True, physicsClientId=self._client)
        self._bodies[name] = body
        for index in range(pybullet.getNumJoints(body, physicsClientId=self._client)):
            info = pybullet.getJointInfo(body, index, physicsClientId=self._client)
            self._links[name, info[1].decode()] = index
            self._links[name, info[12].decode()] = index

    def add_body(
        self,
        name: str,
        geometry: Geometry,
        surface: Surface,
        mass: float,
        position: Vector,
        yaw: float,
        rgba: Vector,
        *,
        hollow: bool = False,
    ) -> None:
        """A solid [m, kg, rad]; mass 0 makes it immovable, and what is hollow is only seen."""
        collision, visual = self._solid(geometry, tuple(rgba))
        self._bodies[name] = body = pybullet.createMultiBody(
            baseMass=mass,
            baseCollisionShapeIndex=-1 if hollow else collision,
            baseVisualShapeIndex=visual,
            basePosition=position,
            useMaximalCoordinates=1,
            baseOrientation=upright(yaw),
            physicsClientId=self._client,
        )
        pybullet.changeDynamics(body, -1, **surface.words(), physicsClientId=self._client)

    def _solid(self, geometry: Geometry, rgba: tuple[float, ...]) -> tuple[int, int]:
        # Shapes outlive their bodies in Bullet: made once and shared, or every episode would leak.
        key = geometry, rgba
        if key not in self._solids:
            self._solids[key] = (
                self._plates(geometry, rgba)
                if isinstance(geometry, Plates)
                else self._single(geometry, rgba)
            )
        return self._solids[key]

    def _single(self, solid: Solid, rgba: tuple[float, ...]) -> tuple[int, int]:
        collision, visual = solid.words()
        kind = {"shapeType": getattr(pybullet, solid.kind), "physicsClientId": self._client}
        paint = {"rgbaColor": rgba, "specularColor": (0, 0, 0)}
        return (
            pybullet.createCollisionShape(**kind, **collision),
            pybullet.createVisualShape(**kind, **visual, **paint),
        )

    def _plates(self, geometry: Plates, rgba: tuple[float, ...]) -> tuple[int, int]:
        (collision, visual), n = geometry.words(), len(geometry.plates)
        kind = {"shapeTypes": [pybullet.GEOM_BOX] * n, "physicsClientId": self._client}
        return (
            pybullet.createCollisionShapeArray(**kind, **collision),
            pybullet.createVisualShapeArray(**kind, **visual, rgbaColors=[rgba] * n),
        )

    def remove(self, name: str) -> None:
        pybullet.removeBody(self._bodies.pop(name), physicsClientId=self._client)

    def paint(self, name: str, rgba: Vector) -> None:
        if name == TABLE:
            self._table_rgba = tuple(rgba)
        pybullet.changeVisualShape(
            self._bodies[name], -1, rgbaColor=rgba, physicsClientId=self._client
        )

    def set_down(self, name: str, position: Vector, yaw: float) -> None:
        """Place a body at rest [m, rad], at once."""
        pybullet.resetBasePositionAndOrientation(
            self._bodies[name], position, upright(yaw), physicsClientId=self._client
        )

    def put_to_sleep(self, name: str) -> None:
        """Spare a body at rest its physics until something touches it."""
        pybullet.changeDynamics(
            self._bodies[name],
            -1,
            activationState=pybullet.ACTIVATION_STATE_ENABLE_SLEEPING
            | pybullet.ACTIVATION_STATE_SLEEP,
            physicsClientId=self._client,
        )

    def pose(self, name: str) -> tuple[Vector, float]:
        """Origin x, y, z [m] of the body, and its yaw [rad]: where its own x axis points."""
        position, (x, y, z, w) = pybullet.getBasePositionAndOrientation(
            self._bodies[name], physicsClientId=self._client
        )
        return position, math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))

    def touching(self, name: str, other: str, other_link: str | None = None) -> bool:
        """Whether a body touches this link of another one, or any part of it."""
        link = {} if other_link is None else {"linkIndexB": self._links[other, other_link]}
        return bool(
            pybullet.getContactPoints(
                bodyA=self._bodies[name],
                bodyB=self._bodies[other],
                **link,
                physicsClientId=self._client,
            )
        )

    # Joints -------------------------------------------------------------------------------

    def joint_positions(self, name: str, joints: Sequence[str]) -> NDArray[np.float64]:
        """Positions of these joints [rad or m]."""
        indices = [self._links[name, joint] for joint in joints]
        states = pybullet.getJointStates(self._bodies[name], indices, physicsClientId=self._client)
        return np.array([state[0] for state in states])

    def reset_joints(self, name: str, positions: Mapping[str, float]) -> None:
        """Place these joints at rest, at once."""
        for joint, position in positions.items():
            pybullet.resetJointState(
                self._bodies[name],
                self._links[name, joint],
                position,
                targetVelocity=0.0,
                physicsClientId=self._client,
            )

    def drive_joint(
        self, name: str, joint: str, target: float, force: float, velocity: float
    ) -> None:
        """Servo a joint to `target`, with at most this force [N or N m] and speed."""
        pybullet.setJointMotorControl2(
            self._bodies[name],
            self._links[name, joint],
            pybullet.POSITION_CONTROL,
            targetPosition=target,
            force=force,
            maxVelocity=velocity,
            positionGain=0.2,
            physicsClientId=self._client,
        )

    def couple_joints(self, name: str, joint: str, other: str) -> None:
        """Gear two sliding joints so that both move by the same amount."""
        constraint = pybullet.createConstraint(
            self._bodies[name],
            self._links[name, joint],
            self._bodies[name],
            self._links[name, other],
            jointType=pybullet.JOINT_GEAR,
            jointAxis=(1, 0, 0),
            parentFramePosition=(0, 0, 0),
            childFramePosition=(0, 0, 0),
            physicsClientId=self._client,
        )
        pybullet.changeConstraint(
            constraint, gearRatio=-1, erp=0.1, maxForce=50, physicsClientId=self._client
        )

    def set_link_friction(self, name: str, link: str, friction: float) -> None:
        pybullet.changeDynamics(
            self._bodies[name],
            self._links[name, link],
            lateralFriction=friction,
            physicsClientId=self._client,
        )

    def link_pose(self, name: str, link: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Origin (3,) [m] and rotation (3, 3) of a link's frame in the world."""
        state = pybullet.getLinkState(
            self._bodies[name],
            self._links[name, link],
            computeForwardKinematics=1,
            physicsClientId=self._client,
        )
        rotation = pybullet.getMatrixFromQuaternion(state[5])
        return np.array(state[4]), np.array(rotation).reshape(3, 3)

    # Cameras ------------------------------------------------------------------------------

    def shot(
        self, view: View, width: int, height: int, light: Light, *, shadow: bool = False
    ) -> Shot:
        """What this viewpoint shows."""
        return Shot.of(self._render(view, width, height, light, shadow))

    def still_shot(self, view: View, size: int, light: Light) -> Shot:
        """The same pixels, sooner, for a viewpoint that comes again: its table is drawn once."""
        backdrops = backdrops_of(os.getpid(), World, TABLE_SIZE)
        backdrop = backdrops.behind(view, size, light, self._table_rgba)
        # Between two steps of physics this changes nothing but what cameras see.
        self.set_down(TABLE, OUT_OF_SIGHT, 0)
        rest = self.shot(view, size, size, light)
        self.set_down(TABLE, self._table_place, 0)
        return rest.before(backdrop)

    def empty_shot(self, view: View, size: int, light: Light, rgba: tuple[float, ...]) -> Shot:
        """What it shows with a table of this colour, if nothing has been put there."""
        self.paint(TABLE, rgba)
        return self.shot(view, size, size, light)

    def picture(self, view: View, width: int, height: int, light: Light) -> Picture:
        """Colours, depth and segmentation from this viewpoint."""
        return Picture.of(self._render(view, width, height, light, flags=0), self._bodies)

    def _render(
        self,
        view: View,
        width: int,
        height: int,
        light: Light,
        shadow: bool = False,
        flags: int = pybullet.ER_NO_SEGMENTATION_MASK,
    ) -> Any:
        return pybullet.getCameraImage(
            width,
            height,
            pybullet.computeViewMatrix(view.eye, view.target, view.up),
            pybullet.computeProjectionMatrixFOV(view.fov, width / height, NEAR, FAR),
            lightDirection=light.direction,
            lightAmbientCoeff=light.ambient,
            lightDiffuseCoeff=light.diffuse,
            lightSpecularCoeff=light.specular,
            shadow=int(shadow),
            flags=flags,
            renderer=pybullet.ER_TINY_RENDERER,
            physicsClientId=self._client,
        )
