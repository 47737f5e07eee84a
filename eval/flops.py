"""FLOPs as torch counts them while a module runs, to hold formulas against."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from fetchlab.policy.cost_pieces import Part
from fetchlab.policy.learned import ChunkedPolicy
from fetchlab.sim.observation import ObservationBatch

PAIRS = ("bmm", "baddbmm")  # products of two batches of matrices: scores, and what they mix


def count_module(module: nn.Module, *inputs: Any) -> Part:
    """What one call of the module takes, and how many parameters it has."""
    return Part(n_parameters(module)) + _run(module, *inputs).get("Global", Part())


def count_policy(policy: ChunkedPolicy, observations: ObservationBatch) -> dict[str, Part]:
    """What one chunk takes, by the policy's attributes."""
    counts = _run(Predicting(policy.eval()), observations)
    parts = {name: _outermost(counts, f"Predicting.policy.{name}") for name in own_parts(policy)}
    return {name: Part(own_parts(policy)[name]) + part for name, part in parts.items()}


def own_parts(policy: nn.Module) -> dict[str, int]:
    """Parameters of each attribute that has any."""
    named = {name: n_parameters(child) for name, child in policy.named_children()}
    named |= {name: own.numel() for name, own in policy.named_parameters(recurse=False)}
    return {name: n for name, n in named.items() if n}


def n_parameters(module: nn.Module) -> int:
    """Numbers that are learned."""
    return sum(parameter.numel() for parameter in module.parameters())


class Predicting(nn.Module):
    """A policy that predicts when called; the counter knows modules by their calls."""

    def __init__(self, policy: ChunkedPolicy) -> None:
        super().__init__()
        self.policy = policy

    def forward(self, observations: ObservationBatch) -> Any:
        return self.policy.predict(observations)


def _run(module: nn.Module, *inputs: Any) -> dict[str, Part]:
    """Counts of every module that was called, what it called included, by dotted name.

    The fused kernel hides its two matrix products from the counter on a CPU, so attention runs
    through torch's plain one.
    """
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        module(*inputs)
    return {name: _part(counts) for name, counts in counter.get_flop_counts().items()}


def _part(counts: Mapping[Any, int]) -> Part:
    pairs = sum(n for operation, n in counts.items() if operation.__name__ in PAIRS)
    return Part(linear=sum(counts.values()) - pairs, attention=pairs)


def _outermost(counts: Mapping[str, Part], name: str) -> Part:
    """What was called inside `name` from outside of it: itself, or the blocks of a list."""
    inside = [one for one in counts if one == name or one.startswith(f"{name}.")]
    outer = [one for one in inside if not any(one.startswith(f"{other}.") for other in inside)]
    return sum((counts[one] for one in outer), Part())
