"""A small network (64 - 32 - 10, tanh, softmax) whose parameters are one flat vector.

Sums of loss and gradient, never means: sums over parts of a batch add up to those of the batch.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from gateway.examples.digits.data import CLASSES, PIXELS, Digits, Floats

HIDDEN: Final = 32
SIZES: Final = ((PIXELS, HIDDEN), (HIDDEN,), (HIDDEN, CLASSES), (CLASSES,))
COUNT: Final = sum(int(np.prod(size)) for size in SIZES)
START_SEED: Final = 11


@dataclass(frozen=True, slots=True)
class Layers:
    """Views into one flat vector of COUNT parameters."""

    first: Floats
    first_bias: Floats
    second: Floats
    second_bias: Floats


def start() -> Floats:
    """Give the first parameters, equal on every rank."""
    random = np.random.default_rng(START_SEED)
    parts = [
        random.normal(0.0, size[0] ** -0.5, size) if len(size) > 1 else np.zeros(size)
        for size in SIZES
    ]
    return np.concatenate([part.ravel() for part in parts])


def layers(parameters: Floats) -> Layers:
    """Look at a flat vector as layers."""
    parts = []
    position = 0
    for size in SIZES:
        count = int(np.prod(size))
        parts.append(parameters[position : position + count].reshape(size))
        position += count
    return Layers(*parts)


def loss_and_gradient(parameters: Floats, digits: Digits) -> tuple[float, Floats]:
    """Give the summed cross-entropy and its gradient (COUNT,)."""
    shape = layers(parameters)
    hidden, chances = _forward(shape, digits.images)
    rows = np.arange(len(digits))
    # The smallest chance is not 0 in theory but in floats; log(0) would end the training in NaN.
    loss = -np.log(chances[rows, digits.labels] + 1e-12).sum()
    # Softmax and cross-entropy together have the gradient (chance - truth).
    error = chances.copy()
    error[rows, digits.labels] -= 1.0
    back = (error @ shape.second.T) * (1.0 - hidden**2)
    gradient = (digits.images.T @ back, back.sum(0), hidden.T @ error, error.sum(0))
    return float(loss), np.concatenate([part.ravel() for part in gradient])


def correct(parameters: Floats, digits: Digits) -> int:
    """Count the digits that are read right."""
    _, chances = _forward(layers(parameters), digits.images)
    return int((chances.argmax(1) == digits.labels).sum())


def _forward(shape: Layers, images: Floats) -> tuple[Floats, Floats]:
    hidden = np.tanh(images @ shape.first + shape.first_bias)
    scores = hidden @ shape.second + shape.second_bias
    # Less the greatest score: the quotient is the same, and exp cannot overflow.
    raised = np.exp(scores - scores.max(1, keepdims=True))
    return hidden, raised / raised.sum(1, keepdims=True)
