"""Compiled proof search: who wins a sparse-pixel debate if both sides play perfectly.

`prove` answers one yes/no question about one position: does the side that moves *last* win? With `r` pixels to go the last mover needs
*some* reply where `r` is odd and wins only if *every* reply of the other side loses where `r` is even, so the answer is a depth-first
search that stops at the first reply that settles a node. Four things make it quick:

- the last ply is judged in passes of many replies, with one addition per reply for the first layer;
- a judged set yields all ten logits, so what is learnt of a set serves all nine lies and the game without precommitment;
- a position is a set of pixels, so what was proved of it is kept under the set, whatever the order of play (`Table`);
- replies that settled a sibling are tried first, per ply and claim.

Questions are numbered by *claims*: bit `k` stands for the precommitted lie `k`, and the label's own bit for the game without
precommitment. Honest wins that game only where it wins against every lie at once, which links the bits (`_note`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from debate_rl.games.pixels import CLASSES
from debate_rl.judges.kernels import class_logit, second_layer
from debate_rl.search.compiled import inlined, jit
from debate_rl.search.leaf import among

OTHER_WINS, LAST_WINS, OPEN = 0, 1, -1
ALL = (1 << CLASSES) - 1
CLAIM_BITS = np.uint64(2 * CLASSES)
LARGEST_NUMBER = 2 ** (64 - 2 * CLASSES)
FIRST_PASS, PASS = 2, 32  # replies judged at a time: few while the likely ones are tried, then as many as fill the cache


class Table(NamedTuple):
    """What was proved of sets of pixels: open addressing with linear probing.

    An entry is a set's number, ten bits of claims for which the last mover is known to lose, and ten for which it is known to win; in one
    word, so that a look-up misses the cache once.
    """

    entries: NDArray[np.uint64]  # (C,) a power of two; 0 where empty
    used: NDArray[np.int64]  # (1,)


class Board(NamedTuple):
    """One image and one last mover, with working memory. `A` legal pixels, `P` pixels to a game."""

    columns: NDArray[np.float32]  # (A, H1) first-layer column of each legal pixel
    label: int
    last_is_honest: bool
    order: NDArray[np.int16]  # (P, 10, A) per ply and claim, the pixels in the order to try them
    taken: NDArray[np.int64]  # (P,) the position's pixels
    base: NDArray[np.float32]  # (P + 1, H1) first layer after so many of them
    hidden: NDArray[np.float32]  # (PASS, H1)
    second: NDArray[np.float32]  # (PASS, H2)
    places: NDArray[np.int64]  # (PASS,) of each row's pixel in the order
    judged: NDArray[np.int64]  # (1,) sets judged so far
    binomials: NDArray[np.uint64]  # (A + 1, P + 1)
    smaller: NDArray[np.uint64]  # (P + 1,) one more than the number of smaller sets
    ascending: NDArray[np.int64]  # (P,) the position's pixels in ascending order


@inlined
def _number(board, size):  # type: ignore[no-untyped-def]
    """The set `taken[:size]` as a number above zero, unlike that of any other set of fewer than `P` pixels."""
    ascending = board.ascending
    for i in range(size):
        pixel = board.taken[i]
        place = i
        while place > 0 and ascending[place - 1] > pixel:
            ascending[place] = ascending[place - 1]
            place -= 1
        ascending[place] = pixel
    number = board.smaller[size]
    for i in range(size):
        number += board.binomials[ascending[i], i + 1]
    return number


@inlined
def _slot(table, number):  # type: ignore[no-untyped-def]
    """The slot of a set, a new one if need be; -1 where the table is full."""
    mask = np.uint64(len(table.entries) - 1)
    mixed = number * np.uint64(0x9E3779B97F4A7C15)
    place = (mixed ^ (mixed >> np.uint64(32))) & mask
    while True:
        found = table.entries[place] >> CLAIM_BITS
        if found == number:
            return np.int64(place)
        if found == 0:
            if table.used[0] * 4 > len(table.entries) * 3:
                return np.int64(-1)
            table.entries[place] = number << CLAIM_BITS
            table.used[0] += 1
            return np.int64(place)
        place = (place + np.uint64(1)) & mask


@inlined
def _known(table, slot, claim):  # type: ignore[no-untyped-def]
    """What the table says of a claim: LAST_WINS, OTHER_WINS or OPEN."""
    if slot < 0:
        return OPEN
    entry = np.int64(table.entries[slot])
    if (entry >> claim) & 1:
        return LAST_WINS
    if (entry >> (claim + CLASSES)) & 1:
        return OTHER_WINS
    return OPEN


@inlined
def _note(table, board, slot, wins, losses):  # type: ignore[no-untyped-def]
    """Keep what was proved, and what follows from it about the other claims."""
    if slot < 0:
        return
    entry = np.int64(table.entries[slot])
    wins |= entry & ALL
    losses |= (entry >> CLASSES) & ALL
    none = 1 << board.label
    if board.last_is_honest:
        if wins & none:  # beats every lie at once, so each alone
            wins = ALL
        if losses:  # loses to a lie, so to any answer
            losses |= none
    else:
        if losses & none:
            losses = ALL
        if wins:
            wins |= none
    table.entries[slot] |= np.uint64(wins | (losses << CLASSES))


@inlined
def _to_front(order, place):  # type: ignore[no-untyped-def]
    pixel = order[place]
    for i in range(place, 0, -1):
        order[i] = order[i - 1]
    order[0] = pixel


@inlined
def _claims_won(second, leaf, label, last_is_honest):  # type: ignore[no-untyped-def]
    """The claims that the last mover wins on a judged set, as bits, from one row of the second hidden layer. A tie is the liar's."""
    own = class_logit(second, leaf, label)
    honest = 0
    for klass in range(leaf.w3t.shape[0]):
        if klass != label and own > class_logit(second, leaf, klass):
            honest |= 1 << klass
    if honest | (1 << label) == ALL:
        honest = ALL
    return honest if last_is_honest else ALL & ~honest


@inlined
def _last_ply(board, table, leaf, size, claim):  # type: ignore[no-untyped-def]
    """Does some last pixel win the claim? Every reply is judged until one does."""
    bit = 1 << claim
    slot = _slot(table, _number(board, size))
    known = _known(table, slot, claim)
    if known != OPEN:
        return known
    base = board.base[size]
    width = base.shape[0]
    order = board.order[size, claim]
    total = len(order)
    wins = 0
    place = 0
    block = FIRST_PASS
    while place < total:
        count = 0
        while place < total and count < block:
            pixel = np.int64(order[place])
            if not among(board.taken, size, pixel):
                column = board.columns[pixel]
                row = board.hidden[count]
                for k in range(width):
                    row[k] = max(np.float32(0.0), base[k] + column[k])
                board.places[count] = place
                count += 1
            place += 1
        second_layer(board.hidden, leaf, board.second, count)
        board.judged[0] += count
        winner = -1
        for i in range(count):
            won = _claims_won(board.second[i], leaf, board.label, board.last_is_honest)
            wins |= won
            if winner < 0 and won & bit:
                winner = board.places[i]
        if winner >= 0:
            _to_front(order, winner)
            _note(table, board, slot, wins, 0)
            return LAST_WINS
        block = PASS
    _note(table, board, slot, wins, ALL & ~wins)
    return OTHER_WINS


@jit
def prove(board, table, leaf, size, claim, budget):  # type: ignore[no-untyped-def]
    """Who wins a claim from `taken[:size]`, whose first layer is `base[size]`: LAST_WINS, OTHER_WINS, or OPEN once `budget` sets were
    judged."""
    length = board.order.shape[0]
    if size == length - 1:
        return _last_ply(board, table, leaf, size, claim)
    bit = 1 << claim
    slot = _slot(table, _number(board, size))
    known = _known(table, slot, claim)
    if known != OPEN:
        return known
    settles = LAST_WINS if (length - size) % 2 == 1 else OTHER_WINS
    order = board.order[size, claim]
    width = board.base.shape[1]
    outcome = LAST_WINS + OTHER_WINS - settles
    for place in range(len(order)):
        pixel = np.int64(order[place])
        if among(board.taken, size, pixel):
            continue
        if board.judged[0] >= budget:
            return OPEN
        board.taken[size] = pixel
        column = board.columns[pixel]
        before = board.base[size]
        after = board.base[size + 1]
        for k in range(width):
            after[k] = before[k] + column[k]
        found = prove(board, table, leaf, size + 1, claim, budget)
        if found == settles:
            outcome = settles
            _to_front(order, place)
            break
        if found == OPEN:
            return OPEN
    if outcome == LAST_WINS:
        _note(table, board, slot, bit, 0)
    else:
        _note(table, board, slot, 0, bit)
    return outcome


@jit
def judge_set(board, leaf, size, claim):  # type: ignore[no-untyped-def]
    """Who wins a claim on the finished set whose first layer is `base[size]`: LAST_WINS or OTHER_WINS."""
    base = board.base[size]
    for k in range(base.shape[0]):
        board.hidden[0, k] = max(np.float32(0.0), base[k])
    second_layer(board.hidden, leaf, board.second, 1)
    won = _claims_won(board.second[0], leaf, board.label, board.last_is_honest)
    return LAST_WINS if (won >> claim) & 1 else OTHER_WINS
