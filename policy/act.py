"""The transformer policy (ACT-style): action queries read words and tokens, and become a chunk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from fetchlab.errors import UserError, unknown
from fetchlab.policy import latent
from fetchlab.policy.base import Array, Statistics, TrainingBatch
from fetchlab.policy.blocks import BlockConfig, DecoderAttention, DecoderBlock, Encoder
from fetchlab.policy.learned import ChunkedPolicy, PolicyConfig, evaluating
from fetchlab.policy.pointing import Pointing
from fetchlab.policy.position_queries import PositionQueries
from fetchlab.sim.observation import ObservationBatch
from fetchlab.sim.scene import MAX_OBJECTS
from fetchlab.tokenizers.base import TokenGroup
from fetchlab.tokenizers.instruction import InstructionTokenizer
from fetchlab.tokenizers.objects import ObjectTokenizer
from fetchlab.tokenizers.patch import PatchConfig, PatchTokenizer
from fetchlab.tokenizers.proprio import ProprioceptionTokenizer

INPUTS = ("pixels", "objects")
POINTING_HEAD = 0  # of the first decoder layer: the one that is taught to point
INSTRUCTION_GAIN = 2.0  # the instruction's share of a query; the words' mean alone is too faint


@dataclass(frozen=True, kw_only=True)
class ActConfig(PolicyConfig):
    """Settings of the transformer policy; the defaults are the pixel policy's."""

    name: str = "act"
    inputs: str = "pixels"
    """`pixels`: camera images; `objects`: the simulator's object list"""
    patch: PatchConfig = field(default_factory=PatchConfig)
    """how images become tokens"""
    d_model: int = 96
    """D: numbers a token"""
    n_heads: int = 4
    d_feedforward: int = 192
    """hidden units of each block's MLP"""
    n_encoder_layers: int = 0
    """layers in which the tokens read each other; pixels need none, and they cost most"""
    rotary: bool = False
    """turn the encoder's queries and keys by each patch's row and column (2-D RoPE)"""
    n_decoder_layers: int = 2
    dropout: float = 0.0
    position_query_weight: float = 4.0
    """weight of the questions "where is the …?" in training; 0 leaves them out. Much less,
    and the actions alone shape the tokens: at 0.4 no block was found in 750 steps"""
    pointing_weight: float = 0.5
    """weight of teaching one head to look where those objects are seen; 0 leaves it out"""
    use_cvae: bool = False
    """ACT's style latent; a scripted expert has one style, so it is off"""
    latent_dim: int = 32
    kl_weight: float = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.inputs not in INPUTS:
            raise unknown("input", self.inputs, INPUTS)
        if self.inputs == "pixels" and not self.env_config.cameras:
            raise UserError(
                "a policy that sees pixels needs at least one camera, got none: collect with "
                "--cameras front"
            )
        if self.n_encoder_layers < 0 or self.n_decoder_layers < 1:
            raise UserError("a transformer policy needs at least one decoder layer")
        if self.latent_dim < 1:
            raise UserError(f"latent_dim must be at least 1, got {self.latent_dim}")
        _ = self.block, self.encoder_block  # check their parts
        if self.position_query_weight < 0 or self.pointing_weight < 0:
            raise UserError("position_query_weight and pointing_weight must not be negative")
        if self.position_query_weight > 0 and not self.phrases:
            raise UserError("position queries need phrases: give some, or position_query_weight 0")

    @property
    def n_views(self) -> int:
        """How many images it takes in at once: those of all cameras and frames."""
        return self.env_config.n_views

    @property
    def encoder_block(self) -> BlockConfig:
        """Settings of the encoder's blocks. Raises UserError if there is nothing to turn."""
        if not self.rotary:
            return self.block
        if self.inputs != "pixels" or not self.n_encoder_layers:
            raise UserError("rotary positions are the encoder's of image patches: give it layers")
        return replace(self.block, rotary_axes=2)

    @property
    def block(self) -> BlockConfig:
        """Settings of every other block."""
        return BlockConfig(
            d_model=self.d_model,
            n_heads=self.n_heads,
            d_feedforward=self.d_feedforward,
            dropout=self.dropout,
        )


class Answers(NamedTuple):
    """What the decoder made of its queries."""

    actions: Tensor  # (B, K, D)
    positions: Tensor  # (B, J, D); J = 0 when nothing was asked
    attention: list[DecoderAttention]  # a layer each


class ActPolicy(ChunkedPolicy):
    """Tokens of cameras (or objects) and robot -> encoder -> decoder of action queries -> chunk."""

    config_class = ActConfig
    max_objects = MAX_OBJECTS

    def __init__(self, config: ActConfig, statistics: Statistics) -> None:
        super().__init__(config, statistics)
        self._config = config
        width, env_config = config.d_model, config.env_config
        self.eyes: PatchTokenizer | ObjectTokenizer = (
            PatchTokenizer(
                config.patch,
                n_views=config.n_views,
                image_size=env_config.image_size,
                d_model=width,
            )
            if config.inputs == "pixels"
            else ObjectTokenizer(d_model=width)
        )
        self.proprioception = ProprioceptionTokenizer(
            statistics.proprioception_mean, statistics.proprioception_std, d_model=width
        )
        self.instruction = InstructionTokenizer((*config.sentences, *config.phrases), d_model=width)
        block = config.block
        self.encoder = Encoder(config.encoder_block, config.n_encoder_layers)
        self.context_norm = nn.LayerNorm(width)
        self.action_queries = nn.Parameter(torch.randn(config.chunk_size, width))
        self.decoder = nn.ModuleList(DecoderBlock(block) for _ in range(config.n_decoder_layers))
        self.answer_norm = nn.LayerNorm(width)
        self.action_head = nn.Linear(width, env_config.action_dim)
        self.position_queries = (
            PositionQueries(config.phrases, d_model=width)
            if config.position_query_weight > 0
            else None
        )
        points = self.position_queries is not None and config.pointing_weight > 0
        sees = config.inputs == "pixels"
        self.pointing = Pointing(env_config.cameras) if points and sees else None
        self.style = self.style_projection = None
        if config.use_cvae:
            sizes = {"chunk_size": config.chunk_size, "latent_dim": config.latent_dim}
            self.style = latent.StyleEncoder(block, action_dim=env_config.action_dim, **sizes)
            self.style_projection = nn.Linear(config.latent_dim, width)

    @property
    def config(self) -> ActConfig:
        return self._config

    def predict(self, observations: ObservationBatch) -> Tensor:
        """(B, K, A) encoded actions; the style is z = 0, the mean of its prior."""
        answers = self._answer(observations, self._read(observations))
        prediction: Tensor = self.action_head(answers.actions)
        return prediction  # (B, K, A)

    def loss(self, batch: TrainingBatch) -> tuple[Tensor, dict[str, Tensor]]:
        """Imitation, plus the weighted position questions and the style's divergence, if any."""
        observations = batch.observations
        z, divergence = self._sample_style(batch)
        context = self._read(observations, z)
        looked = () if self.pointing is None else (0,)
        answers = self._answer(observations, context, with_positions=True, weights_of=looked)
        loss, metrics = self.imitation_loss(self.action_head(answers.actions), batch)
        if self.position_queries is not None:
            position = self.position_queries.loss(answers.positions, observations)
            loss = loss + self._config.position_query_weight * position
            metrics["position_l1"] = position.detach()
        if self.pointing is not None:
            pointing = self._pointing_loss(answers, observations)
            loss = loss + self._config.pointing_weight * pointing
            metrics["pointing"] = pointing.detach()
        if divergence is not None:
            loss = loss + self._config.kl_weight * divergence
            metrics["style_kl"] = divergence.detach()
        return loss, metrics

    def _pointing_loss(self, answers: Answers, observations: ObservationBatch) -> Tensor:
        assert self.pointing is not None and self.position_queries is not None
        weights = answers.attention[0].to_context
        assert weights is not None
        asked = weights[:, POINTING_HEAD, len(self.action_queries) :]  # (B, J, N)
        targets = self.position_queries.targets(observations, self.device)
        return self.pointing.loss(self.camera_maps(asked), *targets)

    def attention(self, observations: ObservationBatch) -> list[Tensor]:
        """For each decoder layer, where the action queries look: (B, H, K, N)."""
        with evaluating(self):
            answers = self._answer(
                observations, self._read(observations), weights_of=range(len(self.decoder))
            )
        return [layer.to_context for layer in answers.attention if layer.to_context is not None]

    @property
    def n_frames(self) -> int:
        """How many frames of the history make patches that the queries can look at."""
        return self._config.n_views // max(len(self.env_config.cameras), 1)

    def camera_maps(self, weights: Tensor) -> Tensor:
        """Attention weights (…, N) as images of the newest frame: (…, C, rows, columns).

        Raises UserError for a policy that sees no pixels.
        """
        if not isinstance(self.eyes, PatchTokenizer):
            raise UserError(f"policy {self.name} sees no images, so it has no attention over them")
        return self.eyes.split_views(weights)[..., -len(self.env_config.cameras) :, :, :]

    def positions(self, observations: ObservationBatch) -> Array:
        """(B, J, 2) where the policy believes the object of each phrase to be [m].

        Raises UserError for a policy without position queries.
        """
        if self.position_queries is None:
            raise UserError(f"policy {self.name} was trained without position queries")
        with evaluating(self):
            context = self._read(observations)
            answers = self._answer(observations, context, with_positions=True)
            found: Array = self.position_queries.positions(answers.positions).cpu().numpy()
        return found

    def _read(self, observations: ObservationBatch, z: Tensor | None = None) -> TokenGroup:
        """All that the queries can look at: patches or objects, then the robot, then the style."""
        groups = [self.eyes(observations), self.proprioception(observations)]
        if self.style_projection is not None:
            groups.append(self._style_token(len(observations), z))
        context = TokenGroup.concatenate(groups)  # (B, N, D)
        places = self._places(context.tokens) if self._config.rotary else None
        tokens = self.encoder(context.tokens, context.mask, positions=places)
        return TokenGroup(self.context_norm(tokens), context.mask)

    def _places(self, tokens: Tensor) -> Tensor:
        """(N, 2) row and column of each patch; the tokens after them stand in the corner."""
        assert isinstance(self.eyes, PatchTokenizer)
        places = torch.zeros(tokens.shape[1], 2, dtype=torch.long, device=tokens.device)
        patches = self.eyes.places()
        places[: len(patches)] = patches
        return places

    def _answer(
        self,
        observations: ObservationBatch,
        context: TokenGroup,
        *,
        with_positions: bool = False,
        weights_of: Sequence[int] = (),
    ) -> Answers:
        words = self._heard(observations, context)  # (B, L, D)
        told = INSTRUCTION_GAIN * self.instruction.mean(observations.instructions)  # (B, D)
        queries = self.action_queries + told[:, None]  # (B, K, D)
        n_silent = 0
        if with_positions and self.position_queries is not None:
            asked = self.position_queries.queries(self.instruction, INSTRUCTION_GAIN)  # (J, D)
            n_silent = len(asked)
            asked = asked.expand(len(queries), -1, -1)  # (B, J, D)
            queries = torch.cat([queries, asked], dim=1)  # (B, K + J, D)
        attention = []
        for layer, block in enumerate(self.decoder):
            queries, looked = block(
                queries, words, context, n_silent=n_silent, need_weights=layer in weights_of
            )
            attention.append(looked)
        answers = self.answer_norm(queries)  # (B, K + J, D)
        n_actions = len(self.action_queries)
        return Answers(answers[:, :n_actions], answers[:, n_actions:], attention)

    def _heard(self, observations: ObservationBatch, context: TokenGroup) -> TokenGroup:
        """What the queries read beside each other: the words of the sentence."""
        words: TokenGroup = self.instruction(observations.instructions)  # (B, L, D)
        return words

    def _sample_style(self, batch: TrainingBatch) -> tuple[Tensor | None, Tensor | None]:
        """z (B, Z) from the expert's actions, and its divergence from the prior."""
        if self.style is None:
            return None, None
        robot = self.proprioception(batch.observations)
        mean, log_variance = self.style(robot, *self.encoded_target(batch))
        return latent.sample(mean, log_variance), latent.divergence(mean, log_variance)

    def _style_token(self, n_rows: int, z: Tensor | None) -> TokenGroup:
        assert self.style_projection is not None
        if z is None:
            z = torch.zeros(n_rows, self._config.latent_dim, device=self.device)
        token = self.style_projection(z)[:, None]  # (B, 1, D)
        return TokenGroup(token, torch.ones_like(token[..., 0], dtype=torch.bool))
