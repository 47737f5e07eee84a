"""What `fetchlab cost` shows on screen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from fetchlab.eval.cost import Examined
from fetchlab.eval.tables import percent
from fetchlab.policy.cost_pieces import Part


def show(examined: Examined, out: Path | None) -> None:
    """Print tokens, parts, what they mean, and what a change would cost."""
    console = Console(highlight=False)
    console.print(heading(examined), style="bold", soft_wrap=True)
    if examined.cost.tokens:
        console.print(token_table(examined))
    console.print(part_table(examined))
    for sentence in sentences(examined):
        console.print(sentence, soft_wrap=True)
    if len(examined.variants) > 1:
        console.print(variant_table(examined))
    if out is not None:
        console.print(str(out), style="dim", soft_wrap=True)


def heading(examined: Examined) -> str:
    """The policy and what it looks through."""
    env_config = examined.config.env_config
    if not env_config.cameras:
        return f"{examined.config.name}: no cameras"
    frames = "1 frame" if env_config.history == 1 else f"{env_config.history} frames"
    size = f"{env_config.image_size} × {env_config.image_size}"
    return f"{examined.config.name}: {', '.join(env_config.cameras)}, {size} pixels, {frames}"


def token_table(examined: Examined) -> Table:
    """A column a modality."""
    table = _table("Tokens")
    for modality in (*examined.cost.tokens, "all"):
        table.add_column(modality, justify="right")
    table.add_row(*(f"{n:,}" for n in (*examined.cost.tokens.values(), examined.cost.n_tokens)))
    return table


def part_table(examined: Examined) -> Table:
    """A row a part, and their sum."""
    table = _table("Parameters, and MFLOPs of one chunk")
    table.add_column("part", no_wrap=True)
    for column in ("parameters", "by formula", "counted", "of attention"):
        table.add_column(column, justify="right", no_wrap=True)
    cost = examined.cost
    for name, part in cost.parts.items():
        last = name == list(cost.parts)[-1]
        label = f"{name} *" if name in cost.training_only else name
        table.add_row(*_part_row(label, part, examined.counted[name].flops), end_section=last)
    table.add_row(*_part_row("all", cost.total, examined.flops_counted))
    return table


def _part_row(label: str, part: Part, counted: int) -> list[str]:
    numbers = [_mega(part.flops), _mega(counted), _mega(part.attention)]
    return [label, f"{part.parameters:,}", *numbers]


def sentences(examined: Examined) -> Iterator[str]:
    """What the numbers mean, in words."""
    cost, latency = examined.cost, examined.variants[0].latency
    if cost.tokens:
        yield f"Scores and mixing of attention are {percent(cost.attention_share)} of all FLOPs."
        yield (
            f"Keys and values of the context take {_kibi(cost.context_cache)} a chunk; a decoder "
            f"that kept those of all tokens would hold {_kibi(cost.decoder_cache)}."
        )
    for name, meaning in cost.training_only.items():
        yield f"* {name}: {meaning}, in training only; no FLOPs when acting."
    yield (
        f"From an observation to an action, one thread: {latency.p50:.1f} ms (p95 "
        f"{latency.p95:.1f}) of a control period of {examined.control_period:.0f} ms. A chunk "
        f"serves {examined.config.n_action_steps} of them."
    )


def variant_table(examined: Examined) -> Table:
    """A row a change, each beside the policy as it is."""
    table = _table("What if")
    table.add_column("", no_wrap=True)
    for column in ("tokens", "MFLOPs", "predicted", "ms p50", "measured"):
        table.add_column(column, justify="right", no_wrap=True)
    base = examined.variants[0]
    for one in examined.variants:
        flops = one.cost.total.flops
        table.add_row(
            one.change,
            f"{one.cost.n_tokens:,}",
            _mega(flops),
            f"× {flops / base.cost.total.flops:.2f}",
            f"{one.latency.p50:.2f}",
            f"× {one.latency.p50 / base.latency.p50:.2f}",
        )
    return table


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))


def _mega(flops: int) -> str:
    return f"{flops / 1e6:,.3f}" if flops else "0"


def _kibi(n_bytes: int) -> str:
    return f"{n_bytes / 1024:,.0f} KiB"
