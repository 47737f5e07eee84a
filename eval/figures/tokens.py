"""Figure 7: images become tokens, tokens cost operations, and the control loop does not wait."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import asdict

import cv2
import numpy as np
from numpy.typing import NDArray

from fetchlab.eval.figures import token_cost as measure
from fetchlab.eval.figures.base import Check, Figure, Table, as_svg
from fetchlab.eval.figures.token_cost import IMAGE_SIZE, PATCH_SIZE, Crossover, Decision
from fetchlab.eval.figures.token_drawing import draw
from fetchlab.policy.cost_pieces import Part
from fetchlab.sim.config import EnvConfig

PATCHES = {8: 784, 14: 256, 16: 196, 28: 64, 32: 49, 56: 16}
"""tokens of a 224 × 224 image, by patch size"""
VIEWS = {1: 196, 2: 392, 3: 588, 4: 784, 6: 1176, 8: 1568, 9: 1764, 12: 2352}
"""tokens in patches of 16, by number of images: cameras times frames"""
WIDTHS = (128, 256, 512)
SHARES = {
    196: (0.203, 0.113, 0.060),
    392: (0.338, 0.203, 0.113),
    588: (0.434, 0.277, 0.161),
    784: (0.505, 0.338, 0.203),
    1176: (0.605, 0.434, 0.277),
    1568: (0.671, 0.505, 0.338),
    2352: (0.754, 0.605, 0.434),
}
"""attention's share of a layer's FLOPs for each of the widths, by tokens"""
BLOCKS = ((196, 64, 19267584, 9834496), (588, 256, 924844032, 354041856))
"""tokens, width, FLOPs of the linear layers and of attention"""
CROSSOVERS = {
    ("fused", 64): 353,
    ("fused", 128): 709,
    ("written out", 64): 333,
    ("written out", 128): 620,
}
"""tokens at which attention took as long as the linear layers, by its path and the width"""
SHARED_MACHINE = 0.35  # how far a crossover may lie from what was measured before
LATENTS = ((588, 16, 9408, 345744), (2352, 32, 75264, 5531904))
"""tokens, latents that read them, pairs that meet, and pairs if the tokens read each other"""
PERIOD_MS = 1000 / EnvConfig().control_hz
REGISTERED, LESSON = "act (64 × 64)", "4 encoder layers (224 × 224)"


def figure(*, quick: bool) -> Figure:
    """Measure figure 7.

    Its data: `image`, the rendered picture as a PNG data URI; `latencies`, a list of `name`,
    `cameras`, `history`, `ms` (measured) and `flops` (by formula); `period_ms`, the control
    period; `crossovers`, a list of `path`, `width` and `n_tokens` (measured).
    """
    image = measure.rendered()
    patches = measure.patches(image)
    blocks = {(n, d): measure.counted_block(n, d) for n in SHARES for d in WIDTHS}
    crossovers = measure_crossovers(quick)
    decisions = measure_decisions(quick)
    checks = (
        *token_checks(image, patches),
        *flop_checks(blocks),
        *map(crossover_check, crossovers),
        *decision_checks(decisions),
    )
    return Figure(
        number=7,
        title="Tokens and what they cost",
        question="How many tokens do cameras and history make, and can the robot wait for them?",
        text=TEXT,
        svg=as_svg(draw(patches, crossovers, decisions, PERIOD_MS)),
        checks=checks,
        tables=(patch_table(), view_table(blocks), decision_table(decisions)),
        data={
            "image": as_uri(image),
            "latencies": [asdict(one) for one in decisions],
            "period_ms": PERIOD_MS,
            "crossovers": [
                {"path": one.path, "width": one.width, "n_tokens": one.n_tokens}
                for one in crossovers
            ],
        },
    )


def measure_crossovers(quick: bool) -> list[Crossover]:
    """For both paths of attention; the wider block takes longer to time."""
    widths, rounds = ((64,), 15) if quick else ((64, 128), 60)
    return [measure.crossover(path, d, rounds) for d in widths for path in measure.ATTENTION]


def measure_decisions(quick: bool) -> list[Decision]:
    """Of the policy as registered, and of the lesson's transformer in its place."""
    views, calls = (((1, 1), (3, 1), (2, 2)), 5) if quick else (measure.VIEWS, 15)
    return [
        *measure.decisions(REGISTERED, views, calls, image_size=EnvConfig().image_size),
        *measure.decisions(LESSON, views, calls, image_size=IMAGE_SIZE, **measure.LESSON),
    ]


# Checks ---------------------------------------------------------------------------------------


def exactly(quantity: str, value: float, expected: float) -> Check:
    """A number that may not differ at all."""
    return Check(quantity=quantity, value=value, low=expected, high=expected)


def token_checks(image: NDArray[np.uint8], patches: NDArray[np.uint8]) -> Iterator[Check]:
    """Patches, images, and pixels that must all be in some patch."""
    for size, expected in PATCHES.items():
        yield exactly(f"tokens in patches of {size}", measure.n_tokens(patch_size=size), expected)
    yield exactly("numbers in a patch of 16", patches.shape[-1], 3 * PATCH_SIZE**2)
    difference = np.abs(measure.together(patches).astype(int) - image).max()
    yield exactly("pixels changed by cutting and putting together", float(difference), 0)
    for n_views, expected in VIEWS.items():
        plural = "s" if n_views > 1 else ""
        yield exactly(f"tokens of {n_views} image{plural}", measure.n_tokens(n_views), expected)
    finer = measure.n_tokens(image_size=2 * IMAGE_SIZE) / measure.n_tokens()
    yield exactly("tokens, twice the resolution a side: times", finer, 4)


def flop_checks(blocks: dict[tuple[int, int], Part]) -> Iterator[Check]:
    """What torch counts beside the lesson's formulas."""
    for n, d, linear, pairs in BLOCKS:
        counted = measure.counted_block(n, d)
        yield exactly(f"FLOPs of linear layers, n {n}, d {d}", counted.linear, linear)
        yield exactly(f"FLOPs of attention, n {n}, d {d}", counted.attention, pairs)
    off = max(abs(part.flops - 24 * n * d**2 - 4 * n**2 * d) for (n, d), part in blocks.items())
    yield exactly("counted FLOPs less 8nd² + 16nd² + 4n²d, at most", off, 0)
    for n, shares in SHARES.items():
        for d, share in zip(WIDTHS, shares, strict=True):
            value = blocks[n, d].attention / blocks[n, d].flops
            quantity = f"attention's share, n {n}, d {d}"
            yield Check(quantity=quantity, value=value, low=share - 5e-4, high=share + 5e-4)
    for n, latents, few, all_pairs in LATENTS:
        pairs = measure.counted_pairs(latents, n)
        yield exactly(f"pairs of {latents} latents that read {n} tokens", pairs, few)
        yield exactly(f"pairs of {n} tokens", measure.counted_pairs(n, n), all_pairs)


def crossover_check(one: Crossover) -> Check:
    """Near what was measured before."""
    before = CROSSOVERS[one.path, one.width]
    return Check(
        quantity=f"attention ({one.path}) as slow as the linear layers, d {one.width}: tokens",
        value=one.n_tokens,
        low=(1 - SHARED_MACHINE) * before,
        high=(1 + SHARED_MACHINE) * before,
    )


def decision_checks(decisions: Sequence[Decision]) -> Iterator[Check]:
    """The registered policy is in time; the lesson's takes longer as its operations grow."""
    for one in decisions:
        if one.name == REGISTERED:
            views = f"{one.cameras} × {one.history}"
            quantity = f"decision of act, cameras × frames {views} [ms]"
            yield Check(quantity=quantity, value=one.ms, low=0, high=PERIOD_MS)
    lesson = [one for one in decisions if one.name == LESSON]
    least, most = (pick(lesson, key=lambda one: one.n_views) for pick in (min, max))
    yield Check(
        quantity=f"{most.n_views} images against 1, {LESSON}: growth of time over that of FLOPs",
        value=(most.ms / least.ms) / (most.flops / least.flops),
        low=0.3,  # small products are done less efficiently
        high=1.5,
    )


# What is shown --------------------------------------------------------------------------------


def patch_table() -> Table:
    """Tokens by patch size."""
    return Table(
        caption="A 224 × 224 image as tokens, by the side of a patch",
        header=("patch side [pixels]", "tokens", "numbers a token"),
        rows=tuple((str(size), f"{n:,}", f"{3 * size**2:,}") for size, n in PATCHES.items()),
    )


def view_table(blocks: dict[tuple[int, int], Part]) -> Table:
    """Attention's share and the FLOPs of a layer, by tokens and width."""
    return Table(
        caption="One layer: attention's share of its operations, and all of them in GFLOP",
        header=("images", "tokens", *(f"width {d}" for d in WIDTHS)),
        rows=tuple(
            (str(n_views), f"{n:,}", *(layer_text(blocks[n, d]) for d in WIDTHS))
            for n_views, n in VIEWS.items()
            if n in SHARES
        ),
    )


def layer_text(block: Part) -> str:
    """`20 %, 0.0967`"""
    return f"{100 * block.attention / block.flops:.0f} %, {block.flops / 1e9:.3g}"


def decision_table(decisions: Sequence[Decision]) -> Table:
    """Milliseconds from an observation to an action."""
    names = list(dict.fromkeys(one.name for one in decisions))
    views = list(dict.fromkeys((one.cameras, one.history) for one in decisions))
    ms = {(one.name, one.cameras, one.history): one.ms for one in decisions}
    return Table(
        caption=f"Median time of a decision [ms of one core]; the arm waits {PERIOD_MS:.0f} ms",
        header=("cameras", "frames", *names),
        rows=tuple(
            (str(c), str(t), *(f"{ms[name, c, t]:.1f}" for name in names)) for c, t in views
        ),
    )


def as_uri(image: NDArray[np.uint8]) -> str:
    """The image as a PNG inside a link."""
    _, png = cv2.imencode(".png", np.ascontiguousarray(image[:, :, ::-1]))
    return f"data:image/png;base64,{base64.b64encode(png.tobytes()).decode()}"


TEXT = (
    "A transformer reads tokens, and an image becomes tokens by being cut into patches. This one "
    "was rendered by the simulator's front camera: 224 × 224 pixels in patches of 16 × 16 are "
    "14 × 14 = 196 tokens, each the 16 · 16 · 3 = 768 colour values of its patch. Every further "
    "camera and every further frame of history adds as many again: three cameras with four frames "
    "are 2,352 tokens.",
    "In a layer, the linear parts work on each token alone: 8nd² operations to make queries, keys, "
    "values and the output, and 16nd² in the MLP, for n tokens of d numbers. Attention works on "
    "every pair of tokens: 4n²d. So attention's share is n / (n + 6d): small for one camera, more "
    "than half once n is beyond 6d. torch's own counter finds exactly these numbers.",
    "Counted operations are not yet time. Measured on this machine, attention takes as long as all "
    "linear layers at roughly the 6d tokens of the formula, a little earlier, because its "
    "operations are done less efficiently.",
    "Twice the resolution can mean two things. Twice as many pixels are twice as many tokens; "
    "twice as many along each side are four times the tokens and sixteen times the pairs.",
    "The arm wants an action every 100 ms. The sandbox's policy is far below that with every "
    "camera and history, because its few action queries read the images without the images reading "
    "each other. The lesson's transformer, in which all tokens read each other in four layers, is "
    "in time with one frame, and with all cameras and frames it may not be.",
    "A Perceiver avoids the square: 16 latent tokens that read 588 image tokens meet them in "
    "9,408 pairs instead of 345,744.",
)
