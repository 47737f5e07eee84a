"""What a benchmark is asked to do: its command line, and the suites and trainings that follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fetchlab.errors import UserError, unknown
from fetchlab.eval.arms import NEEDS, NOMINAL, Condition, Suite
from fetchlab.eval.benchmark.recipe import FULL, QUICK, WORLD, Recipe, single
from fetchlab.eval.parallel import worker_count
from fetchlab.eval.suites import SUITES, suite_of
from fetchlab.policy.registry import entry, is_scripted
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.tasks.registry import TASKS

MOST_EPISODES = 10_000


@dataclass(frozen=True, kw_only=True)
class BenchmarkConfig:
    """Train policies, play every suite with all of them in the same scenes, and report.

    Interrupt it when you like: the same command goes on where it stopped, and nothing that is
    finished is done again. Policies, seeds and suites may be added later.

    All of it is dozens of trainings and hundreds of thousands of episodes: many hours on a few
    cores. How much is to come is told before it begins. Less: fewer --suites, fewer --seeds, --task
    fetch; least: --quick.
    """

    out: Path
    """folder for demonstrations, policies, results.json and report.html"""
    policies: tuple[str, ...] = ()
    """names of registered policies (`fetchlab list policies`), the most important first; by default
    act_pointers and slot_mlp_large, or act and slot_mlp for a task other than `mixed`, then expert
    and expert_blind"""
    seeds: tuple[int, ...] = ()
    """of the trainings, by default 0 1 2, or 0 1 with --quick: how much luck is in a training shows
    only when it is repeated"""
    suites: tuple[str, ...] = tuple(SUITES)
    """what to vary (`fetchlab list suites`)"""
    task: str | None = None
    """`mixed` (the default): all shapes, both languages, two cameras; any other task: blocks,
    one sentence, two small cameras, which is much cheaper"""
    quick: bool = False
    """a few minutes in all: fetch, few demonstrations and episodes, and no suite that takes
    trainings of its own. The numbers mean little, the way they are made is the same"""
    episodes: int | None = None
    """in each cell; by default 200, or 10 with --quick"""
    demonstrations: int | None = None
    """to learn from; by default 7200, 1200 for a task other than `mixed`, or 600 with --quick. The
    suite `data` has numbers of its own, up to 1000, which are collected whatever this says"""
    workers: int = 0
    """processes; 0: one a core. The results do not depend on it"""

    def __post_init__(self) -> None:
        if self.task is not None and self.task not in TASKS:
            raise unknown("task", self.task, TASKS)
        for kind, names in (("policies", self.contestants), ("suites", self.suites)):
            _check_different(kind, names)
        _check_different("seeds", self.training_seeds)
        for policy in self.contestants:
            entry(policy)
        for suite in self.suites:
            suite_of(suite)
        _check_range("episodes", self.episodes, 1, MOST_EPISODES)
        _check_range("demonstrations", self.demonstrations, 2, 1_000_000)
        if any(not 0 <= seed < 2**32 for seed in self.seeds):
            raise UserError(
                f"--seeds must be 0 to {2**32 - 1}, got {' '.join(map(str, self.seeds))}"
            )
        worker_count(self.workers)
        if not self.chosen:
            reasons = "; ".join(f"{name} {why}" for name, why in self.left_out.items())
            raise UserError(f"no suite is left to play: {reasons}")

    @property
    def recipe(self) -> Recipe:
        """The tier, with what was asked to be different."""
        tier = QUICK if self.quick else FULL
        if self.task == WORLD.task:
            tier = replace(tier, world=WORLD, policies=FULL.policies)
        elif self.task not in (None, tier.world.task):
            tier = single(tier, str(self.task))
        return replace(
            tier,
            episodes=self.episodes or tier.episodes,
            demonstrations=self.demonstrations or tier.demonstrations,
        )

    @property
    def contestants(self) -> tuple[str, ...]:
        """The policies that are measured."""
        return self.policies or self.recipe.policies

    @property
    def training_seeds(self) -> tuple[int, ...]:
        return self.seeds or (QUICK if self.quick else FULL).seeds

    @property
    def chosen(self) -> tuple[Suite, ...]:
        """The suites that are played, each with the conditions that policies are trained under."""
        suites = [_trimmed(SUITES[n], self.recipe) for n in self.suites if n not in self.left_out]
        return tuple(suites)

    @property
    def left_out(self) -> dict[str, str]:
        """Suites that are not played, and why."""
        reasons = {name: _why_not(SUITES[name], self.recipe) for name in self.suites}
        return {name: reason for name, reason in reasons.items() if reason}


def _why_not(suite: Suite, recipe: Recipe) -> str:
    for need in suite.needs:
        if not NEEDS[need](recipe.world):
            return f"needs {need}"
    if not _trimmed(suite, recipe).trained:
        return "needs trainings of its own, which --quick leaves out"
    return ""


def _trimmed(suite: Suite, recipe: Recipe) -> Suite:
    """The suite with the conditions and counts that the recipe takes."""
    conditions = [c for c in suite.trained if recipe.more_trainings or c.name == NOMINAL]
    counts = recipe.counts if suite.name == "counts" and recipe.counts else suite.counts
    return replace(suite, trained=tuple(conditions), counts=counts)


def _check_different(kind: str, chosen: Sequence[object]) -> None:
    if not chosen or len(set(chosen)) != len(chosen):
        words = " ".join(map(str, chosen)) or "none"
        raise UserError(f"--{kind} must name different {kind}, got {words}")


def _check_range(name: str, value: int | None, low: int, high: int) -> None:
    if value is not None and not low <= value <= high:
        raise UserError(f"--{name} must be {low} to {high}, got {value}")


# Trainings --------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Training:
    """One policy to be trained."""

    policy: str
    condition: Condition
    seed: int

    @property
    def name(self) -> str:
        """Its folder, below `policies/`."""
        return f"{self.policy}/{self.condition.name}/seed-{self.seed}"


def trainings(config: BenchmarkConfig) -> list[Training]:
    """Every training that a suite needs, those of the first policy first."""
    return [
        Training(policy=policy, condition=condition, seed=seed)
        for policy in config.contestants
        for condition in conditions_of(policy, config)
        for seed in config.training_seeds
    ]


def conditions_of(policy: str, config: BenchmarkConfig) -> list[Condition]:
    """What this policy has to be trained on, each once; nothing for a scripted one."""
    if is_scripted(policy):
        return []
    taken = [suite for suite in config.chosen if takes(policy, suite, config.recipe.world)]
    return list({c.name: c for suite in taken for c in suite.trained}.values())


def takes(policy: str, suite: Suite, world: EnvConfig) -> bool:
    """Whether a policy that is trained in this world can play any of the suite."""
    seen = world if entry(policy).sees_images else replace(world, cameras=())
    return all(NEEDS[need](seen) for need in suite.needs)


def collections(config: BenchmarkConfig) -> dict[str, tuple[EnvConfig, int]]:
    """The datasets that the trainings need: name to world and number of demonstrations.

    Conditions that differ only in the number of demonstrations share one: its first so many.
    """
    found: dict[str, tuple[EnvConfig, int]] = {}
    for training in trainings(config):
        name, condition = collection_of(training.condition), training.condition
        world = replace(config.recipe.world, **condition.env)
        n = max(demonstrations_of(condition, config), found.get(name, (world, 0))[1])
        found[name] = world, n
    return found


def collection_of(condition: Condition) -> str:
    """The name of the dataset that a condition is taught with: what its world changes."""
    changes = []
    for key, value in sorted(condition.env.items()):
        values = value if isinstance(value, tuple) else (value,)
        changes.append("-".join((key, *map(str, values))))
    return "_".join(changes) or NOMINAL


def demonstrations_of(condition: Condition, config: BenchmarkConfig) -> int:
    return condition.demonstrations or config.recipe.demonstrations


def most_episodes(config: BenchmarkConfig) -> int:
    """How many there are to play; fewer where a policy cannot, or suites share a control."""
    parts = len(TASKS[config.recipe.world.task].parts)
    cells = 0
    for policy in config.contestants:
        names = [condition.name for condition in conditions_of(policy, config)]
        for suite in config.chosen:
            taught = sum(condition.name in names for condition in suite.trained)
            players = 1 if is_scripted(policy) else taught * len(config.training_seeds)
            cells += players * len(suite.arms) * (len(suite.tasks) or parts) * len(suite.counts)
    return cells * config.recipe.episodes
