"""What an evaluation plays: cell by cell the world, the scenes, and why one cannot be played."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from fetchlab.errors import UserError, unknown
from fetchlab.eval.ablation import ABLATIONS
from fetchlab.eval.arms import NEEDS, NOMINAL, Arm, Suite
from fetchlab.eval.parallel import Played, Role, Shard, load, play_shards, split
from fetchlab.eval.results import Cell, CellKey, Swap
from fetchlab.eval.rollout import EpisodeSpec
from fetchlab.eval.statistics import wilson
from fetchlab.eval.suites import SUITES
from fetchlab.eval.swap import Pair, swap_pairs
from fetchlab.policy.base import Policy
from fetchlab.policy.registry import is_scripted
from fetchlab.sim.cameras import CAMERAS
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.scene import COLOURS
from fetchlab.sim.tasks.registry import TASKS
from fetchlab.train.provenance import in_words

SEEDS_A_COUNT = 10_000
SEEDS_A_RUN = 1_000_000


def evaluation_seeds(seed: int, n_objects: int, episodes: int) -> list[int]:
    """Scene seeds of an evaluation: odd, and so never those of a demonstration, which are even."""
    first = seed * SEEDS_A_RUN + n_objects * SEEDS_A_COUNT
    return [2 * (first + episode) + 1 for episode in range(episodes)]


def evaluation_specs(
    seed: int, n_objects: int, episodes: int, task: str | None = None
) -> list[EpisodeSpec]:
    """The episodes of one cell, the same for every policy; `task`: the part of a task to play."""
    return [
        EpisodeSpec(seed=scene, n_objects=n_objects, task=task)
        for scene in evaluation_seeds(seed, n_objects, episodes)
    ]


@dataclass(frozen=True, kw_only=True)
class CellPlan:
    """One cell to come: who plays what, or why nobody does."""

    key: CellKey
    role: Role | None = None
    specs: tuple[EpisodeSpec, ...] = ()
    note: str = ""
    """why it cannot be played; else empty"""

    @property
    def seeds(self) -> list[int]:
        """Of its scenes; none where it cannot be played."""
        return [spec.seed for spec in self.specs]

    def shards(self) -> list[Shard]:
        """Pieces of work; they depend on nothing outside the cell, so its numbers never do."""
        return split(self.role, self.specs) if self.role else []

    def cell(self, played: Played) -> Cell:
        """The cell of its episodes, or an empty one that says why."""
        if self.role is None:
            return Cell.refused(self.key, self.note)
        return Cell.count(self.key, [played[self.role, spec] for spec in self.specs])


@dataclass(frozen=True, kw_only=True)
class Scope:
    """How much of a suite is played."""

    counts: tuple[int, ...]
    episodes: int
    """in each cell"""
    seed: int
    """of the scenes"""
    tasks: tuple[str, ...] = ()
    """the parts of the policy's task; empty: all"""


def plan_cells(
    source: str,
    policy: Policy,
    suite: Suite,
    scope: Scope,
    *,
    trained: str = NOMINAL,
    training_seed: int | None = None,
) -> tuple[CellPlan, ...]:
    """Every cell of the suite for this policy: arm by arm, task by task, count by count."""
    plans = []
    for arm in suite.arms:
        for task in played_tasks(policy, suite, scope.tasks):
            for count in scope.counts:
                key = CellKey(
                    policy=policy.name,
                    suite=suite.name,
                    n_objects=count,
                    arm=arm.name,
                    control=suite.is_control(arm),
                    task=task,
                    trained=trained,
                    training_seed=training_seed,
                )
                plans.append(_plan_cell(source, policy, suite, arm, scope, key))
    return tuple(plans)


def _plan_cell(
    source: str, policy: Policy, suite: Suite, arm: Arm, scope: Scope, key: CellKey
) -> CellPlan:
    note = refusal(policy, suite, arm, key.n_objects)
    if note:
        return CellPlan(key=key, note=note)
    world = world_of(policy, arm)
    part = key.task if len(TASKS[world.task].parts) > 1 else None
    note = no_scene(world, key.n_objects, part)
    if note:
        return CellPlan(key=key, note=note)
    specs = evaluation_specs(scope.seed, key.n_objects, scope.episodes, part)
    role = Role(source=source, world=world, ablation=arm.ablation)
    return CellPlan(key=key, role=role, specs=tuple(specs))


def played_tasks(policy: Policy, suite: Suite, chosen: Sequence[str] = ()) -> tuple[str, ...]:
    """What the cells are called that are played. Raises UserError for a task that is none."""
    parts = TASKS[policy.env_config.task].parts
    known = suite.tasks or tuple(part.name for part in parts)
    for task in chosen:
        if task not in known:
            raise unknown(f"task of {policy.name}", task, known)
    return tuple(chosen) or known


def world_of(policy: Policy, arm: Arm) -> EnvConfig:
    """The policy's world as the arm changes it. Raises UserError where it cannot be changed so."""
    world = replace(policy.env_config, **arm.env)
    return without_cameras(world) if is_scripted(policy.name) else world


def chosen_world(source: str, wishes: Mapping[str, Any]) -> EnvConfig:
    """The world of a policy, for a scripted one as wished; what is None is not asked for.

    Raises UserError if a trained policy was made for another world.
    """
    asked = {name: value for name, value in wishes.items() if value is not None}
    world = EnvConfig(cameras=(), **asked)
    if is_scripted(source):
        return world
    own = load(source).env_config
    for name, value in asked.items():
        if value != getattr(own, name):
            known = in_words(getattr(own, name))
            raise UserError(f"{source} was made for {name} {known}, not {in_words(value)}")
    return own


def without_cameras(world: EnvConfig) -> EnvConfig:
    """The same scenes for scripted policies, which look through no cameras."""
    return replace(world, cameras=(), history=1, memory="recent", depth=False)


def refusal(policy: Policy, suite: Suite, arm: Arm, n_objects: int) -> str:
    """Why a policy cannot play an arm with so many objects, in one line; empty if it can."""
    env = policy.env_config
    if is_scripted(policy.name):  # it needs no camera to know the scene
        env = replace(env, cameras=tuple(CAMERAS))
    for need in (*suite.needs, *arm.needs):
        if not NEEDS[need](env):
            return f"needs {need}"
    if n_objects > policy.max_objects:
        return f"cannot take {n_objects} objects ({policy.max_objects} slots)"
    if arm.ablation is not None:
        return ABLATIONS[arm.ablation].refusal(policy)
    try:
        return _unknown_words(policy, world_of(policy, arm))
    except UserError as error:
        return str(error)


@cache
def no_scene(world: EnvConfig, n_objects: int, part: str | None) -> str:
    """Why there is no scene to play, such as too few shapes for its rules; empty if there is."""
    try:
        TASKS[world.task].scene(np.random.default_rng(0), world, n_objects, part)
    except UserError as error:
        return str(error)
    return ""


def _unknown_words(policy: Policy, world: EnvConfig) -> str:
    """Words that are said in this world and that the policy never learned, if any."""
    from fetchlab.tokenizers.instruction import Vocabulary

    config = getattr(policy, "config", None)
    if config is None:
        return ""
    known = Vocabulary((*config.sentences, *config.phrases)).words
    said = Vocabulary(TASKS[world.task].sentences(world)).words
    missing = [word for word in said if word not in known]
    examples = ", ".join(map(repr, missing[:3]))
    return f"does not know {len(missing)} words of it, such as {examples}" if missing else ""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All that one policy plays."""

    source: str
    """folder or name"""
    policy: Policy
    seed: int
    """of the scenes"""
    cells: tuple[CellPlan, ...] = ()
    swaps: tuple[Pair, ...] = ()
    """scenes to play twice, with different objects named"""

    @property
    def role(self) -> Role:
        """The policy in its own world."""
        return Role(source=self.source, world=self.policy.env_config)

    def shards(self) -> list[Shard]:
        """All there is to play, each episode once."""
        known = {(cell.role, spec) for cell in self.cells for spec in cell.specs}
        asked = [spec for pair in self.swaps for spec in pair if (self.role, spec) not in known]
        shards = [shard for cell in self.cells for shard in cell.shards()]
        return [*shards, *split(self.role, asked)]


def make_plan(
    source: str,
    scope: Scope,
    *,
    suite: str = "counts",
    world: EnvConfig | None = None,
    n_swaps: int = 0,
) -> Plan:
    """A plan, with the policy loaded; a scripted one acts in `world`."""
    policy = load(source, world)
    scenes = swap_scenes(policy.max_objects, scope.seed, n_swaps)
    return Plan(
        source=source,
        policy=policy,
        seed=scope.seed,
        cells=plan_cells(source, policy, SUITES[suite], scope),
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
    cells = tuple(cell.cell(played) for plan in plans for cell in plan.cells)
    return cells, next((make_swap(plan, played) for plan in plans if plan.swaps), None)


def n_episodes(plans: Sequence[Plan]) -> int:
    """How many episodes `evaluate` will play."""
    return sum(len(shard.specs) for plan in plans for shard in plan.shards())


def make_swap(plan: Plan, played: Played) -> Swap:
    """How often the changed words decided what was acted on."""
    pairs = [
        (played[plan.role, original].success, played[plan.role, changed].success)
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
