"""PUCT as the paper plays it, over batches of debates.

Irving, Christiano, Amodei 2018, section 3.1: "pure" Monte Carlo tree search, 10,000 rollouts per move, the PUCT rule of Silver et al.
2017 with a uniform prior, ties broken at random, the most visited move played. At a node with visit counts `N(b)` and mean values
`Q(b)` the rollout takes the move that maximises `Q(a) + c_puct * P * sqrt(sum_b N(b)) / (1 + N(a))`, with `c_puct = 1` and
`P = 1 / (number of nonzero pixels of the image)`. Moves never tried have `Q = 0`, the middle of [-1, 1].

What the paper leaves open is an option here: `leaf` says what the judge is shown when a rollout leaves the tree (`playout`, the default:
the game finished with random pixels, as in Coulom 2006; `partial`: the unfinished position), and `value` what a judged leaf is worth
(`win`: +1 or -1 by who wins; `margin`: tanh of half the lead in logits, which is the probability difference of the two claims).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal

import numba
import numpy as np
from numpy.typing import NDArray

from debate_rl.errors import UserError
from debate_rl.games.pixels import CLASSES, HONEST, NO_MOVE, PIXELS_PER_IMAGE, GameBatch
from debate_rl.judges.kernels import JudgeWeights, image_columns, leaf_weights
from debate_rl.search import rollout
from debate_rl.search.arena import Arena, entries_needed, new_arena, rebase_tree
from debate_rl.search.endgame import Endgame, solve_last_ply
from debate_rl.search.exact import LONGEST, first_guess, set_numbers, winning_moves
from debate_rl.search.leaf import MARGIN, WIN

VERSION: Final = 0  # bump when a change could alter the moves of any search


@dataclass(frozen=True)
class PuctSettings:
    """Settings of the search; the defaults are the paper's.

    Attributes:
        rollouts: per move, at least 1.
        c_puct: exploration constant.
        leaf: `playout` or `partial`, see the module.
        value: `win` or `margin`, see the module.
        exact_plies: pixels at the end of a game that are played exactly, at the root and wherever the tree gets there. 1: every last
            pixel is judged instead of sampling it. 2 or more: the proof search says who wins (`value` must be `win`; some thousand
            sets are judged for such a position, so fewer rollouts go with it).
        reuse_tree: keep the part of a game's tree below the moves made since its last search (`rollouts` then come on top).
    """

    rollouts: int = 10_000
    c_puct: float = 1.0
    leaf: Literal["playout", "partial"] = "playout"
    value: Literal["win", "margin"] = "win"
    exact_plies: int = 0
    reuse_tree: bool = False

    def __post_init__(self) -> None:
        """Refuse settings outside their range."""
        if not 1 <= self.rollouts <= 100_000_000:
            raise UserError(f"rollouts is {self.rollouts}; it must lie between 1 and 100,000,000")
        if not (self.c_puct >= 0 and np.isfinite(self.c_puct)):
            raise UserError(f"c_puct is {self.c_puct}; it must be a finite number, zero or more")
        if self.leaf not in ("playout", "partial"):
            raise UserError(f"leaf is {self.leaf!r}; it must be 'playout' or 'partial'")
        if self.value not in ("win", "margin"):
            raise UserError(f"value is {self.value!r}; it must be 'win' or 'margin'")
        if not 0 <= self.exact_plies <= LONGEST:
            raise UserError(f"exact_plies is {self.exact_plies}; it must lie between 0 and {LONGEST}")
        if self.exact_plies > 1 and self.value != "win":
            raise UserError(f"exact_plies is {self.exact_plies}: who wins is proved, not by how much; value={self.value} cannot go with it")

    def describe(self) -> dict[str, Any]:
        """All settings, JSON-ready."""
        return asdict(self)


@dataclass(frozen=True)
class SearchResult:
    """What a search found for `B` positions."""

    moves: NDArray[np.int16]  # (B,) the most visited pixel
    visits: NDArray[np.int32]  # (B, 784) root visits; all zero where the move was solved instead
    values: NDArray[np.float32]  # (B,) root value in [-1, 1] for the seat to move
    judged: NDArray[np.int64]  # (B,) sets of pixels shown to the judge


class Puct:
    """A search over one judge. Holds the trees' memory, so use one object per Python thread."""

    def __init__(self, weights: JudgeWeights, settings: PuctSettings | None = None) -> None:
        """Prepare a search for a judge."""
        self.weights = weights
        self.settings = settings or PuctSettings()
        self._leaf = leaf_weights(weights)
        self._arena: Arena | None = None
        self._previous: GameBatch | None = None

    def search(self, games: GameBatch, seeds: NDArray[np.uint64]) -> SearchResult:
        """Search the position of each of `B` debates, none of them over.

        Args:
            games: the debates; unchanged.
            seeds: `(B,)`, one per debate and ply; equal seeds give equal results whatever the batch and the number of threads.

        Raises:
            UserError: a debate is over.
        """
        if games.over().any():
            raise UserError("a debate is over: there is no move to search for")
        settings = self.settings
        result = SearchResult(
            np.full(games.size, -1, np.int16),
            np.zeros((games.size, PIXELS_PER_IMAGE), np.int32),
            np.zeros(games.size, np.float32),
            np.zeros(games.size, np.int64),
        )
        if games.size == 0:
            return result
        left = games.pixels - games.counts
        ways = np.where(left > settings.exact_plies, 0, np.minimum(left, 2))
        for way, play in enumerate((self._grow_trees, self._play_last_ply, self._play_end)):
            part = np.flatnonzero(ways == way)
            if len(part) == games.size:
                play(games, seeds, result)
            elif len(part):
                found = self.search(games.select(part), seeds[part])
                for name in ("moves", "visits", "values", "judged"):
                    getattr(result, name)[part] = getattr(found, name)
        return result

    def _play_last_ply(self, games: GameBatch, seeds: NDArray[np.uint64], result: SearchResult) -> None:
        """Fill in the best last pixels."""
        leads = np.empty(games.size, np.float32)
        solve_last_ply(make_positions(self.weights, games), self._leaf, result.moves, leads, result.judged)
        values = np.where(leads > 0, 1.0, -1.0) if self.settings.value == "win" else np.tanh(0.5 * leads)
        result.values[:] = np.where(games.movers() == HONEST, values, -values)

    def _play_end(self, games: GameBatch, seeds: NDArray[np.uint64], result: SearchResult) -> None:
        """Fill in winning moves; where there is none, what a search finds best against an opponent who may err."""
        found = winning_moves(self.weights, games, threads=numba.get_num_threads())
        result.moves[:], result.judged[:] = found.moves, found.judged
        lost = np.flatnonzero(found.moves == NO_MOVE)
        result.values[:] = 1.0
        if len(lost):
            hoping = Puct(self.weights, replace(self.settings, exact_plies=0)).search(games.select(lost), seeds[lost])
            result.moves[lost], result.visits[lost], result.values[lost] = hoping.moves, hoping.visits, -1.0
            result.judged[lost] += hoping.judged

    def _grow_trees(self, games: GameBatch, seeds: NDArray[np.uint64], result: SearchResult) -> None:
        """Fill in what a tree search finds."""
        settings = self.settings
        positions = make_positions(self.weights, games)
        arena = self._trees(games, positions)
        options = rollout.Options(
            settings.rollouts,
            np.float32(settings.c_puct),
            rollout.PLAYOUT if settings.leaf == "playout" else rollout.PARTIAL,
            WIN if settings.value == "win" else MARGIN,
            settings.exact_plies,
            settings.reuse_tree,
        )
        rollout.search_games(
            arena, positions, options, self._leaf, self._endgame(games, positions), np.asarray(seeds, np.uint64), result.visits,
            result.values, result.moves, result.judged,
        )  # fmt: skip

    def _endgame(self, games: GameBatch, positions: rollout.Positions) -> Endgame:
        """What the proof search needs to know of the games."""
        length = games.pixels
        if self.settings.exact_plies < 2:
            nothing = np.zeros((0, 0), np.uint64)
            return Endgame(np.zeros((0, 0, 0, 0), np.int16), np.zeros(0, np.int32), nothing, nothing[0:0].reshape(-1))
        binomials, smaller = set_numbers(positions.columns.shape[1], length)
        keys, guess_of = np.unique(np.stack([positions.image_of, games.labels, games.first], axis=1), axis=0, return_inverse=True)
        guesses = np.zeros((len(keys), length, CLASSES, positions.columns.shape[1]), np.int16)
        for guess, (image, label, first) in zip(guesses, keys.tolist(), strict=True):
            count = int(positions.n_pixels[image])
            last_is_honest = (first + length - 1) % 2 == HONEST
            guess[:, :, :count] = first_guess(self.weights, positions.columns[image, :count], label, length, last_is_honest)
        return Endgame(guesses, guess_of.reshape(-1).astype(np.int32), binomials, smaller)

    def bytes_per_tree(self) -> int:
        """Memory of one tree, fixed by the number of rollouts."""
        arena = new_arena(1, entries_needed(self.settings.rollouts))
        return sum(int(array.nbytes) for array in arena)

    def _trees(self, games: GameBatch, positions: rollout.Positions) -> Arena:
        """The arena to search in; with tree reuse, each game's tree moved on to its present position or emptied."""
        reuse = self.settings.reuse_tree
        slots = games.size if reuse else rollout.GROUP * int(numba.config.NUMBA_NUM_THREADS)
        # A tree that is carried on grows by `rollouts` each time its seat moves.
        searches = (games.pixels + 1) // 2 if reuse else 1
        capacity = entries_needed(self.settings.rollouts * searches)
        arena = self._arena
        if arena is None or arena.mean.shape[0] < slots or arena.mean.shape[1] < capacity:
            arena = self._arena = new_arena(slots, capacity)
            self._previous = None
        if reuse:
            self._carry_on(arena, games, positions)
            self._previous = games.select(np.arange(games.size))
        return arena

    def _carry_on(self, arena: Arena, games: GameBatch, positions: rollout.Positions) -> None:
        before = self._previous
        if before is None or before.size != games.size or before.images is not games.images or before.pixels != games.pixels:
            arena.used[:] = 0
            return
        spare = new_arena(1, arena.mean.shape[1])
        stack = np.empty(arena.mean.shape[1], np.int64)
        for game in range(games.size):
            count = int(before.counts[game])
            same = (
                before.image_of[game] == games.image_of[game]
                and before.labels[game] == games.labels[game]
                and before.lies[game] == games.lies[game]
                and before.first[game] == games.first[game]
                and count < games.counts[game]
                and np.array_equal(before.moves[game, :count], games.moves[game, :count])
            )
            if same and arena.used[game] > 0:
                rebase_tree(arena, game, positions.revealed[game, count : games.counts[game]].astype(np.int64), spare, stack)
            else:
                arena.used[game] = 0


def make_positions(weights: JudgeWeights, games: GameBatch) -> rollout.Positions:
    """Lay debates out for the kernel: legal pixels listed, their first-layer columns computed once per image."""
    used, image_of = np.unique(games.image_of, return_inverse=True)
    legal = games.legal[used]  # (J, 784) for the J images in use
    n_pixels = legal.sum(axis=1).astype(np.int32)
    widest = int(n_pixels.max())
    pixels = np.full((len(used), widest), -1, np.int16)
    columns = np.zeros((len(used), widest, weights.b1.shape[0]), np.float32)
    index_of = np.full((len(used), PIXELS_PER_IMAGE), -1, np.int16)
    for row, image in enumerate(used):
        listed = np.flatnonzero(legal[row]).astype(np.int16)
        pixels[row, : len(listed)] = listed
        columns[row, : len(listed)] = image_columns(weights, games.images[image], listed)
        index_of[row, listed] = np.arange(len(listed), dtype=np.int16)
    revealed = np.where(games.moves >= 0, index_of[image_of[:, None], np.maximum(games.moves, 0)], -1).astype(np.int16)
    return rollout.Positions(
        columns, pixels, n_pixels, image_of.astype(np.int32), games.labels, games.lies, games.first, revealed, games.counts
    )
