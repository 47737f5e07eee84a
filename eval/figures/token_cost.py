"""What figure 7 measures: patches of a rendered image, counted FLOPs, times and latencies."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from einops import rearrange
from numpy.typing import NDArray
from torch import Tensor

from fetchlab.eval.bench.stages import N_OBJECTS, WARM_UP, first_observation
from fetchlab.eval.flops import count_module
from fetchlab.eval.parallel import one_thread
from fetchlab.policy.attention import MultiHeadAttention, attend, attend_with_weights
from fetchlab.policy.blocks import BlockConfig, EncoderBlock
from fetchlab.policy.cost import cost
from fetchlab.policy.cost_pieces import Part
from fetchlab.policy.learned import ChunkedPolicy, placeholder_statistics
from fetchlab.policy.registry import build_policy
from fetchlab.sim.config import MAX_HISTORY, EnvConfig
from fetchlab.sim.env import Tabletop
from fetchlab.sim.observation import ObservationBatch
from fetchlab.tokenizers.base import TokenGroup
from fetchlab.tokenizers.patch import PatchConfig, PatchTokenizer, as_network_input
from fetchlab.train.memory import keep_freed_memory

IMAGE_SIZE, PATCH_SIZE = 224, 16  # pixels
SCENE = 3  # its blocks lie apart
HEAD_WIDTH = 64
CAMERAS = ("front", "wrist", "overhead")
VIEWS = tuple((c, t) for c in range(1, len(CAMERAS) + 1) for t in range(1, MAX_HISTORY + 1))
"""cameras and frames of history"""
ATTENTION = {
    "fused": attend,
    "written out": lambda query, key, value: attend_with_weights(query, key, value)[0],
}
"""the two paths of scaled dot-product attention"""
REACH = (0.5, 0.65, 0.8, 0.95, 1.1, 1.25)
"""sequences timed, as shares of 6 d, where attention should have caught up"""
LESSON = {
    "patch": PatchConfig(stem="linear", patch_size=PATCH_SIZE),
    "d_model": 128,
    "d_feedforward": 512,
    "n_encoder_layers": 4,
}
"""the lesson's transformer, in the project's policy: four layers of tokens that read each other"""


# Tokens ---------------------------------------------------------------------------------------


def rendered() -> NDArray[np.uint8]:
    """What the front camera sees after a reset: (H, W, 3)."""
    with contextlib.closing(Tabletop(cameras=())) as env:
        env.reset(seed=SCENE, options={"n_objects": 5})
        return env.picture("front", IMAGE_SIZE).rgb


def tokenizer(n_views: int, image_size: int, patch_size: int) -> PatchTokenizer:
    """The project's, with a linear stem as in the lesson."""
    config = PatchConfig(stem="linear", patch_size=patch_size)
    return PatchTokenizer(config, n_views=n_views, image_size=image_size, d_model=8)


def n_tokens(n_views: int = 1, image_size: int = IMAGE_SIZE, patch_size: int = PATCH_SIZE) -> int:
    """How many the tokenizer makes of so many images."""
    seen = ObservationBatch(
        images=np.zeros((1, n_views, image_size, image_size, 3), np.uint8),
        proprioception=np.zeros((1, 0), np.float32),
        objects=np.zeros((1, 0, 0), np.float32),
        objects_mask=np.zeros((1, 0), np.bool_),
        instructions=("",),
    )
    group: TokenGroup = tokenizer(n_views, image_size, patch_size)(seen)
    return group.tokens.shape[1]


def patches(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The image (H, W, 3) as the tokenizer cuts it: (rows, columns, numbers of a patch)."""
    cut = next(tokenizer(1, len(image), PATCH_SIZE).stem.children())
    numbers: Tensor = cut(as_network_input(torch.from_numpy(image)[None, None]))
    pixels: NDArray[np.uint8] = (127.5 * (numbers[0] + 1)).round().byte().numpy()
    return pixels  # (rows, columns, p · p · 3)


def together(patches: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The way back, to an image (H, W, 3)."""
    image: NDArray[np.uint8] = rearrange(
        patches, "r c (h w rgb) -> (r h) (c w) rgb", h=PATCH_SIZE, w=PATCH_SIZE
    )
    return image


# FLOPs ----------------------------------------------------------------------------------------


def counted_block(n_tokens: int, width: int) -> Part:
    """What torch counts in an encoder block with heads of 64 and an MLP of 4 d.

    On the meta device: every operation with its sizes, none of the work.
    """
    config = BlockConfig(d_model=width, n_heads=width // HEAD_WIDTH, d_feedforward=4 * width)
    with torch.device("meta"):
        return count_module(EncoderBlock(config), torch.empty(1, n_tokens, width))


def counted_pairs(n_queries: int, n_read: int) -> int:
    """How many pairs of tokens meet when queries read, from the FLOPs that torch counts."""
    with torch.device("meta"):
        reader = MultiHeadAttention(HEAD_WIDTH, 1)
        read = torch.empty(1, n_queries, HEAD_WIDTH), torch.empty(1, n_read, HEAD_WIDTH)
        return count_module(reader, *read).attention // (4 * HEAD_WIDTH)


# Time -----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Crossover:
    """Where attention begins to take longer than all linear layers of its block."""

    path: str
    width: int
    lengths: tuple[int, ...]
    ratios: tuple[float, ...]
    """time of attention over time of the linear layers, at each length"""

    @property
    def n_tokens(self) -> float:
        """Where a power law through the ratios is 1."""
        slope, start = np.polyfit(np.log(self.lengths), np.log(self.ratios), 1)
        return float(np.exp(-start / slope))


def crossover(path: str, width: int, rounds: int) -> Crossover:
    """Time both, in turns, for sequences around 6 d; heads of 64, one sequence, one thread."""
    torch.manual_seed(0)
    # To fill new pages with the scores that attention writes out took up to twice as long as to
    # multiply; how long depended on the machine, and on what had run before.
    keep_freed_memory()
    config = BlockConfig(d_model=width, n_heads=width // HEAD_WIDTH, d_feedforward=4 * width)
    block = EncoderBlock(config).eval()
    lengths = tuple(round(6 * width * share) for share in REACH)
    with torch.inference_mode(), one_thread():  # a thread that waits for another would count, too
        pairs = [works(block, ATTENTION[path], length) for length in lengths]
        # Round after round of all lengths: a slow minute of the machine slows them all.
        spent = [
            [(processor_time(attend), processor_time(rest)) for attend, rest in pairs]
            for _ in range(WARM_UP + rounds)
        ]  # (rounds, lengths, 2)
    of_attention, of_rest = np.median(spent[WARM_UP:], axis=0).T
    return Crossover(
        path=path, width=width, lengths=lengths, ratios=tuple((of_attention / of_rest).tolist())
    )


def works(
    block: EncoderBlock, attention: Callable[..., Tensor], length: int
) -> tuple[Callable[[], None], Callable[[], None]]:
    """What is timed: attention among so many tokens, and the block's linear layers."""
    config = block.attention
    heads = torch.randn(1, config.n_heads, length, HEAD_WIDTH)  # (B, H, N, d)
    tokens = torch.randn(1, length, config.d_model)
    assert block.mlp is not None
    grow, _, shrink = block.mlp
    hidden = grow(tokens)  # (B, N, 4 D)

    def attend() -> None:
        attention(heads, heads, heads)

    def rest() -> None:
        for layer in (config.query, config.key_value, config.output, grow):
            layer(tokens)
        shrink(hidden)

    return attend, rest


def processor_time(work: Callable[[], None]) -> int:
    """[ns] on the processor; waiting for it while others have it does not count."""
    started = time.process_time_ns()
    work()
    return time.process_time_ns() - started


@dataclass(frozen=True, kw_only=True)
class Decision:
    """How long a policy takes from an observation to an action, its chunk predicted anew."""

    name: str
    cameras: int
    history: int
    ms: float
    """processor time, median: the latency where nothing else wants the core"""
    flops: int
    """by the cost model"""

    @property
    def n_views(self) -> int:
        return self.cameras * self.history


def decisions(
    name: str, views: Sequence[tuple[int, int]], calls: int, *, image_size: int, **settings: Any
) -> Iterator[Decision]:
    """Latency of `act`, with some settings changed, for each number of cameras and frames."""
    for cameras, history in views:
        env_config = EnvConfig(cameras=CAMERAS[:cameras], image_size=image_size, history=history)
        statistics = placeholder_statistics(env_config.action_dim)
        policy = build_policy("act", env_config, statistics, **settings).eval()
        yield Decision(
            name=name,
            cameras=cameras,
            history=history,
            ms=decision_ms(policy, calls),
            flops=cost(policy.config, n_objects=N_OBJECTS).total.flops,
        )


def decision_ms(policy: ChunkedPolicy, calls: int) -> float:
    """Of one observation, on one thread."""
    observation = first_observation(policy.env_config)

    def decide() -> None:
        policy.reset()
        policy.act(observation)

    with one_thread():
        spent = [processor_time(decide) for _ in range(WARM_UP + calls)][WARM_UP:]
    return float(np.median(spent)) / 1e6
