"""What the benchmark's cells say together, against sums done by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.benchmark_cells import make_cells

from fetchlab.eval.benchmark.pairs import Duel, says_both
from fetchlab.eval.benchmark.summary import Summary, summarize
from fetchlab.eval.results import Cell, CellKey
from fetchlab.eval.rollout import EpisodeResult
from fetchlab.eval.statistics import wilson


def played(key: CellKey, outcomes: str, sentences: tuple[str, ...] = ("fetch the mug",)) -> Cell:
    """A cell of these outcomes, `+` is a success, and of these sentences in turn."""
    episodes = [
        EpisodeResult(
            seed=2 * row + 1,
            n_objects=key.n_objects,
            success=outcome == "+",
            steps=10,
            reason="" if outcome == "+" else "dropped",
            instruction=sentences[row % len(sentences)],
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
    assert (pool.n_scenes, pool.n_trainings, pool.n_episodes) == (4, 2, 8)
    assert (pool.n_success, pool.n_solved, pool.failures) == (7, 3.5, {"dropped": 1})
    assert pool.rate == 7 / 8 and pool.ci95 == wilson(3.5, 4)
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
    assert (one.n, one.n_only_first, one.n_only_second) == (4, 1.5, 0)
    other = beyond.comparison  # "-+--" against "+++-" and "+---"
    assert (other.n, other.n_only_first, other.n_only_second) == (4, 1.5, 0.5)
    assert seen.scenes_needed is not None and seen.episodes_needed is not None


def duel(first: list[str], second: list[str]) -> Duel:
    cells = [counts("act", 2, seed, outcomes) for seed, outcomes in enumerate(first)]
    cells += [counts("slot_mlp", 2, seed, outcomes) for seed, outcomes in enumerate(second)]
    return summarize(cells).duels[0]


def test_each_training_meets_each_of_the_other_policy() -> None:
    one = duel(["++", "--"], ["+-", "-+"]).comparison
    assert (one.n, one.n_only_first, one.n_only_second, one.p_value) == (2, 0.5, 0.5, 1)
    assert duel(["++", "--"], ["++", "--"]).scenes_needed is None  # nothing tells them apart


def test_the_same_training_three_times_makes_nothing_surer() -> None:
    first, second = "+++++++++-" * 2, "++-+-+-+--" * 2
    once, often = (
        summarize(
            [
                *(counts("act", 6, seed, first) for seed in range(n)),
                counts("expert", 6, None, second),
            ]
        )
        for n in (1, 3)
    )
    assert (often.pools[0].ci95, often.pools[0].n_scenes) == (once.pools[0].ci95, 20)
    one, same = once.duels[0].comparison, often.duels[0].comparison
    assert (same.n, same.n_only_first) == (20, 8) and same.ci95 == pytest.approx(one.ci95)
    assert same.p_value == pytest.approx(one.p_value) == pytest.approx(2 / 2**8)
    assert often.duels[0].scenes_needed == once.duels[0].scenes_needed


def test_policies_that_met_other_seeds_are_not_compared() -> None:
    mine, other = counts("act", 6, 0, "++"), counts("expert", 6, None, "++")
    moved = replace(other.episodes[1], seed=99)
    elsewhere = replace(other, episodes=(other.episodes[0], moved))
    with pytest.raises(ValueError, match="cannot pair outcomes of 2 different lists of seeds"):
        summarize([mine, elsewhere])


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
    assert (one.n, one.n_first, one.n_second, one.n_only_first) == (4, 2, 3.5, 0)
    assert one.difference == pytest.approx(-3 / 8)


def test_an_arm_with_other_scenes_than_its_control_is_not_paired() -> None:
    arm = CellKey(policy="act", suite="crowding", arm="touching", n_objects=6)
    control = replace(arm, arm="control", control=True)
    outcomes = "+" * 15 + "-" * 5, "+" * 10 + "-" * 10
    (contrast,) = summarize([played(arm, outcomes[1]), played(control, outcomes[0])]).contrasts
    apart = contrast.comparison
    assert (apart.n_only_first, apart.difference) == (None, -0.25)
    cameras = [
        played(replace(k, suite="cameras"), o)
        for k, o in zip((control, arm), outcomes, strict=True)
    ]
    paired = summarize(cameras).contrasts[0].comparison
    assert paired.n_only_second == 5
    assert paired.ci95[1] < apart.ci95[1] and paired.ci95[0] > apart.ci95[0]


def test_what_memory_adds_is_measured_in_the_same_scenes() -> None:
    key = CellKey(policy="act", suite="memory", arm="remember", n_objects=5, task="remember")
    one_frame, first_frame = (replace(key, trained=n) for n in ("remember", "remember_history"))
    control = replace(first_frame, arm="control", control=True)
    cells = [
        played(replace(one_frame, training_seed=0), "+---"),
        played(replace(one_frame, training_seed=1), "-+--"),
        played(replace(first_frame, training_seed=0), "+++-"),
        played(replace(control, training_seed=0), "++++"),
    ]
    found = summarize(cells)
    (lesson,) = found.lessons
    assert (lesson.arm, lesson.trained, lesson.against) == (
        "remember",
        "remember_history",
        "remember",
    )
    one = lesson.comparison
    assert (one.n, one.n_first, one.n_second, one.difference) == (4, 3, 1, 0.5)
    assert len(found.contrasts) == 1


@pytest.mark.parametrize(
    ("task", "sentence", "both"),
    [
        ("fetch", "fetch the red block", True),
        ("fetch", "fetch the block", False),
        ("fetch", "fetch the red object", False),
        ("place_beside", "put the mug left of the red block", False),  # the other one is named so
        ("place_beside", "put the blue mug left of the block", True),
    ],
)
def test_what_a_sentence_says_of_the_object_to_act_on(task: str, sentence: str, both: bool) -> None:
    assert says_both(task, sentence) is both


def test_compositions_tell_success_where_colour_and_shape_are_said() -> None:
    key = CellKey(policy="act", suite="compositions", arm="held_out", n_objects=5)
    cells = [
        played(replace(key, training_seed=0), "+--+", ("fetch the red mug", "fetch the mug")),
        played(replace(key, training_seed=1), "++++", ("fetch the red mug", "fetch the mug")),
        played(replace(key, suite="cameras"), "++++"),
    ]
    (one,) = summarize(cells).full_names
    assert (one.suite, one.arm, one.n_scenes, one.rate) == ("compositions", "held_out", 2, 0.75)
    assert one.ci95 == wilson(1.5, 2)


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
