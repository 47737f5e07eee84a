"""What is kept from a policy is kept from all of it, and the same in every episode of a scene."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.factories import SENTENCES, make_act, make_observations, make_slot_mlp

from fetchlab.eval.ablation import ABLATIONS, Blindfolded, Misinformed, Numbed, shuffled, swapped
from fetchlab.eval.rollout import EpisodeSpec, make_worlds, rollout
from fetchlab.policy.base import Array
from fetchlab.policy.expert import Expert
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.env import Tabletop
from fetchlab.sim.language import LANGUAGES
from fetchlab.sim.observation import Observation, ObservationBatch
from fetchlab.sim.tasks.registry import TASKS
from fetchlab.tokenizers.instruction import NO_WORDS, InstructionTokenizer, split

RICH = EnvConfig(
    task="mixed", cameras=(), shapes=("block", "mug", "ball"), languages=tuple(LANGUAGES)
)


@dataclass
class Listener:
    """Does nothing but remember what it observed."""

    name: str = "listener"
    env_config: EnvConfig = field(default_factory=EnvConfig)
    max_objects: int = 20
    heard: list[ObservationBatch] = field(default_factory=list)
    resets: list[Sequence[int] | None] = field(default_factory=list)

    def reset(self, slots: Sequence[int] | None = None) -> None:
        self.resets.append(slots)

    def act(self, observation: Observation) -> Array:
        action: Array = self.act_batch(ObservationBatch.stack([observation]), [0])[0]
        return action

    def act_batch(self, observations: ObservationBatch, slots: Sequence[int]) -> Array:
        self.heard.append(observations)
        return observations.proprioception[:, :8]


def scenes(n: int, n_objects: int, world: EnvConfig = RICH) -> list[Observation]:
    """First observations of different scenes."""
    with contextlib.closing(Tabletop.from_config(world)) as env:
        options = {"n_objects": n_objects}
        return [
            Observation.from_gym(env.reset(seed=2 * i + 1, options=options)[0]) for i in range(n)
        ]


def test_shuffled_words_are_the_same_words_in_an_order_that_the_scene_draws() -> None:
    observations = scenes(30, 5)
    said = [shuffled("mixed", one) for one in observations]
    for new, one in zip(said, observations, strict=True):
        assert sorted(split(new)) == sorted(split(one.instruction))
    assert said == [shuffled("mixed", one) for one in observations]
    changed = sum(new != one.instruction for new, one in zip(said, observations, strict=True))
    assert changed > 25
    assert {" " in new for new in said} == {True, False}  # Chinese needs no gaps


@pytest.mark.parametrize("n_objects", [2, 3, 6, 12])
def test_a_swapped_sentence_asks_the_same_of_another_object_of_the_scene(n_objects: int) -> None:
    for one in scenes(20, n_objects):
        before, after = (
            TASKS["mixed"].request(sentence)
            for sentence in (one.instruction, swapped("mixed", one))
        )
        assert after.target != before.target
        assert replace(before, target=after.target) == after


def test_where_others_have_doubles_one_of_them_is_named_all_the_same() -> None:
    world = EnvConfig(cameras=())
    crowded = scenes(20, 20, world)  # of six colours most occur several times
    assert all(swapped("fetch", one) != one.instruction for one in crowded)


def test_the_expert_told_to_take_another_object_never_takes_the_right_one() -> None:
    policy = ABLATIONS["instruction_swapped"].wrap(Expert(RICH))
    with contextlib.closing(make_worlds(RICH, 2)) as worlds:
        results = rollout(policy, [EpisodeSpec(seed=s, n_objects=5) for s in (1, 3, 5)], worlds)
    assert not any(result.success for result in results)
    assert all(result.instruction for result in results)  # success is judged by what was said


def test_another_sentence_is_kept_for_an_episode_and_drawn_for_the_next() -> None:
    said: list[str] = []

    def tell(task: str, observation: Observation) -> str:
        said.append(f"{task} {len(said)}")
        return said[-1]

    listener = Listener()
    policy = Misinformed(listener, tell)
    batch = make_observations(2)
    for slots in ([0, 1], [0, 1]):
        policy.act_batch(batch, slots)
    policy.act_batch(batch.select([1]), [1])
    policy.reset([0])
    policy.act_batch(batch, [0, 1])
    heard = [one.instructions for one in listener.heard]
    assert heard == [("fetch 0", "fetch 1")] * 2 + [("fetch 1",), ("fetch 2", "fetch 1")]
    assert listener.resets == [[0]]
    policy.reset()
    policy.act(batch[0])
    assert listener.heard[-1].instructions == ("fetch 3",)


def test_images_are_black_and_the_rest_stays() -> None:
    listener, batch = Listener(), make_observations(2)
    Blindfolded(listener).act_batch(batch, [0, 1])
    [seen] = listener.heard
    assert seen.images.shape == batch.images.shape and not seen.images.any()
    np.testing.assert_array_equal(seen.proprioception, batch.proprioception)
    assert seen.instructions == batch.instructions and batch.images.any()


def test_without_words_all_sentences_are_one() -> None:
    policy = make_act()
    silent = ABLATIONS["instruction_removed"].wrap(policy)
    batch = make_observations(2)
    same = batch.select([0, 0])
    told = replace(same, instructions=SENTENCES[:2])
    heard = policy.chunk(told)
    assert np.abs(heard[0] - heard[1]).max() > 1e-5
    actions = silent.act_batch(told, [0, 1])
    assert np.isfinite(actions).all()
    np.testing.assert_allclose(actions[0], actions[1], atol=1e-6)


@given(st.lists(st.sampled_from([*SENTENCES, NO_WORDS]), min_size=1, max_size=5))
def test_no_words_are_masked_tokens_and_a_mean_of_nothing(sentences: list[str]) -> None:
    tokenizer = InstructionTokenizer(SENTENCES, d_model=8)
    group, mean = tokenizer(sentences), tokenizer.mean(sentences)
    for row, sentence in enumerate(sentences):
        n_words = 0 if sentence == NO_WORDS else 4
        assert int(group.mask[row].sum()) == n_words
        assert bool(mean[row].any()) == bool(n_words) and bool(mean[row].isfinite().all())


def test_readings_are_the_mean_but_relative_actions_count_from_where_the_arm_is() -> None:
    policy = make_act()
    numbed = Numbed(policy)
    batch = make_observations(1)
    mean = policy.proprioception.normalize.mean.numpy()
    known = policy.chunk(replace(batch, proprioception=mean[None]))[0, 0]  # (A,)
    action = numbed.act_batch(batch, [0])[0]
    arm = slice(0, 7)
    offset = batch.proprioception[0, arm] - mean[arm]
    np.testing.assert_allclose(action[arm], known[arm] + offset, atol=1e-5)
    policy.reset()
    felt = policy.act_batch(batch, [0])[0]  # nothing of it is left in the policy
    assert np.abs(felt - action).max() > 1e-5
    torch.testing.assert_close(felt, policy.chunk(batch)[0, 0])


def test_each_ablation_says_what_it_cannot_be_kept_from() -> None:
    refusals = {
        name: [bool(ablation.refusal(policy)) for policy in (make_act(), make_slot_mlp())]
        for name, ablation in ABLATIONS.items()
    }
    assert refusals == {
        "instruction_removed": [False, True],
        "instruction_swapped": [False, False],
        "instruction_shuffled": [False, True],
        "images_removed": [False, True],
        "proprioception_removed": [False, False],
    }
