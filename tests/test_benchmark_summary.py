"""What the benchmark's cells say together, against sums done by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.benchmark_cells import make_cells

from fetchlab.eval.benchmark.summary import Duel, Summary, summarize
from fetchlab.eval.results import Cell, CellKey
from fetchlab.eval.rollout import EpisodeResult
from fetchlab.eval.statistics import wilson


def played(key: CellKey, outcomes: str) -> Cell:
    """A cell of these outcomes: `+` is a success."""
    episodes = [
        EpisodeResult(
            seed=2 * row + 1,
            n_objects=key.n_objects,
            success=outcome == "+",
            steps=10,
            reason="" if outcome == "+" else "dropped",
            instruction="fetch the red block",
            target=0,
        )
        for row, outcome in enumerate(outcomes)
    ]
    return Cell.count(key, episodes)


def counts(policy: str, n_objects: int, seed: int | None, outcomes: str) -> Cell:
    key = CellKey(policy=policy, suite="counts", n_objects=n_objects, training_seed=seed)
    return played(key, outcomes)


@pytest.fixture(scope="module")
def two_trainings() -> Summary:
    return summarize(
        [
            counts("act", 2, 0, "++++"),
            counts("act", 6, 0, "+++-"),
            counts("act", 2, 1, "+++-"),
            counts("act", 6, 1, "+---"),
            counts("expert_blind", 2, None, "+-+-"),
            counts("expert_blind", 6, None, "-+--"),
        ]
    )


def test_trainings_are_pooled_and_their_spread_is_kept(two_trainings: Summary) -> None:
    pool = two_trainings.pools[0]
    assert pool.key == CellKey(policy="act", suite="counts", n_objects=2)
    assert (pool.n_episodes, pool.n_success, pool.failures) == (8, 7, {"dropped": 1})
    assert pool.rate == 7 / 8 and pool.ci95 == wilson(7, 8)
    assert pool.spread is not None
    assert (pool.spread.worst, pool.spread.mean, pool.spread.best) == (0.75, 0.875, 1.0)


def test_numbers_of_objects_are_grouped_by_whether_they_were_demonstrated(
    two_trainings: Summary,
) -> None:
    found = {(group.policy, group.counts): group for group in two_trainings.groups}
    assert found["act", (2,)].spread.mean == 0.875
    beyond = found["act", (6,)]
    assert (beyond.spread.worst, beyond.spread.best, beyond.n_episodes) == (0.25, 0.75, 4)
    assert found["expert_blind", (6,)].spread.ci95 is None  # it was not trained


def test_every_training_meets_what_is_not_trained_in_the_same_scenes(
    two_trainings: Summary,
) -> None:
    seen, beyond = two_trainings.duels
    assert (seen.first, seen.second, seen.counts) == ("act", "expert_blind", (2,))
    one = seen.comparison  # "+-+-" against "++++" and "+++-"
    assert (one.n, one.n_only_first, one.n_only_second) == (8, 3, 0)
    other = beyond.comparison  # "-+--" against "+++-" and "+---"
    assert (other.n, other.n_only_first, other.n_only_second) == (8, 3, 1)
    assert seen.scenes_needed is not None and seen.episodes_needed is not None


def duel(first: list[str], second: list[str]) -> Duel:
    cells = [counts("act", 2, seed, outcomes) for seed, outcomes in enumerate(first)]
    cells += [counts("slot_mlp", 2, seed, outcomes) for seed, outcomes in enumerate(second)]
    return summarize(cells).duels[0]


def test_trainings_meet_in_the_order_of_their_seeds() -> None:
    one = duel(["++", "--"], ["+-", "-+"]).comparison
    assert (one.n, one.n_only_first, one.n_only_second) == (4, 1, 1)
    assert duel(["++", "--"], ["++", "--"]).scenes_needed is None  # nothing tells them apart


def test_counts_that_one_of_them_cannot_take_are_left_out() -> None:
    refused = Cell.refused(CellKey(policy="slot_mlp", suite="counts", n_objects=8), "six slots")
    found = summarize([counts("act", 8, None, "++"), refused])
    assert found.duels == () and [group.policy for group in found.groups] == ["act"]
    pool = found.pools[1]
    assert (pool.rate, pool.spread, pool.ci95, pool.note) == (None, None, None, "six slots")


def test_an_arm_is_measured_against_its_control_of_the_same_training() -> None:
    arm = CellKey(policy="act", suite="cameras", arm="front_dark", n_objects=5, training_seed=0)
    control = replace(arm, arm="control", control=True)
    cells = [
        played(control, "++++"),
        played(arm, "+--+"),
        played(replace(control, training_seed=1), "+++-"),
        played(replace(arm, training_seed=1), "-++-"),
        played(replace(arm, training_seed=2), "----"),  # without a control: it says nothing
    ]
    (contrast,) = summarize(cells).contrasts
    assert (contrast.suite, contrast.arm) == ("cameras", "front_dark")
    one = contrast.comparison
    assert (one.n, one.n_first, one.n_second) == (8, 4, 7)
    assert one.difference == pytest.approx(-3 / 8)


def test_every_suite_of_a_whole_benchmark_has_its_place() -> None:
    found = summarize(make_cells(n=4))
    arms = {(one.suite, one.arm) for one in found.contrasts}
    assert ("memory", "remember") in arms and ("compositions", "held_out") in arms
    assert not any(arm == "control" for _, arm in arms)
    assert {one.trained for one in found.contrasts if one.suite == "memory"} == {
        "nominal",  # the scripted ones
        "remember",
        "remember_history",
    }
