"""A training run on disk: its record, its checkpoints, and the way back into it.

OUT/config.json + model.safetensors   the finished policy (averaged weights)
OUT/run.json                          settings, dataset, versions, commit, result
OUT/metrics.jsonl, OUT/tensorboard/   the curves
OUT/checkpoints/step-000500/          the averaged policy, as `eval` reads it, and all else
                                      that a resumed training needs to go on bit for bit
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.swa_utils import AveragedModel

from fetchlab.errors import UserError
from fetchlab.policy.learned import ChunkedPolicy
from fetchlab.train.lerobot import read_json
from fetchlab.train.provenance import refuse_differences

RECORD = "run.json"
TENSORS = "training.safetensors"
STATE = "state.json"
KEPT = 2
"""checkpoints that stay; older ones are removed"""


@dataclass(kw_only=True)
class TrainingState:
    """All that changes while training."""

    policy: ChunkedPolicy
    average: AveragedModel
    optimizer: Optimizer
    step: int = 0  # steps done
    seconds: float = 0.0  # time spent training, over all resumptions


def begin_run(
    out: Path, settings: dict[str, Any], provenance: dict[str, Any], *, resume: bool
) -> None:
    """Make `out` ready for this training; UserError if it holds anything else.

    `settings` must be the same when resuming; `provenance` is only written down.
    """
    settings = json.loads(json.dumps(settings))
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        if not resume:
            raise UserError(f"{out} is not empty: choose another --out, or go on with --resume")
        if not (out / RECORD).is_file():
            raise UserError(f"{out} holds something else than an interrupted training")
        refuse_differences(out, read_json(out / RECORD).get("settings", {}), settings)
        return
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / RECORD, {"settings": settings, **provenance})


def finish_run(out: Path, state: TrainingState, result: dict[str, Any]) -> None:
    """Write the averaged policy and add the result to the record, which marks the run finished."""
    averaged_policy(state).save_pretrained(out)
    write_json(out / RECORD, {**read_json(out / RECORD), "result": result})


def result_of(out: Path) -> dict[str, Any] | None:
    """What a finished run ended with, None while it has not finished."""
    record = read_json(out / RECORD) if (out / RECORD).is_file() else {}
    result: dict[str, Any] | None = record.get("result")
    return result


def averaged_policy(state: TrainingState) -> ChunkedPolicy:
    """The policy with averaged weights, which is evaluated and saved."""
    averaged = state.average.module
    assert isinstance(averaged, ChunkedPolicy)
    return averaged


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Whole or not at all."""
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(content, indent=2) + "\n")
    os.replace(temporary, path)


# Checkpoints ------------------------------------------------------------------------------


def save_checkpoint(out: Path, state: TrainingState) -> None:
    """Write `checkpoints/step-…`, whole or not at all, and remove the oldest."""
    folder = out / "checkpoints" / f"step-{state.step:06d}"
    temporary = folder.with_name(".writing")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    averaged_policy(state).save_pretrained(temporary)
    save_file(_tensors(state), temporary / TENSORS)
    _, _, position, has_gauss, cached_gaussian = np.random.get_state(legacy=True)
    numbers = {"step": state.step, "seconds": state.seconds}
    generator = {"numpy": [int(position), int(has_gauss), float(cached_gaussian)]}
    write_json(temporary / STATE, numbers | generator)
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(temporary, folder)
    for old in _checkpoints(out)[:-KEPT]:
        shutil.rmtree(old)


def load_latest_checkpoint(out: Path, state: TrainingState) -> None:
    """Bring `state` and the random generators to the newest checkpoint, if there is one.

    Raises UserError naming a file that is missing, damaged or of another policy.
    """
    folders = _checkpoints(out)
    if not folders:
        return
    tensors, numbers = _load_tensors(folders[-1] / TENSORS), read_json(folders[-1] / STATE)
    try:
        _restore(state, tensors, numbers)
    except (KeyError, RuntimeError, ValueError, TypeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{folders[-1]} does not fit this training: {reason}") from None


def _checkpoints(out: Path) -> list[Path]:
    return sorted((out / "checkpoints").glob("step-*"), key=lambda path: int(path.name[5:]))


def _load_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise UserError(
            f"{path} is missing or damaged: remove {path.parent} to resume from an earlier "
            f"checkpoint ({error})"
        ) from None


def _tensors(state: TrainingState) -> dict[str, Tensor]:
    groups: dict[str, dict[str, Tensor]] = {
        "policy": state.policy.state_dict(),
        "average": state.average.state_dict(),
        "random": _random_states(),
    }
    moments: dict[int, dict[str, Tensor]] = state.optimizer.state_dict()["state"]
    groups |= {f"optimizer.{index}": tensors for index, tensors in moments.items()}
    return {
        f"{group}.{name}": tensor.detach().clone().contiguous()
        for group, tensors in groups.items()
        for name, tensor in tensors.items()
    }


def _group(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }


def _restore(state: TrainingState, tensors: dict[str, Tensor], numbers: dict[str, Any]) -> None:
    state.policy.load_state_dict(_group(tensors, "policy."))
    state.average.load_state_dict(_group(tensors, "average."))
    moments: dict[Any, dict[str, Tensor]] = {}
    for name, tensor in _group(tensors, "optimizer.").items():
        index, key = name.split(".")
        moments.setdefault(int(index), {})[key] = tensor
    state.optimizer.load_state_dict(state.optimizer.state_dict() | {"state": moments})
    state.step, state.seconds = int(numbers["step"]), float(numbers["seconds"])
    torch.set_rng_state(tensors["random.torch"])
    if torch.cuda.is_available() and "random.cuda" in tensors:
        torch.cuda.set_rng_state(tensors["random.cuda"])
    position, has_gauss, cached_gaussian = numbers["numpy"]
    keys = tensors["random.numpy"].numpy().astype(np.uint32)
    np.random.set_state(("MT19937", keys, position, has_gauss, cached_gaussian))


def _random_states() -> dict[str, Tensor]:
    _, keys, *_ = np.random.get_state(legacy=True)
    numpy_keys = torch.from_numpy(np.asarray(keys, dtype=np.int64))
    states = {"torch": torch.get_rng_state(), "numpy": numpy_keys}
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state()
    return states
