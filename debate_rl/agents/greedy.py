"""The debater that looks one move ahead."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from debate_rl.games.pixels import NO_MOVE, PIXELS_PER_IMAGE, GameBatch
from debate_rl.judges.kernels import JudgeWeights, class_logit, leaf_weights, second_layer


class GreedyAgent:
    """Reveals the pixel after which the judge favours its seat most, as if the game ended there.

    The honest seat maximises its lead `logits[label] - logits[lie]` (without precommitment: over the best other class), the liar minimises
    it. Equal leads go to the pixel with the lowest index; nothing is random.
    """

    name = "greedy"

    def __init__(self, weights: JudgeWeights) -> None:
        """Build the agent for one judge."""
        self._weights = weights
        self._leaf = leaf_weights(weights)

    def settings(self) -> dict[str, Any]:
        """Its name: it has no settings."""
        return {"name": self.name}

    def choose(self, games: GameBatch, seeds: NDArray[np.uint64]) -> NDArray[np.int16]:
        """One move per debate, `(B,)`; see `Agent.choose`. The seeds are not used."""
        # Debates in the same position (nine lies, both commit modes, both orders of an image) share the judge's ten logits per reply.
        moves = np.sort(games.moves.astype(np.int64), axis=1)  # (B, P) sorted, so that a position is a set to the last bit
        keys = np.concatenate([games.image_of[:, None].astype(np.int64), moves], axis=1)
        _, place = np.unique(keys, axis=0, return_inverse=True)
        order = np.argsort(place.ravel(), kind="stable")
        starts = np.append(np.flatnonzero(np.diff(place.ravel()[order], prepend=-1)), games.size)  # (G + 1,)
        chosen = np.full(games.size, NO_MOVE, dtype=np.int16)
        _best_replies(
            self._weights.w_mask,
            self._weights.w_value,
            self._leaf,
            games.images,
            games.legal,
            games.image_of,
            moves,
            games.labels,
            games.lies,
            games.movers(),
            order,
            starts,
            chosen,
        )
        return chosen


_BLOCK = 32  # replies judged at a time: their hidden layers stay in the first-level cache


@njit(cache=True, nogil=True, parallel=True)
def _best_replies(  # type: ignore[no-untyped-def]
    w_mask, w_value, leaf, images, legal, image_of, moves, labels, lies, movers, order, starts, chosen
):
    """The best reply of each debate into `chosen (B,)`; debates `order[starts[g]:starts[g + 1]]` share position `g`."""
    for group in prange(len(starts) - 1):
        members = order[starts[group] : starts[group + 1]]
        _reply_to_one(w_mask, w_value, leaf, images, legal, image_of, moves, labels, lies, movers, members, chosen)


@njit(cache=True, nogil=True)
def _reply_to_one(  # type: ignore[no-untyped-def]
    w_mask, w_value, leaf, images, legal, image_of, moves, labels, lies, movers, members, chosen
):
    """The best reply of each of the debates `members`, all in the same position."""
    width = w_mask.shape[1]
    classes = leaf.w3t.shape[0]
    position = members[0]
    image = images[image_of[position]]
    open_pixels = legal[image_of[position]].copy()
    base = leaf.b1.copy()
    for pixel in moves[position]:
        if pixel >= 0:
            open_pixels[pixel] = False
            value = np.float32(image[pixel]) / np.float32(255.0)
            for k in range(width):
                base[k] += w_mask[pixel, k] + value * w_value[pixel, k]
    hidden = np.zeros((_BLOCK, width), dtype=np.float32)
    second = np.zeros((_BLOCK, leaf.w2t.shape[0]), dtype=np.float32)
    logits = np.empty(classes, dtype=np.float32)
    replies = np.empty(_BLOCK, dtype=np.int64)
    best = np.full(len(members), np.float32(-np.inf))
    pixel = 0
    while pixel < PIXELS_PER_IMAGE:
        rows = 0
        while pixel < PIXELS_PER_IMAGE and rows < _BLOCK:
            if open_pixels[pixel]:
                replies[rows] = pixel
                value = np.float32(image[pixel]) / np.float32(255.0)
                for k in range(width):
                    hidden[rows, k] = max(np.float32(0.0), base[k] + w_mask[pixel, k] + value * w_value[pixel, k])
                rows += 1
            pixel += 1
        second_layer(hidden, leaf, second, rows)
        for row in range(rows):
            for klass in range(classes):
                logits[klass] = class_logit(second[row], leaf, klass)
            for place in range(len(members)):
                game = members[place]
                label = labels[game]
                rival = np.float32(-np.inf)
                if lies[game] >= 0:
                    rival = logits[lies[game]]
                else:
                    for klass in range(classes):
                        if klass != label:
                            rival = max(rival, logits[klass])
                lead = logits[label] - rival
                gain = lead if movers[game] == 0 else -lead
                if gain > best[place] or chosen[game] < 0:
                    best[place] = gain
                    chosen[game] = replies[row]
