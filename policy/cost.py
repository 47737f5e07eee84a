"""What a policy costs, by formula: tokens, parameters, floating-point operations, cached bytes.

FLOPs are those of one chunk for one observation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import singledispatch

from fetchlab.errors import UserError
from fetchlab.policy import goal_place, recall
from fetchlab.policy.act import ActConfig
from fetchlab.policy.act_pointers_config import ActPointersConfig
from fetchlab.policy.cost_pieces import (
    Part,
    cache_bytes,
    decoder_block,
    encoder_block,
    linear,
    n_tokens,
    norm,
    patch_tokenizer,
)
from fetchlab.policy.learned import PolicyConfig
from fetchlab.policy.pointers import HIDDEN, TOLD
from fetchlab.policy.references import Requests
from fetchlab.policy.slot_mlp import SlotMlpConfig, n_control, n_lookup
from fetchlab.sim.cameras import CAMERAS
from fetchlab.sim.observation import PROPRIOCEPTION
from fetchlab.tokenizers.instruction import MAX_WORDS, Vocabulary, split
from fetchlab.tokenizers.objects import N_FEATURES


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What one chunk of a policy costs."""

    tokens: Mapping[str, int]
    """how many, by modality"""
    parts: Mapping[str, Part]
    """by the policy's attribute"""
    training_only: Mapping[str, str] = field(default_factory=dict)
    """parts that no chunk needs, and what they are; their FLOPs are not counted"""
    context_cache: int = 0
    """bytes of keys and values of the context, which are made once a chunk and read by all of
    its queries in every decoder layer"""
    decoder_cache: int = 0
    """bytes that a decoder of the same depth and width would keep if it made its chunk one action
    at a time, with keys and values of all tokens in every layer"""

    @property
    def total(self) -> Part:
        return sum(self.parts.values(), Part())

    @property
    def n_tokens(self) -> int:
        return sum(self.tokens.values())

    @property
    def attention_share(self) -> float:
        """Of all FLOPs; n / (n + 6 d) in an encoder block with an MLP four times as wide."""
        return self.total.attention / self.total.flops


# Policies -------------------------------------------------------------------------------------


@singledispatch
def cost(config: PolicyConfig, *, n_objects: int) -> Cost:
    """What a chunk costs in a scene with so many objects, told with the longest sentence.

    Raises UserError for a policy whose configuration has no formula here.
    """
    raise UserError(f"policy {config.name} has no cost model: add its formulas to policy/cost.py")


@cost.register
def _act(config: ActConfig, *, n_objects: int) -> Cost:
    tokens = act_tokens(config, n_objects)
    words, actions = tokens["words"], tokens["actions"]
    n_context = sum(tokens.values()) - words - actions
    width, block, n_layers = config.d_model, config.block, config.n_decoder_layers
    vocabulary = Vocabulary((*config.sentences, *config.phrases))
    taught = act_training(config)
    parts = {
        "eyes": act_eyes(config, n_objects),
        "proprioception": linear(1, len(PROPRIOCEPTION), width),
        "instruction": Part((len(vocabulary) + MAX_WORDS) * width),
        "encoder": encoder_block(block, n_context) * config.n_encoder_layers,
        "context_norm": norm(width),
        "action_queries": Part(config.chunk_size * width),
        "decoder": decoder_block(block, actions, words, n_context) * n_layers,
        "answer_norm": norm(width),
        "action_head": linear(actions, width, config.env_config.action_dim),
    }
    if config.use_cvae:
        parts["style_projection"] = linear(1, config.latent_dim, width)
    parts |= {name: part for name, (_, part) in taught.items()}
    return Cost(
        tokens=tokens,
        parts={name: part for name, part in parts.items() if part.parameters},
        training_only={name: meaning for name, (meaning, _) in taught.items()},
        context_cache=cache_bytes(n_layers, n_context, width),
        decoder_cache=cache_bytes(n_layers, sum(tokens.values()), width),
    )


@cost.register
def _act_pointers(config: ActPointersConfig, *, n_objects: int) -> Cost:
    """As act, with pointers among the words and the context, and what makes them."""
    plain = _act(config, n_objects=n_objects)
    asked = Requests(config.env_config.task)
    named, n_named = asked.n_places, asked.n_named
    tokens = {**plain.tokens, "pointers": named, "goal": 1}
    words, actions, told = tokens["words"], tokens["actions"], named + 1
    n_context = sum(tokens.values()) - words - actions
    width, block, n_layers = config.d_model, config.block, config.n_decoder_layers
    eyes = plain.parts["eyes"]
    parts = {
        **plain.parts,
        "eyes": eyes + replace(eyes, parameters=0) * config.sees_first,  # of the first frame, too
        "encoder": encoder_block(block, n_context) * config.n_encoder_layers,
        "decoder": decoder_block(block, actions, words + told, n_context) * n_layers,
        "named_words": (
            encoder_block(block, words)
            + norm(width)
            + linear(words, width, n_named)
            + Part(attention=2 * n_named * words * width)  # the sums of words
        ),
        "pointers": pointing(config, named),
        "goal": layers(1, width, (goal_place.HIDDEN, named + 2))
        + layers(1, 6, (goal_place.TOLD, width)),
        "roles": Part(named * width),
        "box_name": Part((named - n_named) * width),
    }
    return replace(
        plain,
        tokens=tokens,
        parts={name: part for name, part in parts.items() if part.parameters},
        context_cache=cache_bytes(n_layers, n_context, width),
        decoder_cache=cache_bytes(n_layers, sum(tokens.values()), width),
    )


def pointing(config: ActPointersConfig, n_names: int) -> Part:
    """Maps of the names over the patches of the cameras that stand still, and what they tell."""
    width, env_config = config.d_model, config.env_config
    still = sum(not CAMERAS[camera].on_hand for camera in env_config.cameras)
    n_patches = still * (env_config.image_size // config.patch.patch_size) ** 2
    query = Part(width**2, 2 * n_names * width**2)  # without bias
    centres = Part(linear=2 * n_names * n_patches * 2)
    tool = Part(attention=2 * 3 * 4 * still)  # where each camera sees it
    keys = linear(n_patches, width, width)
    each = Part(attention=2 * n_names * n_patches * width)  # of names with patches
    look = query + keys + each + centres
    told = (
        norm(width)
        + look
        + tool
        + each  # what is seen there
        + linear(n_names, width, width)
        + layers(n_names, 3 * still + len(PROPRIOCEPTION), (HIDDEN, HIDDEN, 2))
        + layers(n_names, 3 * still + 4 + 2 * n_names, (TOLD, width))
    )
    if not config.recalls:
        return told
    weighed = (recall.HIDDEN, recall.HIDDEN, 2)
    thought = layers(n_names, 2 + 6 * still + len(PROPRIOCEPTION), weighed)
    return told + replace(look, parameters=0) + thought + Part(n_names * recall.HIDDEN)


def act_tokens(config: ActConfig, n_objects: int) -> dict[str, int]:
    """How many of each kind, in the order of the policy's context, then words and actions."""
    if config.inputs == "pixels":
        env_config = config.env_config
        n_patches = n_tokens(config.patch, env_config.image_size)
        seen = {"image patches": config.n_views * n_patches}
    else:
        seen = {"objects": n_objects}
    style = {"style": 1} if config.use_cvae else {}
    words = split(longest_sentence(config))
    return {**seen, "robot": 1, **style, "words": len(words), "actions": config.chunk_size}


def act_eyes(config: ActConfig, n_objects: int) -> Part:
    """The tokenizer of images or objects."""
    if config.inputs == "objects":
        return linear(n_objects, N_FEATURES, config.d_model)
    env_config = config.env_config
    return patch_tokenizer(config.patch, config.n_views, env_config.image_size, config.d_model)


def act_training(config: ActConfig) -> dict[str, tuple[str, Part]]:
    """Parts that serve training alone: what each is, and its parameters."""
    width, found = config.d_model, {}
    if config.position_query_weight > 0:
        questions = Part(width + linear(0, width, 2).parameters)
        found["position_queries"] = "the questions where each object is", questions
    if config.use_cvae:
        encoder = (
            Part((1 + config.chunk_size) * width)
            + linear(0, config.env_config.action_dim, width)
            + encoder_block(config.block, 0)
            + linear(0, width, 2 * config.latent_dim)
        )
        found["style"] = "the encoder of the demonstrator's style", encoder
    return found


def longest_sentence(config: PolicyConfig) -> str:
    """What the policy is told when its cost is taken: the most words of one sentence."""
    return max(config.sentences, key=lambda sentence: len(split(sentence)))


@cost.register
def _slot_mlp(config: SlotMlpConfig, *, n_objects: int) -> Cost:
    """One vector of fixed length instead of tokens, so no number of objects changes it."""
    found, n_outputs = config.lookup_hidden[-1], config.chunk_size * config.env_config.action_dim
    n_positions = 2 * Requests(config.env_config.task).n_named
    return Cost(
        tokens={},
        parts={
            "lookup": layers(1, n_lookup(config), config.lookup_hidden),
            "position_head": linear(1, found, n_positions),
            "control": layers(1, n_control(config), config.control_hidden),
            "action_head": linear(1, config.control_hidden[-1], n_outputs),
        },
    )


def layers(n_rows: int, n_inputs: int, hidden: tuple[int, ...]) -> Part:
    """Linear layers, one after another, on so many rows."""
    sizes = zip((n_inputs, *hidden), hidden, strict=False)
    return sum((linear(n_rows, before, after) for before, after in sizes), Part())
