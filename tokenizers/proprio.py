"""The robot's own readings as one token."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fetchlab.errors import UserError
from fetchlab.sim.observation import ObservationBatch
from fetchlab.tokenizers.base import TokenGroup

STD_FLOOR = 0.01  # [rad or m]: a dimension that never moves must not amplify its noise


class ProprioceptionNormalizer(nn.Module):
    """Readings (B, P) with the training data's mean and spread taken out; both are buffers."""

    mean: Tensor
    std: Tensor

    def __init__(self, mean: NDArray[np.float32], std: NDArray[np.float32]) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean, dtype=torch.float32))
        self.register_buffer("std", torch.tensor(std, dtype=torch.float32).clamp(min=STD_FLOOR))

    def forward(self, observations: ObservationBatch) -> Tensor:
        readings = torch.tensor(observations.proprioception, device=self.mean.device)
        if readings.ndim != 2 or readings.shape[1:] != self.mean.shape:
            raise UserError(
                f"expected {len(self.mean)} proprioception values an observation (B, P), "
                f"got {tuple(readings.shape)}"
            )
        return (readings - self.mean) / self.std  # (B, P)


class ProprioceptionTokenizer(nn.Module):
    """proprioception (B, P) -> one token (B, 1, D)."""

    def __init__(
        self, mean: NDArray[np.float32], std: NDArray[np.float32], *, d_model: int
    ) -> None:
        super().__init__()
        self.normalize = ProprioceptionNormalizer(mean, std)
        self.projection = nn.Linear(len(mean), d_model)

    def forward(self, observations: ObservationBatch) -> TokenGroup:
        token = self.projection(self.normalize(observations))[:, None]  # (B, 1, D)
        return TokenGroup(token, torch.ones_like(token[..., 0], dtype=torch.bool))
