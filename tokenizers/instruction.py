"""Sentences as tokens: words, or Chinese characters, of a vocabulary that is known and closed."""

from __future__ import annotations

import re
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from fetchlab.errors import UserError, unknown
from fetchlab.sim.language import normalized
from fetchlab.tokenizers.base import TokenGroup
from fetchlab.tokenizers.positions import LearnedPositions1d

MAX_WORDS = 24  # in a sentence; longer ones are refused
NOT_HEARD = "…"  # stands for a word that a policy does not hear
NO_WORDS = NOT_HEARD  # said to see what a policy does without a sentence


class Vocabulary:
    """The words of the sentences that can be said; number 0 is padding.

    Raises UserError for an empty sentence, for one that mixes languages, and for unknown words.
    """

    def __init__(self, sentences: Sequence[str]) -> None:
        self.words = tuple(sorted({word for sentence in sentences for word in split(sentence)}))
        self._numbers = {word: i for i, word in enumerate(self.words, start=1)}

    def __len__(self) -> int:
        return len(self.words) + 1

    def numbers(self, sentence: str) -> list[int]:
        """The number of each word of the sentence; 0 for one that is not heard."""
        words = split(sentence)
        if not words:
            raise UserError(f"the instruction is empty: known words are {', '.join(self.words)}")
        for word in words:
            if word not in self._numbers and word != NOT_HEARD:
                raise unknown("word", word, self.words)
        return [self._numbers.get(word, 0) for word in words]

    def encode(self, sentences: Sequence[str]) -> Tensor:
        """(B, L) word numbers, padded with 0 to the longest sentence."""
        rows = [torch.tensor(self.numbers(sentence)) for sentence in sentences]
        return nn.utils.rnn.pad_sequence(rows, batch_first=True)


def split(sentence: str) -> list[str]:
    """The words of a sentence, whatever its capitals and its final full stop.

    Chinese has no gaps between words: each of its characters stands for itself. Raises UserError
    for a sentence that mixes languages.
    """
    return re.findall("[\u4e00-\u9fff]|[^\\s\u4e00-\u9fff]+", normalized(sentence))


class InstructionTokenizer(nn.Module):
    """B sentences -> word tokens (B, L, D); padding is masked, and of NO_WORDS all is padding."""

    def __init__(self, sentences: Sequence[str], *, d_model: int) -> None:
        super().__init__()
        self.vocabulary = Vocabulary(sentences)
        self.embedding = nn.Embedding(len(self.vocabulary), d_model, padding_idx=0)
        self.positions = LearnedPositions1d(MAX_WORDS, d_model)

    def forward(self, sentences: Sequence[str]) -> TokenGroup:
        meanings = self.meanings(sentences)
        tokens = meanings.tokens + self.positions(meanings.tokens.shape[1])  # (B, L, D)
        return TokenGroup(tokens, meanings.mask)

    def meanings(self, sentences: Sequence[str]) -> TokenGroup:
        """(B, L, D) the words wherever they stand; padding is 0."""
        numbers = self._encode(sentences)  # (B, L)
        return TokenGroup(self.embedding(numbers), numbers > 0)

    def mean(self, sentences: Sequence[str]) -> Tensor:
        """(B, D) mean word embedding; for any phrase of known words, in any order."""
        numbers = self._encode(sentences)  # (B, L)
        n_words = (numbers > 0).sum(dim=1, keepdim=True).clamp(min=1)
        total: Tensor = self.embedding(numbers).sum(dim=1)  # (B, D), padding embeds to 0
        return total / n_words

    def _encode(self, sentences: Sequence[str]) -> Tensor:
        return self.vocabulary.encode(sentences).to(self.embedding.weight.device)
