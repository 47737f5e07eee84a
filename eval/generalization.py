"""Closed-loop success against the number of objects and more, the same scenes for every policy."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from fetchlab.errors import UserError
from fetchlab.eval.fingerprint import fingerprint
from fetchlab.eval.gaze import Gaze
from fetchlab.eval.parallel import worker_count
from fetchlab.eval.plan import (
    SEEDS_A_COUNT,
    SEEDS_A_RUN,
    Plan,
    Scope,
    chosen_world,
    evaluate,
    evaluation_specs,
    make_plan,
    n_episodes,
    without_cameras,
)
from fetchlab.eval.results import (
    PARTIAL,
    RESULTS,
    PolicyFacts,
    Results,
    check_folder,
    command_line,
    provenance,
)
from fetchlab.eval.suites import SUITES, suite_of
from fetchlab.eval.tables import episode_progress, show_results
from fetchlab.policy.registry import is_scripted
from fetchlab.sim.scene import MAX_OBJECTS
from fetchlab.train.provenance import in_words

COUNTS = (2, 3, 4, 5, 6, 8, 10)
YARDSTICKS = ("expert", "expert_blind")
SWAP_PAIRS = 100
GROUNDING_EPISODES = 10
GROUNDING_OBJECTS = 6
WORLD = ("task", "shapes", "languages", "phrasings")
"""settings of EvalConfig that make a scripted policy's world"""

REMEDIES = {
    "needs several shapes": ": give --shapes block mug",
    "needs several languages": ": give --languages english chinese",
}
"""what to do about it where a policy plays in whatever world it is told"""


@dataclass(frozen=True, kw_only=True)
class EvalConfig:
    """Closed-loop evaluation: the policy acts in scenes that no demonstration used."""

    policy: str
    """folder of a trained policy, or the name of one that needs no training (`expert`)"""
    out: Path
    """folder for results.json; new, or holding an earlier evaluation, which is replaced"""
    suite: str = "counts"
    """what to vary (`fetchlab list suites`)"""
    task: str | None = None
    """the task to play; by default the policy's own"""
    tasks: tuple[str, ...] = ()
    """of a task like `mixed`, the parts to play; by default all"""
    shapes: tuple[str, ...] | None = None
    """what lies on the table; by default what the policy knows"""
    languages: tuple[str, ...] | None = None
    """in which sentences are said; by default those that the policy knows"""
    phrasings: str | None = None
    """`plain`, `training` or `held_out` sentences; by default as the policy knows them"""
    counts: tuple[int, ...] = ()
    """numbers of objects on the table; by default the suite's"""
    episodes: int = 200
    """episodes in each cell; for `counts`, 100 scenes with an object named anew come on top"""
    seed: int = 0
    """draws the scenes; the same seed gives every policy the same scenes"""
    workers: int = 0
    """processes; 0: one a core. The results do not depend on it"""
    yardstick: bool = False
    """also let the scripted expert play the same scenes, as it does and on any object: ceiling and
    chance level"""
    grounding_episodes: int = GROUNDING_EPISODES
    """episodes in which is measured what each attention head of a policy that sees pixels looks
    at; 0: none"""
    grounding_objects: int = GROUNDING_OBJECTS
    """objects on the table in those episodes"""

    def __post_init__(self) -> None:
        suite = suite_of(self.suite)
        if self.task is not None and suite.tasks and self.task not in suite.tasks:
            raise UserError(
                f"--suite {suite.name} plays {in_words(suite.tasks)}: leave out --task {self.task}"
            )
        if len(set(self.tasks)) != len(self.tasks):
            raise UserError(f"--tasks must name different tasks, got {in_words(self.tasks)}")
        check_counts(self.scope.counts)
        check_range("--episodes", self.episodes, 1, SEEDS_A_COUNT)
        check_range("--seed", self.seed, 0, SEEDS_A_RUN)
        check_range("--grounding-episodes", self.grounding_episodes, 0, SEEDS_A_COUNT)
        check_range("--grounding-objects", self.grounding_objects, 2, MAX_OBJECTS)
        worker_count(self.workers)

    @property
    def scope(self) -> Scope:
        """How much of the suite is played."""
        return Scope(
            counts=self.counts or SUITES[self.suite].counts,
            episodes=self.episodes,
            seed=self.seed,
            tasks=self.tasks,
        )


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


def run_eval(config: EvalConfig) -> None:
    """`fetchlab eval`."""
    claim_folder(config.out)
    plans = make_plans(config)
    check_playable(plans[0], config)
    started = time.perf_counter()
    with episode_progress(n_episodes(plans)) as advance:
        cells, swap = evaluate(plans, worker_count(config.workers), advance)
    results = Results(
        task=plans[0].policy.env_config.task,
        seed=config.seed,
        policies=tuple(facts(plan) for plan in plans),
        cells=cells,
        instruction_swap=swap,
        timings_s={"evaluation": time.perf_counter() - started},
        command=command_line(),
        versions=provenance(),
        grounding=ground(plans[0], config.grounding_episodes, config.grounding_objects)
        if config.suite == "counts"
        else (),
        fingerprint=fingerprint(),
    )
    path = results.write(config.out)
    show_results(results, path)


def make_plans(config: EvalConfig) -> list[Plan]:
    """The policy's plan, and those of the yardsticks if they are asked for."""
    world = chosen_world(config.policy, {name: getattr(config, name) for name in WORLD})
    swaps = SWAP_PAIRS if config.suite == "counts" else 0
    first = make_plan(config.policy, config.scope, suite=config.suite, world=world, n_swaps=swaps)
    if not config.yardstick:
        return [first]
    same = without_cameras(first.policy.env_config)
    names = [name for name in YARDSTICKS if name != config.policy]
    yardsticks = [make_plan(name, config.scope, suite=config.suite, world=same) for name in names]
    return [first, *yardsticks]


def check_playable(plan: Plan, config: EvalConfig) -> None:
    """UserError, saying why, where the policy can play none of what was asked for."""
    tested = [cell for cell in plan.cells if not cell.key.control]
    if not any(cell.specs for cell in tested):
        note = tested[0].note
        remedy = REMEDIES.get(note, "") if is_scripted(plan.policy.name) else ""
        raise UserError(f"{plan.policy.name} cannot play {config.suite}: it {note}{remedy}")


def ground(plan: Plan, episodes: int, n_objects: int) -> tuple[Gaze, ...]:
    """What the plan's policy looks at, in the first scenes with so many objects."""
    from fetchlab.eval.grounding import measure_grounding

    return measure_grounding(plan.policy, evaluation_specs(plan.seed, n_objects, episodes))


def claim_folder(folder: Path) -> None:
    """UserError unless the folder is new, empty, or holds nothing but an earlier evaluation."""
    check_folder(folder)
    if folder.is_dir():
        ours = RESULTS, RESULTS + PARTIAL
        others = [path.name for path in folder.iterdir() if path.name not in ours]
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
