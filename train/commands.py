"""`fetchlab collect` and `fetchlab train`: the work of this folder, with progress on screen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from fetchlab.errors import UserError
from fetchlab.train.collection import Yield, collect
from fetchlab.train.demonstrate import CollectConfig

if TYPE_CHECKING:  # torch takes a second to import, and `collect` does without
    from fetchlab.train import loop
    from fetchlab.train.dataset import Demonstrations

OnCount = Callable[[int, int], None]
"""called with (done, in all)"""


@dataclass(frozen=True, kw_only=True)
class TrainCommand:
    """Behaviour cloning: a policy learns to act as a dataset shows.

    What is left out is as registered for the policy.
    """

    data: Path
    """folder of the dataset, from `fetchlab collect`"""
    out: Path
    """folder of the trained policy; must be empty or absent"""
    policy: str = "act"
    """name of a learned policy (`fetchlab list policies`)"""
    steps: int | None = None
    """optimizer steps"""
    batch_size: int | None = None
    """frames a step"""
    learning_rate: float | None = None
    """highest learning rate"""
    seed: int = 0
    """initial weights, order of the batches and all other chance follow from it"""
    num_threads: int | None = None
    """threads of torch on the CPU"""
    history: int | None = None
    """frames of every camera that the policy sees at once, 1 to 4"""
    memory: str | None = None
    """which they are: the `recent` ones, or the `first` of the episode before the rest"""
    resume: bool = False
    """go on with a training that was interrupted"""
    policy_settings: tyro.conf.Suppress[tuple[tuple[str, Any], ...]] = ()
    """settings of the policy that differ from the registered ones"""


def run_collect(config: CollectConfig) -> None:
    """Collect a dataset and show the expert's yield by number of objects."""
    console = Console()
    with counting(console, "demonstrating", "episodes/s") as on_demonstrated:
        yields = collect(config, on_demonstrated)
    console.print(yield_table(yields))
    console.print(
        f"{config.episodes} demonstrations in {config.out}", highlight=False, soft_wrap=True
    )


def yield_table(yields: tuple[Yield, ...]) -> Table:
    """The expert's success under noise, a row for each number of objects."""
    table = Table("objects", "demonstrations", "attempts", "yield", "failures")
    for row in yields:
        failures = ", ".join(f"{reason} {count}" for reason, count in row.failures.items())
        share = f"{100 * row.demonstrations / row.attempts:.1f} %"
        cells = (row.n_objects, row.demonstrations, row.attempts, share, failures or "none")
        table.add_row(*map(str, cells))
    return table


def run_train(command: TrainCommand) -> None:
    """Train a policy on a dataset, with progress, and say where it lies.

    Raises UserError for settings that the policy would not heed.
    """
    console = Console()
    with counting(console, "decoding images", "images/s") as on_decoded:
        demonstrations = load_for(
            command.policy,
            command.data,
            on_decoded,
            past={"history": command.history, "memory": command.memory},
        )
    with training_bar(console, command.policy) as on_progress:
        result = train_policy(command, demonstrations, on_progress)
    console.print(
        f"{command.policy} in {command.out}: held-out loss {result.held_out_loss:.4f}, "
        f"{result.parameters:,} parameters, {result.seconds:.0f} s, "
        f"{result.samples_per_second:.0f} samples/s",
        highlight=False,
        soft_wrap=True,
    )


def load_for(
    policy: str,
    data: Path,
    on_decoded: OnCount | None = None,
    *,
    past: Mapping[str, Any] | None = None,
) -> Demonstrations:
    """The dataset as this policy sees it: the frames it remembers, or no images if it uses none.

    `past` tells history and memory where they are not to be as registered for the policy. Raises
    UserError for a policy that would not heed them.
    """
    from fetchlab.policy.registry import learned_class
    from fetchlab.train.dataset import Demonstrations, recorded_config

    learned_class(policy)  # a wrong name fails before the dataset is read
    chosen = seen_by(policy, past or {})
    return Demonstrations.load(data, replace(recorded_config(data), **chosen), on_decoded)


def seen_by(policy: str, past: Mapping[str, Any]) -> Mapping[str, Any]:
    """What this policy looks at, as settings of EnvConfig: as registered if all of `past` is None.

    Raises UserError for a policy that would not heed it.
    """
    from fetchlab.policy.registry import entry

    asked = {name: value for name, value in past.items() if value is not None}
    if entry(policy).sees_images:
        return asked or entry(policy).past
    if asked:
        raise UserError(f"policy {policy} sees no images: leave out --history and --memory")
    return {"cameras": ()}


def train_policy(
    command: TrainCommand,
    demonstrations: Demonstrations,
    on_progress: loop.OnProgress | None = None,
) -> loop.TrainResult:
    """Build the registered policy with the dataset's statistics, and train it."""
    from accelerate.utils import set_seed

    from fetchlab.policy.registry import build_config, learned_class
    from fetchlab.train import loop
    from fetchlab.train.dataset import statistics_of

    training = training_config(command)
    settings = dict(command.policy_settings)
    config = build_config(command.policy, demonstrations.env_config, **settings)
    statistics = statistics_of(demonstrations, config.chunk_size, config.relative_actions)
    set_seed(command.seed)
    policy = learned_class(command.policy)(config, statistics)
    return loop.train(
        policy,
        demonstrations,
        training,
        command.out,
        resume=command.resume,
        on_progress=on_progress,
    )


def training_config(command: TrainCommand) -> loop.TrainConfig:
    """The policy's registered recipe with what the command changes in it."""
    from fetchlab.policy.registry import entry
    from fetchlab.train.loop import TrainConfig

    chosen = ("steps", "batch_size", "learning_rate", "num_threads", "seed")
    given = {name: getattr(command, name) for name in chosen}
    given = {name: value for name, value in given.items() if value is not None}
    recipe: dict[str, Any] = {**entry(command.policy).training, **given}
    return TrainConfig(**recipe)


@contextmanager
def counting(console: Console, what: str, unit: str) -> Iterator[OnCount]:
    """A progress bar to be told (done, total); the rate leaves out what was there before."""
    with _progress(console, _Rate(unit), transient=True) as bar:
        task = bar.add_task(what, total=None)

        def tell(done: int, total: int) -> None:
            if bar.tasks[task].total is None:
                bar.reset(task, total=total, completed=done)
            else:
                bar.update(task, completed=done)

        yield tell


class _Rate(ProgressColumn):
    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:.1f} {self._unit}" if task.speed else "")


@contextmanager
def training_bar(console: Console, policy: str) -> Iterator[loop.OnProgress]:
    """A progress bar to be told how a training goes; none appears if it never begins."""
    bar = _progress(console, TextColumn("{task.fields[rate]}"))
    task = bar.add_task(f"training {policy}", total=None, rate="")

    def tell(now: loop.Progress) -> None:
        rate = f"{now.samples_per_second:.0f} samples/s, loss {now.loss:.3f}"
        bar.update(task, completed=now.step, total=now.steps, rate=rate)
        bar.start()

    try:
        yield tell
    finally:
        if bar.live.is_started:
            bar.stop()


def _progress(console: Console, rate: ProgressColumn, *, transient: bool = False) -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        rate,
        TimeRemainingColumn(),
        TextColumn("left"),
        console=console,
        transient=transient,
    )
