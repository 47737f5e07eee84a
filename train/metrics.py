"""The curves of a training: metrics.jsonl and TensorBoard."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path

from accelerate import Accelerator
from torch import Tensor

from fetchlab.errors import UserError

METRICS = "metrics.jsonl"


class Metrics:
    """Writes metrics.jsonl and TensorBoard, and remembers the latest values."""

    def __init__(self, out: Path, accelerator: Accelerator, step: int) -> None:
        self._path, self._accelerator = out / METRICS, accelerator
        self.latest: dict[str, float] = {"loss": math.nan, "held_out_loss": math.nan}
        if accelerator.is_main_process:
            _cut(self._path, step)
        accelerator.init_trackers(
            "tensorboard", init_kwargs={"tensorboard": {"purge_step": step + 1}}
        )

    def write(self, step: int, values: Mapping[str, Tensor | float]) -> None:
        """One line; UserError when the loss is no longer a number."""
        numbers = {
            name: float(value.detach() if isinstance(value, Tensor) else value)
            for name, value in values.items()
        }
        self.latest |= numbers
        if not math.isfinite(numbers.get("loss", 0.0)):
            raise UserError(
                f"the loss became {numbers['loss']} at step {step}: lower --learning-rate"
            )
        self._accelerator.log(numbers, step=step)
        if self._accelerator.is_main_process:
            with self._path.open("a") as file:
                file.write(json.dumps({"step": step, **numbers}) + "\n")


def _cut(path: Path, step: int) -> None:
    """Forget the metrics after this step: a resumed training writes them again."""
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    whole = [line for line in lines if line.endswith("\n")]  # a kill may have cut the last
    temporary = path.with_suffix(".tmp")
    temporary.write_text("".join(line for line in whole if json.loads(line)["step"] <= step))
    os.replace(temporary, path)
