"""How fast the search plays: rollouts and judged leaves per second, ply by ply, and how they change with the game."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numba
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from debate_rl.data import Digits
from debate_rl.errors import UserError
from debate_rl.evaluation.matches import game_seeds
from debate_rl.games.pixels import CLASSES, PIXELS_PER_IMAGE, GameBatch, new_games, step
from debate_rl.judges.kernels import JudgeWeights
from debate_rl.search.puct import Puct, PuctSettings

WHOLE_GAME: Final = 0  # the ply of a `SearchRate` over all plies

# Repeats go on for this long at least, where they are short, and end after this long, where they are long.
LEAST_SECONDS: Final = 0.3
MOST_SECONDS: Final = 3.0


@dataclass(frozen=True)
class SearchRate:
    """One timed search of some games, at one ply or over all.

    Attributes:
        ply: 1 for a game's first move; WHOLE_GAME.
        games: how many were searched.
        rollouts: per game.
        judged: sets of pixels that the judge saw, in all games.
        seconds: wall time.
        threads: how many cores were at it.
    """

    ply: int
    games: int
    rollouts: int
    judged: int
    seconds: float
    threads: int = 1

    @property
    def per_core(self) -> float:
        """Rollouts per second and core."""
        return self.games * self.rollouts / self.seconds / self.threads

    @property
    def leaves_per_core(self) -> float:
        """Leaves judged per second and core."""
        return self.judged / self.seconds / self.threads


@contextlib.contextmanager
def on_threads(count: int) -> Iterator[None]:
    """Give numba and torch `count` threads and BLAS one, as every run has it, and restore what was.

    Raises UserError when this process cannot have so many.
    """
    limit = int(numba.config.NUMBA_NUM_THREADS)
    if not 1 <= count <= limit:
        raise UserError(f"threads is {count}; it must lie between 1 and {limit} on this machine")
    torch = sys.modules.get("torch")
    before = numba.get_num_threads(), torch.get_num_threads() if torch else 0
    try:
        numba.set_num_threads(count)
        if torch:
            torch.set_num_threads(count)
        with threadpool_limits(1, user_api="blas"):
            yield
    finally:
        numba.set_num_threads(before[0])
        if torch:
            torch.set_num_threads(before[1])


def games_about(digits: Digits, indices: Sequence[int], pixels: int, lies: int = CLASSES - 1) -> tuple[GameBatch, NDArray[np.uint64]]:
    """Precommitted games about some images, each against its first `lies` lies, and their seeds `(B, P)`."""
    image_of, claims = [], []
    for place, index in enumerate(indices):
        wrong = [klass for klass in range(CLASSES) if klass != digits.labels[index]]
        image_of += [place] * lies
        claims += wrong[:lies]
    chosen = np.asarray(indices)
    games = new_games(digits.images[chosen], digits.labels[chosen][image_of], claims, pixels=pixels, image_of=image_of)
    return games, game_seeds([(0, game) for game in range(games.size)], pixels)


def thin_and_fat(digits: Digits, among: int = 1000) -> list[tuple[int, int]]:
    """The image with the fewest legal pixels of the first so many, a middling one, and the one with the most: `(index, pixels)` each."""
    counts = np.count_nonzero(digits.images[:among].reshape(-1, PIXELS_PER_IMAGE), axis=1)
    order = np.argsort(counts, kind="stable")
    return [(int(index), int(counts[index])) for index in (order[0], order[len(order) // 2], order[-1])]


def thread_counts(most: int) -> list[int]:
    """1, 2, 4, … and `most` itself."""
    return sorted({*(1 << power for power in range(most.bit_length())), most})


def time_games(
    weights: JudgeWeights,
    settings: PuctSettings,
    games: GameBatch,
    seeds: NDArray[np.uint64],
    *,
    threads: int = 1,
    repeats: int = 1,
    plies: int | None = None,
) -> list[SearchRate]:
    """Search games that the search itself plays, from where they stand and for so many plies (None: to their end).

    Returns a rate per ply, of the fastest of the repeats; short games are repeated oftener, long ones less often. `games` stay as they are.
    """
    with on_threads(threads):
        search = Puct(weights, settings)
        Puct(weights, PuctSettings(rollouts=2)).search(games, seeds[:, 0])  # compiled outside the timed region
        ends = games.pixels if plies is None else int(games.counts[0]) + plies
        runs: list[list[SearchRate]] = []
        spent = 0.0
        while (len(runs) < repeats and spent < MOST_SECONDS) or (repeats > 1 and spent < LEAST_SECONDS):
            runs.append(_time_once(search, games.select(np.arange(games.size)), seeds, ends, threads))
            spent += sum(rate.seconds for rate in runs[-1])
    return min(runs, key=lambda rates: whole_game(rates).seconds)


def whole_game(rates: Sequence[SearchRate]) -> SearchRate:
    """The rate over all plies: all rollouts in all the time, not the plies' mean."""
    first = rates[0]
    rollouts = sum(rate.rollouts for rate in rates)
    judged = sum(rate.judged for rate in rates)
    return SearchRate(WHOLE_GAME, first.games, rollouts, judged, sum(rate.seconds for rate in rates), first.threads)


def _time_once(search: Puct, games: GameBatch, seeds: NDArray[np.uint64], ends: int, threads: int) -> list[SearchRate]:
    rates = []
    for ply in range(int(games.counts[0]), ends):
        started = time.perf_counter()
        found = search.search(games, seeds[:, ply])
        seconds = time.perf_counter() - started
        rates.append(SearchRate(ply + 1, games.size, search.settings.rollouts, int(found.judged.sum()), seconds, threads))
        step(games, found.moves)
    return rates
