"""Memory of search trees: parallel arrays, blocks of children, and moving a tree's root.

A tree is a handful of parallel arrays (`Arena`). An *entry* is an edge and the node below it; the visited children of a node are one
contiguous block of entries, so selection reads two short arrays in order. Children that were never visited share one score and are not
stored: memory grows with the rollouts, never with the 784 pixels. A block that is full is copied to one of twice its size and its old
place goes to a free list.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from debate_rl.search.compiled import inlined, jit

UNEXPANDED = -1  # `children` of an entry without children
TERMINAL = -2  # `children` of an entry whose value is exact and never evaluated again
SIZE_CLASSES = 12  # blocks hold 2, 4, …, 2**12 entries


class Arena(NamedTuple):
    """Memory of `S` trees of at most `C` entries each. Entry 0 is the root."""

    mean: NDArray[np.float32]  # (S, C) mean value for the seat that chose the edge
    explore: NDArray[np.float32]  # (S, C) 1 / (1 + visits)
    visits: NDArray[np.int32]  # (S, C)
    action: NDArray[np.int16]  # (S, C) index into the image's list of legal pixels
    children: NDArray[np.int32]  # (S, C) first entry of the children's block, UNEXPANDED or TERMINAL
    n_children: NDArray[np.int16]  # (S, C)
    used: NDArray[np.int32]  # (S,) entries handed out so far
    free: NDArray[np.int32]  # (S, SIZE_CLASSES) heads of the free lists, -1 where empty


def new_arena(slots: int, capacity: int) -> Arena:
    """Memory for `slots` trees of `capacity` entries."""
    shape = (slots, capacity)
    return Arena(
        np.empty(shape, np.float32),
        np.empty(shape, np.float32),
        np.empty(shape, np.int32),
        np.empty(shape, np.int16),
        np.empty(shape, np.int32),
        np.empty(shape, np.int16),
        np.zeros(slots, np.int32),
        np.full((slots, SIZE_CLASSES), -1, np.int32),
    )


def entries_needed(rollouts: int) -> int:
    """Entries that are enough for any tree of so many rollouts: each adds one child, and blocks are at most half empty (and their
    outgrown forms, which the free lists give back, at most as large again)."""
    return 4 * rollouts + 64


@jit
def reset_tree(arena, slot):  # type: ignore[no-untyped-def]
    """Make a slot's tree a lone root."""
    arena.mean[slot, 0] = 0.0
    arena.explore[slot, 0] = 0.5
    arena.visits[slot, 0] = 1  # as every entry: one visit more than its children have together
    arena.action[slot, 0] = -1
    arena.children[slot, 0] = UNEXPANDED
    arena.n_children[slot, 0] = 0
    arena.used[slot] = 1
    arena.free[slot] = -1


@inlined
def _take_block(arena, slot, size_class):  # type: ignore[no-untyped-def]
    """A block of `2 << size_class` entries."""
    start = arena.free[slot, size_class]
    if start >= 0:
        arena.free[slot, size_class] = arena.children[slot, start]
        return start
    start = arena.used[slot]
    arena.used[slot] = start + (2 << size_class)
    return start


@inlined
def add_child(arena, slot, node, action):  # type: ignore[no-untyped-def]
    """Append a child to a node, moving its block to a larger place when it is full. Returns the child's entry."""
    count = np.int64(arena.n_children[slot, node])
    start = np.int64(arena.children[slot, node])
    if count == 0:
        start = np.int64(_take_block(arena, slot, 0))
        arena.children[slot, node] = start
    elif count >= 2 and count & (count - 1) == 0:  # a power of two: the block is full
        size_class = 0
        while (2 << size_class) < count:
            size_class += 1
        new = np.int64(_take_block(arena, slot, size_class + 1))
        for i in range(count):
            arena.mean[slot, new + i] = arena.mean[slot, start + i]
            arena.explore[slot, new + i] = arena.explore[slot, start + i]
            arena.visits[slot, new + i] = arena.visits[slot, start + i]
            arena.action[slot, new + i] = arena.action[slot, start + i]
            arena.children[slot, new + i] = arena.children[slot, start + i]
            arena.n_children[slot, new + i] = arena.n_children[slot, start + i]
        arena.children[slot, start] = arena.free[slot, size_class]
        arena.free[slot, size_class] = start
        start = new
        arena.children[slot, node] = start
    entry = start + count
    arena.mean[slot, entry] = 0.0
    arena.explore[slot, entry] = 1.0
    arena.visits[slot, entry] = 0
    arena.action[slot, entry] = action
    arena.children[slot, entry] = UNEXPANDED
    arena.n_children[slot, entry] = 0
    arena.n_children[slot, node] = count + 1
    return entry


@jit
def _move_child(arena, slot, spare, old, new):  # type: ignore[no-untyped-def]
    spare.mean[0, new] = arena.mean[slot, old]
    spare.explore[0, new] = arena.explore[slot, old]
    spare.visits[0, new] = arena.visits[slot, old]
    spare.action[0, new] = arena.action[slot, old]
    spare.children[0, new] = arena.children[slot, old]
    spare.n_children[0, new] = arena.n_children[slot, old]


@jit
def rebase_tree(arena, slot, actions, spare, stack):  # type: ignore[no-untyped-def]
    """Make the node reached from the root by `actions` (indices of legal pixels) the new root, and drop all else.

    `spare` is an arena of one slot of the same capacity, `stack (C,)` int64 working memory. A path that leaves the tree, or ends in a
    finished game, empties it (`used = 0`).
    """
    node = np.int64(0)
    for action in actions:
        start = np.int64(arena.children[slot, node])
        found = np.int64(-1)
        for entry in range(start, start + np.int64(arena.n_children[slot, node])):
            if arena.action[slot, entry] == action:
                found = np.int64(entry)
        if found < 0 or arena.children[slot, found] == TERMINAL:
            arena.used[slot] = 0
            return
        node = found
    reset_tree(spare, 0)
    _move_child(arena, slot, spare, node, 0)
    stack[0] = 0
    height = 1
    while height > 0:
        height -= 1
        parent = stack[height]
        count = np.int64(spare.n_children[0, parent])
        if count == 0:
            continue
        size_class = 0
        while (2 << size_class) < count:
            size_class += 1
        old = np.int64(spare.children[0, parent])
        new = np.int64(_take_block(spare, 0, size_class))
        spare.children[0, parent] = new
        for i in range(count):
            _move_child(arena, slot, spare, old + i, new + i)
            stack[height] = new + i
            height += 1
    used = spare.used[0]
    arena.mean[slot, :used] = spare.mean[0, :used]
    arena.explore[slot, :used] = spare.explore[0, :used]
    arena.visits[slot, :used] = spare.visits[0, :used]
    arena.action[slot, :used] = spare.action[0, :used]
    arena.children[slot, :used] = spare.children[0, :used]
    arena.n_children[slot, :used] = spare.n_children[0, :used]
    arena.used[slot] = used
    arena.free[slot] = -1
