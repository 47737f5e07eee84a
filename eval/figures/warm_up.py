"""Why Post-LN wants a warm-up: a deep encoder learns to fetch (Xiong et al. 2020)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import Generator, Tensor, nn

from fetchlab.eval.figures.base import Check
from fetchlab.eval.figures.lookup_scenes import (
    HALF_TABLE_CM,
    INSTRUCTION_WIDTH,
    OBJECT_WIDTH,
    Batch,
    Question,
    ask,
    random_scenes,
)
from fetchlab.eval.figures.seeds import Seeds
from fetchlab.policy.blocks import BlockConfig, Encoder

WIDTH, N_LAYERS = 16, 16
N_SEEDS, STEPS, BATCH, TESTED = 5, 400, 32, 200
PEAK = 3e-3  # learning rate
WARM_UP = 150  # steps in which it rises to the peak
STUCK = 15.0  # cm; always naming the middle of the blocks is 24 cm off

RECIPES: Mapping[str, tuple[str, int]] = {
    "Pre-LN": ("pre", 0),
    "Post-LN": ("post", 0),
    "Post-LN with warm-up": ("post", WARM_UP),
}
"""norm of the blocks, steps of warm-up"""


class DeepLookup(nn.Module):
    """The instruction and the blocks as tokens of an encoder; the instruction's token answers."""

    def __init__(self, norm: str) -> None:
        super().__init__()
        self.instruction = nn.Linear(INSTRUCTION_WIDTH, WIDTH)
        self.objects = nn.Linear(OBJECT_WIDTH, WIDTH)
        config = BlockConfig(
            d_model=WIDTH, n_heads=2, d_feedforward=4 * WIDTH, norm=norm, activation="relu"
        )
        self.encoder = Encoder(config, N_LAYERS)
        self.answer = nn.Linear(WIDTH, 2)

    def forward(self, objects: Tensor, present: Tensor, instruction: Tensor) -> Tensor:
        """Objects (B, M, 8), which are there (B, M), instruction (B, 12) -> position (B, 2)."""
        asked = self.instruction(instruction)[:, None]  # (B, 1, D)
        tokens = torch.cat([asked, self.objects(objects)], dim=1)  # (B, 1 + M, D)
        mask = torch.cat([torch.ones_like(present[:, :1]), present], dim=1)  # (B, 1 + M)
        answer: Tensor = self.answer(self.encoder(tokens, mask)[:, 0])
        return answer  # (B, 2)


def errors(recipe: str) -> Tensor:
    """(S,) mean distance from the named block [cm] after training, a number a seed."""
    norm, warm_up = RECIPES[recipe]
    torch.manual_seed(0)
    models = Seeds([DeepLookup(norm) for _ in range(N_SEEDS)])
    generator = torch.Generator().manual_seed(1)

    def missed(n_scenes: int) -> Tensor:
        batch = scenes(n_scenes, generator)
        answers = models(batch.objects, batch.present, batch.instruction)
        return answers - batch.answer  # (S, B, 2)

    models.train(
        STEPS,
        lambda _: missed(BATCH).square().sum(-1).mean(1),
        lambda step: PEAK * min(1.0, (step + 1) / max(warm_up, 1)),
    )
    with torch.no_grad():
        distances: Tensor = torch.linalg.vector_norm(missed(TESTED), dim=-1)  # (S, B)
    return HALF_TABLE_CM * distances.mean(1)


def scenes(n_scenes: int, generator: Generator) -> Batch:
    """Fresh tables for every seed, with 2 to 5 blocks: where is the one that is named?"""
    return ask(random_scenes((N_SEEDS, n_scenes), (2, 3, 4, 5), generator), [Question("position")])


def warm_up_checks(found: Mapping[str, Tensor]) -> Iterator[Check]:
    """With a high learning rate from the start, deep Post-LN encoders do not learn."""
    for recipe, values in found.items():
        gets_stuck = recipe == "Post-LN"
        yield Check(
            quantity=f"16 blocks learn to fetch, {recipe}: share of seeds stuck",
            value=float((values > STUCK).double().mean()),
            low=0.7 if gets_stuck else 0.0,
            high=1.0 if gets_stuck else 0.0,
        )
