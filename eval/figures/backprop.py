"""The learned lookup without a framework: forward, backward and Adam by hand, in numpy."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Parameters(NamedTuple):
    """Numbers of the lookup, or its gradient; d = 8 and v = 2 numbers a head."""

    query: Array  # (H, 12, d)
    key: Array  # (H, 8, d)
    value: Array  # (H, 8, v)
    output: Array  # (H, v, 2)
    bias: Array  # (1, 2)


class Asked(NamedTuple):
    """Scenes with a question, and the right answers."""

    objects: Array  # (B, M, 8)
    present: NDArray[np.bool_]  # (B, M)
    instruction: Array  # (B, 12)
    answer: Array  # (B, 2)


class Pass(NamedTuple):
    """What the way forward leaves for the way back."""

    query: Array  # (H, B, d)
    key: Array  # (H, B, M, d)
    value: Array  # (H, B, M, v)
    weights: Array  # (H, B, M)
    mixed: Array  # (H, B, v)
    answer: Array  # (B, 2)


def forward(parameters: Parameters, asked: Asked) -> Pass:
    """softmax(q · k / √d), the mean of the values under it, and the output layer."""
    query = asked.instruction @ parameters.query  # (H, B, d)
    key = asked.objects @ parameters.key[:, None]  # (H, B, M, d)
    value = asked.objects @ parameters.value[:, None]  # (H, B, M, v)
    scores = (key @ query[..., None])[..., 0] / math.sqrt(query.shape[-1])  # (H, B, M)
    weights = softmax(np.where(asked.present, scores, -np.inf))
    mixed = (weights[..., None, :] @ value)[..., 0, :]  # (H, B, v)
    answer = (mixed @ parameters.output).sum(0) + parameters.bias  # (B, 2)
    return Pass(query, key, value, weights, mixed, answer)


def softmax(scores: Array) -> Array:
    """Shares that add up to 1 along the last axis; the largest score is taken off first."""
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares: Array = powers / powers.sum(axis=-1, keepdims=True)
    return shares


def loss(made: Pass, asked: Asked) -> float:
    """Mean squared distance from the right answers."""
    return float(((made.answer - asked.answer) ** 2).sum(-1).mean())


def backward(parameters: Parameters, asked: Asked, made: Pass) -> Parameters:
    """The gradient of the loss, layer by layer from the answer to the instruction."""
    n_scenes, d_key = len(asked.answer), made.query.shape[-1]
    wrong = 2 * (made.answer - asked.answer) / n_scenes  # (B, 2)
    to_mixed = wrong @ parameters.output.transpose(0, 2, 1)  # (H, B, v)
    to_value = made.weights[..., None] * to_mixed[..., None, :]  # (H, B, M, v)
    to_scores = score_gradient(made.weights, made.value, to_mixed) / math.sqrt(d_key)
    to_query = (to_scores[..., None, :] @ made.key)[..., 0, :]  # (H, B, d)
    to_key = to_scores[..., None] * made.query[..., None, :]  # (H, B, M, d)
    return Parameters(
        query=asked.instruction.T @ to_query,
        key=np.einsum("bmi,hbmd->hid", asked.objects, to_key),
        value=np.einsum("bmi,hbmv->hiv", asked.objects, to_value),
        output=made.mixed.transpose(0, 2, 1) @ wrong,
        bias=wrong.sum(0, keepdims=True),
    )


def score_gradient(weights: Array, value: Array, to_mixed: Array) -> Array:
    """Through mean and softmax: weight_i · g · (value_i - mean), (..., M).

    A score gains by as much as its value lies further along g than what was read.
    """
    mixed = weights[..., None, :] @ value  # (..., 1, v)
    gains = ((value - mixed) @ to_mixed[..., None])[..., 0]  # (..., M)
    return weights * gains


class Adam:
    """Running means of gradient and squared gradient, freed of their start at zero."""

    def __init__(
        self,
        parameters: Parameters,
        learning_rate: float,
        betas: tuple[float, float] = (0.9, 0.999),
        epsilon: float = 1e-8,
    ) -> None:
        self._learning_rate, self._betas, self._epsilon = learning_rate, betas, epsilon
        self._means = [np.zeros_like(p) for p in parameters]
        self._squares = [np.zeros_like(p) for p in parameters]
        self._n_steps = 0

    def step(self, parameters: Parameters, gradient: Parameters) -> Parameters:
        """The parameters after one step."""
        self._n_steps += 1
        slow, slower = self._betas
        moved = []
        for i, (p, g) in enumerate(zip(parameters, gradient, strict=True)):
            self._means[i] = slow * self._means[i] + (1 - slow) * g
            self._squares[i] = slower * self._squares[i] + (1 - slower) * g**2
            mean = self._means[i] / (1 - slow**self._n_steps)
            square = self._squares[i] / (1 - slower**self._n_steps)
            moved.append(p - self._learning_rate * mean / (np.sqrt(square) + self._epsilon))
        return Parameters(*moved)


def losses_of_training(
    parameters: Parameters, batches: Iterable[Asked], learning_rate: float
) -> list[float]:
    """The loss before each step."""
    adam, found = Adam(parameters, learning_rate), []
    for asked in batches:
        made = forward(parameters, asked)
        found.append(loss(made, asked))
        parameters = adam.step(parameters, backward(parameters, asked, made))
    return found


class GradientErrors(NamedTuple):
    """How far a gradient lies from central differences."""

    plain: float
    """largest |a - f| / max(|a|, |f|)"""
    floored: float
    """the same, with at least a thousandth of the largest entry below the line"""
    l2: float
    """|a - f| / max(|a|, |f|) of the whole vectors"""


def gradient_check(parameters: Parameters, asked: Asked, h: float) -> GradientErrors:
    """Every parameter is moved by ±h, one after another, and the loss is seen to follow."""
    by_hand = flat(backward(parameters, asked, forward(parameters, asked)))
    measured = central_differences(parameters, asked, h)
    apart = np.abs(by_hand - measured)
    size = np.maximum(np.abs(by_hand), np.abs(measured))
    floor = 1e-3 * np.abs(by_hand).max()
    norms = np.linalg.norm(by_hand), np.linalg.norm(measured)
    return GradientErrors(
        # What the loss does not depend on has 0 both ways, which agrees.
        plain=float(np.divide(apart, size, out=np.zeros_like(apart), where=size > 0).max()),
        floored=float((apart / np.maximum(size, floor)).max()),
        l2=float(np.linalg.norm(by_hand - measured) / max(norms)),
    )


def central_differences(parameters: Parameters, asked: Asked, h: float) -> Array:
    """(loss(p + h) - loss(p - h)) / 2h for every single parameter, flat."""
    point = flat(parameters)
    found = np.empty_like(point)
    for i in range(len(point)):
        sides = []
        for moved_by in (h, -h):
            moved = point.copy()
            moved[i] += moved_by
            sides.append(loss(forward(unflat(moved, parameters), asked), asked))
        found[i] = (sides[0] - sides[1]) / (2 * h)
    return found


def flat(parameters: Parameters) -> Array:
    """All numbers in one row."""
    return np.concatenate([p.ravel() for p in parameters])


def unflat(numbers: Array, like: Parameters) -> Parameters:
    """The row of numbers in the shapes of `like`."""
    ends = np.cumsum([p.size for p in like])[:-1]
    parts: list[Any] = np.split(numbers, ends)
    return Parameters(*(part.reshape(p.shape) for part, p in zip(parts, like, strict=True)))
