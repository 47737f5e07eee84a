"""Scenes for the lookup: blocks on a table, one or two of them named by their colour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Generator, Tensor
from torch.nn.functional import one_hot

N_COLOURS = N_SLOTS = 6
OBJECT_WIDTH = N_COLOURS + 2  # colour, then x and y
INSTRUCTION_WIDTH = 2 * N_COLOURS  # the colours of A and of B
HALF_TABLE_CM = 40.0  # coordinates are -1 to 1, with 0 at the middle of the table


class Scenes(NamedTuple):
    """Blocks in random order, absent ones zero, and which of them are A and B."""

    objects: Tensor  # (..., M, 8)
    present: Tensor  # (..., M) bool
    first: Tensor  # (...) slot of A
    second: Tensor  # (...) slot of B

    def take(self, slots: Tensor) -> Tensor:
        """The objects (..., 8) in these slots (...)."""
        index = slots[..., None, None].expand(*slots.shape, 1, OBJECT_WIDTH)
        return self.objects.gather(-2, index).squeeze(-2)


class Question(NamedTuple):
    """What is asked of a scene, and in which order an MLP gets the blocks."""

    task: str
    """`position`: where is A? `vector`: from B to A"""
    order: str = "random"
    """of the slots: `random`; `sorted` by colour, without gaps; `by_colour`, a slot each"""


class Batch(NamedTuple):
    """Scenes as the models get them; R copies of a model side by side."""

    objects: Tensor  # (R, B, M, 8)
    present: Tensor  # (R, B, M) bool
    instruction: Tensor  # (R, B, 12)
    answer: Tensor  # (R, B, 2)


def random_scenes(shape: tuple[int, ...], counts: Sequence[int], generator: Generator) -> Scenes:
    """Scenes with one of these numbers of blocks, anywhere on the table.

    Up to six blocks all differ in colour; with more, A and B do and the rest repeat the others.
    """
    n_slots = max(N_SLOTS, *counts)
    choice = torch.randint(len(counts), shape, generator=generator)
    n_blocks = torch.tensor(counts)[choice]  # (...)
    first = (torch.rand(shape, generator=generator) * n_blocks).long()
    ahead = 1 + (torch.rand(shape, generator=generator) * (n_blocks - 1)).long()
    second = (first + ahead) % n_blocks
    colour = random_colours((*shape, n_slots), first, second, generator)  # (..., M)
    place = 2 * torch.rand((*shape, n_slots, 2), generator=generator) - 1
    present = torch.arange(n_slots) < n_blocks[..., None]  # (..., M)
    objects = torch.cat([one_hot(colour, N_COLOURS), place], dim=-1)  # (..., M, 8)
    return Scenes(objects * present[..., None], present, first, second)


def random_colours(
    shape: tuple[int, ...], first: Tensor, second: Tensor, generator: Generator
) -> Tensor:
    """A colour for each slot; those of A and B come once."""
    shuffled = torch.rand((*shape[:-1], N_COLOURS), generator=generator).argsort(-1)
    if shape[-1] <= N_COLOURS:
        return shuffled
    others = torch.randint(2, N_COLOURS, shape, generator=generator)
    colour = shuffled.gather(-1, others)
    for rank, slot in enumerate((first, second)):
        colour = colour.scatter(-1, slot[..., None], shuffled[..., rank, None])
    return colour  # (..., M)


def ask(scenes: Scenes, questions: Sequence[Question]) -> Batch:
    """All questions of the same scenes (S, B): the copies are R = questions · S."""
    batches = [_ask(scenes, question) for question in questions]
    return Batch(*(torch.cat(parts) for parts in zip(*batches, strict=True)))


def _ask(scenes: Scenes, question: Question) -> Batch:
    first, second = scenes.take(scenes.first), scenes.take(scenes.second)  # (S, B, 8)
    if question.task == "position":
        second = torch.zeros_like(second)
    answer = first[..., N_COLOURS:] - second[..., N_COLOURS:]
    instruction = torch.cat([first[..., :N_COLOURS], second[..., :N_COLOURS]], dim=-1)
    objects, present = in_order(scenes, question.order)
    return Batch(objects, present, instruction, answer)


def in_order(scenes: Scenes, order: str) -> tuple[Tensor, Tensor]:
    """Objects and which are present, put into slots in that order.

    Raises ValueError when the order needs a colour to come once at most, and it does not.
    """
    objects, present = scenes.objects, scenes.present
    if order == "random":
        return objects, present
    if objects.shape[-2] > N_COLOURS:
        raise ValueError(f"{objects.shape[-2]} objects do not fit one slot a colour")
    colour = objects[..., :N_COLOURS]
    objects = colour.transpose(-2, -1) @ objects  # (..., 6, 8): row c is the block of colour c
    present = colour.any(dim=-2)
    if order == "by_colour":
        return objects, present
    packed = (~present).to(torch.int8).argsort(dim=-1, stable=True)  # (..., 6)
    index = packed[..., None].expand(objects.shape)
    return objects.gather(-2, index), present.gather(-1, packed)
