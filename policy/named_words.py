"""Which words of a sentence name its objects: learned from the sentences' own grammar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from fetchlab.policy.actions import masked_mean
from fetchlab.policy.blocks import BlockConfig, EncoderBlock
from fetchlab.sim.language import LANGUAGES
from fetchlab.sim.tasks.registry import TASKS
from fetchlab.tokenizers.base import TokenGroup
from fetchlab.tokenizers.instruction import NOT_HEARD, split


class NamedWords(nn.Module):
    """Words (B, L, D) -> for each of R objects how far each word names it, and the name.

    The words read each other first, since order tells what is put where. They know how far apart
    they are (rotary positions), not where they stand: a sentence that begins otherwise is read the
    same way.
    """

    def __init__(self, task: str, n_named: int, block: BlockConfig) -> None:
        super().__init__()
        self.task, self.n_named = task, n_named
        self.block = EncoderBlock(replace(block, rotary_axes=1))
        self.norm = nn.LayerNorm(block.d_model)
        self.head = nn.Linear(block.d_model, n_named)

    def forward(self, meanings: TokenGroup) -> tuple[Tensor, Tensor]:
        """Logits (B, R, L), and names (B, R, D): sums of the words' meanings."""
        places = torch.arange(meanings.tokens.shape[1], device=meanings.tokens.device)
        read, _ = self.block(meanings.tokens, meanings.mask, positions=places)
        logits = self.head(self.norm(read)).transpose(1, 2)  # (B, R, L)
        gates = logits.sigmoid() * meanings.mask[:, None]
        return logits, gates @ meanings.tokens

    def loss(self, logits: Tensor, sentences: Sequence[str], mask: Tensor) -> Tensor:
        """Cross-entropy (B, R, L) with what the grammar says, over the real words (B, L)."""
        target = torch.zeros_like(logits)
        for row, sentence in enumerate(sentences):
            for named, words in enumerate(named_words(self.task, sentence)[: self.n_named]):
                target[row, named, list(words)] = 1
        surprise = binary_cross_entropy_with_logits(logits, target, reduction="none")  # (B, R, L)
        return masked_mean(surprise.transpose(1, 2), mask)


def muffled(task: str, sentence: str, lost: Sequence[bool]) -> str:
    """The sentence with some of its words not heard: those that are lost and can be spared.

    Those that name an object or a side cannot: without "left" nobody knows where to put it.
    """
    needed = _needed_words(task, sentence)
    return " ".join(
        NOT_HEARD if lost[i] and i not in needed else word for i, word in enumerate(split(sentence))
    )


@lru_cache(maxsize=65_536)
def _needed_words(task: str, sentence: str) -> frozenset[int]:
    request, words = TASKS[task].request(sentence), split(sentence)
    named = [place for places in named_words(task, sentence) for place in places]
    side = LANGUAGES[request.language].relations[request.relation] if request.relation else ""
    return frozenset((*named, *_find(words, split(side))))


@lru_cache(maxsize=65_536)
def named_words(task: str, sentence: str) -> tuple[tuple[int, ...], ...]:
    """Places of the words that name the object to act on, and the other one, if any."""
    request = TASKS[task].request(sentence)
    say = LANGUAGES[request.language].say
    phrases = [split(say(one)) for one in (request.target, request.other) if one is not None]
    words, places = split(sentence), {}
    # The longer first: "mug" may stand inside of "red mug".
    for i in sorted(range(len(phrases)), key=lambda i: -len(phrases[i])):
        places[i] = _find(words, phrases[i])
        for place in places[i]:
            words[place] = ""
    return tuple(places[i] for i in range(len(phrases)))


def _find(words: Sequence[str], phrase: Sequence[str]) -> tuple[int, ...]:
    starts = range(len(words) - len(phrase) + 1)
    start = next(i for i in starts if list(words[i : i + len(phrase)]) == list(phrase))
    return tuple(range(start, start + len(phrase)))
