"""`fetchlab benchmark`: demonstrations, trainings, every suite, statistics and a report."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from statistics import fmean
from typing import TYPE_CHECKING

from fetchlab.eval.benchmark.config import (
    BenchmarkConfig,
    collection_of,
    collections,
    demonstrations_of,
    trainings,
)
from fetchlab.eval.benchmark.play import plan_all, play_all
from fetchlab.eval.benchmark.recipe import SCENES_SEED
from fetchlab.eval.benchmark.screen import announce, show, tell_left_out
from fetchlab.eval.benchmark.store import Store, write_json
from fetchlab.eval.benchmark.summary import summarize
from fetchlab.eval.benchmark.training import collect_all, train_all, training_times
from fetchlab.eval.fingerprint import fingerprint
from fetchlab.eval.gaze import Gaze
from fetchlab.eval.generalization import GROUNDING_EPISODES, GROUNDING_OBJECTS, facts
from fetchlab.eval.parallel import load, worker_count
from fetchlab.eval.plan import CellPlan, Plan, evaluation_specs, without_cameras
from fetchlab.eval.results import Cell, PolicyFacts, Results, provenance
from fetchlab.policy.registry import is_scripted

if TYPE_CHECKING:
    from fetchlab.policy.base import Policy

SUMMARY = "summary.json"


def run_benchmark(config: BenchmarkConfig) -> None:
    """`fetchlab benchmark`."""
    store = Store(config)
    announce(config, store)
    collect_all(config, store)
    train_all(config, store)
    store.set_times(training_times(config, store))
    plans, unplayable = plan_all(config, store)
    tell_left_out(unplayable)
    results = make_results(config, store, play_all(plans, config, store))
    summary = summarize(results.cells)
    results.write(config.out, indent=None)  # hundreds of thousands of episodes
    write_json(config.out / SUMMARY, asdict(summary))
    started = time.perf_counter()
    report(config, store, plans, results, config.left_out | unplayable)
    store.set_times({"report": time.perf_counter() - started})
    show(results, summary, config.out)


def report(
    config: BenchmarkConfig,
    store: Store,
    plans: Sequence[CellPlan],
    results: Results,
    left_out: Mapping[str, str],
) -> None:
    """Film failures and write `report.html`."""
    from fetchlab.eval.benchmark.films import choose_failures, film_failures
    from fetchlab.eval.report.benchmark import BenchmarkStory, write_benchmark_report

    failures = choose_failures(plans, results.cells)
    story = BenchmarkStory(
        results=results,
        summary=summarize(results.cells),
        n_demonstrations=config.recipe.demonstrations,
        n_episodes=config.recipe.episodes,
        seeds=config.training_seeds,
        timings=store.timings,
        minutes=minutes(config, store),
        left_out=left_out,
        cell_seconds=store.seconds_an_episode(results.cells),
        clips=film_failures(failures, worker_count(config.workers)),
    )
    write_benchmark_report(config.out, story)


def minutes(config: BenchmarkConfig, store: Store) -> dict[tuple[str, str], float]:
    """What demonstrating and one training took, by policy and condition; the mean over seeds."""
    found: dict[tuple[str, str], list[float]] = {}
    for training in trainings(config):
        condition = training.condition
        name = collection_of(condition)
        share = demonstrations_of(condition, config) / collections(config)[name][1]
        took = share * store.timings.get(f"demonstrations {name}", 0.0)
        took += store.timings.get(f"training {training.name}", 0.0)
        found.setdefault((training.policy, condition.name), []).append(took / 60)
    return {place: fmean(some) for place, some in found.items()}


def make_results(config: BenchmarkConfig, store: Store, cells: list[Cell]) -> Results:
    """`results.json`: nothing in it depends on the folder, the clock or the number of workers."""
    return Results(
        task=config.recipe.world.task,
        seed=SCENES_SEED,
        policies=tuple(_facts(policy, config, store) for policy in config.contestants),
        cells=tuple(cells),
        instruction_swap=None,
        timings_s={},
        command=command(config),
        versions=provenance(),
        grounding=ground_all(config, store),
        fingerprint=fingerprint(),
    )


def command(config: BenchmarkConfig) -> str:
    """What to type to get the same numbers, in any folder: what was asked to be different."""
    words = ["fetchlab", "benchmark"]
    for field in fields(config):
        value = getattr(config, field.name)
        if field.name not in ("out", "workers", "quick") and value != field.default:
            values = value if isinstance(value, tuple) else (value,)
            words += [f"--{field.name}", *map(str, values)]
    return shlex.join([*words, *["--quick"] * config.quick])


def _facts(policy: str, config: BenchmarkConfig, store: Store) -> PolicyFacts:
    name, loaded = example(policy, config, store)
    return facts(Plan(source=name, policy=loaded, seed=SCENES_SEED))


def example(policy: str, config: BenchmarkConfig, store: Store) -> tuple[str, Policy]:
    """One of a policy's trainings and its name: the first, with the usual demonstrations first."""
    if is_scripted(policy):
        return policy, load(policy, without_cameras(config.recipe.world))
    first = next(training for training in trainings(config) if training.policy == policy)
    return first.name, load(str(store.policy(first)))


def ground_all(config: BenchmarkConfig, store: Store) -> tuple[Gaze, ...]:
    """What the heads of every policy that sees pixels look at; measured once."""
    from fetchlab.eval.grounding import measure_grounding

    found: list[Gaze] = []
    for policy in config.contestants:
        gazes = store.gazes(policy)
        if gazes is None:
            _, loaded = example(policy, config, store)
            scenes = evaluation_specs(SCENES_SEED, GROUNDING_OBJECTS, GROUNDING_EPISODES)
            gazes = measure_grounding(loaded, scenes)
            store.write_gazes(policy, gazes)
        found += gazes
    return tuple(found)
