"""Are a dataset and a checkpoint whole, and does the policy reproduce what it was shown?"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fetchlab.eval.doctor.finding import Check, Finding, fail, ok, warn
from fetchlab.policy.actions import ARM_PROPRIOCEPTION
from fetchlab.sim.env import Tabletop
from fetchlab.train.dataset import Demonstrations

REPLAY_TOLERANCE = 1e-3  # [rad or m]; another processor may round differently
FRAMES = 256  # frames that the open-loop error is measured on
LEARNED = 0.5  # a policy that erred more than this part of standing still has learned nothing
OVERFIT = 3.0  # held-out error by training error beyond which more demonstrations are needed
COLLECT_AGAIN = "collect it again with `fetchlab collect`"


class Artefacts:
    """A dataset and a policy's folder, each read once; None where the person named none."""

    def __init__(self, data: Path | None, policy: Path | None) -> None:
        self._data, self._policy = data, policy
        self._demonstrations: Demonstrations | None = None
        self._loaded: Any = None

    def checks(self) -> dict[str, Check]:
        """What can be said about the folders that were named; a check may rely on earlier ones."""
        checks: dict[str, Check] = {}
        if self._policy:
            checks["checkpoint"] = self.checkpoint
        if self._data:
            checks |= {"dataset": self.dataset, "replay": self.replay}
        if self._data and self._policy:
            checks["open loop"] = self.open_loop
        return checks

    def checkpoint(self) -> Finding:
        """The policy can be loaded."""
        from fetchlab.policy.registry import load_policy

        self._loaded = load_policy(str(self._policy))
        weights = sum(weight.numel() for weight in self._loaded.parameters())
        return ok("checkpoint", f"{self._loaded.name}, {weights / 1e6:.2f} M parameters")

    def dataset(self) -> Finding:
        """Every file can be read, and shows the world that the policy was made for."""
        assert self._data is not None
        world = self._loaded.env_config if self._loaded else None
        shown = self._demonstrations = Demonstrations.load(self._data, world)
        cameras = ", ".join(shown.env_config.cameras) or "no camera"
        detail = f"{len(shown.lengths)} episodes, {len(shown)} frames, seen through {cameras}"
        if not np.isfinite(shown.actions).all() or not np.isfinite(shown.proprioception).all():
            return fail("dataset", f"{detail}; it holds NaN or infinity", COLLECT_AGAIN)
        return ok("dataset", detail)

    def replay(self) -> Finding:
        """The first episode's executed actions lead through its recorded states again."""
        deviation = replay_deviation(self._shown(), episode=0)
        detail = f"first episode within {deviation:.1e} rad or m of its recording"
        if deviation > REPLAY_TOLERANCE:
            remedy = f"the simulator has changed since the recording: {COLLECT_AGAIN}"
            return fail("replay", detail, remedy)
        return ok("replay", detail)

    def open_loop(self) -> Finding:
        """The policy's actions on recorded observations, beside an arm that stands still."""
        shown = self._shown()
        seen, still = errors(self._loaded, shown, shown.training_frames)
        unseen, _ = errors(self._loaded, shown, shown.held_out_frames)
        unit = "rad" if shown.env_config.action_mode == "joint" else "m"
        detail = (
            f"error {seen:.4f} {unit} on training frames, {unseen:.4f} on held-out ones "
            f"(standing still: {still:.4f})"
        )
        if seen > LEARNED * still:
            return fail("open loop", detail, "it has not learned the data: train for more steps")
        if unseen > OVERFIT * seen:
            return warn("open loop", detail, "it has learned by heart: collect more demonstrations")
        return ok("open loop", detail)

    def _shown(self) -> Demonstrations:
        if self._demonstrations is None:
            raise LookupError("the dataset could not be read")
        return self._demonstrations


def replay_deviation(shown: Demonstrations, episode: int) -> float:
    """How far proprioception strays when an episode's executed actions are sent again."""
    frames = range(int(shown.bounds[episode]), int(shown.bounds[episode + 1]))
    options = {"n_objects": int(shown.n_objects[episode])}
    worst = 0.0
    with contextlib.closing(Tabletop.from_config(replace(shown.env_config, cameras=()))) as env:
        moment, _ = env.reset(seed=int(shown.scene_seeds[episode]), options=options)
        for frame in frames:
            strayed = np.abs(moment["agent_pos"] - shown.proprioception[frame]).max()
            worst = max(worst, float(strayed))
            moment, *_ = env.step(shown.executed_actions[frame])
    return worst


def errors(policy: Any, shown: Demonstrations, frames: np.ndarray) -> tuple[float, float]:
    """Mean error of the arm's targets [rad or m]: the policy's, and standing still's."""
    picked = frames[np.linspace(0, len(frames) - 1, min(FRAMES, len(frames))).astype(np.int64)]
    observations = shown.observations(picked)
    predicted = np.asarray(policy.chunk(observations))[..., :-1]  # (B, K, A - 1)
    wanted, mask = shown.chunks(picked, predicted.shape[1])  # (B, K, A), (B, K)
    arm = observations.proprioception[:, None, ARM_PROPRIOCEPTION[shown.env_config.action_mode]]
    difference = np.abs(predicted - wanted[..., :-1])[mask]
    return float(difference.mean()), float(np.abs(arm - wanted[..., :-1])[mask].mean())
