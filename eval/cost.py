"""`fetchlab cost`: what a policy costs, predicted by formula beside counted and measured."""

from __future__ import annotations

import contextlib
import json
import statistics
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fetchlab.errors import UserError
from fetchlab.eval.bench.measure import machine
from fetchlab.eval.bench.stages import N_OBJECTS, first_observation, inferring
from fetchlab.eval.plan import chosen_world
from fetchlab.eval.results import command_line, provenance, write_whole
from fetchlab.policy.registry import POLICIES, build_config, entry, learned_class, load_policy
from fetchlab.sim.cameras import CAMERAS
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.observation import ObservationBatch

if TYPE_CHECKING:
    from fetchlab.policy.cost import Cost
    from fetchlab.policy.cost_pieces import Part
    from fetchlab.policy.learned import ChunkedPolicy, PolicyConfig

ROUNDS, CALLS = 5, 20  # of latencies; in every round all variants take turns
AS_IT_IS = "as it is"
FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class CostConfig:
    """What a policy costs: tokens, parameters, FLOPs, latency and cached keys and values.

    FLOPs by formula stand beside those that torch counts, latency beside the control period, and
    a table tells what one more camera, double resolution or one more frame would cost. Trained
    weights do not matter for any of it, so a registered name is enough.
    """

    policy: str
    """folder of a trained policy, or a registered name (`fetchlab list policies`)"""
    task: str | None = None
    """the task that an untrained policy is made for; by default fetch"""
    shapes: tuple[str, ...] | None = None
    """what an untrained policy knows; by default blocks"""
    languages: tuple[str, ...] | None = None
    """in which sentences an untrained policy is spoken to; by default English"""
    cameras: tuple[str, ...] | None = None
    """look through these instead"""
    image_size: int | None = None
    """pixels a side of every image, instead"""
    history: int | None = None
    """frames of every camera, instead"""
    json: bool = False
    """print JSON instead of tables"""
    out: Path | None = None
    """also write the JSON into this file"""

    def __post_init__(self) -> None:
        if self.out is not None and self.out.is_dir():
            raise UserError(f"--out {self.out} is a folder: give a file, such as cost.json")


@dataclass(frozen=True)
class Latency:
    """Time from an observation to an action, the chunk predicted anew, on one thread [ms]."""

    p50: float
    p95: float


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A policy as it is, or with one thing changed."""

    change: str
    cost: Cost
    latency: Latency


@dataclass(frozen=True, kw_only=True)
class Examined:
    """A policy with its predicted, counted and measured cost."""

    config: PolicyConfig
    counted: Mapping[str, Part]
    variants: tuple[Variant, ...]
    """the first is the policy as it is"""

    @property
    def cost(self) -> Cost:
        return self.variants[0].cost

    @property
    def flops_counted(self) -> int:
        return sum(part.flops for part in self.counted.values())

    @property
    def control_period(self) -> float:
        """[ms]"""
        return 1000 / self.config.env_config.control_hz


def run_cost(config: CostConfig) -> None:
    """`fetchlab cost`."""
    from fetchlab.eval.cost_tables import show

    examined = examine(policy_config(config))
    content = json.dumps(summary(examined), indent=1) + "\n"
    if config.out is not None:
        write_whole(config.out, content)
    if config.json:
        sys.stdout.write(content)
    else:
        show(examined, config.out)


def policy_config(config: CostConfig) -> PolicyConfig:
    """The settings of the policy that is asked about. Raises UserError if there can be none."""
    given = {name: getattr(config, name) for name in ("cameras", "image_size", "history")}
    changed = {name: value for name, value in given.items() if value is not None}
    made_for = {name: getattr(config, name) for name in ("task", "shapes", "languages")}
    base = registered_or_trained(config.policy, made_for)
    if changed and not base.env_config.cameras:
        raise UserError(
            f"policy {base.name} sees no images: leave out "
            f"{', '.join('--' + name.replace('_', '-') for name in changed)}"
        )
    if "history" in changed:  # the recent frames are as many tokens, and as many as one likes
        changed["memory"] = "recent"
    return replace(base, env_config=replace(base.env_config, **changed))


def registered_or_trained(source: str, made_for: Mapping[str, Any]) -> PolicyConfig:
    """The settings of a checkpoint, or those that a registered policy starts with in such a world.

    Raises UserError if a checkpoint was made for another; what is None is not asked for.
    """
    if source in POLICIES and not Path(source).is_dir():
        cameras = EnvConfig().cameras if entry(source).sees_images else ()
        asked = {name: value for name, value in made_for.items() if value is not None}
        return build_config(source, EnvConfig(cameras=cameras, **asked, **entry(source).past))
    chosen_world(source, made_for)
    policy: Any = load_policy(source)
    config: PolicyConfig = policy.config
    return config


def examine(config: PolicyConfig) -> Examined:
    """Predict, count and measure."""
    from fetchlab.eval.flops import count_policy
    from fetchlab.policy.cost import cost, longest_sentence

    variants = {AS_IT_IS: config, **changes(config)}
    policies = {change: untrained(one) for change, one in variants.items()}
    seen = replace(first_observation(config.env_config), instruction=longest_sentence(config))
    measured = latencies(policies)
    return Examined(
        config=config,
        counted=count_policy(policies[AS_IT_IS], ObservationBatch.stack([seen])),
        variants=tuple(
            Variant(change=change, cost=cost(one, n_objects=N_OBJECTS), latency=measured[change])
            for change, one in variants.items()
        ),
    )


def changes(config: PolicyConfig) -> dict[str, PolicyConfig]:
    """One more camera, double resolution, one more frame: those that the simulator can show."""
    env_config = config.env_config
    if not env_config.cameras:
        return {}
    double, more = 2 * env_config.image_size, env_config.history + 1
    wishes: dict[str, dict[str, Any]] = {
        f"one more camera ({name})": {"cameras": (*env_config.cameras, name)}
        for name in [name for name in CAMERAS if name not in env_config.cameras][:1]
    }
    wishes[f"double resolution ({double} × {double})"] = {"image_size": double}
    wishes["one more frame of history"] = {"history": more}
    found = {}
    for change, wish in wishes.items():
        with contextlib.suppress(UserError):
            found[change] = replace(config, env_config=replace(env_config, **wish))
    return found


def untrained(config: PolicyConfig) -> ChunkedPolicy:
    """A policy of these settings with random weights, which take as long as trained ones."""
    from fetchlab.policy.learned import placeholder_statistics

    statistics = placeholder_statistics(config.env_config.action_dim)
    return learned_class(config.name)(config, statistics).eval()


def latencies(policies: Mapping[str, ChunkedPolicy]) -> dict[str, Latency]:
    """How long each policy takes to decide; in turns, so that a busy moment troubles all alike."""
    runs: dict[str, list[tuple[float, ...]]] = {name: [] for name in policies}
    for _ in range(ROUNDS):
        for name, policy in policies.items():
            measured = inferring(policy, repeats=1, calls=CALLS)
            runs[name].append(tuple(one.median for one in measured))
    return {
        name: Latency(*(statistics.median(column) for column in zip(*mine, strict=True)))
        for name, mine in runs.items()
    }


def summary(examined: Examined) -> dict[str, Any]:
    """As JSON: the policy, its parts, and a row for what it would be with one thing changed."""
    config, cost = examined.config, examined.cost
    return {
        "format": FORMAT,
        "command": command_line(),
        "machine": machine(),
        "versions": provenance(),
        "policy": config.name,
        "env": asdict(config.env_config),
        "n_objects": N_OBJECTS,
        "tokens": {**cost.tokens},
        "n_tokens": cost.n_tokens,
        "parts": [part_summary(examined, name) for name in cost.parts],
        "parameters": cost.total.parameters,
        "flops": cost.total.flops,
        "flops_counted": examined.flops_counted,
        "attention_share": cost.attention_share,
        "latency_ms": asdict(examined.variants[0].latency),
        "control_period_ms": examined.control_period,
        "steps_a_chunk": config.n_action_steps,
        "cache_bytes": {"context": cost.context_cache, "cached_decoder": cost.decoder_cache},
        "what_if": [variant_summary(one, examined.variants[0]) for one in examined.variants],
    }


def part_summary(examined: Examined, name: str) -> dict[str, Any]:
    """A part's parameters and FLOPs, by formula and counted."""
    part = examined.cost.parts[name]
    return {
        "part": name,
        "parameters": part.parameters,
        "flops": part.flops,
        "flops_of_attention": part.attention,
        "flops_counted": examined.counted[name].flops,
        "training_only": name in examined.cost.training_only,
    }


def variant_summary(one: Variant, base: Variant) -> dict[str, Any]:
    """What changed, and how much that costs."""
    return {
        "change": one.change,
        "tokens": one.cost.n_tokens,
        "parameters": one.cost.total.parameters,
        "flops": one.cost.total.flops,
        "flops_ratio": one.cost.total.flops / base.cost.total.flops,
        "latency_ms": asdict(one.latency),
        "latency_ratio": one.latency.p50 / base.latency.p50,
    }
