"""What the objects of a scene look like: which colour has which shape, and what is like what."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from fetchlab.errors import UserError
from fetchlab.sim.scene import COLOURS

Look = tuple[str, str]  # colour, shape

HELD_OUT_PAIRS: frozenset[Look] = frozenset(
    {
        ("green", "block"),
        ("yellow", "brick"),
        ("red", "cylinder"),
        ("purple", "ball"),
        ("blue", "mug"),
    }
)
"""looks that are kept from training where compositions are tested: each shape, each in another
colour, so that every colour and every shape is still seen in others"""
PAIRS = ("all", "seen", "unnamed", "held_out")
DISTRACTORS = ("mixed", "colour", "shape", "both")
HARD = 0.6  # share of the scenes in which objects look alike
TRIES = 1000  # at looks that keep all rules; most are kept at once, the rarest one time in six


@dataclass(frozen=True, kw_only=True)
class LookRules:
    """Which looks may occur in a scene."""

    shapes: tuple[str, ...]
    pairs: str = "all"
    """a name of PAIRS; for the held-out ones, see EnvConfig"""
    distractors: str = "mixed"
    """a name of DISTRACTORS"""

    def may_occur(self, look: Look) -> bool:
        return self.pairs != "seen" or look not in HELD_OUT_PAIRS

    def may_be_named(self, look: Look, *, first: bool) -> bool:
        """Whether a sentence may speak of it: `first`, as the object to act on."""
        if self.pairs == "held_out":
            return look in HELD_OUT_PAIRS or not first
        return self.pairs == "all" or look not in HELD_OUT_PAIRS


def draw_looks(
    generator: np.random.Generator, n_objects: int, rules: LookRules, n_named: int = 1
) -> list[Look]:
    """Colour and shape of each object; the first `n_named` are the only ones of their kind.

    With one shape, up to six objects all differ in colour. With several, most scenes are hard:
    two or three colours, and all objects share colour or shape with a named one, but never both.
    Raises UserError if no scene keeps the rules.
    """
    draw = _draw_colours if len(rules.shapes) == 1 else _draw_pairs
    for _ in range(TRIES):
        looks = draw(generator, n_objects, rules, n_named)
        named = [
            rules.may_be_named(look, first=row == 0) for row, look in enumerate(looks[:n_named])
        ]
        if looks and all(named):
            return looks
    raise UserError(
        f"the shapes {', '.join(rules.shapes)} make no scene of {n_objects} objects with pairs "
        f"{rules.pairs} and distractors {rules.distractors}: give more shapes"
    )


def _draw_colours(
    generator: np.random.Generator, n_objects: int, rules: LookRules, n_named: int
) -> list[Look]:
    """Looks of a single shape, which differ as long as there are colours."""
    (shape,) = rules.shapes
    permuted = generator.permutation(list(COLOURS)).tolist()
    colours = [colour for colour in permuted if rules.may_occur((colour, shape))]
    others = colours[n_named:]
    repeats = generator.choice(others, size=max(0, n_objects - len(colours))).tolist()
    drawn = [*colours[:n_named], *others[: n_objects - n_named], *repeats]
    return [(colour, shape) for colour in drawn]


def _draw_pairs(
    generator: np.random.Generator, n_objects: int, rules: LookRules, n_named: int
) -> list[Look]:
    """Looks of several shapes; none if what has been drawn leaves nothing for the others."""
    palette = generator.permutation(list(COLOURS)).tolist()
    hard = rules.distractors == "mixed" and generator.random() < HARD
    if hard:
        palette = palette[: int(generator.integers(2, 4))]
    looks = [(palette[0], rules.shapes[int(generator.integers(len(rules.shapes)))])]
    for how in _draw_likeness(generator, n_objects - 1, rules.distractors, hard):
        named = looks[:n_named]
        models = named if rules.distractors == "mixed" else named[:1]
        fitting = [
            look
            for look in product(palette, rules.shapes)
            if look not in named
            and rules.may_occur(look)
            and any(_is_like(look, model, how) for model in models)
        ]
        if not fitting:
            return []
        looks.append(fitting[int(generator.integers(len(fitting)))])
    return looks


def _draw_likeness(
    generator: np.random.Generator, n_others: int, distractors: str, hard: bool
) -> list[str]:
    """What each object but the first shares with what is named."""
    if distractors == "mixed":
        return ["either" if hard else "anything"] * n_others
    if distractors == "both":
        kinds = generator.permutation(["colour", "shape"]).tolist()
        return [*kinds, *["either"] * n_others][:n_others]
    return [distractors] * n_others


def _is_like(look: Look, model: Look, how: str) -> bool:
    colour, shape = look[0] == model[0], look[1] == model[1]
    return {
        "anything": True,
        "either": colour or shape,
        "colour": colour and not shape,
        "shape": shape and not colour,
    }[how]
