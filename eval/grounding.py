"""What each attention head looks at, measured with the simulator's segmentation mask.

A token counts for the pixels of its patch: a patch of which a quarter shows the named object gives
it a quarter of the attention it gets. Small objects fill no patch, so beside this share stands the
attention on all patches that show any of the object.

A token knows more than its patch: the `conv` stem sees half a patch further, and encoder layers
would mix the patches (no registered pixel policy has any).
"""

from __future__ import annotations

import contextlib
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.vector import SyncVectorEnv
from numpy.typing import NDArray

from fetchlab.eval.gaze import WHOLE, Gaze
from fetchlab.eval.overlay import Watchable, watchable
from fetchlab.eval.parallel import one_thread
from fetchlab.eval.rollout import BATCH, EpisodeSpec, Moment, make_worlds, rollout
from fetchlab.eval.statistics import Interval, mean_interval
from fetchlab.policy.base import Policy
from fetchlab.policy.phases import ABOVE, CLOSE_HEIGHT, CLOSE_SIDEWAYS, EMPTY
from fetchlab.sim.cameras import CAMERAS
from fetchlab.sim.env import Tabletop
from fetchlab.sim.observation import SHAPE, TOOL, Observation
from fetchlab.sim.pictures import Picture
from fetchlab.sim.shapes import BLOCK_SIZE, SHAPES

CLASSES = ("named", "others", "arm", "table", "background")
PHASES = ("approach", "descend", "close", "lift")
HELD = 0.06  # fingers closed further than this, and not empty, have the object between them [m]
SCREENS = {f"{camera}_screen": "background" for camera in CAMERAS}
BODIES = {"panda": "arm", "table": "table", "box": "others", **SCREENS}

Numbers = NDArray[np.float64]


def phase_of(observation: Observation, target: int) -> str:
    """How far the arm is with the named object, from the physical state alone.

    A policy that goes for another object stays in `approach`.
    """
    tool, opening = observation.proprioception[TOOL], observation.proprioception[7]
    sideways = math.dist(tool[:2], observation.objects[target, :2])
    shape = list(SHAPES.values())[int(observation.objects[target, SHAPE].argmax())]
    low, near = tool[2] < shape.grasp_height + CLOSE_HEIGHT, sideways < ABOVE
    if near and EMPTY * shape.width / BLOCK_SIZE < opening < HELD and not low:
        return "lift"
    if low and (sideways < CLOSE_SIDEWAYS or (near and opening < HELD)):
        return "close"
    return "descend" if near else "approach"


def patch_shares(picture: Picture, target: int, grid: tuple[int, int]) -> Numbers:
    """(rows, columns, 5) the part of each patch's pixels that shows each of CLASSES."""
    kinds = [_kind(name, target) for name in picture.names] + [CLASSES.index("background")]
    pixels = np.array(kinds)[picture.segmentation]  # (H, W); -1, the background, is the last
    one_hot = np.eye(len(CLASSES))[pixels]  # (H, W, 5)
    rows, columns = grid
    height, width = pixels.shape
    cells = one_hot.reshape(rows, height // rows, columns, width // columns, len(CLASSES))
    shares: Numbers = cells.mean(axis=(1, 3))
    return shares


def _kind(name: str, target: int) -> int:
    if name == f"object_{target}":
        return CLASSES.index("named")
    if name.startswith("object_"):
        return CLASSES.index("others")
    return CLASSES.index(BODIES[name])


@dataclass(frozen=True, kw_only=True)
class Look:
    """What the heads looked at in one moment of an episode."""

    episode: int
    phase: str
    mass: Numbers  # (L, H, 6) attention on each of CLASSES, then on what is no patch
    on_patches: Numbers  # (L, H) attention on the patches that show the named object
    area: Numbers  # (5,) share of the pixels
    patches: float  # share of the patches that show the named object


def look(weights: Numbers, shares: Numbers, episode: int, phase: str) -> Look:
    """weights (L, H, N) that sum to 1, patches first; shares (..., 5) of N' <= N patches."""
    shares = shares.reshape(-1, len(CLASSES))  # (N', 5)
    seen = weights[..., : len(shares)]  # (L, H, N')
    shown = shares[:, 0] > 0
    rest = weights[..., len(shares) :].sum(axis=-1, keepdims=True)  # (L, H, 1)
    return Look(
        episode=episode,
        phase=phase,
        mass=np.concatenate([seen @ shares, rest], axis=-1),
        on_patches=seen[..., shown].sum(axis=-1),
        area=shares.mean(axis=0),
        patches=float(shown.mean()),
    )


class Gazes:
    """Watches a `rollout` in which each slot plays one episode at most."""

    def __init__(self, policy: Watchable, worlds: SyncVectorEnv, first_episode: int = 0) -> None:
        self.looks: list[Look] = []
        self._policy, self._worlds, self._first = policy, worlds, first_episode
        self._past: dict[int, list[Numbers]] = {}  # slot -> shares of all frames so far

    def watch(self, moment: Moment) -> None:
        """Note what every head looks at before this decision."""
        layers = self._policy.attention(moment.observations)  # L of (B, H, K, N)
        weights = np.stack([layer.mean(dim=2).cpu().numpy() for layer in layers])  # (L, B, H, N)
        rows, columns = self._policy.camera_maps(layers[0]).shape[-2:]
        for row, slot in enumerate(moment.slots):
            env = self._worlds.envs[slot].unwrapped
            assert isinstance(env, Tabletop)
            shares = self._remember(slot, frame_shares(env, (rows, columns)), env.config.memory)
            phase = phase_of(moment.observations[row], env.scene.target)
            looked = weights[:, row].astype(np.float64)
            self.looks.append(look(looked, shares, self._first + slot, phase))

    def _remember(self, slot: int, shares: Numbers, memory: str) -> Numbers:
        """(T, C, rows, columns, 5) of the frames that the policy sees, as the simulator keeps."""
        past, n = self._past.setdefault(slot, []), self._policy.n_frames
        past.append(shares)
        shown = [*[past[0]] * n, *past][-n:]
        if memory == "first" and n > 1:
            shown[0] = past[0]
        return np.stack(shown)


def frame_shares(env: Tabletop, grid: tuple[int, int]) -> Numbers:
    """(C, rows, columns, 5) what the policy's cameras show now."""
    size, target = env.config.image_size, env.scene.target
    pictures = [env.picture(camera, size) for camera in env.config.cameras]
    return np.stack([patch_shares(picture, target, grid) for picture in pictures])


def measure_grounding(policy: Policy, specs: Sequence[EpisodeSpec]) -> tuple[Gaze, ...]:
    """Play the episodes, all with as many objects; nothing for a policy that sees no pixels."""
    watched = watchable(policy)
    if watched is None or not specs:
        return ()
    looks: list[Look] = []
    worlds = make_worlds(policy.env_config, min(BATCH, len(specs)))
    with contextlib.closing(worlds), one_thread():
        for start in range(0, len(specs), BATCH):
            gazes = Gazes(watched, worlds, first_episode=start)
            rollout(policy, specs[start : start + BATCH], worlds, gazes.watch)
            looks += gazes.looks
    return summarize(policy, specs[0].n_objects, looks)


def summarize(policy: Policy, n_objects: int, looks: Sequence[Look]) -> tuple[Gaze, ...]:
    """Every head in whole episodes, then in each phase that occurs."""
    taught = taught_head(policy)
    gazes = []
    for phase in (WHOLE, *PHASES):
        chosen = [one for one in looks if phase in (WHOLE, one.phase)]
        for layer, head in np.ndindex(*looks[0].on_patches.shape) if chosen else ():
            place = {"layer": layer + 1, "head": head + 1, "taught": (layer, head) == taught}
            about = {"policy": policy.name, "n_objects": n_objects, "phase": phase, **place}
            gazes.append(Gaze(**about, **_means(chosen, layer, head)))
    return tuple(gazes)


def _means(looks: Sequence[Look], layer: int, head: int) -> dict[str, Any]:
    """The numbers of a Gaze: first the mean of each episode, then that of the episodes."""
    episodes: defaultdict[int, list[Numbers]] = defaultdict(list)
    for one in looks:
        looked = [*one.mass[layer, head], one.on_patches[layer, head]]
        episodes[one.episode].append(np.array([*looked, one.patches, *one.area]))
    means = np.array([np.mean(frames, axis=0) for frames in episodes.values()])  # (E, 13)
    names = (*CLASSES, "robot_token", "on_named_patches", "named_patches")
    values = means.mean(axis=0).tolist()
    return {
        **dict(zip(names, values, strict=False)),
        "area": dict(zip(CLASSES, values[len(names) :], strict=True)),
        "named_ci95": share_interval(means[:, 0]),
        "on_named_patches_ci95": share_interval(means[:, names.index("on_named_patches")]),
        "n_episodes": len(means),
        "n_frames": len(looks),
    }


def share_interval(shares: Numbers) -> Interval | None:
    """95 % interval of a mean share, which cannot leave 0 to 1; None for a single one."""
    if len(shares) < 2:
        return None
    low, high = mean_interval(shares.tolist())
    return max(low, 0.0), min(high, 1.0)


def taught_head(policy: Policy) -> tuple[int, int] | None:
    """Layer and head, counted from 0, that training taught to point; None if it taught none."""
    if getattr(policy, "pointing", None) is None:
        return None
    from fetchlab.policy.act import POINTING_HEAD

    return 0, POINTING_HEAD
