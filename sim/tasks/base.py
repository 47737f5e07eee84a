"""What a task is: its sentences, the scenes it needs, and a verdict on the physical state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from fetchlab.errors import UserError, unknown
from fetchlab.sim.arrangement import Wanted, draw_scene
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.language import (
    LANGUAGES,
    Reference,
    Request,
    Templates,
    every_reference,
    language_of,
    minimal,
    no_kind,
    normalized,
    phrasebook,
    read,
    the_one,
)
from fetchlab.sim.looks import HELD_OUT_PAIRS, LookRules
from fetchlab.sim.scene import COLOURS, DIRECTIONS, Goal, Scene, is_reached


@dataclass(frozen=True, kw_only=True)
class TableState:
    """The physical state a verdict is made on."""

    positions: NDArray[np.float64]  # (n, 3) origins of the scene's objects [m]
    tool: NDArray[np.float64]  # (3,) point between the fingertips [m]
    opening: float  # of the gripper [m]
    holds: Callable[[int], bool]  # whether both fingers touch object i


class Judge(Protocol):
    """Watches one episode, one control step after another."""

    success: bool
    failed: bool  # something happened that cannot be made good

    def watch(self, state: TableState) -> None: ...

    def failure_reason(self) -> str:
        """Why the episode failed, asked when it has ended without success."""
        ...


class Task(ABC):
    """A task knows language and success, and nothing about policies."""

    name: ClassVar[str]
    description: ClassVar[str]
    time_limit: ClassVar[float]  # s
    templates: ClassVar[Mapping[str, Templates]]  # by language
    has_box: ClassVar[bool] = False
    """whether an open box stands on the table"""
    has_other: ClassVar[bool] = False
    """whether sentences name a second object, and a side of it"""
    fades: ClassVar[bool] = False
    """whether all objects turn grey before the first observation, after one frame with colours"""

    @abstractmethod
    def judge(self, scene: Scene, start: TableState) -> Judge:
        """Who decides about an episode that begins like this."""

    @property
    def parts(self) -> tuple[Task, ...]:
        """The tasks that it is made of."""
        return (self,)

    def part(self, name: str) -> Task:
        """The one of this name. Raises UserError if there is none."""
        parts = {part.name: part for part in self.parts}
        if name not in parts:
            raise unknown(f"part of task {self.name}", name, parts)
        return parts[name]

    # Scenes -------------------------------------------------------------------------------

    def scene(
        self,
        generator: np.random.Generator,
        config: EnvConfig,
        n_objects: int,
        part: str | None = None,
    ) -> Scene:
        """A scene of one of its parts, or of the one that is named."""
        drawn = self.parts[int(generator.integers(len(self.parts)))]
        chosen = drawn if part is None else self.part(part)
        wanted = Wanted(
            task=chosen.name,
            looks=LookRules(
                shapes=config.shapes, pairs=config.pairs, distractors=config.distractors
            ),
            crowding=config.crowding,
            with_box=chosen.has_box,
            with_other=chosen.has_other,
        )
        return draw_scene(generator, n_objects, wanted)

    # Sentences ----------------------------------------------------------------------------

    def say(self, scene: Scene, generator: np.random.Generator, config: EnvConfig) -> str:
        """A sentence that asks for the scene's goal, and for nothing else in this scene."""
        goal = scene.goal
        language = _one_of(generator, config.languages)
        template = _one_of(generator, self.part(goal.task).templates[language].of(config.phrasings))
        rows = [row for row in (goal.target, goal.other) if row is not None]
        references = [minimal(scene.objects, row, generator) for row in rows]
        return fill(template, language, references, goal.relation)

    def request(self, sentence: str) -> Request:
        """What the sentence asks for. Raises UserError if it is none of this task's."""
        return _request(self, sentence)

    def goal(self, sentence: str, scene: Scene) -> Goal:
        """What the sentence asks for in this scene.

        Raises UserError unless it names exactly one object, or exactly one and another.
        """
        request = self.request(sentence)
        target = the_one(request.target, request.language, scene.objects)
        other = None
        if request.other is not None:
            other = the_one(request.other, request.language, scene.objects)
        if target == other:
            raise UserError(f"{sentence!r} names the same object twice")
        goal = Goal(task=request.task, target=target, other=other, relation=request.relation)
        if is_reached(scene.objects, goal):
            raise UserError(f"{sentence!r} is so in this scene already")
        return goal

    def sentences(self, config: EnvConfig) -> tuple[str, ...]:
        """Examples of what it can say in this world; together they hold every word."""
        return tuple(
            sentence
            for language in config.languages
            for sentence in _telling(self._examples(language, config), language)
        )

    def _examples(self, language: str, config: EnvConfig) -> Iterator[str]:
        """Sentences in which each reference, template and side occurs."""
        references = every_reference(tuple(COLOURS), config.shapes)
        templates = [
            template
            for part in self.parts
            # The held-out sentences say the words of the training ones.
            for template in part.templates[language].of(
                "plain" if config.phrasings == "plain" else "training"
            )
        ]
        for i in range(max(len(references), len(templates) * len(DIRECTIONS))):
            pair = [references[(i + shift) % len(references)] for shift in (0, 1)]
            relation = list(DIRECTIONS)[i // len(templates) % len(DIRECTIONS)]
            yield fill(templates[i % len(templates)], language, pair, relation)

    def phrases(self, config: EnvConfig) -> tuple[str, ...]:
        """All ways to name an object of this world; policies are taught where each of them is.

        Where held-out pairs are kept from being named, none is the full name of one.
        """
        secret = HELD_OUT_PAIRS if config.pairs in ("seen", "unnamed") else frozenset()
        return tuple(
            LANGUAGES[language].say(reference)
            for language in config.languages
            for reference in every_reference(tuple(COLOURS), config.shapes)
            if (reference.colour, reference.shape) not in secret
        )

    def every_form(self) -> Iterator[str]:
        """Sentences as long as can be, and phrases, that hold every letter of every language."""
        for part, language in product(self.parts, LANGUAGES):
            yield from phrasebook(language)
            longest = phrasebook(language)[max(phrasebook(language), key=len)]
            templates = part.templates[language]
            for template in (*templates.training, *templates.held_out):
                for relation in DIRECTIONS:
                    yield fill(template, language, (longest, longest), relation)

    def examples(self, language: str) -> list[str]:
        """A plain sentence of each part."""
        references = Reference(colour="red", shape="block"), Reference(colour="blue", shape="block")
        plain = [part.templates[language].training[0] for part in self.parts]
        return [fill(template, language, references, "left") for template in plain]


def fill(
    template: str, language: str, references: Sequence[Reference], relation: str | None
) -> str:
    """The sentence that the template makes of one or two objects, and the side if it names one."""
    said = LANGUAGES[language]
    a, b = said.say(references[0]), said.say(references[-1])
    return template.format(a=a, b=b, side=said.relations[relation] if relation else "")


def _one_of(generator: np.random.Generator, options: Sequence[str]) -> str:
    return options[int(generator.integers(len(options)))]  # of one option, nothing is drawn


def _telling(sentences: Iterable[str], language: str) -> Iterator[str]:
    """Those of the sentences that hold a word which none before them does."""
    known: set[str] = set()
    for sentence in sentences:
        words = set(LANGUAGES[language].words(sentence))
        if not words <= known:
            known |= words
            yield sentence


@lru_cache(maxsize=4096)
def _request(task: Task, sentence: str) -> Request:
    plain = normalized(sentence)
    request = _found(task, plain)
    if request is None:
        raise _refusal(task, sentence, plain)
    return request


def _refusal(task: Task, sentence: str, plain: str) -> UserError:
    """What is wrong with a sentence that asks for nothing, and what could be said instead."""
    from fetchlab.sim.tasks.registry import TASKS

    others = [name for name, other in TASKS.items() if _found(other, plain)]
    if others:
        return UserError(
            f"{sentence!r} is no sentence of task {task.name}: give --task {' or '.join(others)}"
        )
    unknown_phrases = [
        (words[gap], language)
        for _, language, words in _readings(task, plain)
        for gap in ("a", "b")
        if gap in words and words[gap] not in phrasebook(language)
    ]
    if unknown_phrases:  # the shortest: "take the {a}" fits what goes on after the object, too
        phrase, language = min(unknown_phrases, key=lambda one: len(one[0]))
        return no_kind(phrase, language)
    examples = " or ".join(map(repr, task.examples(language_of(plain))))
    return UserError(
        f"{sentence!r} is no sentence that task {task.name} knows: say it as in {examples}"
    )


def _found(task: Task, plain: str) -> Request | None:
    requests = (_understood(*reading) for reading in _readings(task, plain))
    return next((request for request in requests if request is not None), None)


def _readings(task: Task, plain: str) -> Iterator[tuple[str, str, dict[str, str]]]:
    """For each template that fits: its task, its language, and the words in its gaps."""
    for part, language in product(task.parts, LANGUAGES):
        templates = part.templates[language]
        for template in (*templates.training, *templates.held_out):
            words = read(plain, template, language)
            if words is not None:
                yield part.name, language, words


def _understood(task: str, language: str, words: Mapping[str, str]) -> Request | None:
    """The request that these words in the gaps of a template make; None if one is unknown."""
    known, relations = phrasebook(language), LANGUAGES[language].relations
    references = {gap: known.get(words[gap]) for gap in ("a", "b") if gap in words}
    target, other = references["a"], references.get("b")
    if target is None or (other is None and "b" in words):
        return None
    relation = next((name for name, said in relations.items() if said == words.get("side")), None)
    return Request(task=task, language=language, target=target, other=other, relation=relation)
