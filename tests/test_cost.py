"""The cost model: formulas equal to what torch counts and to the parameters there are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.factories import (
    SENTENCES,
    make_act,
    make_act_pointers,
    make_observations,
    make_slot_mlp,
    make_statistics,
)

from fetchlab.errors import UserError
from fetchlab.eval.flops import count_module, count_policy, n_parameters, own_parts
from fetchlab.policy.attention import MultiHeadAttention
from fetchlab.policy.blocks import BlockConfig, Encoder, EncoderBlock
from fetchlab.policy.cost import cost, longest_sentence
from fetchlab.policy.cost_pieces import Part, attention, cache_bytes, encoder_block
from fetchlab.policy.learned import ChunkedPolicy, PolicyConfig
from fetchlab.policy.registry import POLICIES, build_policy
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.observation import ObservationBatch
from fetchlab.tokenizers.patch import PatchConfig

CAMERAS = ("front", "wrist", "overhead")
LEARNED = [name for name, entry in POLICIES.items() if entry.policy_class is not None]


def holds(policy: ChunkedPolicy, observations: ObservationBatch, n_objects: int) -> None:
    """Part by part: parameters, and FLOPs of both kinds; and nothing is outside of the parts."""
    predicted = cost(policy.config, n_objects=n_objects)
    told = replace(observations, instructions=(longest_sentence(policy.config),))
    counted = count_policy(policy, told)
    assert predicted.parts == counted
    assert predicted.total.parameters == n_parameters(policy)
    assert predicted.total.flops == count_whole(policy, told)
    assert all(predicted.parts[name].flops == 0 for name in predicted.training_only)


def count_whole(policy: ChunkedPolicy, observations: ObservationBatch) -> int:
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        policy.predict(observations)
    return int(counter.get_total_flops())


@st.composite
def patches(draw: st.DrawFn) -> PatchConfig:
    stem = draw(st.sampled_from(["conv", "linear"]))
    return PatchConfig(
        stem=stem,
        patch_size=draw(st.sampled_from([2, 4, 8] if stem == "conv" else [1, 2, 8])),
        first_channels=draw(st.integers(1, 5)),
        positions=draw(st.sampled_from(["learned", "sinusoidal", "none"])),
    )


transformers: dict[str, st.SearchStrategy[Any]] = {
    "patch": patches(),
    "d_model": st.sampled_from([4, 12, 16]),
    "n_heads": st.sampled_from([1, 2, 4]),
    "d_feedforward": st.integers(1, 20),
    "n_encoder_layers": st.integers(0, 2),
    "n_decoder_layers": st.integers(1, 3),
    "chunk_size": st.integers(2, 9),
    "position_query_weight": st.sampled_from([0.0, 4.0]),
    "pointing_weight": st.sampled_from([0.0, 0.5]),
    "use_cvae": st.booleans(),
    "latent_dim": st.integers(1, 9),
    "sentences": st.sampled_from([SENTENCES, (*SENTENCES, "please fetch the very red block")]),
}


@settings(deadline=None, max_examples=40)
@given(
    st.fixed_dictionaries(transformers),
    st.integers(1, 3),
    st.integers(1, 4),
    st.sampled_from([8, 16, 32]),
    st.sampled_from(["joint", "ee"]),
)
def test_pixel_policies_cost_what_the_formulas_say(
    chosen: dict[str, Any], n_cameras: int, history: int, image_size: int, action_mode: str
) -> None:
    policy = make_act(
        cameras=CAMERAS[:n_cameras],
        history=history,
        image_size=image_size,
        action_mode=action_mode,
        **chosen,
    )
    seen = make_observations(1, cameras=n_cameras * history, image_size=image_size)
    holds(policy, seen, n_objects=4)


@settings(deadline=None, max_examples=15)
@given(st.fixed_dictionaries(transformers), st.integers(2, 8))
def test_object_policies_cost_what_the_formulas_say(chosen: dict[str, Any], n_objects: int) -> None:
    policy = make_act(cameras=(), inputs="objects", **chosen)
    holds(policy, make_observations(1, n_objects=n_objects), n_objects)


@settings(deadline=None, max_examples=10)
@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=3).map(tuple),
    st.lists(st.integers(1, 30), min_size=1, max_size=3).map(tuple),
    st.integers(2, 9),
)
def test_the_baseline_costs_what_the_formulas_say(
    lookup: tuple[int, ...], control: tuple[int, ...], chunk_size: int
) -> None:
    policy = make_slot_mlp(lookup_hidden=lookup, control_hidden=control, chunk_size=chunk_size)
    holds(policy, make_observations(1), n_objects=4)
    assert cost(policy.config, n_objects=2) == cost(policy.config, n_objects=6)


@pytest.mark.parametrize("name", LEARNED)
def test_registered_policies_cost_what_the_formulas_say(name: str) -> None:
    sees_images = POLICIES[name].sees_images
    env_config = EnvConfig() if sees_images else EnvConfig(cameras=())
    policy = build_policy(name, env_config, make_statistics())
    holds(policy, make_observations(1, image_size=64), n_objects=4)


@settings(deadline=None, max_examples=20)
@given(
    st.integers(1, 20),
    st.sampled_from([1, 2, 4]),
    st.integers(1, 40),
    st.sampled_from(["pre", "post", "none"]),
    st.booleans(),
)
def test_blocks_cost_what_the_formulas_say(
    n_tokens: int, n_heads: int, hidden: int, norm: str, with_mlp: bool
) -> None:
    config = BlockConfig(d_model=8, n_heads=n_heads, d_feedforward=hidden, norm=norm, mlp=with_mlp)
    counted = count_module(EncoderBlock(config), torch.randn(1, n_tokens, 8))
    assert counted == encoder_block(config, n_tokens)


@pytest.mark.parametrize(
    ("n_tokens", "width", "linear", "pairs"),
    [(196, 64, 19267584, 9834496), (588, 256, 924844032, 354041856)],
)
def test_the_lesson_s_block_counted_and_by_formula(
    n_tokens: int, width: int, linear: int, pairs: int
) -> None:
    config = BlockConfig(d_model=width, n_heads=width // 64, d_feedforward=4 * width)
    counted = count_module(EncoderBlock(config), torch.randn(1, n_tokens, width))
    assert (counted.linear, counted.attention) == (linear, pairs)
    assert encoder_block(config, n_tokens) == counted
    assert linear == (8 + 16) * n_tokens * width**2 and pairs == 4 * n_tokens**2 * width


def test_a_few_latents_read_many_tokens_cheaply() -> None:
    counted = count_module(
        MultiHeadAttention(64, 1), torch.randn(1, 16, 64), torch.randn(1, 588, 64)
    )
    assert counted == attention(16, 588, 64)
    assert counted.attention == 4 * 64 * 9408


def test_tokens_by_modality() -> None:
    policy = make_act(history=3, image_size=32, use_cvae=True, chunk_size=6)
    tokens = cost(policy.config, n_objects=5).tokens
    assert tokens == {"image patches": 96, "robot": 1, "style": 1, "words": 4, "actions": 6}
    objects = make_act(cameras=(), inputs="objects")
    assert cost(objects.config, n_objects=7).tokens["objects"] == 7


def test_cached_bytes_are_those_of_the_tensors() -> None:
    policy = make_act(n_decoder_layers=3)
    predicted = cost(policy.config, n_objects=4)
    seen, kept = make_observations(1), []
    for block in policy.decoder:
        block.cross_attention.key_value.register_forward_hook(  # type: ignore[union-attr]
            lambda module, inputs, output: kept.append(output.nbytes)
        )
    policy.predict(seen)
    assert sum(kept) == predicted.context_cache and len(kept) == 3
    config = BlockConfig(d_model=16, n_heads=4, d_feedforward=32)
    caches = Encoder(config, 3).empty_caches(1, predicted.n_tokens)
    assert sum(cache.n_bytes for cache in caches) == predicted.decoder_cache


def test_cached_bytes_of_the_lesson() -> None:
    assert cache_bytes(4, 512, 64) == 2**20
    assert cache_bytes(4, 512, 256) == 4 * 2**20
    assert cache_bytes(8, 1024, 512) == 32 * 2**20


def test_a_policy_without_formulas_is_told() -> None:
    config = PolicyConfig(name="new", env_config=EnvConfig(), sentences=SENTENCES)
    with pytest.raises(UserError, match=r"policy new has no cost model"):
        cost(config, n_objects=5)


def test_parts_are_those_that_have_parameters() -> None:
    assert own_parts(make_act(position_query_weight=0.0)).keys() == {
        "eyes",
        "proprioception",
        "instruction",
        "context_norm",
        "action_queries",
        "decoder",
        "answer_norm",
        "action_head",
    }
    assert Part(1, 2, 3) + Part(10, 20, 30) * 2 == Part(21, 42, 63)


@settings(max_examples=8, deadline=None)
@given(
    task=st.sampled_from(["fetch", "place_beside", "mixed"]),
    cameras=st.sampled_from([("front",), ("front", "overhead", "wrist")]),
    refinement=st.integers(1, 3),
    pooling=st.sampled_from([1, 2]),
    recalls=st.booleans(),
)
@example(task="remember", cameras=("front",), refinement=1, pooling=2, recalls=True)
def test_pointers_cost_what_the_formulas_say(
    task: str, cameras: tuple[str, ...], refinement: int, pooling: int, recalls: bool
) -> None:
    patch = PatchConfig(patch_size=4, first_channels=6, refinement=refinement, pooling=pooling)
    policy = make_act_pointers(task=task, cameras=cameras, patch=patch, recalls=recalls)
    n_images = len(cameras) * (1 + recalls)
    holds(policy, make_observations(1, cameras=n_images), n_objects=4)
