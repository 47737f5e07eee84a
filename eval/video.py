"""One episode as a film: the table, what each camera saw, and where the policy looked."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from fetchlab.errors import UserError
from fetchlab.eval.gaze import Gaze, gaze_sentence
from fetchlab.eval.grounding import Gazes, summarize
from fetchlab.eval.overlay import Image, action_attention, draw_views, watchable, write
from fetchlab.eval.parallel import load, one_thread
from fetchlab.eval.plan import chosen_world
from fetchlab.eval.results import put_in_place, write_whole
from fetchlab.eval.rollout import EpisodeResult, EpisodeSpec, Moment, make_worlds, rollout
from fetchlab.policy.base import Policy
from fetchlab.policy.registry import is_scripted
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.env import Tabletop
from fetchlab.sim.observation import PROPRIOCEPTION
from fetchlab.sim.scene import MAX_OBJECTS
from fetchlab.sim.tasks.registry import TASKS

PLAIN_CAMERAS = ("front", "wrist")  # shown for policies that see none
SLOWDOWN = 2  # an episode lasts about 1.4 s, too quick for the eye
HOLD = 1.5  # the outcome stays this long [s]
BAR = 48  # height of the strips with text [pixels]
GRIPPER = PROPRIOCEPTION.index("gripper_opening [m]")


@dataclass(frozen=True, kw_only=True)
class RolloutConfig:
    """One episode, played before your eyes."""

    policy: str
    """folder of a trained policy, or the name of one that needs no training (`expert`)"""
    instruction: str | None = None
    """what to say, e.g. "fetch the green block"; by default what the scene's seed draws"""
    task: str | None = None
    """the task to play; by default the policy's own, of several the one that the seed draws"""
    shapes: tuple[str, ...] | None = None
    """what lies on the table; by default what the policy knows"""
    objects: int = 6
    """number of objects on the table"""
    seed: int = 1
    """draws the scene; odd seeds were never used for demonstrations"""
    video: Path | None = None
    """MP4 file (H.264, plays in browsers); the result is written beside it, as JSON"""
    still: Path | None = None
    """PNG file of the moment in the middle of the episode"""
    layer: int = 0
    """decoder layer whose attention is drawn: in the first, 0, objects are found; -1 is the last"""

    def __post_init__(self) -> None:
        if not 2 <= self.objects <= MAX_OBJECTS:
            raise UserError(f"--objects must be 2 to {MAX_OBJECTS}, got {self.objects}")
        if self.seed < 0:
            raise UserError(f"--seed must not be negative, got {self.seed}")
        for option, path, ending in (("video", self.video, ".mp4"), ("still", self.still, ".png")):
            if path is not None and path.suffix.lower() != ending:
                raise UserError(f"--{option} must end in {ending}, got {path}")


@dataclass(frozen=True)
class Film:
    """The frames of one episode, one a control step and one of the end."""

    frames: list[Image]
    views: list[Image]
    """the cameras' part of each frame, one camera above the other"""
    result: EpisodeResult
    fps: int
    gazes: tuple[Gaze, ...]
    """what each attention head looked at; empty for a policy that sees no pixels"""

    def playback(self) -> list[Image]:
        """The frames as shown, with the end held for a moment."""
        return self.frames + [self.frames[-1]] * round(HOLD * self.fps)


def film(policy: Policy, spec: EpisodeSpec, layer: int = 0, world: EnvConfig | None = None) -> Film:
    """Play an episode, in the policy's own world or another, and draw it."""
    frames: list[Image] = []
    views: list[Image] = []
    worlds = make_worlds(world or policy.env_config, 1, render_mode="rgb_array")
    with contextlib.closing(worlds), one_thread():
        env = worlds.envs[0].unwrapped
        assert isinstance(env, Tabletop)
        watched = watchable(policy)
        gazes = Gazes(watched, worlds) if watched is not None else None

        def draw(moment: Moment) -> None:
            heats = action_attention(policy, moment.observations, layer)
            opening = 100 * abs(moment.observations.proprioception[0, GRIPPER])
            footer = f"step {len(frames) + 1}, gripper {opening:.1f} cm"
            views.append(draw_views(camera_images(env, moment), heats, _view_size(policy)))
            frames.append(compose(_render(env), views[-1], env.task_description, footer))
            if gazes is not None:
                gazes.watch(moment)

        result = rollout(policy, [spec], worlds, draw)[0]
        views.append(draw_views(camera_images(env), None, _view_size(policy)))
        frames.append(compose(_render(env), views[-1], result.instruction, outcome(result)))
    fps = max(1, policy.env_config.control_hz // SLOWDOWN)
    looks = gazes.looks if gazes is not None else []
    return Film(frames, views, result, fps, summarize(policy, spec.n_objects, looks))


def outcome(result: EpisodeResult) -> str:
    """How the episode ended, in words."""
    if result.success:
        return f"done in {result.steps} steps"
    return f"failed after {result.steps} steps: {result.reason.replace('_', ' ')}"


def camera_images(env: Tabletop, moment: Moment | None = None) -> dict[str, Image]:
    """What the policy's cameras saw; without a moment, or without cameras, what they would see."""
    cameras = env.config.cameras
    if moment is not None and cameras:
        newest = moment.observations.images[0, -len(cameras) :]
        return dict(zip(cameras, newest, strict=True))
    size = env.config.image_size
    return {name: env.picture(name, size).rgb for name in cameras or PLAIN_CAMERAS}


def _view_size(policy: Policy) -> int:
    """Edge of a camera's picture, so that all of them stand beside the view of the table."""
    return 480 // max(2, len(policy.env_config.cameras)) // 2 * 2


def _render(env: Tabletop) -> Image:
    image = env.render()
    assert image is not None
    return image


def compose(table: Image, views: Image, header: str, footer: str) -> Image:
    """The view of the table, the cameras beside it, a line of text above and below."""
    short = table.shape[0] - views.shape[0]
    column = np.pad(views, ((0, short), (0, 0), (0, 0)), constant_values=255)
    middle = np.concatenate([table, column], axis=1)  # (H, W, 3)
    strip = np.full((BAR, middle.shape[1], 3), 255, np.uint8)
    top, bottom = strip.copy(), strip.copy()
    write(top, f'"{header}"', (16, 32), scale=0.8)
    write(bottom, footer, (16, 31), scale=0.62, grey=90)
    return np.concatenate([top, middle, bottom])


def write_video(path: Path, frames: Sequence[Image], fps: int) -> None:
    """H.264 in MP4 that browsers play and stream; the file appears when it is complete."""
    import av

    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    with av.open(str(partial), "w", format="mp4", options={"movflags": "faststart"}) as container:
        stream = container.add_stream("libx264", rate=fps, options={"crf": "24", "threads": "1"})
        stream.height, stream.width = frames[0].shape[:2]
        stream.pix_fmt = "yuv420p"
        for image in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode())
    put_in_place(partial, path)


def png(image: Image) -> bytes:
    """The picture as a PNG file's content."""
    import cv2

    _, data = cv2.imencode(".png", np.ascontiguousarray(image[:, :, ::-1]))
    return data.tobytes()


def cast_rollout(config: RolloutConfig) -> tuple[Policy, EpisodeSpec]:
    """Who plays, and what; a trained policy of several tasks plays the one that is asked for.

    Raises UserError if it was made for another task, or other shapes.
    """
    part = config.task if config.task in _parts(config.policy) else None
    task = None if part else config.task
    world = chosen_world(config.policy, {"shapes": config.shapes, "task": task})
    spec = EpisodeSpec(
        seed=config.seed,
        n_objects=config.objects,
        instruction=config.instruction,
        task=part,
    )
    return load(config.policy, world), spec


def _parts(source: str) -> tuple[str, ...]:
    """What the task of a trained policy is made of, if of several; a scripted one takes any."""
    if is_scripted(source):
        return ()
    parts = TASKS[load(source).env_config.task].parts
    return tuple(part.name for part in parts) if len(parts) > 1 else ()


def run_rollout(config: RolloutConfig) -> None:
    """`fetchlab rollout`."""
    from rich.console import Console

    policy, spec = cast_rollout(config)
    if config.objects > policy.max_objects:
        raise UserError(
            f"{policy.name} cannot take {config.objects} objects ({policy.max_objects} slots): "
            f"give --objects {policy.max_objects} or fewer"
        )
    shown = film(policy, spec, config.layer)
    if config.video is not None:
        write_video(config.video, shown.playback(), shown.fps)
        about = {
            "policy": policy.name,
            **asdict(shown.result),
            "grounding": [asdict(gaze) for gaze in shown.gazes],
        }
        write_whole(config.video.with_suffix(".json"), json.dumps(about, indent=1) + "\n")
    if config.still is not None:
        write_whole(config.still, png(shown.frames[len(shown.frames) // 2]))
    console = Console()
    console.print(f"{policy.name}, {shown.result.instruction!r}: {outcome(shown.result)}")
    if shown.gazes:
        console.print(gaze_sentence(shown.gazes))
    for path in (config.video, config.still):
        if path is not None:
            console.print(f"{path}", style="dim", soft_wrap=True)
