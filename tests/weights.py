"""Weights of small judges: what the rules, the search and the environment do must not depend on how good a judge is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from debate_rl.judges.kernels import JudgeWeights

Draw = Callable[[tuple[int, ...]], NDArray[np.floating | np.integer]]


def weights_of(draw: Draw, hidden: int = 16, second: int = 8) -> JudgeWeights:
    """Weights with layers of `hidden` and `second` units; `draw` gives an array of each shape asked for."""
    shapes = ((784, hidden), (784, hidden), (hidden,), (hidden, second), (second,), (second, 10), (10,))
    return JudgeWeights(*(draw(shape).astype(np.float32) for shape in shapes))


def random_weights(seed: int, hidden: int = 16, second: int = 8) -> JudgeWeights:
    """Normally distributed weights."""
    rng = np.random.default_rng(seed)
    return weights_of(lambda shape: rng.normal(scale=0.5, size=shape), hidden, second)
