"""Camera images as tokens: one token for each patch of each camera."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from einops import rearrange, reduce
from einops.layers.torch import Rearrange
from numpy.typing import NDArray
from torch import Tensor, nn

from fetchlab.errors import UserError, unknown
from fetchlab.sim.observation import ObservationBatch
from fetchlab.tokenizers.base import TokenGroup
from fetchlab.tokenizers.positions import (
    LearnedPositions2d,
    SinusoidalPositions2d,
    ViewIdentity,
    grid_positions,
)

STEMS = ("conv", "linear")
POSITIONS: dict[str, type[LearnedPositions2d] | type[SinusoidalPositions2d]] = {
    "learned": LearnedPositions2d,
    "sinusoidal": SinusoidalPositions2d,
}


@dataclass(frozen=True, kw_only=True)
class PatchConfig:
    """How an image is cut into tokens."""

    stem: str = "conv"
    """`conv`: 3x3 convolutions of stride 2 with ReLU, overlapping patches; `linear`: ViT's"""
    patch_size: int = 8
    """pixels between neighbouring tokens; for `conv` a power of two"""
    first_channels: int = 16
    """channels of the first convolution; each next one doubles them, the last one has D"""
    refinement: int = 0
    """further 3x3 convolutions of stride 1 in a `conv` stem, to tell shapes of a few pixels apart;
    the last one has D channels"""
    pooling: int = 1
    """patches along each side of a square whose mean is one token"""
    positions: str = "learned"
    """what tells a token its place: `learned` tables, fixed `sinusoidal` waves, or `none`"""

    def __post_init__(self) -> None:
        if self.pooling < 1:
            raise UserError(f"pooling must be at least 1, got {self.pooling}")
        if self.positions not in (*POSITIONS, "none"):
            raise unknown("positions", self.positions, (*POSITIONS, "none"))
        if self.stem not in STEMS:
            raise unknown("stem", self.stem, STEMS)
        if self.patch_size < 1 or self.first_channels < 1:
            raise UserError("patch_size and first_channels must be at least 1")
        if self.refinement < 0 or (self.refinement and self.stem != "conv"):
            raise UserError(
                f"refinement is a number of convolutions of a conv stem, got {self.refinement} "
                f"with stem {self.stem}"
            )
        if self.stem == "conv" and (self.patch_size < 2 or self.patch_size.bit_count() != 1):
            raise UserError(
                f"patch_size of a conv stem must be a power of two above 1, got {self.patch_size}"
            )


class PatchTokenizer(nn.Module):
    """images (B, V, H, W, 3) uint8 -> (B, V·N, D), view after view, each row by row.

    A view is one camera at one moment. The stem is shared; positions are a table for each view,
    because the same cell means different places on the table. Raises UserError when images do
    not fit.
    """

    def __init__(self, config: PatchConfig, *, n_views: int, image_size: int, d_model: int) -> None:
        super().__init__()
        if n_views < 1:
            raise UserError("a policy that sees pixels needs at least one camera, got none")
        side = config.patch_size * config.pooling
        if image_size % side:
            raise UserError(
                f"image_size {image_size} is not a multiple of patch_size {config.patch_size}"
                + (f" times pooling {config.pooling}" if config.pooling > 1 else "")
            )
        self.n_views, self.image_size, self.pooling = n_views, image_size, config.pooling
        cells = image_size // side
        self.grid = (cells, cells)  # of tokens
        self.patch_grid = (cells * config.pooling, cells * config.pooling)
        build_stem = conv_stem if config.stem == "conv" else linear_stem
        self.stem = build_stem(config, d_model)
        self.positions = nn.ModuleList(
            POSITIONS[config.positions](cells, cells, d_model)
            for _ in range(n_views)
            if config.positions != "none"
        )
        self.view_identity = ViewIdentity(n_views, d_model)

    def forward(self, observations: ObservationBatch) -> TokenGroup:
        return self.placed(self.patches(observations))

    def patches(self, observations: ObservationBatch) -> Tensor:
        """(B, V, P, D) what each patch shows, wherever it is."""
        self._check(observations.images)
        pixels = torch.tensor(observations.images, device=self.view_identity.table.device)
        patches: Tensor = self.stem(as_network_input(pixels))  # (B·V, D, rows, columns)
        return rearrange(patches, "(b v) d h w -> b v (h w) d", v=self.n_views)

    def placed(self, patches: Tensor) -> TokenGroup:
        """The patches (B, V, P, D) as tokens that know their view and their place."""
        if self.pooling > 1:
            rows, columns = self.grid
            grid = {"r": rows, "c": columns, "p": self.pooling, "q": self.pooling}
            patches = reduce(patches, "b v (r p c q) d -> b v (r c) d", "mean", **grid)
        tokens = (patches + self.codes()).flatten(1, 2)  # (B, V·N, D)
        return TokenGroup(tokens, torch.ones_like(tokens[..., 0], dtype=torch.bool))

    def codes(self) -> Tensor:
        """What tells a token its view and its place: (V, N, D)."""
        identity: Tensor = self.view_identity()  # (V, 1, D)
        if not self.positions:
            return identity
        return torch.stack([table() for table in self.positions]) + identity  # (V, N, D)

    def places(self) -> Tensor:
        """(V·N, 2) row and column of each token in its image, for rotary positions."""
        return grid_positions(*self.grid).repeat(self.n_views, 1)

    def split_views(self, weights: Tensor) -> Tensor:
        """Attention over the sequence (…, ≥ V·N) as a map for each view (…, V, rows, columns)."""
        rows, columns = self.grid
        n_patches = self.n_views * rows * columns
        patches = weights[..., :n_patches]
        return patches.reshape(*weights.shape[:-1], self.n_views, rows, columns)

    def _check(self, images: NDArray[Any]) -> None:
        expected = (self.n_views, self.image_size, self.image_size, 3)
        if images.ndim != 5 or images.shape[1:] != expected:
            raise UserError(
                f"expected {self.n_views} images (cameras times frames) of {self.image_size} by "
                f"{self.image_size} pixels (B, V, H, W, 3), got {images.shape}: "
                "use the cameras, image size and history that the policy was built with"
            )


def as_network_input(pixels: Tensor) -> Tensor:
    """(B, V, H, W, 3) uint8 -> (B·V, 3, H, W) centred floats; in memory the channels stay last."""
    flat = pixels.flatten(0, 1).float() / 127.5 - 1.0  # (B·V, H, W, 3)
    return flat.permute(0, 3, 1, 2)  # (B·V, 3, H, W)


def conv_stem(config: PatchConfig, d_model: int) -> nn.Module:
    """Convolutions that halve the image until one pixel is one patch, and then refine that."""
    n_halvings = config.patch_size.bit_length() - 1
    n_layers = n_halvings + config.refinement
    widths = [config.first_channels * 2 ** min(i, n_halvings - 1) for i in range(n_layers - 1)]
    widths.append(d_model)
    layers: list[nn.Module] = []
    for layer, (before, after) in enumerate(zip([3, *widths], widths, strict=False)):
        stride = 2 if layer < n_halvings else 1
        conv = nn.Conv2d(before, after, kernel_size=3, stride=stride, padding=1)
        nn.init.kaiming_normal_(conv.weight, nonlinearity="relu")
        layers += [conv, nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


def linear_stem(config: PatchConfig, d_model: int) -> nn.Module:
    """Each non-overlapping patch flattened (patch_size² · 3 numbers) and projected to D."""
    p = config.patch_size
    return nn.Sequential(
        Rearrange("b c (h p) (w q) -> b h w (p q c)", p=p, q=p),
        nn.Linear(3 * p * p, d_model),
        Rearrange("b h w d -> b d h w"),
    )
