"""Policies that are told or shown less than there is; success is judged as if nothing were amiss.

What is drawn follows from the scene, so that an episode is the same whoever plays it, and when.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fetchlab.eval.swap import another_sentence
from fetchlab.policy.base import Array, Policy
from fetchlab.policy.blind import scene_generator, things
from fetchlab.sim.language import LANGUAGES, the_one
from fetchlab.sim.observation import Observation, ObservationBatch
from fetchlab.sim.scene import Goal, Scene
from fetchlab.sim.tasks.registry import TASKS

if TYPE_CHECKING:  # torch takes a second to import, and listing suites does without
    from torch import Tensor, nn

Tell = Callable[[str, Observation], str]
"""what is said instead of the observation's sentence, in a world of this task"""


@dataclass(frozen=True, kw_only=True)
class Ablation:
    """Something that is kept from a policy."""

    wrap: Callable[[Policy], Policy]
    refusal: Callable[[Policy], str]
    """why it cannot be kept from this policy; empty if it can"""


class Deprived:
    """A policy behind a wrapper that changes what it observes."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.name, self.env_config = policy.name, policy.env_config
        self.max_objects = policy.max_objects

    def reset(self, slots: Sequence[int] | None = None) -> None:
        self.policy.reset(slots)

    def act(self, observation: Observation) -> Array:
        action: Array = self.act_batch(ObservationBatch.stack([observation]), [0])[0]
        return action

    def act_batch(self, observations: ObservationBatch, slots: Sequence[int]) -> Array:
        return self.policy.act_batch(self.changed(observations, slots), slots)

    def changed(self, observations: ObservationBatch, slots: Sequence[int]) -> ObservationBatch:
        """What the policy observes instead."""
        return observations


class Misinformed(Deprived):
    """Hears another sentence, the same from the first to the last step of an episode."""

    def __init__(self, policy: Policy, tell: Tell) -> None:
        super().__init__(policy)
        self._tell = tell
        self._told: dict[int, str] = {}  # by slot

    def reset(self, slots: Sequence[int] | None = None) -> None:
        super().reset(slots)
        for slot in list(self._told) if slots is None else slots:
            self._told.pop(slot, None)

    def changed(self, observations: ObservationBatch, slots: Sequence[int]) -> ObservationBatch:
        for row, slot in enumerate(slots):
            if slot not in self._told:
                self._told[slot] = self._tell(self.env_config.task, observations[row])
        return replace(observations, instructions=tuple(self._told[slot] for slot in slots))


class Blindfolded(Deprived):
    """Sees black."""

    def changed(self, observations: ObservationBatch, slots: Sequence[int]) -> ObservationBatch:
        return replace(observations, images=np.zeros_like(observations.images))


class Numbed(Deprived):
    """Feels its arm where it was on average in training.

    Relative actions still count from where the arm is: that is the controller's to know.
    """

    def act_batch(self, observations: ObservationBatch, slots: Sequence[int]) -> Array:
        with ExitStack() as hooks:
            for module in _normalizers(self.policy):
                hooks.callback(module.register_forward_hook(_mean_readings).remove)
            return self.policy.act_batch(observations, slots)


def _mean_readings(module: nn.Module, inputs: Any, output: Tensor) -> Tensor:
    return output.new_zeros(output.shape)  # normalized by mean and spread, so the mean is 0


# What is said instead ---------------------------------------------------------------------


def no_words(task: str, observation: Observation) -> str:
    """A sentence without a word."""
    from fetchlab.tokenizers.instruction import NO_WORDS

    return NO_WORDS


def swapped(task: str, observation: Observation) -> str:
    """The sentence with another object of the scene in place of the one to act on."""
    said = observation.instruction
    request = TASKS[task].request(said)
    objects = tuple(things(observation, request))
    named = [
        the_one(reference, request.language, objects)
        for reference in (request.target, request.other)
        if reference is not None
    ]
    other = named[1] if request.other else None
    goal = Goal(task=request.task, target=named[0], other=other, relation=request.relation)
    choice = int(scene_generator(observation).integers(1 << 30))
    scene = Scene(objects=objects, goal=goal)
    return another_sentence(task, scene, said, choice, even_doubles=True)


def shuffled(task: str, observation: Observation) -> str:
    """The words of the sentence, or its Chinese characters, in an order that is drawn."""
    from fetchlab.tokenizers.instruction import split

    words = split(observation.instruction)
    language = TASKS[task].request(observation.instruction).language
    order = scene_generator(observation).permutation(len(words))
    return LANGUAGES[language].gap.join(words[i] for i in order)


# Which policies it can be kept from -------------------------------------------------------


def _always(policy: Policy) -> str:
    return ""


def _without_free_words(policy: Policy) -> str:
    from fetchlab.tokenizers.instruction import InstructionTokenizer

    reads = any(isinstance(module, InstructionTokenizer) for module in _modules(policy))
    return "" if reads else "reads whole sentences"


def _without_images(policy: Policy) -> str:
    return "" if policy.env_config.cameras else "sees no images"


def _without_readings(policy: Policy) -> str:
    return "" if any(_normalizers(policy)) else "is not trained on readings"


def _normalizers(policy: Policy) -> Iterator[nn.Module]:
    """Where the policy takes in the readings of its arm."""
    from fetchlab.tokenizers.proprio import ProprioceptionNormalizer

    return (module for module in _modules(policy) if isinstance(module, ProprioceptionNormalizer))


def _modules(policy: Policy) -> Iterator[nn.Module]:
    """The parts of a network; a scripted policy has none."""
    modules: Callable[[], Iterator[nn.Module]] = getattr(policy, "modules", lambda: iter(()))
    return modules()


def _misinforming(tell: Tell) -> Callable[[Policy], Policy]:
    return lambda policy: Misinformed(policy, tell)


ABLATIONS: Mapping[str, Ablation] = {
    "instruction_removed": Ablation(wrap=_misinforming(no_words), refusal=_without_free_words),
    "instruction_swapped": Ablation(wrap=_misinforming(swapped), refusal=_always),
    "instruction_shuffled": Ablation(wrap=_misinforming(shuffled), refusal=_without_free_words),
    "images_removed": Ablation(wrap=Blindfolded, refusal=_without_images),
    "proprioception_removed": Ablation(wrap=Numbed, refusal=_without_readings),
}
