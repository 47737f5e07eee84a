"""Saying tokens one after another, with and without a cache for what was computed before."""

from __future__ import annotations

import math
import time

import torch
from torch import Tensor, nn

from fetchlab.policy.blocks import BlockConfig, Encoder
from fetchlab.policy.masks import causal
from fetchlab.tokenizers.positions import sinusoidal

N_WORDS = 32  # different tokens that can be said
LONGEST = 1024


class Speaker(nn.Module):
    """Random causal blocks; what they say is nonsense, but definite."""

    places: Tensor  # (LONGEST, D)

    def __init__(
        self, *, n_layers: int, width: int, seed: int, dtype: torch.dtype = torch.float32
    ) -> None:
        super().__init__()
        torch.manual_seed(seed)
        config = BlockConfig(d_model=width, n_heads=2, d_feedforward=4 * width)
        self.embedding = nn.Embedding(N_WORDS, width)
        self.register_buffer("places", sinusoidal(torch.arange(LONGEST), width))
        self.encoder = Encoder(config, n_layers)
        self.norm = nn.LayerNorm(width)
        self.answer = nn.Linear(width, N_WORDS, bias=False)
        nn.init.normal_(self.answer.weight, std=1 / math.sqrt(width))  # logits of about 1
        self.to(dtype).eval()

    @torch.inference_mode()
    def continued(self, prompt: Tensor, n_words: int, *, cached: bool) -> tuple[Tensor, Tensor]:
        """Prompt (B, P) -> the likeliest word again and again, and the logits of each choice.

        Words (B, P + n) with the prompt, logits (B, n, V). With a cache only the newest word is
        sent through the blocks, else all of them each time.
        """
        n_rows, start = prompt.shape
        caches = self.encoder.empty_caches(n_rows, start + n_words) if cached else None
        words, logits = prompt, []
        for _ in range(n_words):
            known = len(caches[0]) if caches else 0
            new = words[:, known:]  # (B, N)
            tokens = self.embedding(new) + self.places[known : words.shape[1]]  # (B, N, D)
            # A single new word reads everything: no mask is needed.
            pattern = causal(words.shape[1], new.shape[1]) if new.shape[1] > 1 else None
            read = self.encoder(tokens, pattern=pattern, caches=caches)[:, -1]  # (B, D)
            logits.append(self.answer(self.norm(read)))
            words = torch.cat([words, logits[-1].argmax(dim=-1, keepdim=True)], dim=1)
        return words, torch.stack(logits, dim=1)


def milliseconds(
    speaker: Speaker, n_rows: int, n_words: int, *, cached: bool, repeats: int
) -> float:
    """Least time of this thread to say n words in each of the rows, after a first one."""
    prompt = torch.zeros(n_rows, 1, dtype=torch.long)
    times = []
    for _ in range(repeats):
        start = time.thread_time()
        speaker.continued(prompt, n_words, cached=cached)
        times.append(time.thread_time() - start)
    return 1e3 * min(times)
