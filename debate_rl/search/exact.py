"""Exact play: who wins a debate if both sides play perfectly.

The paper approximates perfect play by 10,000 noisy rollouts a move. The game is small enough to be solved: with 4 pixels any position
of any image in a fraction of a second, with 6 pixels many of them within a budget. See `proof` for the search.

A position is a set of pixels, yet a judge's float32 sums depend in their last bits on the order in which they are added. A set whose two
best claims are that close (some 1e-6 of a logit) may be judged either way; everything else is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from debate_rl.errors import UserError
from debate_rl.games.pixels import CLASSES, HONEST, NO_LIE, NO_MOVE, GameBatch
from debate_rl.judges.kernels import JudgeWeights, LeafWeights, image_columns, leaf_weights
from debate_rl.search.proof import LARGEST_NUMBER, LAST_WINS, OPEN, PASS, Board, Table, judge_set, prove

VERSION: Final = 0  # bump when a change could alter what is proved within a budget

PROVED_HONEST: Final = 1
PROVED_LIAR: Final = 0
UNPROVED: Final = -1

LONGEST: Final = 12  # pixels to a game at most
_UNLIMITED: Final = 2**62
_SMALLEST, _LARGEST = 1 << 10, 1 << 23  # slots of a table, 8 bytes each


@dataclass(frozen=True)
class Solution:
    """What was proved of `B` positions.

    Attributes:
        outcomes: `(B,)` int8: PROVED_HONEST, PROVED_LIAR, or UNPROVED where the budget ran out.
        judged: `(B,)` int64 sets of pixels judged for each. Positions about one image and order share what they prove: the first pays.
    """

    outcomes: NDArray[np.int8]
    judged: NDArray[np.int64]


def solve(
    weights: JudgeWeights,
    games: GameBatch,
    *,
    budget: int | None = None,
    threads: int = 1,
    progress: Callable[[int], object] | None = None,
) -> Solution:
    """Who wins each of `B` debates from where it stands if both sides play perfectly.

    Args:
        weights: the judge.
        games: the debates, with or without moves made, of at most `LONGEST` pixels; unchanged. Positions about the same image with
            the same seat first are solved together and share their proofs.
        budget: sets of pixels that may be judged for each position before it is left unproved; None for no limit.
        threads: images solved at the same time.
        progress: told after each group how many positions it held, from any thread.

    Raises:
        UserError: a game of more than `LONGEST` pixels, a finished game, or a budget below 1.
    """
    _check(games, budget)
    found = Solution(np.full(games.size, UNPROVED, np.int8), np.zeros(games.size, np.int64))
    leaf = leaf_weights(weights)

    def work(group: NDArray[np.intp]) -> None:
        workplace = _Workplace(weights, leaf, games, int(group[0]))
        # Late positions first, their proofs serve the early ones; and the game without precommitment first: where honest wins it, it
        # beats every lie.
        order = sorted(group.tolist(), key=lambda game: (-int(games.counts[game]), games.lies[game] != NO_LIE, int(games.lies[game])))
        for game in order:
            size, claim = workplace.set_up(games, game)
            found.outcomes[game] = workplace.value(size, claim, budget)
            found.judged[game] = workplace.board.judged[0]
        if progress is not None:
            progress(len(group))

    _each_group(games, work, threads)
    return found


@dataclass(frozen=True)
class WinningMoves:
    """What was found for `B` positions.

    Attributes:
        moves: `(B,)` int16, a move that keeps the debate won for the seat to move; NO_MOVE where there is none, or none was proved to.
        judged: `(B,)` int64 sets of pixels judged for each; positions about one image and order share what they prove.
    """

    moves: NDArray[np.int16]
    judged: NDArray[np.int64]


def winning_moves(weights: JudgeWeights, games: GameBatch, *, budget: int | None = None, threads: int = 1) -> WinningMoves:
    """A move that wins, if there is one, for each of `B` debates.

    Arguments and errors are those of `solve`; the budget is per move tried.
    """
    _check(games, budget)
    found = WinningMoves(np.full(games.size, NO_MOVE, np.int16), np.zeros(games.size, np.int64))
    leaf = leaf_weights(weights)

    def find(group: NDArray[np.intp]) -> None:
        workplace = _Workplace(weights, leaf, games, int(group[0]), budget)
        for game in group.tolist():
            size, claim = workplace.set_up(games, game)
            wanted = PROVED_HONEST if games.movers()[game] == HONEST else PROVED_LIAR
            if budget is not None:
                workplace.forget()  # what a budget proves must not depend on the debates that came before
            for place in workplace.guess[size, claim]:
                if place in workplace.board.taken[:size]:
                    continue
                value = workplace.value_after(size, int(place), claim, budget)
                found.judged[game] += workplace.board.judged[0]
                if value == wanted:
                    found.moves[game] = workplace.pixels[place]
                    break

    _each_group(games, find, threads)
    return found


def by_image_and_order(games: GameBatch) -> list[NDArray[np.intp]]:
    """The debates in groups that share an image, its label and the seat that moves first."""
    keys = (games.image_of.astype(np.int64) * CLASSES + games.labels) * 2 + games.first
    return [np.flatnonzero(keys == key) for key in np.unique(keys)]


def _check(games: GameBatch, budget: int | None) -> None:
    if games.pixels > LONGEST:
        raise UserError(f"a game of {games.pixels} pixels cannot be solved; at most {LONGEST}")
    if games.over().any():
        raise UserError("a debate is over: there is nothing to solve")
    if budget is not None and budget < 1:
        raise UserError(f"budget is {budget}; it must be at least 1")


def _each_group(games: GameBatch, work: Callable[[NDArray[np.intp]], object], threads: int) -> None:
    """Do the work for the debates about each image with each seat first, `threads` groups at a time."""
    groups = by_image_and_order(games)
    if threads <= 1 or len(groups) <= 1:
        for group in groups:
            work(group)
        return
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(work, group) for group in groups]:
            done.result()


class _Workplace:
    """One image with one seat first: its board, its table, and whose wins are whose."""

    def __init__(self, weights: JudgeWeights, leaf: LeafWeights, games: GameBatch, game: int, budget: int | None = None) -> None:
        image = int(games.image_of[game])
        self.leaf = leaf
        self.pixels = np.flatnonzero(games.legal[image]).astype(np.int16)
        self.place_of = np.full(games.legal.shape[1], -1, np.int64)
        self.place_of[self.pixels] = np.arange(len(self.pixels))
        self.board = new_board(weights, games.images[image], int(games.labels[game]), self.pixels, games.pixels, int(games.first[game]))
        self.guess = self.board.order.copy()  # the board's own order changes with what is proved
        self.table = new_table(len(self.pixels), games.pixels, budget)

    def forget(self) -> None:
        """Start afresh."""
        self.board.order[:] = self.guess
        self.table.entries[:] = 0
        self.table.used[:] = 0

    def set_up(self, games: GameBatch, game: int) -> tuple[int, int]:
        """Put a debate's position on the board; how many pixels are out, and the claim."""
        size = int(games.counts[game])
        board = self.board
        board.taken[:size] = self.place_of[games.moves[game, :size]]
        board.base[0] = self.leaf.b1
        for ply in range(size):
            board.base[ply + 1] = board.base[ply] + board.columns[board.taken[ply]]
        return size, board.label if games.lies[game] == NO_LIE else int(games.lies[game])

    def value(self, size: int, claim: int, budget: int | None) -> int:
        """Who wins the position on the board."""
        self.board.judged[0] = 0
        outcome = int(prove(self.board, self.table, self.leaf, size, claim, _UNLIMITED if budget is None else budget))
        return self._value(outcome)

    def value_after(self, size: int, place: int, claim: int, budget: int | None) -> int:
        """Who wins after one more pixel, given by its place among the legal ones."""
        board = self.board
        board.taken[size] = place
        board.base[size + 1] = board.base[size] + board.columns[place]
        if size + 1 < board.order.shape[0]:
            return self.value(size + 1, claim, budget)
        board.judged[0] = 1
        return self._value(int(judge_set(board, self.leaf, size + 1, claim)))

    def _value(self, outcome: int) -> int:
        if outcome == OPEN:
            return UNPROVED
        return PROVED_HONEST if (outcome == LAST_WINS) == self.board.last_is_honest else PROVED_LIAR


def new_board(weights: JudgeWeights, image: NDArray[np.uint8], label: int, pixels: NDArray[np.integer], length: int, first: int) -> Board:
    """Lay an image `(784,)` out for the proof search; `pixels` `(A,)` are its legal ones."""
    columns = image_columns(weights, image, pixels)
    width, second = weights.w2.shape
    last_is_honest = (first + length - 1) % 2 == HONEST
    binomials, smaller = set_numbers(len(pixels), length)
    return Board(
        columns,
        label,
        last_is_honest,
        first_guess(weights, columns, label, length, last_is_honest),
        np.zeros(length, np.int64),
        np.zeros((length + 1, width), np.float32),
        np.zeros((PASS, width), np.float32),
        np.zeros((PASS, second), np.float32),
        np.zeros(PASS, np.int64),
        np.zeros(1, np.int64),
        binomials,
        smaller,
        np.zeros(length, np.int64),
    )


def set_numbers(n_pixels: int, length: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """`Board.binomials` and `Board.smaller`, for images of at most `n_pixels` legal pixels.

    Raises:
        UserError: more positions than a table can number.
    """
    sizes = [math.comb(n_pixels, size) for size in range(length)]
    if sum(sizes) >= LARGEST_NUMBER:
        raise UserError(f"an image with {n_pixels} pixels to reveal has too many positions to solve games of {length} pixels")
    binomials = [[math.comb(n, k) if k < length else 0 for k in range(length + 1)] for n in range(n_pixels + 1)]
    return np.array(binomials, np.uint64), np.cumsum([1, *sizes]).astype(np.uint64)


def new_table(n_pixels: int, length: int, budget: int | None = None) -> Table:
    """An empty table, large enough for all that can be proved of a game of `length` pixels within a budget, up to 64 MB."""
    sets = sum(math.comb(n_pixels, size) for size in range(length))
    if budget is not None:
        sets = min(sets, budget)
    slots = _SMALLEST
    while slots < min(2 * sets, _LARGEST):
        slots *= 2
    return Table(np.zeros(slots, np.uint64), np.zeros(1, np.int64))


def first_guess(weights: JudgeWeights, columns: NDArray[np.float32], label: int, length: int, last_is_honest: bool) -> NDArray[np.int16]:
    """`(P, 10, A)` the order in which to try pixels before anything is known: by what each alone does to the judge."""
    hidden = np.maximum(weights.b1 + columns, 0)
    logits = np.maximum(hidden @ weights.w2 + weights.b2, 0) @ weights.w3 + weights.b3  # (A, 10)
    leads = logits[:, label, None] - logits  # (A, 10) over each lie
    others = np.delete(logits, label, axis=1).max(axis=1)
    leads[:, label] = logits[:, label] - others
    for_honest = np.argsort(-leads, axis=0, kind="stable").T.astype(np.int16)  # (10, A)
    order = np.empty((length, CLASSES, len(columns)), np.int16)
    for ply in range(length):
        honest_moves = last_is_honest == ((length - ply) % 2 == 1)
        order[ply] = for_honest if honest_moves else for_honest[:, ::-1]
    return order
