"""How much of everything the benchmark does, and in which world: the one place to change it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fetchlab.sim.config import EnvConfig
from fetchlab.sim.language import LANGUAGES
from fetchlab.sim.shapes import SHAPES

SEEN = (2, 3, 4, 5)  # numbers of objects in the demonstrations
SCENES_SEED = 0  # of scenes and demonstrations: the same for everybody, so that results compare
WORLD = EnvConfig(
    task="mixed",
    cameras=("front", "overhead"),
    image_size=96,
    shapes=tuple(SHAPES),
    languages=tuple(LANGUAGES),
    phrasings="training",
)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A tier of the benchmark."""

    world: EnvConfig
    policies: tuple[str, ...]
    """the most important first"""
    demonstrations: int
    steps: float
    """share of the training steps registered for each policy"""
    episodes: int
    """in each cell"""
    seeds: tuple[int, ...]
    """of the trainings"""
    counts: tuple[int, ...] = ()
    """numbers of objects in the suite `counts`; empty: the suite's own"""
    more_trainings: bool = True
    """whether policies are also trained for single suites"""


YARDSTICKS = ("expert", "expert_blind")
SINGLE = ("act", "slot_mlp", *YARDSTICKS)  # strong enough for one task and blocks
FULL = Recipe(
    world=WORLD,
    policies=("act_pointers", "slot_mlp_large", *YARDSTICKS),
    demonstrations=7200,
    steps=1.0,
    episodes=200,
    seeds=(0, 1, 2),
)
QUICK = Recipe(
    world=EnvConfig(),
    policies=SINGLE,
    demonstrations=600,
    steps=0.6,
    episodes=10,
    seeds=(0, 1),
    counts=(2, 5, 6, 10),
    more_trainings=False,
)


def single(tier: Recipe, task: str) -> Recipe:
    """The tier with one task and blocks only, which is much cheaper."""
    demonstrations = min(tier.demonstrations, 1200)
    world = EnvConfig(task=task)
    return replace(tier, world=world, policies=SINGLE, demonstrations=demonstrations)
