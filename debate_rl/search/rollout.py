"""Compiled PUCT for the sparse-pixel debate: many trees in lock-step, one judge pass for all their leaves.

`_search_group` advances the trees of a few games together. Each descends until it reaches a leaf that the judge has to see; the leaves'
hidden layers then go through `second_layer` in one pass. Trees never share anything, so a game's moves do not depend on the group, on
the batch or on the number of threads.

Values are kept from the point of view of the seat that chose the edge, in [-1, 1].
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import get_thread_id, njit, prange
from numpy.typing import NDArray

from debate_rl.games.pixels import HONEST
from debate_rl.judges.kernels import second_layer
from debate_rl.search.arena import TERMINAL, add_child, reset_tree
from debate_rl.search.compiled import inlined, inlined_fastmath, jit
from debate_rl.search.endgame import endgame_memory, position_value
from debate_rl.search.leaf import among, honest_lead, leaf_value, relu_sum

GROUP = 8  # trees advanced together: enough leaves to fill a judge pass, few enough to stay near the core

PLAYOUT, PARTIAL = 0, 1
KNOWN, WAIT, SOLVE = 0, 1, 2  # what a leaf needs: nothing, the judge, or exact play


class Positions(NamedTuple):
    """What the kernel needs to know of `B` games over `I` images."""

    columns: NDArray[np.float32]  # (I, A, H1) first-layer column of each legal pixel
    pixels: NDArray[np.int16]  # (I, A) the legal pixels, ascending
    n_pixels: NDArray[np.int32]  # (I,) how many of them there are
    image_of: NDArray[np.int32]  # (B,)
    labels: NDArray[np.int8]  # (B,)
    lies: NDArray[np.int8]  # (B,)
    first: NDArray[np.int8]  # (B,)
    revealed: NDArray[np.int16]  # (B, P) indices into the legal pixels, -1 where none yet
    counts: NDArray[np.int16]  # (B,)


class Options(NamedTuple):
    """Search settings as the kernel takes them."""

    rollouts: int
    c_puct: np.float32
    leaf: int  # PLAYOUT or PARTIAL
    value: int  # WIN or MARGIN
    exact_plies: int  # positions with at most so many pixels to go are solved
    reuse: bool  # slots hold a tree to go on from where `used > 0`


@inlined
def _random_below(states, slot, bound):  # type: ignore[no-untyped-def]
    """A uniform integer in [0, bound) from the slot's splitmix64 stream (Steele, Lea, Flood 2014)."""
    state = states[slot] + np.uint64(0x9E3779B97F4A7C15)
    states[slot] = state
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    state = state ^ (state >> np.uint64(31))
    return np.int64(((state >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


@inlined_fastmath
def _best_score(mean, explore, weight, scores):  # type: ignore[no-untyped-def]
    """Scores `Q + weight / (1 + N)` of a block into `scores`, and their maximum."""
    best = np.float32(-4.0)  # below any score: Q is at least -1
    for i in range(mean.shape[0]):
        score = mean[i] + weight * explore[i]
        scores[i] = score
        best = max(best, score)
    return best


@inlined
def _select(arena, slot, node, unvisited, prior, c_puct, scores, states):  # type: ignore[no-untyped-def]
    """The child to descend into, or -1 for one never visited. Ties are broken uniformly at random."""
    count = np.int64(arena.n_children[slot, node])
    if count == 0:
        return np.int64(-1)
    start = np.int64(arena.children[slot, node])
    weight = np.float32(c_puct * prior * np.sqrt(np.float32(arena.visits[slot, node] - 1)))
    best = _best_score(arena.mean[slot, start : start + count], arena.explore[slot, start : start + count], weight, scores)
    tied_unvisited = np.int64(0)
    if unvisited > 0:
        if weight > best:
            return np.int64(-1)
        if weight == best:
            tied_unvisited = unvisited
    ties = np.int64(0)
    for i in range(count):
        ties += np.int64(scores[i] == best)
    pick = np.int64(0)
    if ties + tied_unvisited > 1:
        pick = _random_below(states, slot, ties + tied_unvisited)
        if pick >= ties:
            return np.int64(-1)
    for i in range(count):
        if scores[i] == best:
            if pick == 0:
                return start + i
            pick -= 1
    return np.int64(-1)  # not reached


@inlined
def _draw_pixel(total, taken, n_taken, siblings, states, slot):  # type: ignore[no-untyped-def]
    """A uniformly random legal pixel outside `taken[:n_taken]` and `siblings`. There must be one."""
    while True:
        pixel = _random_below(states, slot, total)
        if not among(taken, n_taken, pixel) and not among(siblings, len(siblings), pixel):
            return pixel


@inlined
def _back_up(arena, slot, path, depth, value, mover):  # type: ignore[no-untyped-def]
    """Add one visit of `value` (for the honest seat) along `path[1:depth + 1]`. `mover` is the root's seat to move."""
    arena.visits[slot, path[0]] += 1
    for level in range(1, depth + 1):
        entry = path[level]
        own = value if (mover + level - 1) % 2 == HONEST else -value
        visits = arena.visits[slot, entry] + 1
        arena.visits[slot, entry] = visits
        arena.mean[slot, entry] += (own - arena.mean[slot, entry]) / np.float32(visits)
        arena.explore[slot, entry] = np.float32(1.0) / np.float32(visits + 1)


@inlined
def _descend(arena, slot, positions, game, options, base, taken, path, leaf, scores, states, hidden):  # type: ignore[no-untyped-def]
    """One rollout's way down. Returns its depth and what the leaf needs: KNOWN, where its value was known already (a finished game seen
    before, a solved end) and is backed up; WAIT, where its hidden row is written; SOLVE, where the position is to be solved.
    """
    image = positions.image_of[game]
    total = np.int64(positions.n_pixels[image])
    columns = positions.columns[image]
    count = np.int64(positions.counts[game])
    length = np.int64(positions.revealed.shape[1])
    mover = (np.int64(positions.first[game]) + count) % 2
    prior = np.float32(1.0) / np.float32(total)
    node = np.int64(0)
    depth = np.int64(0)
    path[0] = 0
    while True:
        taken_now = count + depth
        child = _select(
            arena, slot, node, total - taken_now - np.int64(arena.n_children[slot, node]), prior, options.c_puct, scores, states
        )
        if child >= 0:
            taken[taken_now] = arena.action[slot, child]
            depth += 1
            path[depth] = child
            node = child
            if arena.children[slot, child] != TERMINAL:
                continue
            own = arena.mean[slot, child]
            value = own if (mover + depth - 1) % 2 == HONEST else -own
            _back_up(arena, slot, path, depth, value, mover)
            return depth, KNOWN
        start = max(np.int64(0), np.int64(arena.children[slot, node]))
        siblings = arena.action[slot, start : start + np.int64(arena.n_children[slot, node])]
        pixel = _draw_pixel(total, taken, taken_now, siblings, states, slot)
        child = add_child(arena, slot, node, pixel)
        taken[taken_now] = pixel
        depth += 1
        path[depth] = child
        taken_now += 1
        if taken_now == length:
            arena.children[slot, child] = TERMINAL
        elif length - taken_now <= options.exact_plies:
            arena.children[slot, child] = TERMINAL
            return depth, SOLVE
        stop = taken_now
        if options.leaf == PLAYOUT:
            while stop < length:
                taken[stop] = _draw_pixel(total, taken, stop, siblings[:0], states, slot)
                stop += 1
        relu_sum(base, columns, taken, count, stop, hidden)
        return depth, WAIT


@jit
def _search_group(arena, slots, games, positions, options, leaf, endgame, states, judged):  # type: ignore[no-untyped-def]
    """Run all rollouts of a few games' roots in lock-step. `slots[i]` is the tree of `games[i]`."""
    group = len(games)
    width = positions.columns.shape[2]
    second_width = leaf.w2t.shape[0]
    length = positions.revealed.shape[1]
    widest = positions.columns.shape[1]
    hidden = np.zeros((group + 1, width), np.float32)
    second = np.zeros((group + 1, second_width), np.float32)
    base = np.empty((group, width), np.float32)
    taken = np.full((group, length + 1), -1, np.int64)
    path = np.zeros((group, length + 1), np.int64)
    depths = np.zeros(group, np.int64)
    waiting = np.zeros(group, np.int64)
    scores = np.empty(max(widest, 2), np.float32)
    memory = endgame_memory(positions, games, options, leaf, endgame)
    left = np.full(group, options.rollouts, np.int64)
    sets = np.zeros(group, np.int64)
    movers = np.zeros(group, np.int64)
    for i in range(group):
        game = games[i]
        if not (options.reuse and arena.used[slots[i]] > 0):
            reset_tree(arena, slots[i])
        base[i] = leaf.b1
        movers[i] = (np.int64(positions.first[game]) + np.int64(positions.counts[game])) % 2
        columns = positions.columns[positions.image_of[game]]
        for ply in range(positions.counts[game]):
            taken[i, ply] = positions.revealed[game, ply]
            base[i] += columns[taken[i, ply]]
    while True:
        rows = 0
        for i in range(group):
            while left[i] > 0:
                left[i] -= 1
                depths[i], need = _descend(
                    arena, slots[i], positions, games[i], options, base[i], taken[i], path[i], leaf, scores, states, hidden[rows]
                )
                if need == WAIT:
                    sets[i] += 1
                    waiting[rows] = i
                    rows += 1
                    break
                if need == SOLVE:
                    value, leaves = position_value(positions, games[i], options, base[i], taken[i], depths[i], leaf, endgame, memory, i)
                    sets[i] += leaves
                    _back_up(arena, slots[i], path[i], depths[i], value, movers[i])
        if rows == 0:
            for i in range(group):
                judged[games[i]] = sets[i]
            return
        second_layer(hidden, leaf, second, rows)
        for row in range(rows):
            i = waiting[row]
            game = games[i]
            value = leaf_value(honest_lead(second[row], leaf, positions.labels[game], positions.lies[game]), options.value)
            _back_up(arena, slots[i], path[i], depths[i], value, movers[i])


@jit
def _read_root(arena, slot, game, positions, states, visits, values, moves):  # type: ignore[no-untyped-def]
    """The most visited move (ties at random), all root visits and the root's value for the seat to move."""
    image = positions.image_of[game]
    start = np.int64(arena.children[slot, 0])
    most = np.int64(0)
    ties = np.int64(0)
    total = np.int64(0)
    weighted = 0.0
    for entry in range(start, start + np.int64(arena.n_children[slot, 0])):
        count = np.int64(arena.visits[slot, entry])
        visits[game, positions.pixels[image, arena.action[slot, entry]]] = count
        total += count
        weighted += count * arena.mean[slot, entry]
        if count > most:
            most = count
            ties = np.int64(0)
        ties += np.int64(count == most)
    pick = _random_below(states, slot, ties)
    for entry in range(start, start + np.int64(arena.n_children[slot, 0])):
        if arena.visits[slot, entry] == most:
            if pick == 0:
                moves[game] = positions.pixels[image, arena.action[slot, entry]]
                break
            pick -= 1
    values[game] = weighted / total


@njit(cache=True, nogil=True, error_model="numpy", parallel=True)
def search_games(arena, positions, options, leaf, endgame, seeds, visits, values, moves, judged):  # type: ignore[no-untyped-def]
    """Search every game's position. `seeds (B,)` uint64; fills `visits (B, 784)`, `values (B,)`, `moves (B,)` and `judged (B,)`.

    Without tree reuse a thread's trees live in its own `GROUP` slots, so memory does not grow with the number of games; with it, game `i`
    keeps slot `i`.
    """
    games_in_all = len(positions.labels)
    states = np.zeros(len(arena.used), np.uint64)
    for group in prange((games_in_all + GROUP - 1) // GROUP):
        begin = group * GROUP
        size = min(GROUP, games_in_all - begin)
        games = np.arange(begin, begin + size)
        slots = games.copy() if options.reuse else np.arange(size) + get_thread_id() * GROUP
        for i in range(size):
            states[slots[i]] = seeds[games[i]]
        if options.rollouts > 0:
            _search_group(arena, slots, games, positions, options, leaf, endgame, states, judged)
        for i in range(size):
            _read_root(arena, slots[i], games[i], positions, states, visits, values, moves)
