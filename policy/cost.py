"""What a policy costs, by formula: tokens, parameters, floating-point operations, cached bytes.

FLOPs are those of one chunk for one observation: two for each multiply-add of a linear layer, a
convolution, or a score and mixing of attention. Those are what torch's counter counts; softmax,
normalizations, additions and lookups are left out, being small beside them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import singledispatch

from fetchlab.errors import UserError
from fetchlab.policy.act import ActConfig
from fetchlab.policy.blocks import BlockConfig
from fetchlab.policy.learned import PolicyConfig
from fetchlab.policy.references import Requests
from fetchlab.policy.slot_mlp import SlotMlpConfig, n_lookup
from fetchlab.sim.observation import PROPRIOCEPTION
from fetchlab.tokenizers.instruction import MAX_WORDS, Vocabulary, split
from fetchlab.tokenizers.objects import N_FEATURES
from fetchlab.tokenizers.patch import PatchConfig

BYTES = 4  # a number in float32


@dataclass(frozen=True)
class Part:
    """Parameters and FLOPs of a part of a policy; parts add up."""

    parameters: int = 0
    linear: int = 0
    """FLOPs of linear layers and convolutions: on each token or pixel alone"""
    attention: int = 0
    """FLOPs of scores and mixing: on every pair of a query and what it reads"""

    def __add__(self, other: Part) -> Part:
        return Part(
            self.parameters + other.parameters,
            self.linear + other.linear,
            self.attention + other.attention,
        )

    def __mul__(self, times: int) -> Part:
        return Part(self.parameters * times, self.linear * times, self.attention * times)

    @property
    def flops(self) -> int:
        return self.linear + self.attention


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


# Pieces ---------------------------------------------------------------------------------------


def linear(n_rows: int, n_in: int, n_out: int) -> Part:
    """A linear layer with bias, on so many rows."""
    return Part(parameters=(n_in + 1) * n_out, linear=2 * n_rows * n_in * n_out)


def norm(width: int) -> Part:
    """LayerNorm, of which only the parameters count."""
    return Part(parameters=2 * width)


def scores(n_queries: int, n_read: int, width: int) -> Part:
    """Q Kᵀ, and the weights times V, over all heads."""
    return Part(attention=4 * n_queries * n_read * width)


def attention(n_queries: int, n_read: int, width: int) -> Part:
    """Projections of queries, of what they read, and of the result, around the scores."""
    return (
        linear(n_queries, width, width)
        + linear(n_read, width, 2 * width)
        + scores(n_queries, n_read, width)
        + linear(n_queries, width, width)
    )


def mlp(n_tokens: int, block: BlockConfig) -> Part:
    """The MLP of a block."""
    width, hidden = block.d_model, block.d_feedforward
    return linear(n_tokens, width, hidden) + linear(n_tokens, hidden, width)


def encoder_block(block: BlockConfig, n_tokens: int) -> Part:
    """Tokens read each other: 8 n d² + 4 n² d, and with an MLP of 4 d another 16 n d²."""
    width = block.d_model
    around = Part() if block.norm == "none" else norm(width)
    part = attention(n_tokens, n_tokens, width) + around
    return part + mlp(n_tokens, block) + around if block.mlp else part


def decoder_block(block: BlockConfig, n_queries: int, n_words: int, n_context: int) -> Part:
    """Queries read each other and the words, then the context."""
    width = block.d_model
    around = Part() if block.norm == "none" else norm(width)
    return (
        attention(n_queries, n_queries + n_words, width)
        + attention(n_queries, n_context, width)
        + mlp(n_queries, block)
        + around * 3
    )


def stem(patch: PatchConfig, image_size: int, width: int) -> Part:
    """What makes the patches of one image."""
    if patch.stem == "linear":
        n_patches = (image_size // patch.patch_size) ** 2
        return linear(n_patches, 3 * patch.patch_size**2, width)
    n_layers = patch.patch_size.bit_length() - 1
    channels = [3, *(patch.first_channels * 2**i for i in range(n_layers - 1)), width]
    sides = [image_size // 2**layer for layer in range(1, n_layers + 1)]
    layers = zip(sides, channels[:-1], channels[1:], strict=True)
    return sum((linear(side**2, 9 * before, after) for side, before, after in layers), Part())


def patch_tokenizer(patch: PatchConfig, n_views: int, image_size: int, width: int) -> Part:
    """One stem for all views, and for each a table of positions and its identity."""
    one = stem(patch, image_size, width)
    places = (image_size // patch.patch_size) ** 2 if patch.positions == "learned" else 0
    codes = (places + 1) * width
    return Part(one.parameters + n_views * codes, one.linear * n_views)


def cache_bytes(n_layers: int, n_tokens: int, width: int) -> int:
    """2 · L · n · d numbers: a key and a value a token and layer."""
    return 2 * n_layers * n_tokens * width * BYTES


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


def act_tokens(config: ActConfig, n_objects: int) -> dict[str, int]:
    """How many of each kind, in the order of the policy's context, then words and actions."""
    if config.inputs == "pixels":
        env_config = config.env_config
        n_patches = (env_config.image_size // config.patch.patch_size) ** 2
        seen = {"image patches": env_config.n_views * n_patches}
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
    return patch_tokenizer(config.patch, env_config.n_views, env_config.image_size, config.d_model)


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
    state = found + n_positions + len(PROPRIOCEPTION)
    return Cost(
        tokens={},
        parts={
            "lookup": layers(n_lookup(config), config.lookup_hidden),
            "position_head": linear(1, found, n_positions),
            "control": layers(state, config.control_hidden),
            "action_head": linear(1, config.control_hidden[-1], n_outputs),
        },
    )


def layers(n_inputs: int, hidden: tuple[int, ...]) -> Part:
    """Linear layers, one after another, on one row."""
    sizes = zip((n_inputs, *hidden), hidden, strict=False)
    return sum((linear(1, before, after) for before, after in sizes), Part())
