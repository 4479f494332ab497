"""How fast leaves are judged when nothing else is done, and how fast a plain matrix product would be."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from debate_rl.evaluation.speed.games import on_threads
from debate_rl.games.pixels import CLASSES, PIXELS_PER_IMAGE
from debate_rl.judges.kernels import JudgeWeights, image_columns, leaf_weights, second_layer
from debate_rl.search.leaf import honest_lead, relu_sum
from debate_rl.search.rollout import GROUP

PRODUCT: Final = "matrix product"
SECOND_LAYER: Final = "second layer"
WHOLE_LEAF: Final = "whole leaf"

PRODUCT_ROWS: Final = (64, 512, 4096)  # the best of these counts: a matrix product should not lose to its own size
SCALE: Final = 8  # of random weights: small, so that logits stay small
SETS: Final = 1024  # different sets of pixels that whole leaves are made of


@dataclass(frozen=True)
class LeafRate:
    """Leaves per second of one core.

    Attributes:
        of: PRODUCT, SECOND_LAYER or WHOLE_LEAF.
        per_second: from the best of the repeats.
        rows: leaves in one pass.
        layer: widths of the judge's hidden layers.
    """

    of: str
    per_second: float
    rows: int
    layer: tuple[int, int]

    @property
    def gflops(self) -> float:
        """Floating-point operations of the second layer, in 1e9 per second."""
        return 2e-9 * self.per_second * self.layer[0] * self.layer[1]


def leaf_rates(weights: JudgeWeights, image: NDArray[np.uint8], pixels: int, seconds: float) -> tuple[LeafRate, LeafRate, LeafRate]:
    """A leaf as a bare matrix product, as the search's second layer, and whole, each measured for `seconds` on one core."""
    with on_threads(1):
        return matrix_product(weights, seconds), second_layers(weights, seconds), whole_leaves(weights, image, pixels, seconds)


def matrix_product(weights: JudgeWeights, seconds: float) -> LeafRate:
    """Leaves per second if a leaf were nothing but the judge's second layer: `(rows, H1) @ (H1, H2)` in float32, by the BLAS of numpy."""
    width, second = weights.w2.shape
    matrix = np.ascontiguousarray(weights.w2)
    rates = []
    for rows in PRODUCT_ROWS:
        hidden = np.random.default_rng(0).random((rows, width), dtype=np.float32)
        out = np.empty((rows, second), np.float32)
        calls = _calls_per_second(partial(np.matmul, hidden, matrix, out=out), seconds / len(PRODUCT_ROWS))
        rates.append(LeafRate(PRODUCT, rows * calls, rows, (width, second)))
    return max(rates, key=lambda rate: rate.per_second)


def second_layers(weights: JudgeWeights, seconds: float) -> LeafRate:
    """Leaves per second through the search's own second layer, in passes as the search makes them."""
    leaf = leaf_weights(weights)
    width, second = weights.w2.shape
    hidden = np.random.default_rng(0).random((GROUP, width), dtype=np.float32)
    out = np.empty((GROUP, second), np.float32)
    passes = 200
    calls = _calls_per_second(lambda: _repeat_second_layer(hidden, leaf, out, passes), seconds)
    return LeafRate(SECOND_LAYER, GROUP * passes * calls, GROUP, (width, second))


def whole_leaves(weights: JudgeWeights, image: NDArray[np.uint8], pixels: int, seconds: float) -> LeafRate:
    """Leaves per second through all that the search does to judge one: the sum of `pixels` columns of the first layer, the second layer,
    and the two claims' logits."""
    flat = image.reshape(PIXELS_PER_IMAGE)
    columns = image_columns(weights, flat, np.flatnonzero(flat))
    order = np.random.default_rng(0).random((SETS, len(columns))).argsort(axis=1)
    sets = np.ascontiguousarray(order[:, :pixels], np.int64)
    leaf = leaf_weights(weights)
    hidden = np.empty((GROUP, weights.b1.shape[0]), np.float32)
    second = np.empty((GROUP, weights.b2.shape[0]), np.float32)
    leads = np.empty(SETS, np.float32)
    calls = _calls_per_second(lambda: judge_sets(columns, sets, leaf, 0, 1, hidden, second, leads), seconds)
    return LeafRate(WHOLE_LEAF, SETS * calls, GROUP, (hidden.shape[1], second.shape[1]))


def random_judge_weights(hidden: int, second: int, seed: int = 0) -> JudgeWeights:
    """Weights of an untrained judge with these layers: a judge's speed does not depend on what it has learnt."""
    random = np.random.default_rng(seed)

    shapes = [(PIXELS_PER_IMAGE, hidden)] * 2 + [(hidden,), (hidden, second), (second,), (second, CLASSES), (CLASSES,)]
    return JudgeWeights(*(random.standard_normal(shape, dtype=np.float32) / np.float32(SCALE) for shape in shapes))


def _calls_per_second(call: Callable[[], object], seconds: float) -> float:
    """Calls per second, the best of several stretches that together take about `seconds`."""
    call()  # compiled, and in the cache
    best = 0.0
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        started = time.perf_counter()
        count = 0
        while time.perf_counter() - started < seconds / 10:
            call()
            count += 1
        best = max(best, count / (time.perf_counter() - started))
    return best


@njit(cache=True, nogil=True)
def _repeat_second_layer(hidden, leaf, out, times):  # type: ignore[no-untyped-def]
    for _ in range(times):
        second_layer(hidden, leaf, out, len(hidden))


@njit(cache=True, nogil=True, error_model="numpy")
def judge_sets(columns, sets, leaf, label, lie, hidden, second, leads):  # type: ignore[no-untyped-def]
    """The honest seat's leads `(S,)` on sets of pixels `(S, P)`, indices of `columns (A, H1)`, as the search comes to them."""
    block = len(hidden)
    for start in range(0, len(sets), block):
        rows = min(block, len(sets) - start)
        for row in range(rows):
            relu_sum(leaf.b1, columns, sets[start + row], 0, sets.shape[1], hidden[row])
        second_layer(hidden, leaf, second, rows)
        for row in range(rows):
            leads[start + row] = honest_lead(second[row], leaf, label, lie)
