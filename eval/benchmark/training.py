"""The benchmark's demonstrations and trainings; what is finished is left alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fetchlab.errors import UserError
from fetchlab.eval.benchmark.config import (
    BenchmarkConfig,
    Training,
    collection_of,
    collections,
    demonstrations_of,
    trainings,
)
from fetchlab.eval.benchmark.recipe import SCENES_SEED, SEEN
from fetchlab.eval.benchmark.store import Store
from fetchlab.eval.parallel import process_pool, worker_count
from fetchlab.eval.quickstart import steps_done
from fetchlab.policy.registry import entry
from fetchlab.train.commands import TrainCommand, counting, seen_by
from fetchlab.train.demonstrate import CollectConfig

if TYPE_CHECKING:  # torch takes a second to import
    from fetchlab.train.dataset import Demonstrations


def collect_all(config: BenchmarkConfig, store: Store) -> None:
    """Every dataset that the trainings need; one that was begun is finished."""
    from rich.console import Console

    from fetchlab.train.collection import collect

    needed = {collection_of(t.condition) for t in trainings(config) if not is_trained(store, t)}
    for name, (world, n) in collections(config).items():
        if name not in needed:
            continue
        wanted = CollectConfig(
            out=store.demonstrations(name),
            episodes=n,
            counts=SEEN,
            seed=SCENES_SEED,
            workers=worker_count(config.workers),
            resume=True,
            env=world,
        )
        shown = counting(Console(stderr=True), f"demonstrating {name}", "episodes/s")
        with store.timed(f"demonstrations {name}"), shown as tell:
            collect(wanted, tell)


def is_trained(store: Store, training: Training) -> bool:
    """Whether it has finished. Raises UserError if its policy has been lost since."""
    from fetchlab.policy.pretrained import CONFIG_FILE, WEIGHTS_FILE
    from fetchlab.train.checkpoint import result_of

    folder = store.policy(training)
    if result_of(folder) is None:
        return False
    for name in (CONFIG_FILE, WEIGHTS_FILE):
        if not (folder / name).is_file():
            raise UserError(f"{folder} lacks {name}: remove it, and it is trained again")
    return True


def train_all(config: BenchmarkConfig, store: Store) -> None:
    """Every policy that has not been trained, one a core; they share the decoded images."""
    todo = [training for training in trainings(config) if not is_trained(store, training)]
    if not todo:
        return
    commands = [command_for(training, config, store) for training in todo]
    with process_pool(min(worker_count(config.workers), len(todo))) as pool:
        futures = [
            pool.submit(_train, training, command, demonstrations_of(training.condition, config))
            for training, command in zip(todo, commands, strict=True)
        ]
        _watch([training.name for training in todo], commands, futures)


def training_times(config: BenchmarkConfig, store: Store) -> dict[str, float]:
    """Seconds that each finished training took, over all interruptions."""
    from fetchlab.train.checkpoint import result_of

    results = {t.name: result_of(store.policy(t)) for t in trainings(config)}
    return {f"training {name}": found["seconds"] for name, found in results.items() if found}


def command_for(training: Training, config: BenchmarkConfig, store: Store) -> TrainCommand:
    """How it is trained: on one thread, and so the same on every machine."""
    return TrainCommand(
        data=store.dataset_of(training),
        out=store.policy(training),
        policy=training.policy,
        steps=steps_of(training, config),
        seed=training.seed,
        num_threads=1,
        resume=True,
    )


def steps_of(training: Training, config: BenchmarkConfig) -> int:
    """How many it is trained for."""
    usual: int = entry(training.policy).training["steps"]
    return max(1, round(config.recipe.steps * max(usual, training.condition.least_steps)))


def _train(training: Training, command: TrainCommand, n_demonstrations: int) -> None:
    from fetchlab.train.commands import train_policy

    train_policy(command, load_demonstrations(training, command.data, n_demonstrations))


def load_demonstrations(training: Training, folder: Path, n: int) -> Demonstrations:
    """The first `n` demonstrations as the policy sees them under its condition."""
    from fetchlab.train.dataset import Demonstrations, recorded_config

    world = replace(recorded_config(folder), **seen_in(training))
    return first_episodes(Demonstrations.load(folder, world), n)


def seen_in(training: Training) -> Mapping[str, Any]:
    """What the policy looks at under its condition, as settings of EnvConfig."""
    past = training.condition.policy if entry(training.policy).sees_images else {}
    return seen_by(training.policy, past)


def first_episodes(demonstrations: Demonstrations, n: int) -> Demonstrations:
    """As if no more than `n` had been collected; their number is part of the fingerprint."""
    if n == len(demonstrations.lengths):
        return demonstrations
    kept = {len(demonstrations): int(demonstrations.bounds[n]), len(demonstrations.lengths): n}
    arrays = {field.name: getattr(demonstrations, field.name) for field in fields(demonstrations)}
    changes: dict[str, Any] = {
        name: array[: kept[len(array)]]
        for name, array in arrays.items()
        if isinstance(array, np.ndarray)
    }
    return replace(demonstrations, **changes, fingerprint=f"{demonstrations.fingerprint}-{n}")


def _watch(
    names: Sequence[str], commands: Sequence[TrainCommand], futures: Sequence[Future[None]]
) -> None:
    """Show how far all trainings are together, and which run; raises what they raise."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Left

    columns = TextColumn("training {task.description}"), BarColumn(), MofNCompleteColumn(), Left()
    with Progress(*columns, TextColumn("left"), console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=sum(command.steps or 0 for command in commands))
        waiting = set(futures)
        while waiting:
            done, waiting = wait(waiting, timeout=1.0)
            for future in done:
                future.result()
            running = [n for n, future in zip(names, futures, strict=True) if future.running()]
            steps = sum(steps_done(command.out) for command in commands)
            bar.update(task, completed=steps, description=", ".join(running[:2]))
