"""What can be paired: arms with controls, trainings with trainings, and policies with policies.

A scene counts once, however many trainings played it: with the mean over them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product

from fetchlab.eval.arms import CONTROL, NOMINAL
from fetchlab.eval.benchmark.recipe import SEEN
from fetchlab.eval.results import Cell, Episode
from fetchlab.eval.statistics import (
    Comparison,
    Interval,
    Round,
    compare_outcomes,
    episodes_needed,
    scenes_needed,
    wilson,
)
from fetchlab.eval.suites import SUITES
from fetchlab.sim.tasks.registry import TASKS

NAMING = ("compositions",)  # suites in which it matters how an object is named

Place = tuple[str, int]
"""task and number of objects"""
Training = Mapping[Place, Cell]
"""what one training played of an arm"""
Pair = tuple[Training, Training]


@dataclass(frozen=True, kw_only=True)
class ArmKey:
    """An arm of a suite, all tasks and counts, as all trainings of a policy played it."""

    policy: str
    trained: str
    """the condition"""
    suite: str
    arm: str


@dataclass(frozen=True, kw_only=True)
class Contrast(ArmKey):
    """An arm against its control, on the same seeds."""

    comparison: Comparison
    """the first is the arm; paired where a seed gives both the same scene"""


@dataclass(frozen=True, kw_only=True)
class Lesson(ArmKey):
    """What another way to be trained changed, in the same scenes."""

    against: str
    """the condition that `trained` is measured against"""
    comparison: Comparison


@dataclass(frozen=True, kw_only=True)
class FullNames(ArmKey):
    """Success where the sentence says both colour and shape of what to act on.

    Most others need but one of the two, which would not tell whether their pair is understood.
    """

    n_scenes: int
    rate: float
    ci95: Interval


@dataclass(frozen=True, kw_only=True)
class Duel:
    """Two policies in the same scenes of `counts`: each training of one with each of the other."""

    first: str
    second: str
    task: str
    counts: tuple[int, ...]
    comparison: Comparison
    scenes_needed: int | None
    """that both play, to tell rates apart that differ like these; None for equal ones"""
    episodes_needed: int | None
    """of each of them, were their scenes different"""


# What is paired ---------------------------------------------------------------------------


def halves(cells: Iterable[Cell]) -> list[tuple[int, ...]]:
    """The numbers of objects that were demonstrated, and those beyond; only what there is."""
    counts = sorted({cell.n_objects for cell in cells})
    seen = tuple(count for count in counts if count in SEEN)
    beyond = tuple(count for count in counts if count not in SEEN)
    return [half for half in (seen, beyond) if half]


def counted(cells: Iterable[Cell]) -> list[Cell]:
    """The cells of `counts`, of policies with the usual demonstrations."""
    return [cell for cell in cells if (cell.suite, cell.trained) == ("counts", NOMINAL)]


def _trainings(cells: Iterable[Cell]) -> dict[ArmKey, dict[int | None, Training]]:
    """What each training played of every arm, by its seed."""
    found: dict[ArmKey, dict[int | None, dict[Place, Cell]]] = {}
    for cell in cells:
        if cell.n_episodes:
            arm = ArmKey(policy=cell.policy, trained=cell.trained, suite=cell.suite, arm=cell.arm)
            training = found.setdefault(arm, {}).setdefault(cell.training_seed, {})
            training[cell.task, cell.n_objects] = cell
    return {arm: dict(by_seed) for arm, by_seed in found.items()}


def _common(trainings: Iterable[Training]) -> list[Place]:
    """The places that all of them played."""
    played = [set(training) for training in trainings]
    return sorted(set.intersection(*played)) if played else []


def _rounds(pairs: Sequence[Pair]) -> list[Round]:
    """The episodes of each pair; none if no place was played by all of them."""
    places = _common(training for pair in pairs for training in pair)
    if not places:
        return []
    return [(_episodes(first, places), _episodes(second, places)) for first, second in pairs]


def _episodes(training: Training, places: Sequence[Place]) -> list[Episode]:
    return [episode for place in places for episode in training[place].episodes]


# Comparisons ------------------------------------------------------------------------------


def contrasts(cells: Iterable[Cell]) -> Iterator[Contrast]:
    """Every arm against the control that the same training played."""
    arms = _trainings(cells)
    for arm, mine in arms.items():
        controls = {} if arm.arm == CONTROL else arms.get(replace(arm, arm=CONTROL), {})
        rounds = _rounds([(mine[seed], controls[seed]) for seed in mine if seed in controls])
        if rounds:
            same_scenes = SUITES[arm.suite].same_scenes
            comparison = compare_outcomes(rounds, same_scenes=same_scenes)
            yield Contrast(**asdict(arm), comparison=comparison)


def lessons(cells: Iterable[Cell]) -> Iterator[Lesson]:
    """Every condition that is measured against another, in the arms that test it."""
    arms = _trainings(cells)
    for arm, mine in arms.items():
        against = {one.name: one.control for one in SUITES[arm.suite].trained}.get(arm.trained, "")
        others = {} if arm.arm == CONTROL else arms.get(replace(arm, trained=against), {})
        rounds = _rounds(list(product(mine.values(), others.values())))
        if rounds:
            yield Lesson(**asdict(arm), against=against, comparison=compare_outcomes(rounds))


def duels(cells: Iterable[Cell]) -> Iterator[Duel]:
    """The first policy against each other one: task by task, seen counts and those beyond."""
    played = counted(cells)
    first, *others = dict.fromkeys(cell.policy for cell in played) or [""]
    tasks = dict.fromkeys(cell.task for cell in played)
    for second, task, counts in product(others, tasks, halves(played)):
        inside = [cell for cell in played if cell.task == task and cell.n_objects in counts]
        trainings = {arm.policy: mine.values() for arm, mine in _trainings(inside).items()}
        pairs = list(product(trainings.get(first, ()), trainings.get(second, ())))
        rounds = _rounds(pairs)
        if rounds:
            places = _common(training for pair in pairs for training in pair)
            yield _duel(first, second, places, compare_outcomes(rounds))


def _duel(first: str, second: str, places: Sequence[Place], comparison: Comparison) -> Duel:
    one = comparison
    assert one.n_only_first is not None and one.n_only_second is not None  # the scenes are the same
    return Duel(
        first=first,
        second=second,
        task=places[0][0],
        counts=tuple(count for _, count in places),
        comparison=one,
        scenes_needed=scenes_needed(one.n_only_first / one.n, one.n_only_second / one.n),
        episodes_needed=episodes_needed(one.n_first / one.n, one.n_second / one.n),
    )


# Names ------------------------------------------------------------------------------------


def full_names(cells: Iterable[Cell]) -> Iterator[FullNames]:
    """Of every arm of the suites in which it matters, controls as well."""
    for arm, mine in _trainings(cell for cell in cells if cell.suite in NAMING).items():
        places = _common(mine.values())
        outcomes = [
            episode.success
            for training in mine.values()
            for place in places
            for episode in training[place].episodes
            if says_both(place[0], episode.instruction)
        ]
        if outcomes:
            n, won = len(outcomes) // len(mine), sum(outcomes) / len(mine)
            yield FullNames(**asdict(arm), n_scenes=n, rate=won / n, ci95=wilson(won, n))


def says_both(task: str, sentence: str) -> bool:
    """Whether a sentence names what to act on by its colour and its shape."""
    named = TASKS[task].request(sentence).target
    return None not in (named.colour, named.shape)
