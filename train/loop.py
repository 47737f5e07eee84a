"""Behaviour cloning: a loop one can read aloud."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import count, islice
from pathlib import Path

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from fetchlab.errors import UserError
from fetchlab.policy.learned import ChunkedPolicy
from fetchlab.train import checkpoint
from fetchlab.train.checkpoint import TrainingState
from fetchlab.train.dataset import Demonstrations, Indices
from fetchlab.train.memory import keep_freed_memory
from fetchlab.train.metrics import Metrics
from fetchlab.train.provenance import git_commit, versions

HELD_OUT_BATCHES = 8
"""held-out loss is measured on at most so many batches, spread over the held-out frames"""
LIMITS: tuple[tuple[tuple[str, ...], Callable[[float], bool], str], ...] = (
    (("steps", "log_every", "eval_every", "save_every"), lambda x: x >= 1, "be at least 1"),
    (("batch_size",), lambda x: 1 <= x <= 65_536, "be 1 to 65536"),
    (("learning_rate", "gradient_clip"), lambda x: 0 < x < math.inf, "be positive"),
    (
        ("warmup_steps", "weight_decay", "num_threads"),
        lambda x: 0 <= x < math.inf,
        "not be negative",
    ),
    (("seed",), lambda x: 0 <= x < 2**32, "be 0 to 4294967295"),  # NumPy's limit
    (("ema_decay", "adam_beta2"), lambda x: 0 <= x < 1, "be at least 0 and below 1"),
)


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """How to train; the defaults are the recipe that worked on every seed tried."""

    steps: int = 1800
    """optimizer steps"""
    batch_size: int = 32
    """frames a step, over all devices together"""
    learning_rate: float = 4e-3
    """highest rate, reached after the warm-up; then a cosine down to 0"""
    warmup_steps: int = 60
    """steps of linear warm-up, though never more than a quarter of all"""
    weight_decay: float = 1e-4
    """of AdamW, on matrices only: biases, scales and embeddings of one dimension are left alone"""
    adam_beta2: float = 0.95
    """AdamW's memory for the size of gradients; short, as they change when grounding begins"""
    gradient_clip: float = 1.0
    """largest norm of a gradient"""
    ema_decay: float = 0.995
    """of the averaged weights, which are the ones evaluated and saved"""
    seed: int = 0
    """initial weights, order of the batches and all other chance follow from it"""
    log_every: int = 10
    """steps between lines of metrics"""
    eval_every: int = 250
    """steps between measurements of the held-out loss"""
    save_every: int = 250
    """steps between checkpoints"""
    num_threads: int = 0
    """threads of torch on the CPU; 0 leaves the choice to torch"""

    def __post_init__(self) -> None:
        for names, fits, demand in LIMITS:
            for name in names:
                if not fits(getattr(self, name)):
                    raise UserError(f"{name} must {demand}, got {getattr(self, name)}")

    def learning_rate_at(self, step: int) -> float:
        """Linear warm-up, then half a cosine; `step` counts from 0."""
        warmup = min(self.warmup_steps, self.steps // 4)
        if step < warmup:
            return self.learning_rate * (step + 1) / warmup
        done = (step - warmup) / (self.steps - warmup)
        return self.learning_rate * (1 + math.cos(math.pi * done)) / 2


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What a training tells after every step."""

    step: int  # steps done
    steps: int
    loss: float  # at the last logged step
    samples_per_second: float
    seconds_left: float


@dataclass(frozen=True, kw_only=True)
class TrainResult:
    """What a training ended with."""

    steps: int
    loss: float  # last logged
    held_out_loss: float  # of the averaged weights
    seconds: float  # over all resumptions
    samples_per_second: float
    parameters: int


OnProgress = Callable[[Progress], None]


def train(
    policy: ChunkedPolicy,
    demonstrations: Demonstrations,
    config: TrainConfig,
    out: Path,
    *,
    resume: bool = False,
    on_progress: OnProgress | None = None,
) -> TrainResult:
    """Train the policy and save it, with averaged weights, in `out`.

    With `resume` an interrupted run goes on from its newest checkpoint, bit for bit on a CPU; it
    must have begun with the same policy, demonstrations and config.
    Raises UserError if `out` holds something else or the loss is no longer a number.
    """
    keep_freed_memory()
    accelerator = Accelerator(log_with="tensorboard", project_dir=out)
    if accelerator.is_main_process:
        _begin(policy, demonstrations, config, out, resume=resume)
    accelerator.wait_for_everyone()
    if finished := checkpoint.result_of(out):
        return TrainResult(**finished)
    state = _first_state(policy, config, accelerator)
    checkpoint.load_latest_checkpoint(out, state)
    model, optimizer = accelerator.prepare(policy, state.optimizer)
    metrics = Metrics(out, accelerator, state.step)
    for frames in _remaining_batches(demonstrations.training_frames, config, state.step):
        started = time.perf_counter()
        batch = demonstrations.batch(_share(frames, accelerator), policy.config.chunk_size)
        rate = _set_learning_rate(state, config)
        loss, details = model(batch)
        accelerator.backward(loss)
        norm = accelerator.clip_grad_norm_(policy.parameters(), config.gradient_clip)
        optimizer.step()
        optimizer.zero_grad()
        state.average.update_parameters(policy)
        state.step += 1
        if _due(config.log_every, state, config):
            details |= {"loss": loss.detach(), "learning_rate": rate, "gradient_norm": norm}
            metrics.write(state.step, details)
        if _due(config.eval_every, state, config):
            held_out = held_out_loss(state, demonstrations, config)
            metrics.write(state.step, {"held_out_loss": held_out})
        state.seconds += time.perf_counter() - started
        if _due(config.save_every, state, config) and accelerator.is_main_process:
            checkpoint.save_checkpoint(out, state)
        if on_progress:
            on_progress(_progress(state, config, metrics))
    return _finish(out, state, config, metrics, accelerator)


def _begin(
    policy: ChunkedPolicy,
    demonstrations: Demonstrations,
    config: TrainConfig,
    out: Path,
    *,
    resume: bool,
) -> None:
    settings = {
        "policy": asdict(policy.config),
        "train": asdict(config),
        "dataset": demonstrations.fingerprint,
    }
    provenance = {
        "versions": versions("torch", "numpy", "accelerate", "safetensors"),
        "git_commit": git_commit(),
    }
    checkpoint.begin_run(out, settings, provenance, resume=resume)


def _first_state(
    policy: ChunkedPolicy, config: TrainConfig, accelerator: Accelerator
) -> TrainingState:
    if config.num_threads:
        torch.set_num_threads(config.num_threads)
    set_seed(config.seed)
    policy.to(accelerator.device).train()
    average = AveragedModel(policy, multi_avg_fn=get_ema_multi_avg_fn(config.ema_decay))  # type: ignore[no-untyped-call]
    average.eval()
    parameters = list(policy.parameters())
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": config.weight_decay},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(
        [group for group in groups if group["params"]], betas=(0.9, config.adam_beta2), fused=True
    )
    return TrainingState(policy=policy, average=average, optimizer=optimizer)


def _remaining_batches(frames: Indices, config: TrainConfig, step: int) -> Iterator[Indices]:
    """The batches from this step to the end; a step has the same batch in every run."""
    return islice(_all_batches(frames, config.batch_size, config.seed), step, config.steps)


def _all_batches(frames: Indices, batch_size: int, seed: int) -> Iterator[Indices]:
    """Epoch after epoch, each in its own random order; a batch may reach into the next epoch."""
    waiting = frames[:0]
    for epoch in count():
        shuffled = np.random.default_rng((seed, epoch)).permutation(frames)
        waiting = np.concatenate([waiting, shuffled])
        while len(waiting) >= batch_size:
            yield waiting[:batch_size]
            waiting = waiting[batch_size:]


def _share(frames: Indices, accelerator: Accelerator) -> Indices:
    """This process's part of a batch, when `accelerate launch` runs several."""
    return frames[accelerator.process_index :: accelerator.num_processes]


def _set_learning_rate(state: TrainingState, config: TrainConfig) -> float:
    rate = config.learning_rate_at(state.step)
    for group in state.optimizer.param_groups:
        group["lr"] = rate
    return rate


def _due(every: int, state: TrainingState, config: TrainConfig) -> bool:
    return state.step % every == 0 or state.step == config.steps


@torch.no_grad()
def held_out_loss(
    state: TrainingState, demonstrations: Demonstrations, config: TrainConfig
) -> float:
    """Mean loss of the averaged weights on episodes that training never sees."""
    policy, frames = checkpoint.averaged_policy(state), demonstrations.held_out_frames
    spread = np.linspace(0, len(frames), HELD_OUT_BATCHES * config.batch_size, endpoint=False)
    frames = frames[np.unique(spread.astype(np.int64))]
    total = 0.0
    for start in range(0, len(frames), config.batch_size):
        some = frames[start : start + config.batch_size]
        batch = demonstrations.batch(some, policy.config.chunk_size)
        loss, _ = policy.loss(batch)
        total += float(loss) * len(batch)
    return total / len(frames)


def _progress(state: TrainingState, config: TrainConfig, metrics: Metrics) -> Progress:
    return Progress(
        step=state.step,
        steps=config.steps,
        loss=metrics.latest["loss"],
        samples_per_second=state.step * config.batch_size / state.seconds,
        seconds_left=state.seconds / state.step * (config.steps - state.step),
    )


def _finish(
    out: Path,
    state: TrainingState,
    config: TrainConfig,
    metrics: Metrics,
    accelerator: Accelerator,
) -> TrainResult:
    result = TrainResult(
        steps=state.step,
        loss=metrics.latest["loss"],
        held_out_loss=metrics.latest["held_out_loss"],
        seconds=state.seconds,
        samples_per_second=state.step * config.batch_size / state.seconds,
        parameters=sum(parameter.numel() for parameter in state.policy.parameters()),
    )
    if accelerator.is_main_process:
        checkpoint.finish_run(out, state, asdict(result))
    accelerator.end_training()
    return result
