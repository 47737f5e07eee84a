"""ACT's optional style variable: a conditional VAE's encoder over the expert's actions."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fetchlab.policy.blocks import BlockConfig, EncoderBlock
from fetchlab.tokenizers.base import TokenGroup
from fetchlab.tokenizers.positions import LearnedPositions1d


class StyleEncoder(nn.Module):
    """Reads the proprioception token and the encoded chunk; gives a Gaussian over z (B, Z)."""

    def __init__(
        self, block: BlockConfig, *, action_dim: int, chunk_size: int, latent_dim: int
    ) -> None:
        super().__init__()
        self.block = EncoderBlock(block)
        self.summary = nn.Parameter(torch.randn(1, 1, block.d_model))
        self.action_projection = nn.Linear(action_dim, block.d_model)
        self.positions = LearnedPositions1d(chunk_size, block.d_model)
        self.to_gaussian = nn.Linear(block.d_model, 2 * latent_dim)

    def forward(self, robot: TokenGroup, actions: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log-variance (B, Z) from the robot's token (B, 1, D) and actions (B, K, A)."""
        steps = self.action_projection(actions) + self.positions(actions.shape[1])  # (B, K, D)
        summary = self.summary.expand(len(actions), -1, -1)  # (B, 1, D)
        tokens = torch.cat([summary, robot.tokens, steps], dim=1)  # (B, 2 + K, D)
        real = torch.cat([torch.ones_like(mask[:, :1]), robot.mask, mask], dim=1)  # (B, 2 + K)
        tokens, _ = self.block(tokens, real)
        mean, log_variance = self.to_gaussian(tokens[:, 0]).chunk(2, dim=-1)  # (B, Z)
        return mean, log_variance


def sample(mean: Tensor, log_variance: Tensor) -> Tensor:
    """z ~ N(mean, variance), differentiable; draws from torch's global generator."""
    return mean + torch.randn_like(mean) * (log_variance / 2).exp()


def divergence(mean: Tensor, log_variance: Tensor) -> Tensor:
    """Mean over the batch of KL(N(mean, variance) || N(0, 1)), summed over z."""
    return 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum(dim=-1).mean()
