"""How fast the search is, and what bounds it: figures of `debate-rl bench`.

All rates are taken in one run and compared with each other: machines are shared and their clocks move.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numba import njit

from debate_rl.data import Digits
from debate_rl.errors import UserError
from debate_rl.evaluation.matches import game_seeds
from debate_rl.games.pixels import CLASSES, new_games, step
from debate_rl.judges.kernels import JudgeWeights, leaf_weights, second_layer
from debate_rl.judges.pretrained import Judge
from debate_rl.search.puct import Puct, PuctSettings


@dataclass(frozen=True)
class Timed:
    """A rate: `per_second` over all threads, from the best of the repeats."""

    name: str
    per_second: float
    threads: int
    details: dict[str, Any]


def matrix_product_rate(weights: JudgeWeights, rows: int = 4096, seconds: float = 0.5) -> Timed:
    """Leaves per second of one BLAS thread if a leaf were nothing but the judge's second layer: `(rows, H1) @ (H1, H2)`, float32."""
    width, second = weights.w2.shape
    generator = np.random.default_rng(0)
    hidden = generator.random((rows, width), dtype=np.float32)
    matrix = np.ascontiguousarray(weights.w2)
    out = np.empty((rows, second), np.float32)
    rate = rows * _per_second(lambda: np.matmul(hidden, matrix, out=out), seconds)
    return Timed("matrix product", rate, 1, {"rows": rows, "layer": [width, second], "gflops": 2e-9 * rate * width * second})


def kernel_rate(weights: JudgeWeights, rows: int = 8, seconds: float = 0.5) -> Timed:
    """Leaves per second of one thread through the search's own second layer, in passes of `rows` as the search makes them."""
    leaf = leaf_weights(weights)
    width, second = weights.w2.shape
    hidden = np.random.default_rng(0).random((rows + rows % 2, width), dtype=np.float32)
    out = np.empty((rows + rows % 2, second), np.float32)
    _repeat_second_layer(hidden, leaf, out, rows, 1)
    passes = 200
    rate = rows * passes * _per_second(lambda: _repeat_second_layer(hidden, leaf, out, rows, passes), seconds)
    return Timed("kernel", rate, 1, {"rows": rows, "layer": [width, second], "gflops": 2e-9 * rate * width * second})


def search_rates(judge: Judge, digits: Digits, settings: PuctSettings, *, images: int, pixels: int, threads: int) -> list[Timed]:
    """Rollouts per second at every ply of precommitted games against all nine lies about the first `images` images."""
    if threads > int(numba.config.NUMBA_NUM_THREADS):
        raise UserError(f"threads is {threads}; this process can use at most {int(numba.config.NUMBA_NUM_THREADS)}")
    image_of, lies = [], []
    for image in range(images):
        for lie in range(CLASSES):
            if lie != digits.labels[image]:
                image_of.append(image)
                lies.append(lie)
    games = new_games(digits.images[:images], digits.labels[image_of], lies, pixels=pixels, image_of=image_of)
    seeds = game_seeds([(0, index) for index in range(games.size)], pixels)
    search = Puct(judge.weights, settings)
    before = numba.get_num_threads()
    rates = []
    try:
        numba.set_num_threads(threads)
        Puct(judge.weights, PuctSettings(rollouts=2)).search(games, seeds[:, 0])  # compile outside the timed region
        for ply in range(pixels):
            started = time.perf_counter()
            found = search.search(games, seeds[:, ply])
            elapsed = time.perf_counter() - started
            rate = games.size * settings.rollouts / elapsed
            rates.append(Timed(f"ply {ply + 1}", rate, threads, {"seconds": elapsed, "games": games.size, "rollouts": settings.rollouts}))
            step(games, found.moves)
    finally:
        numba.set_num_threads(before)
    return rates


def mean_rate(rates: list[Timed]) -> float:
    """Rollouts per second over whole games."""
    work = sum(rate.details["games"] * rate.details["rollouts"] for rate in rates)
    return float(work / sum(rate.details["seconds"] for rate in rates))


def _per_second(call: Callable[[], object], seconds: float) -> float:
    """Calls per second, the best of several stretches that together take about `seconds`."""
    call()
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
def _repeat_second_layer(hidden, leaf, out, rows, times):  # type: ignore[no-untyped-def]
    for _ in range(times):
        second_layer(hidden, leaf, out, rows)
