"""How sentences speak of objects: the words for colours, shapes and sides, and what they ask for.

A reference names its object with as few words as tell it apart from the others of the scene.
English and Chinese share no word; what a sentence asks for is the same in both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from fetchlab.errors import UserError
from fetchlab.sim.scene import COLOURS, SceneObject
from fetchlab.sim.shapes import SHAPES


@dataclass(frozen=True, kw_only=True)
class Reference:
    """Colour and shape by which an object is named; at least one of them."""

    colour: str | None = None
    shape: str | None = None

    def matches(self, thing: SceneObject) -> bool:
        return self.colour in (None, thing.colour) and self.shape in (None, thing.shape)

    def rows(self, objects: Sequence[SceneObject]) -> list[int]:
        """The objects that it could mean."""
        return [row for row, thing in enumerate(objects) if self.matches(thing)]


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a sentence asks for, whatever the scene."""

    task: str
    language: str
    target: Reference
    """the object to act on"""
    other: Reference | None = None
    """the object that it is put beside"""
    relation: str | None = None
    """on which side of it: a name of scene.DIRECTIONS"""


@dataclass(frozen=True, kw_only=True)
class Language:
    """The words of one language."""

    colours: Mapping[str, str]
    shapes: Mapping[str, str]
    thing: str
    """a noun for any shape"""
    relations: Mapping[str, str]
    gap: str
    """what stands between two words"""

    def say(self, reference: Reference) -> str:
        """Such as "red mug", "mug", or "red object" where the shape is left open."""
        colour = [self.colours[reference.colour]] if reference.colour else []
        noun = self.shapes[reference.shape] if reference.shape else self.thing
        return self.gap.join([*colour, noun])

    def words(self, text: str) -> list[str]:
        """What a vocabulary holds: words, or characters where no gaps divide them."""
        return text.split() if self.gap else list(text)


LANGUAGES: dict[str, Language] = {
    "english": Language(
        colours={colour: colour for colour in COLOURS},
        shapes={shape: shape for shape in SHAPES},
        thing="object",
        relations={
            "left": "left of",
            "right": "right of",
            "front": "in front of",
            "behind": "behind",
        },
        gap=" ",
    ),
    "chinese": Language(
        colours={
            "red": "红色",
            "green": "绿色",
            "blue": "蓝色",
            "yellow": "黄色",
            "purple": "紫色",
            "orange": "橙色",
        },
        shapes={
            "block": "方块",
            "brick": "砖块",
            "cylinder": "圆柱",
            "ball": "球",
            "mug": "杯子",
        },
        thing="物体",
        relations={"left": "左边", "right": "右边", "front": "前面", "behind": "后面"},
        gap="",
    ),
}
HAN = "[\u4e00-\u9fff]"  # a Chinese character
PHRASINGS = ("plain", "training", "held_out")


@dataclass(frozen=True, kw_only=True)
class Templates:
    """Sentences with gaps: {a} the object to act on, {b} the other one, {side} where to put it."""

    training: tuple[str, ...]
    """the first is the plain one"""
    held_out: tuple[str, ...]
    """for tests: the words of the training sentences, put together in another way"""

    def of(self, phrasings: str) -> tuple[str, ...]:
        """Those of a kind that PHRASINGS names."""
        kinds = {"plain": self.training[:1], "training": self.training, "held_out": self.held_out}
        return kinds[phrasings]


def normalized(sentence: str) -> str:
    """The sentence without capitals, final full stop and needless blanks.

    Raises UserError if it mixes languages.
    """
    plain = " ".join(sentence.lower().split()).strip(" .!。")
    if re.search(HAN, plain) and re.search("[a-z]", plain):
        raise UserError(f"{sentence!r} mixes English and Chinese: say it in one language")
    return plain


def every_reference(colours: Sequence[str], shapes: Sequence[str]) -> list[Reference]:
    """All ways to refer to objects of these kinds: by colour and shape, then by one of them.

    Where there is one shape only, it is but the noun beside the colour.
    """
    both = [Reference(colour=colour, shape=shape) for shape in shapes for colour in colours]
    if len(shapes) == 1:
        return both
    by_colour = [Reference(colour=colour) for colour in colours]
    return [*both, *by_colour, *(Reference(shape=shape) for shape in shapes)]


@cache
def phrasebook(language: str) -> Mapping[str, Reference]:
    """What each phrase of the language refers to."""
    say = LANGUAGES[language].say
    return {say(one): one for one in every_reference(tuple(COLOURS), tuple(SHAPES))}


def read_phrase(phrase: str) -> Reference:
    """What a phrase of any language refers to. Raises UserError if it names no kind of object."""
    plain = normalized(phrase)
    for language in LANGUAGES:
        if plain in phrasebook(language):
            return phrasebook(language)[plain]
    raise no_kind(plain, language_of(plain))


def language_of(sentence: str) -> str:
    """The language that its letters are of."""
    return "chinese" if re.search(HAN, sentence) else "english"


def no_kind(phrase: str, language: str) -> UserError:
    """The error for a phrase that names no kind of object; it tells the words that do."""
    said = LANGUAGES[language]
    colour, shape = next(iter(COLOURS)), next(iter(SHAPES))
    kinds = Reference(colour=colour, shape=shape), Reference(colour=colour), Reference(shape=shape)
    return UserError(
        f"{phrase!r} names no kind of object: known are the colours "
        f"{', '.join(said.colours.values())} and the shapes {', '.join(said.shapes.values())}, "
        f"as in {', '.join(repr(said.say(kind)) for kind in kinds)}"
    )


def read(sentence: str, template: str, language: str) -> dict[str, str] | None:
    """The words in the template's gaps, by their names; None if the sentence does not fit it."""
    relations = LANGUAGES[language].relations.values()
    gaps = {"a": "(?P<a>.+)", "b": "(?P<b>.+)", "side": f"(?P<side>{'|'.join(relations)})"}
    found = re.fullmatch(template.format(**gaps), sentence)
    return found.groupdict() if found else None


def minimal(objects: Sequence[SceneObject], row: int, generator: np.random.Generator) -> Reference:
    """The reference to this object with the fewest words; if two are as short, either is drawn.

    Raises ValueError if colour and shape together do not tell the object apart.
    """
    thing = objects[row]
    full = Reference(colour=thing.colour, shape=thing.shape)
    if full.rows(objects) != [row]:
        raise ValueError(f"{thing.colour} {thing.shape} is not the only one of its kind")
    if len({other.shape for other in objects}) == 1:
        return full  # the shape is but the noun
    short = [
        reference
        for reference in (Reference(colour=thing.colour), Reference(shape=thing.shape))
        if reference.rows(objects) == [row]
    ]
    return short[int(generator.integers(len(short)))] if short else full


def the_one(reference: Reference, language: str, objects: Sequence[SceneObject]) -> int:
    """Row of the object that is meant. Raises UserError unless it is exactly one."""
    say = LANGUAGES[language].say
    rows = reference.rows(objects)
    if len(rows) == 1:
        return rows[0]
    if not rows:
        present = dict.fromkeys(say(_kind(thing)) for thing in objects)
        raise UserError(
            f"{say(reference)!r} names no object of this scene: there are {', '.join(present)}"
        )
    kinds = [_kind(objects[row]) for row in rows]
    single = [repr(say(kind)) for kind in kinds if len(kind.rows(objects)) == 1]
    number = "two" if len(rows) == 2 else len(rows)
    hint = f": say {' or '.join(single[:2])}" if single else ""
    named = ", ".join(map(say, kinds))
    raise UserError(f"{say(reference)!r} names {number} objects of this scene: {named}{hint}")


def _kind(thing: SceneObject) -> Reference:
    return Reference(colour=thing.colour, shape=thing.shape)
