"""Closed-loop success against the number of objects, the same scenes for every policy."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from fetchlab.errors import UserError, unknown
from fetchlab.eval.gaze import Gaze
from fetchlab.eval.parallel import Played, Shard, load, play_shards, split, worker_count
from fetchlab.eval.results import (
    RESULTS,
    Cell,
    PolicyFacts,
    Results,
    Swap,
    check_folder,
    command_line,
    provenance,
)
from fetchlab.eval.rollout import EpisodeSpec
from fetchlab.eval.statistics import wilson
from fetchlab.eval.swap import Pair, swap_pairs
from fetchlab.eval.tables import episode_progress, show_results
from fetchlab.policy.base import Policy
from fetchlab.sim.scene import COLOURS, MAX_OBJECTS

COUNTS = (2, 3, 4, 5, 6, 8, 10)
SUITES = {"counts": "success against the number of objects on the table"}
SWAP_PAIRS = 100
GROUNDING_EPISODES = 10
GROUNDING_OBJECTS = 6
SEEDS_A_COUNT = 10_000
SEEDS_A_RUN = 1_000_000


@dataclass(frozen=True, kw_only=True)
class EvalConfig:
    """Closed-loop evaluation: the policy acts in scenes that no demonstration used."""

    policy: str
    """folder of a trained policy, or the name of one that needs no training (`expert`)"""
    out: Path
    """folder for results.json; new, or holding an earlier evaluation, which is replaced"""
    task: str | None = None
    """the task to play; by default the policy's own"""
    suite: str = "counts"
    """what to vary (`fetchlab list suites`)"""
    counts: tuple[int, ...] = COUNTS
    """numbers of objects on the table"""
    episodes: int = 200
    """episodes at each number of objects; 100 scenes with a changed colour word come on top"""
    seed: int = 0
    """draws the scenes; the same seed gives every policy the same scenes"""
    workers: int = 0
    """processes; 0: one a core. The results do not depend on it"""
    yardstick: bool = False
    """also let the scripted expert play the same scenes"""
    grounding_episodes: int = GROUNDING_EPISODES
    """episodes in which is measured what each attention head of a policy that sees pixels looks
    at; 0: none"""
    grounding_objects: int = GROUNDING_OBJECTS
    """objects on the table in those episodes"""

    def __post_init__(self) -> None:
        if self.suite not in SUITES:
            raise unknown("suite", self.suite, SUITES)
        check_counts(self.counts)
        check_range("--episodes", self.episodes, 1, SEEDS_A_COUNT)
        check_range("--seed", self.seed, 0, SEEDS_A_RUN)
        check_range("--grounding-episodes", self.grounding_episodes, 0, SEEDS_A_COUNT)
        check_range("--grounding-objects", self.grounding_objects, 2, MAX_OBJECTS)
        worker_count(self.workers)


def check_counts(counts: Sequence[int]) -> None:
    """UserError unless these are different numbers of objects that a table can hold."""
    for count in counts:
        check_range("--counts", count, 2, MAX_OBJECTS)
    if not counts or len(set(counts)) != len(counts):
        raise UserError(f"--counts must name different numbers of objects, got {list(counts)}")


def check_range(name: str, value: int, low: int, high: int) -> None:
    """UserError unless low <= value <= high."""
    if not low <= value <= high:
        raise UserError(f"{name} must be {low} to {high}, got {value}")


def evaluation_seeds(seed: int, n_objects: int, episodes: int) -> list[int]:
    """Scene seeds of an evaluation: odd, and so never those of a demonstration, which are even."""
    first = seed * SEEDS_A_RUN + n_objects * SEEDS_A_COUNT
    return [2 * (first + episode) + 1 for episode in range(episodes)]


def evaluation_specs(seed: int, n_objects: int, episodes: int) -> list[EpisodeSpec]:
    """The episodes of one cell, the same for every policy."""
    return [
        EpisodeSpec(seed=scene, n_objects=n_objects)
        for scene in evaluation_seeds(seed, n_objects, episodes)
    ]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Which policy plays which scenes."""

    source: str
    """folder or name"""
    policy: Policy
    counts: tuple[int, ...]
    episodes: int
    """at each count"""
    seed: int
    swaps: tuple[Pair, ...] = ()
    """scenes to play twice, with different blocks named"""

    def playable(self) -> list[int]:
        """The counts that the policy can take."""
        return [count for count in self.counts if count <= self.policy.max_objects]

    def shards(self) -> list[Shard]:
        """All there is to play, each episode once."""
        cells = [evaluation_specs(self.seed, count, self.episodes) for count in self.playable()]
        known = {spec for cell in cells for spec in cell}
        extra = [spec for pair in self.swaps for spec in pair if spec not in known]
        return [shard for specs in (*cells, extra) for shard in split(self.source, specs)]


def make_plan(
    source: str, counts: Sequence[int], episodes: int, seed: int, n_swaps: int = 0
) -> Plan:
    """A plan, with the policy loaded."""
    policy = load(source)
    scenes = swap_scenes(policy.max_objects, seed, n_swaps)
    return Plan(
        source=source,
        policy=policy,
        counts=tuple(counts),
        episodes=episodes,
        seed=seed,
        swaps=swap_pairs(policy.env_config, scenes) if scenes else (),
    )


def swap_scenes(max_objects: int, seed: int, n_scenes: int) -> list[EpisodeSpec]:
    """Scenes in equal parts from each count at which no colour repeats."""
    counts = range(2, min(max_objects, len(COLOURS)) + 1)
    return [
        spec
        for row, count in enumerate(counts)
        for spec in evaluation_specs(seed, count, len(range(row, n_scenes, len(counts))))
    ]


def evaluate(
    plans: Sequence[Plan], workers: int, on_done: Callable[[int], None] | None = None
) -> tuple[tuple[Cell, ...], Swap | None]:
    """The cells of all plans in order, and the instruction swap of the first that asks for it."""
    played = play_shards([s for plan in plans for s in plan.shards()], workers, on_done)
    cells = tuple(make_cell(plan, count, played) for plan in plans for count in plan.counts)
    return cells, next((make_swap(plan, played) for plan in plans if plan.swaps), None)


def make_cell(plan: Plan, n_objects: int, played: Played) -> Cell:
    """A count's episodes; an empty cell that says why where the policy cannot take the count."""
    name, suite = plan.policy.name, "counts"
    if n_objects not in plan.playable():
        return Cell.refused(name, suite, n_objects, refusal(plan.policy, n_objects))
    specs = evaluation_specs(plan.seed, n_objects, plan.episodes)
    return Cell.count(name, suite, n_objects, [played[plan.source, spec] for spec in specs])


def make_swap(plan: Plan, played: Played) -> Swap:
    """How often the changed colour word decided what was fetched."""
    pairs = [
        (played[plan.source, original].success, played[plan.source, changed].success)
        for original, changed in plan.swaps
    ]
    followed = sum(changed for _, changed in pairs)
    return Swap(
        policy=plan.policy.name,
        n=len(pairs),
        n_followed=followed,
        n_both=sum(all(pair) for pair in pairs),
        rate=followed / len(pairs),
        ci95=wilson(followed, len(pairs)),
    )


def ground(plan: Plan, episodes: int, n_objects: int) -> tuple[Gaze, ...]:
    """What the plan's policy looks at, in the first scenes with so many objects."""
    from fetchlab.eval.grounding import measure_grounding

    return measure_grounding(plan.policy, evaluation_specs(plan.seed, n_objects, episodes))


def n_episodes(plans: Sequence[Plan]) -> int:
    """How many episodes `evaluate` will play."""
    return sum(len(shard.specs) for plan in plans for shard in plan.shards())


def refusal(policy: Policy, n_objects: int) -> str:
    """What to say where a policy cannot take so many objects."""
    return f"cannot take {n_objects} objects ({policy.max_objects} slots)"


def run_eval(config: EvalConfig) -> None:
    """`fetchlab eval`."""
    claim_folder(config.out)
    check_policy(load(config.policy), config)
    scenes = config.counts, config.episodes, config.seed
    plans = [make_plan(config.policy, *scenes, SWAP_PAIRS)]
    if config.yardstick:
        plans.append(make_plan("expert", *scenes))
    started = time.perf_counter()
    with episode_progress(n_episodes(plans)) as advance:
        cells, swap = evaluate(plans, worker_count(config.workers), advance)
    grounding = ground(plans[0], config.grounding_episodes, config.grounding_objects)
    results = Results(
        task=plans[0].policy.env_config.task,
        seed=config.seed,
        policies=tuple(facts(plan) for plan in plans),
        cells=cells,
        instruction_swap=swap,
        timings_s={"evaluation": time.perf_counter() - started},
        command=command_line(),
        versions=provenance(),
        grounding=grounding,
    )
    path = results.write(config.out)
    show_results(results, path)


def check_policy(policy: Policy, config: EvalConfig) -> None:
    """UserError where the policy cannot play what was asked for."""
    if config.task not in (None, policy.env_config.task):
        raise UserError(
            f"{config.policy} was made for the task {policy.env_config.task!r}, not {config.task!r}"
        )
    for count in config.counts:
        if count > policy.max_objects:
            raise UserError(
                f"{policy.name} {refusal(policy, count)}: leave {count} out of --counts"
            )


def claim_folder(folder: Path) -> None:
    """UserError unless the folder is new, empty, or holds nothing but an earlier evaluation."""
    check_folder(folder)
    if folder.is_dir():
        others = [path.name for path in folder.iterdir() if path.name != RESULTS]
        if others:
            raise UserError(f"--out {folder} already holds {sorted(others)[0]}: give a new folder")


def facts(plan: Plan) -> PolicyFacts:
    """What `results.json` says about a policy."""
    parameters = getattr(plan.policy, "parameters", None)
    return PolicyFacts(
        policy=plan.policy.name,
        source=plan.source,
        max_objects=plan.policy.max_objects,
        env=asdict(plan.policy.env_config),
        parameters=sum(p.numel() for p in parameters()) if parameters else None,
    )
