"""`fetchlab quickstart`: demonstrations, training, evaluation and a report, in one go."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import fetchlab
from fetchlab.errors import UserError
from fetchlab.eval.fingerprint import fingerprint
from fetchlab.eval.gaze import gaze_sentence
from fetchlab.eval.generalization import (
    COUNTS,
    GROUNDING_EPISODES,
    GROUNDING_OBJECTS,
    SWAP_PAIRS,
    check_range,
    facts,
    ground,
)
from fetchlab.eval.parallel import process_pool, worker_count
from fetchlab.eval.plan import SEEDS_A_RUN, Plan, Scope, evaluate, make_plan, n_episodes
from fetchlab.eval.results import Results, command_line, provenance, read_results, write_whole
from fetchlab.eval.tables import episode_progress, matrix_table, swap_sentence
from fetchlab.train.commands import TrainCommand, counting
from fetchlab.train.demonstrate import CollectConfig
from fetchlab.train.lerobot import read_json

RECORD = "quickstart.json"
SEEN = (2, 3, 4, 5)
COMPARED = ("act", "act_objects", "slot_mlp")
ABLATION = "act_no_position_queries"
ABLATED_EPISODES = 25  # of it: slow to fail, and soon clear


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How much of everything."""

    demonstrations: int
    steps: float
    """share of the training steps registered for each policy"""
    episodes: int
    """at each number of objects"""
    policies: tuple[str, ...]
    """the longest training first"""


FULL = Scale(
    demonstrations=1200,
    steps=1.0,
    episodes=200,
    policies=("act", ABLATION, "act_objects", "slot_mlp"),
)
QUICK = Scale(demonstrations=600, steps=0.6, episodes=40, policies=COMPARED)


@dataclass(frozen=True, kw_only=True)
class QuickstartConfig:
    """From nothing to a generalization table: demonstrate, train, evaluate, report.

    Started again after an interruption it goes on where it stopped.
    """

    out: Path
    """folder for demonstrations, policies, results.json and report.html"""
    quick: bool = False
    """fewer demonstrations, training steps and episodes, without the policy trained from actions
    alone: half the time, wider intervals"""
    seed: int = 0
    """of scenes, noise and training"""
    workers: int = 0
    """processes; 0: one a core. The results do not depend on it"""

    def __post_init__(self) -> None:
        check_range("--seed", self.seed, 0, SEEDS_A_RUN)
        worker_count(self.workers)

    @property
    def scale(self) -> Scale:
        return QUICK if self.quick else FULL

    @property
    def demonstrations(self) -> Path:
        return self.out / "demonstrations"

    def training(self, policy: str) -> TrainCommand:
        """How this policy is trained: on one thread, and so the same on every machine."""
        from fetchlab.policy.registry import entry

        return TrainCommand(
            data=self.demonstrations,
            out=self.out / policy,
            policy=policy,
            steps=round(self.scale.steps * entry(policy).training["steps"]),
            seed=self.seed,
            num_threads=1,
            resume=True,
        )


class Record:
    """Which stages are done, and how long they took; kept in `quickstart.json`."""

    def __init__(self, config: QuickstartConfig) -> None:
        """UserError if the folder holds anything else than this very run."""
        self._path = config.out / RECORD
        self._settings: dict[str, Any] = {
            **asdict(config.scale),
            "policies": list(config.scale.policies),
            "seed": config.seed,
            "fetchlab": fetchlab.__version__,
        }
        self.timings: dict[str, float] = {}
        if self._path.is_file():
            self._resume(read_json(self._path))
        elif config.out.exists() and (not config.out.is_dir() or any(config.out.iterdir())):
            raise UserError(f"--out {config.out} already holds something else: give a new folder")
        self._save()

    def _resume(self, begun: dict[str, Any]) -> None:
        settings = begun.get("settings", {})
        for key, value in self._settings.items():
            if settings.get(key) != value:
                raise UserError(
                    f"{self._path.parent} was begun with {key} {settings.get(key)}, not "
                    f"{value}: use the same settings or a new folder"
                )
        self.timings = begun["timings_s"]

    def _save(self) -> None:
        content = {"settings": self._settings, "timings_s": self.timings}
        write_whole(self._path, json.dumps(content, indent=1) + "\n")

    def run(self, stage: str, work: Callable[[], None]) -> None:
        """Do the work and note its time, unless it was done before."""
        if stage in self.timings:
            return
        started = time.perf_counter()
        work()
        self.timings[stage] = round(time.perf_counter() - started, 2)
        self._save()


def run_quickstart(config: QuickstartConfig) -> None:
    """`fetchlab quickstart`."""
    from rich.console import Console

    console = Console()
    record = Record(config)
    record.run("demonstrations", lambda: demonstrate(config))
    record.run("training", lambda: train_all(config))
    record.run("evaluation", lambda: evaluate_all(config))
    record.run("report", lambda: report(config, record.timings))
    results = replace(read_results(config.out), timings_s=record.timings)
    results.write(config.out)
    console.print(matrix_table(results.cells, SEEN))
    if results.instruction_swap is not None:
        console.print(swap_sentence(results.instruction_swap))
    if results.grounding:
        console.print(gaze_sentence(results.grounding))
    times = ", ".join(f"{stage} {seconds:.0f} s" for stage, seconds in record.timings.items())
    console.print(f"{times}; {sum(record.timings.values()):.0f} s in all", highlight=False)
    console.print(f"{config.out / 'report.html'}", style="bold", soft_wrap=True)


def demonstrate(config: QuickstartConfig) -> None:
    """Collect the demonstrations that all policies learn from."""
    from rich.console import Console

    from fetchlab.train.collection import collect

    with counting(Console(stderr=True), "demonstrating", "episodes/s") as on_demonstrated:
        collect(
            CollectConfig(
                out=config.demonstrations,
                episodes=config.scale.demonstrations,
                counts=SEEN,
                seed=config.seed,
                workers=worker_count(config.workers),
                resume=True,
            ),
            on_demonstrated,
        )


def train_all(config: QuickstartConfig) -> None:
    """Train the policies side by side, one a core."""
    commands = [config.training(policy) for policy in config.scale.policies]
    with process_pool(min(worker_count(config.workers), len(commands))) as pool:
        watch(commands, [pool.submit(_train, command) for command in commands])


def _train(command: TrainCommand) -> None:
    from fetchlab.train.commands import load_for, train_policy

    train_policy(command, load_for(command.policy, command.data))


def watch(commands: Sequence[TrainCommand], trainings: Sequence[Future[None]]) -> None:
    """Show how far the trainings are, from what they write down; raises what they raise."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Left

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Left()
    with Progress(*columns, console=Console(stderr=True)) as bar:
        tasks = [bar.add_task(f"training {c.policy}", total=c.steps) for c in commands]
        waiting = set(trainings)
        while waiting:
            _, waiting = wait(waiting, timeout=0.5)
            for command, task in zip(commands, tasks, strict=True):
                bar.update(task, completed=steps_done(command.out))
    for training in trainings:
        training.result()


def steps_done(folder: Path) -> int:
    """The last step in a training's log, which may be cut while it is being written."""
    path = folder / "metrics.jsonl"
    lines = path.read_text().splitlines(keepends=True) if path.is_file() else []
    whole = [line for line in lines if line.endswith("\n")]
    return int(json.loads(whole[-1])["step"]) if whole else 0


def shown(config: QuickstartConfig) -> list[str]:
    """The trained policies in the order of the table: the ablation comes last."""
    return [policy for policy in (*COMPARED, ABLATION) if policy in config.scale.policies]


def plans_of(config: QuickstartConfig) -> list[Plan]:
    """What is evaluated: the trained policies, and the expert as the yardstick."""
    plans = []
    for policy in shown(config):
        few = policy == ABLATION
        episodes = min(config.scale.episodes, ABLATED_EPISODES) if few else config.scale.episodes
        scope = Scope(counts=COUNTS, episodes=episodes, seed=config.seed)
        swaps = SWAP_PAIRS if policy == COMPARED[0] else 0
        plans.append(make_plan(str(config.out / policy), scope, n_swaps=swaps))
    scope = Scope(counts=COUNTS, episodes=config.scale.episodes, seed=config.seed)
    return [*plans, make_plan("expert", scope)]


def evaluate_all(config: QuickstartConfig) -> None:
    """Play the same scenes with every policy and write `results.json`."""
    plans = plans_of(config)
    with episode_progress(n_episodes(plans)) as advance:
        cells, swap = evaluate(plans, worker_count(config.workers), advance)
    Results(
        task=plans[0].policy.env_config.task,
        seed=config.seed,
        policies=tuple(facts(plan) for plan in plans),
        cells=cells,
        instruction_swap=swap,
        timings_s={},
        command=command_line(),
        versions=provenance(),
        grounding=ground(plans[0], GROUNDING_EPISODES, GROUNDING_OBJECTS),
        fingerprint=fingerprint(),
    ).write(config.out)


def report(config: QuickstartConfig, timings: dict[str, float]) -> None:
    """Film some episodes and write `report.html`."""
    from fetchlab.eval.highlights import choose, film_scenes, read_curve
    from fetchlab.eval.report.page import Story, write_report

    results = replace(read_results(config.out), timings_s=timings)
    clips, looks = film_scenes(choose(results), worker_count(config.workers))
    story = Story(
        results=results,
        seen=SEEN,
        n_demonstrations=config.scale.demonstrations,
        clips=clips,
        looks=looks,
        curves=tuple(read_curve(policy, config.out / policy) for policy in shown(config)),
    )
    write_report(config.out, story)
