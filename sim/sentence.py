"""A text space whose sentences stay fresh in asynchronous vector environments.

Gymnasium's AsyncVectorEnv reads its shared memory once and relies on arrays being views of it.
Strings are not, so a plain Text observation would for ever be what it was before the first reset.
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from typing import Any

from gymnasium.spaces import Text
from gymnasium.vector.utils import read_from_shared_memory


class Sentence(Text):
    """Any of the given sentences, or others no longer, in lower-case or in their letters."""

    def __init__(self, sentences: Sequence[str]) -> None:
        charset = {*string.ascii_lowercase, " ", *"".join(sentences)}
        super().__init__(max(map(len, sentences)), charset="".join(sorted(charset)))


class SharedSentences(Sequence[str]):
    """The sentences that the shared memory holds at the moment of reading."""

    def __init__(self, space: Sentence, memory: Any, n: int) -> None:
        self._space, self._memory, self._n = space, memory, n

    def _read(self) -> tuple[str, ...]:
        length, characters = self._space.max_length, self._space.character_list
        codes = list(self._memory.get_obj())
        rows = [codes[i * length : (i + 1) * length] for i in range(self._n)]
        # Shorter sentences are padded with a code beyond the character set.
        return tuple("".join(characters[c] for c in row if c < len(characters)) for row in rows)

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, index: Any) -> Any:
        return self._read()[index]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __deepcopy__(self, memo: dict[int, Any]) -> tuple[str, ...]:
        return self._read()


@read_from_shared_memory.register(Sentence)
def _read_sentences(space: Sentence, shared_memory: Any, n: int = 1) -> SharedSentences:
    return SharedSentences(space, shared_memory, n)
