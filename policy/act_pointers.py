"""The transformer policy that is told where the named objects are seen: for tasks that name two.

Words that name the same object are gathered into a name, the name becomes a map over the patches,
and the map a token that says where to look: two names, two lookups, whatever else is on the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from fetchlab.policy.act import ActPolicy
from fetchlab.policy.act_pointers_config import ActPointersConfig
from fetchlab.policy.base import Array, Statistics, TrainingBatch
from fetchlab.policy.counterexamples import undecided, unsaid_pairs
from fetchlab.policy.goal_place import Aim, GoalPlace
from fetchlab.policy.learned import evaluating
from fetchlab.policy.mirror import mirrored
from fetchlab.policy.named_words import NamedWords, muffled
from fetchlab.policy.pointers import Found, Frames, Pointed, Pointers, Robot, middles, together
from fetchlab.policy.references import Requests, are_meant, look
from fetchlab.sim.language import read_phrase
from fetchlab.sim.observation import (
    IS_BOX,
    POSITION,
    PROPRIOCEPTION,
    TOOL,
    ObservationBatch,
)
from fetchlab.tokenizers.base import TokenGroup
from fetchlab.tokenizers.instruction import MAX_WORDS
from fetchlab.tokenizers.objects import from_table_units, to_table_units
from fetchlab.tokenizers.patch import PatchTokenizer


class Look(NamedTuple):
    """What the policy made of its images and its sentence."""

    context: TokenGroup  # (B, N, D)
    gates: Tensor  # (B, R, L) logits: which words name which object
    found: Found  # the R named objects, and the box if the task has one
    aim: Aim
    robot: Robot


class ActPointersPolicy(ActPolicy):
    """As ActPolicy, with one more token for each named object, for the box, and for the goal."""

    config_class = ActPointersConfig
    looks: Tensor
    unsaid: Tensor

    def __init__(self, config: ActPointersConfig, statistics: Statistics) -> None:
        super().__init__(config, statistics)
        assert isinstance(self.eyes, PatchTokenizer)
        env, width = config.env_config, config.d_model
        self._weights = config
        self.requests = asked = Requests(env.task)
        self.named_words = NamedWords(env.task, asked.n_named, config.block)
        self.pointers = Pointers(
            env.cameras,
            self.eyes.patch_grid,
            n_named=asked.n_places,
            n_readings=len(PROPRIOCEPTION),
            d_model=width,
            remembers=config.recalls,
            looks_back=config.looks_back,
        )
        self.goal = GoalPlace(n_named=asked.n_places, d_model=width)
        self.box_name = nn.Parameter(torch.randn(width)) if asked.has_box else None
        self.roles = nn.Parameter(torch.randn(asked.n_places, width))
        looks = torch.tensor([look(read_phrase(phrase)) for phrase in config.phrases])
        self.register_buffer("looks", looks, persistent=False)  # (J, L)
        self.register_buffer("unsaid", unsaid_pairs(looks), persistent=False)  # (L, L)

    def loss(self, batch: TrainingBatch) -> tuple[Tensor, dict[str, Tensor]]:
        """Imitation, and the weighted lessons of the pointers."""
        batch = self._as_seen(batch)
        observations = batch.observations
        heard = replace(observations, instructions=self._as_heard(observations.instructions))
        seen = self._look(heard)
        answers = self._answer(heard, seen.context)
        loss, metrics = self.imitation_loss(self.action_head(answers.actions), batch)
        weights = self._weights
        for name, lesson, weight in (
            ("words", self._words_loss(seen, observations, heard), weights.words_weight),
            *self._pointer_losses(seen, observations),
        ):
            loss = loss + weight * lesson
            metrics[name] = lesson.detach()
        return loss, metrics

    def _as_seen(self, batch: TrainingBatch) -> TrainingBatch:
        """In training, some demonstrations are seen in the mirror."""
        if not self.training or not self._weights.mirror:
            return batch
        rows = torch.rand(len(batch)) < self._weights.mirror
        return mirrored(batch, rows.numpy(), self.env_config.action_mode)

    def _as_heard(self, sentences: Sequence[str]) -> tuple[str, ...]:
        """Sentences as they reach the policy: in training, some words do not."""
        chance = self._weights.word_dropout
        if not self.training or not chance:
            return tuple(sentences)
        lost = torch.rand(len(sentences), MAX_WORDS) < chance
        task = self.env_config.task
        pairs = zip(sentences, lost.tolist(), strict=True)
        return tuple(muffled(task, sentence, row) for sentence, row in pairs)

    def positions(self, observations: ObservationBatch) -> Array:
        """(B, J, 2) where the policy believes the object of each phrase to be [m]."""
        with evaluating(self):
            pointed = self._point_at_phrases(self._look(observations))
            found: Array = from_table_units(pointed.places).cpu().numpy()
        return found

    # Looking ------------------------------------------------------------------------------

    def _read(self, observations: ObservationBatch, z: Tensor | None = None) -> TokenGroup:
        return self._look(observations).context

    def _look(self, observations: ObservationBatch) -> Look:
        assert isinstance(self.eyes, PatchTokenizer)
        frames = self._frames(observations)
        gates, names = self._names(observations)
        robot = self._robot(observations)
        found = self.pointers(names, frames, robot)
        words = self.instruction.mean(observations.instructions)  # (B, D)
        aim = self.goal(words, found.pointed.places, robot.tool[:, POSITION])
        told = everywhere(torch.cat([found.tokens + self.roles, aim.token], dim=1))  # (B, R + 1, D)
        groups = [self.eyes.placed(frames.newest), self.proprioception(observations), told]
        context = TokenGroup.concatenate(groups)
        tokens = self.context_norm(self.encoder(context.tokens, context.mask))
        return Look(TokenGroup(tokens, context.mask), gates, found, aim, robot)

    def _frames(self, observations: ObservationBatch) -> Frames:
        """What the newest images show, and the first ones where they are remembered."""
        assert isinstance(self.eyes, PatchTokenizer)
        history, images = self.env_config.history, observations.images
        frames = np.split(images, history, axis=1) if images.shape[1] % history == 0 else [images]
        newest, first = (replace(observations, images=frames[place]) for place in (-1, 0))
        back = self._weights.looks_back
        seen = self._patches(newest, learn=not back)
        return Frames(seen, self._patches(first, learn=back) if self._weights.sees_first else None)

    def _patches(self, observations: ObservationBatch, *, learn: bool) -> Tensor:
        """Of one frame; a gradient flows only through the one in which names are looked for."""
        assert isinstance(self.eyes, PatchTokenizer)
        with torch.set_grad_enabled(learn and torch.is_grad_enabled()):
            return self.eyes.patches(observations)

    def _robot(self, observations: ObservationBatch) -> Robot:
        tool = torch.tensor(observations.proprioception[:, TOOL], device=self.device)
        return Robot(tool, self.proprioception.normalize(observations))

    def _names(self, observations: ObservationBatch) -> tuple[Tensor, Tensor]:
        """The gates (B, R, L), and what they let through (B, R, D), with the box's name last."""
        gates, names = self.named_words(self.instruction.meanings(observations.instructions))
        if self.box_name is not None:
            names = torch.cat([names, self.box_name.expand(len(names), 1, -1)], dim=1)
        return gates, names

    def _heard(self, observations: ObservationBatch, context: TokenGroup) -> TokenGroup:
        found = everywhere(context.tokens[:, -len(self.roles) - 1 :])
        return TokenGroup.concatenate([super()._heard(observations, context), found])

    # Lessons ------------------------------------------------------------------------------

    def _words_loss(self, seen: Look, said: ObservationBatch, heard: ObservationBatch) -> Tensor:
        mask = self.instruction.meanings(heard.instructions).mask
        return self.named_words.loss(seen.gates, said.instructions, mask)

    def _point_at_phrases(self, seen: Look) -> Pointed:
        names = self.instruction.meanings(self._weights.phrases).tokens.sum(dim=1)  # (J, D)
        return self.pointers.point(names, seen.found.seen, seen.robot)

    def _pointer_losses(
        self, seen: Look, observations: ObservationBatch
    ) -> list[tuple[str, Tensor, float]]:
        """Of all phrases that mean one object, of the named objects, and of the box."""
        weights, pointers = self._weights, self.pointers
        objects = torch.tensor(observations.objects, device=self.device)  # (B, M, F)
        present = torch.tensor(observations.objects_mask, device=self.device)
        every = together(self._point_at_phrases(seen), seen.found.pointed)
        names = self._names_asked(observations)
        targets = self._targets(names, objects, present)
        if self.unsaid.any():
            cells = pointers.cells_of(objects, present)
            ignored = undecided(objects, names, self.unsaid, cells)
            every = pointers.without(every, ignored, seen.robot)
        naming = pointers.naming_loss(every, self.looks, objects, present)
        spots = pointers.spots.loss(every.fits, seen.robot.tool, *targets)
        goal = self._goal_loss(seen, observations, *targets)
        return [
            ("goal_l1", goal, weights.place_weight),
            ("place_l1", pointers.place_loss(every, *targets), weights.place_weight),
            ("map", pointers.map_loss(every, *targets), weights.map_weight),
            ("spot", spots, weights.spot_weight),
            ("naming", naming, weights.naming_weight),
        ]

    def _goal_loss(
        self, seen: Look, observations: ObservationBatch, positions: Tensor, known: Tensor
    ) -> Tensor:
        """From x, y, z (B, J + R, 3) [m] of what phrases and names mean."""
        by, offset = self.requests.goals(observations.instructions, self.device)
        n_places, rows = self.requests.n_places, torch.arange(len(by), device=self.device)
        positions, known = positions[:, -n_places:], known[:, -n_places:]
        target = to_table_units(positions[rows, by][:, POSITION] + offset)  # (B, 2)
        return self.goal.loss(seen.aim, target, known[rows, by])

    def _names_asked(self, observations: ObservationBatch) -> Tensor:
        """(B, J + R, L) looks that phrases and names name; none for the box, the last of them."""
        said = self.requests.looks(observations.instructions, self.device)
        looks = torch.cat([self.looks.expand(len(said), -1, -1), said], dim=1)
        return nn.functional.pad(looks, (0, 0, 0, int(self.requests.has_box)))

    def _targets(self, names: Tensor, objects: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
        """x, y, z (B, J + R, 3) [m] of what phrases and names mean, and which mean one object."""
        is_meant = are_meant(objects, names)  # (B, M, J + R)
        if self.requests.has_box:
            is_meant[..., -1] = objects[..., IS_BOX] > 0.5
        is_meant = is_meant & present[..., None]
        positions = torch.einsum("bmj,bmx->bjx", is_meant.float(), middles(objects))
        return positions, is_meant.sum(dim=1) == 1


def everywhere(tokens: Tensor) -> TokenGroup:
    """Tokens (B, N, D) that are all real."""
    return TokenGroup(tokens, torch.ones_like(tokens[..., 0], dtype=torch.bool))
