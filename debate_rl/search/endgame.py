"""The end of a game played exactly inside the tree search.

With one pixel to go every reply is judged, in passes of many. With two or three the position goes to the proof search (`proof`), which
says who wins and not by how much.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from debate_rl.games.pixels import HONEST, NO_LIE
from debate_rl.judges.kernels import second_layer
from debate_rl.search.compiled import inlined, jit
from debate_rl.search.leaf import among, honest_lead, leaf_value, relu_sum
from debate_rl.search.proof import LAST_WINS, PASS, Board, Table, prove

_SLOTS = 1 << 16  # of a game's table of proofs: half a megabyte
_UNLIMITED = 2**62


class Endgame(NamedTuple):
    """What the proof search needs to know of `B` games of `P` pixels; without rows where no position of two or more plies is solved."""

    guesses: NDArray[np.int16]  # (K, P, 10, A) the orders in which to try pixels, see `exact.first_guess`
    guess_of: NDArray[np.int32]  # (B,)
    binomials: NDArray[np.uint64]  # as in `proof.Board`
    smaller: NDArray[np.uint64]


class Memory(NamedTuple):
    """Working memory for a group of `G` games. Order and table are a game's own, so that nothing depends on its neighbours."""

    base: NDArray[np.float32]  # (P + 1, H1)
    hidden: NDArray[np.float32]  # (PASS, H1)
    second: NDArray[np.float32]  # (PASS, H2)
    places: NDArray[np.int64]  # (PASS,)
    judged: NDArray[np.int64]  # (1,)
    ascending: NDArray[np.int64]  # (P,)
    order: NDArray[np.int16]  # (G, P, 10, A)
    entries: NDArray[np.uint64]  # (G, slots)
    used: NDArray[np.int64]  # (G, 1)


@inlined
def endgame_memory(positions, games, options, leaf, endgame):  # type: ignore[no-untyped-def]
    """Working memory for a group of games, their tables empty."""
    length = positions.revealed.shape[1]
    width = positions.columns.shape[2]
    group = len(games) if options.exact_plies > 1 else 0
    order = np.empty((group, length, endgame.guesses.shape[2], endgame.guesses.shape[3]), np.int16)
    for i in range(group):
        order[i] = endgame.guesses[endgame.guess_of[games[i]]]
    return Memory(
        np.empty((length + 1, width), np.float32),
        np.zeros((PASS, width), np.float32),
        np.zeros((PASS, leaf.w2t.shape[0]), np.float32),
        np.zeros(PASS, np.int64),
        np.zeros(1, np.int64),
        np.zeros(length, np.int64),
        order,
        np.zeros((group, _SLOTS), np.uint64),
        np.zeros((group, 1), np.int64),
    )


@jit
def position_value(positions, game, options, base, taken, depth, leaf, endgame, memory, place):  # type: ignore[no-untyped-def]
    """The exact value for the honest seat of the position `depth` pixels below the game's, and how many sets were judged for it.

    `base` is the first layer of the game's position; `taken` holds all pixels, and what lies beyond them is overwritten. `place` is the
    game's in its group.
    """
    image = positions.image_of[game]
    total = np.int64(positions.n_pixels[image])
    columns = positions.columns[image]
    label, lie = int(positions.labels[game]), int(positions.lies[game])
    length = positions.revealed.shape[1]
    last_is_honest = (np.int64(positions.first[game]) + length - 1) % 2 == HONEST
    start = np.int64(positions.counts[game])
    size = start + depth
    first_layer = memory.base[size]
    first_layer[:] = base
    for i in range(start, size):
        first_layer += columns[taken[i]]
    if size == length - 1:
        _pixel, lead = best_reply(first_layer, columns, total, taken, size, leaf, label, lie, last_is_honest, memory.hidden, memory.second)
        return leaf_value(lead, options.value), total - size
    memory.judged[0] = 0
    board = Board(
        columns[:total], label, last_is_honest, memory.order[place, :, :, :total], taken, memory.base, memory.hidden, memory.second,
        memory.places, memory.judged, endgame.binomials, endgame.smaller, memory.ascending,
    )  # fmt: skip
    table = Table(memory.entries[place], memory.used[place])
    outcome = prove(board, table, leaf, size, label if lie == NO_LIE else lie, _UNLIMITED)
    honest_wins = (outcome == LAST_WINS) == last_is_honest
    return np.float32(1.0) if honest_wins else np.float32(-1.0), memory.judged[0]


@jit
def best_reply(base, columns, total, taken, n_taken, leaf, label, lie, honest, hidden, second):  # type: ignore[no-untyped-def]
    """The best last pixel for the seat to move, and the honest seat's lead after it: every reply is judged."""
    best_pixel = np.int64(-1)
    best_lead = np.float32(0.0)
    block = hidden.shape[0]
    rows_of = np.empty(block, np.int64)
    pixel = np.int64(0)
    while pixel < total:
        rows = 0
        while pixel < total and rows < block:
            if not among(taken, n_taken, pixel):
                taken[n_taken] = pixel
                relu_sum(base, columns, taken, n_taken, n_taken + 1, hidden[rows])
                rows_of[rows] = pixel
                rows += 1
            pixel += 1
        second_layer(hidden, leaf, second, rows)
        for row in range(rows):
            lead = honest_lead(second[row], leaf, label, lie)
            if best_pixel < 0 or (lead != best_lead and (lead > best_lead) == honest):
                best_lead = lead
                best_pixel = rows_of[row]
    return best_pixel, best_lead


@jit
def solve_last_ply(positions, leaf, moves, leads, judged):  # type: ignore[no-untyped-def]
    """The best last pixel of each game with one pixel to go, judged exactly: fills `moves (B,)`, the honest seat's `leads (B,)` and
    `judged (B,)`."""
    width = positions.columns.shape[2]
    hidden = np.zeros((PASS, width), np.float32)
    second = np.zeros((PASS, leaf.w2t.shape[0]), np.float32)
    base = np.empty(width, np.float32)
    length = positions.revealed.shape[1]
    taken = np.full(length + 1, -1, np.int64)
    for game in range(len(positions.labels)):
        image = positions.image_of[game]
        columns = positions.columns[image]
        base[:] = leaf.b1
        for ply in range(length - 1):
            taken[ply] = positions.revealed[game, ply]
            base += columns[taken[ply]]
        honest = (np.int64(positions.first[game]) + length - 1) % 2 == HONEST
        pixel, lead = best_reply(
            base, columns, np.int64(positions.n_pixels[image]), taken, length - 1, leaf, positions.labels[game], positions.lies[game],
            honest, hidden, second,
        )  # fmt: skip
        moves[game] = positions.pixels[image, pixel]
        leads[game] = lead
        judged[game] = np.int64(positions.n_pixels[image]) - length + 1
