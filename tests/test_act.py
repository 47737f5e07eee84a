"""The transformer policy: what may and what may not change its actions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.factories import PHRASES, make_act, make_batch, make_observations

from fetchlab.errors import UserError
from fetchlab.policy.position_queries import PositionQueries
from fetchlab.policy.references import look
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.language import Reference, read_phrase
from fetchlab.sim.looks import LookRules, draw_looks
from fetchlab.sim.observation import COLOUR, HEIGHT, LOOK
from fetchlab.sim.scene import SceneObject
from fetchlab.sim.shapes import SHAPES
from fetchlab.sim.tasks.registry import TASKS

MESSAGES = [
    ({"n_heads": 5}, "d_model 16 cannot be shared evenly by n_heads 5"),
    ({"inputs": "sound"}, "unknown input 'sound'"),
    ({"cameras": ()}, "at least one camera"),
    ({"n_decoder_layers": 0}, "at least one decoder layer"),
    ({"dropout": 1.0}, "dropout must be 0 to 1"),
    ({"n_action_steps": 9}, "n_action_steps must be 1 to chunk_size 8, got 9"),
    ({"phrases": ()}, "position queries need phrases"),
    ({"phrases": ("red or blue block",)}, "names no kind of object"),
    ({"sentences": ()}, "sentences of its task"),
    ({"gripper_weight": -1.0}, "gripper_weight must not be negative"),
]


@pytest.mark.parametrize(("setting", "message"), MESSAGES)
def test_settings_that_cannot_be(setting: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        make_act(**setting)  # type: ignore[arg-type]


def test_pixel_policy_of_the_default_size_has_about_300_thousand_parameters() -> None:
    policy = make_act(image_size=64, d_model=96, d_feedforward=192)
    assert 250_000 < sum(p.numel() for p in policy.parameters()) < 320_000


def test_asking_for_positions_does_not_change_the_actions() -> None:
    torch.manual_seed(0)
    policy, observations = make_act(), make_observations()
    context = policy._read(observations)
    quiet = policy._answer(observations, context)
    asking = policy._answer(observations, context, with_positions=True)
    assert quiet.positions.shape[1] == 0 and asking.positions.shape == (3, 6, 16)
    torch.testing.assert_close(quiet.actions, asking.actions, atol=1e-5, rtol=1e-5)


def test_pixel_policy_never_reads_object_positions_when_acting() -> None:
    policy, observations = make_act(), make_observations()
    blinded = replace(observations, objects=np.full_like(observations.objects, np.nan))
    np.testing.assert_array_equal(policy.chunk(blinded), policy.chunk(observations))
    np.testing.assert_array_equal(policy.positions(blinded), policy.positions(observations))


def test_object_policy_never_looks_at_images() -> None:
    policy = make_act(inputs="objects", cameras=())
    observations = make_observations()
    blinded = replace(observations, images=observations.images[:, :0])
    np.testing.assert_array_equal(policy.chunk(blinded), policy.chunk(observations))


@settings(deadline=None, max_examples=20)
@given(st.permutations(range(20)), st.integers(0, 100))
def test_order_and_padding_of_objects_cannot_change_the_actions(
    order: list[int], seed: int
) -> None:
    torch.manual_seed(0)
    policy = make_act(inputs="objects", n_encoder_layers=1)
    observations = make_observations(2, seed=seed)
    chunk = policy.chunk(observations)
    noise = np.random.default_rng(seed).normal(size=observations.objects.shape)
    spoiled = np.where(observations.objects_mask[..., None], observations.objects, noise)
    shuffled = replace(
        observations,
        objects=spoiled[:, order].astype(np.float32),
        objects_mask=observations.objects_mask[:, order],
    )
    np.testing.assert_allclose(policy.chunk(shuffled), chunk, atol=1e-5)


def test_a_longer_sentence_beside_it_cannot_change_an_action() -> None:
    policy = make_act()
    observations = make_observations(2)
    mixed = replace(observations, instructions=("red block", "fetch the blue block"))
    alone = policy.chunk(mixed.select([0]))
    np.testing.assert_allclose(policy.chunk(mixed)[:1], alone, atol=1e-5)


def test_the_instruction_changes_the_actions() -> None:
    policy = make_act()
    observations = make_observations(1)
    red, blue = (
        policy.chunk(replace(observations, instructions=(f"fetch the {colour} block",)))
        for colour in ("red", "blue")
    )
    assert np.abs(red - blue).max() > 1e-4


def test_an_unknown_word_is_refused() -> None:
    observations = replace(make_observations(1), instructions=("fetch the rde block",))
    with pytest.raises(UserError, match="unknown word 'rde': did you mean red"):
        make_act().chunk(observations)


def test_attention_of_every_layer_sums_to_one_and_splits_into_cameras() -> None:
    policy = make_act(image_size=32)
    observations = make_observations(3, image_size=32)
    layers = policy.attention(observations)
    assert [layer.shape for layer in layers] == [(3, 4, 8, 2 * 16 + 1)] * 2
    torch.testing.assert_close(layers[0].sum(-1), torch.ones(3, 4, 8))
    maps = policy.camera_maps(layers[1])
    assert maps.shape == (3, 4, 8, 2, 4, 4)
    torch.testing.assert_close(maps.flatten(3), layers[1][..., :-1])


def test_a_policy_without_eyes_or_position_queries_says_so() -> None:
    policy = make_act(inputs="objects", position_query_weight=0.0)
    layers = policy.attention(make_observations(1, n_objects=4))
    assert layers[0].shape == (1, 4, 8, 4 + 1)
    with pytest.raises(UserError, match="sees no images"):
        policy.camera_maps(layers[0])
    with pytest.raises(UserError, match="without position queries"):
        policy.positions(make_observations(1))


def test_position_targets_are_the_colours_that_mean_one_object() -> None:
    observations = make_observations(1, n_objects=4)
    objects = observations.objects.copy()
    objects[0, 1, COLOUR] = objects[0, 0, COLOUR]  # two objects of one colour: no answer is right
    queries = PositionQueries(PHRASES, d_model=8)
    target, known = queries.targets(replace(observations, objects=objects), torch.device("cpu"))
    colours = objects[0, :4, COLOUR].argmax(axis=1)
    assert known[0].nonzero().flatten().tolist() == sorted({*colours[2:].tolist()})
    here = objects[0, 2, [0, 1, HEIGHT]]
    np.testing.assert_allclose(target[0, colours[2]], here, atol=1e-6)


def test_positions_are_learned_from_the_questions_alone() -> None:
    torch.manual_seed(0)
    policy = make_act(inputs="objects", d_model=32, d_feedforward=64, gripper_weight=0.0)
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
    for step in range(200):
        loss, _ = policy.loss(make_batch(16, seed=step))
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
    observations = make_observations(16, n_objects=6, seed=999)
    found = policy.positions(observations)
    colours = observations.objects[:, :6, COLOUR].argmax(axis=2)  # (B, 6)
    for row in range(16):
        true = np.empty((6, 2))
        true[colours[row]] = observations.objects[row, :6, :2]
        assert np.abs(found[row] - true).mean() < 0.06


def test_every_phrase_asks_for_what_it_names() -> None:
    generator, languages = np.random.default_rng(0), ("english", "chinese")
    phrases = TASKS["fetch"].phrases(EnvConfig(shapes=tuple(SHAPES), languages=languages))
    questions = PositionQueries(phrases, d_model=4)
    looks = draw_looks(generator, 12, LookRules(shapes=tuple(SHAPES)))
    things = [SceneObject(colour=c, shape=s, x=0, y=0, yaw=0) for c, s in looks]
    observations = make_observations(1, n_objects=12)
    observations.objects[0, :12, LOOK] = [
        look(Reference(colour=thing.colour, shape=thing.shape)) for thing in things
    ]
    positions, known = questions.targets(observations, torch.device("cpu"))
    for j, phrase in enumerate(phrases):
        rows = read_phrase(phrase).rows(things)
        assert known[0, j] == (len(rows) == 1)
        if len(rows) == 1:
            here = observations.objects[0, rows[0], [0, 1, HEIGHT]]
            np.testing.assert_array_equal(positions[0, j], here)


def test_style_is_drawn_in_training_and_its_mean_when_acting() -> None:
    torch.manual_seed(0)
    policy = make_act(use_cvae=True, latent_dim=4)
    batch = make_batch()
    assert policy.loss(batch)[0] != policy.loss(batch)[0]
    one, other = (policy.chunk(batch.observations) for _ in range(2))
    np.testing.assert_array_equal(one, other)
    assert "style_kl" in policy.loss(batch)[1]


def test_dropout_acts_in_training_only() -> None:
    policy, batch = make_act(dropout=0.5), make_batch()
    assert policy.loss(batch)[0] != policy.loss(batch)[0]
    np.testing.assert_array_equal(
        policy.chunk(batch.observations), policy.chunk(batch.observations)
    )
