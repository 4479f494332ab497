"""Other searches of the same game, side by side with ours: the same judge and games, as many rollouts, one core, the first move.

At the first move every rollout of every search has a leaf judged, so that all do the same work.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from debate_rl.evaluation.speed.games import MOST_SECONDS, SearchRate, on_threads, time_games
from debate_rl.games.pixels import GameBatch, step
from debate_rl.judges.kernels import JudgeWeights
from debate_rl.search.puct import PuctSettings

SEARCH: Final = "search"
PYTORCH: Final = "pytorch"
OPEN_SPIEL: Final = "open_spiel"

INSTALL_OPEN_SPIEL: Final = "OpenSpiel is not installed, so it is left out: `pip install 'debate-rl[bench]'` adds it"


def has_open_spiel() -> bool:
    """Whether OpenSpiel is installed."""
    return importlib.util.find_spec("pyspiel") is not None and importlib.util.find_spec("open_spiel") is not None


def contend(
    weights: JudgeWeights, games: GameBatch, seeds: NDArray[np.uint64], rollouts: int, c_puct: float, repeats: int = 1
) -> Iterator[tuple[str, SearchRate]]:
    """Time the first move of the games: ours, PyTorch's with all games in one batch, and as many as a few seconds allow by OpenSpiel."""
    settings = PuctSettings(rollouts=rollouts, c_puct=c_puct)
    yield SEARCH, time_games(weights, settings, games, seeds, repeats=repeats, plies=1)[0]
    yield PYTORCH, _pytorch(weights, games, rollouts, c_puct)
    if has_open_spiel():
        yield OPEN_SPIEL, _open_spiel(weights, games, rollouts, c_puct)


def _pytorch(weights: JudgeWeights, games: GameBatch, rollouts: int, c_puct: float) -> SearchRate:
    from debate_rl.evaluation.speed.torch_search import TorchSearch

    with on_threads(1):
        TorchSearch(weights, games).search(min(rollouts, 20), c_puct)
        started = time.perf_counter()
        moves, _ = TorchSearch(weights, games).search(rollouts, c_puct)
        seconds = time.perf_counter() - started
    _check(games, np.arange(games.size), moves)
    return SearchRate(1, games.size, rollouts, games.size * rollouts, seconds)


def _open_spiel(weights: JudgeWeights, games: GameBatch, rollouts: int, c_puct: float) -> SearchRate:
    from debate_rl.evaluation.speed.open_spiel_search import search

    moves: list[int] = []
    with on_threads(1):
        search(weights, games, 0, min(rollouts, 20), c_puct)
        started = time.perf_counter()
        while len(moves) < games.size and (not moves or time.perf_counter() - started < MOST_SECONDS):
            moves.append(search(weights, games, len(moves), rollouts, c_puct, seed=len(moves)))
        seconds = time.perf_counter() - started
    _check(games, np.arange(len(moves)), np.array(moves))
    return SearchRate(1, len(moves), rollouts, len(moves) * rollouts, seconds)


def _check(games: GameBatch, which: NDArray[np.intp], moves: NDArray[np.integer]) -> None:
    """A speed is worth nothing if the moves are not even legal."""
    if not step(games.select(which), moves).all():
        raise AssertionError("a search that was timed played an illegal move")
