"""The sparse `mlp` judge as numpy/numba kernels: what a leaf of the search costs.

The first layer of the judge is a sum of one column per revealed pixel, `column_p = w_mask[p] + value_p * w_value[p]`, so a
position's hidden layer comes from its parent's by one addition. A position is a *set* of pixels: the order of reveals and who
made them never reaches the judge.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from debate_rl.errors import UserError
from debate_rl.games.pixels import CLASSES, PIXELS_PER_IMAGE

Float32 = NDArray[np.float32]


class JudgeWeights(NamedTuple):
    """Weights of an `mlp` judge, float32 and C-contiguous, ready for numba. `H1`, `H2` are the widths of the hidden layers."""

    w_mask: Float32  # (784, H1) column of a revealed pixel
    w_value: Float32  # (784, H1) times the pixel's value in [0, 1]
    b1: Float32  # (H1,)
    w2: Float32  # (H1, H2)
    b2: Float32  # (H2,)
    w3: Float32  # (H2, 10)
    b3: Float32  # (10,)


class LeafWeights(NamedTuple):
    """The same weights laid out for `second_layer`: rows of the later layers contiguous over what they sum."""

    b1: Float32  # (H1,)
    w2t: Float32  # (H2, H1)
    b2: Float32  # (H2,)
    w3t: Float32  # (10, H2)
    b3: Float32  # (10,)


def leaf_weights(weights: JudgeWeights) -> LeafWeights:
    """Lay a judge's later layers out for the kernels. `H1` and `H2` must be multiples of 4."""
    width, second = weights.w2.shape
    if width % 4 or second % 4:
        raise UserError(f"the kernels need hidden layers whose widths are multiples of 4, not {width} and {second}")
    return LeafWeights(
        np.ascontiguousarray(weights.b1, dtype=np.float32),
        np.ascontiguousarray(weights.w2.T, dtype=np.float32),
        np.ascontiguousarray(weights.b2, dtype=np.float32),
        np.ascontiguousarray(weights.w3.T, dtype=np.float32),
        np.ascontiguousarray(weights.b3, dtype=np.float32),
    )


def softmax(logits: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """A judge's probabilities from its logits, over the last axis, in double precision."""
    raised = np.asarray(logits, np.float64)
    raised = np.exp(raised - raised.max(axis=-1, keepdims=True))
    probabilities: NDArray[np.float64] = raised / raised.sum(axis=-1, keepdims=True)
    return probabilities


def image_columns(weights: JudgeWeights, image: NDArray[np.uint8], pixels: NDArray[np.integer]) -> Float32:
    """The first-layer columns `(A, H1)` that revealing each of `pixels` `(A,)` of one image `(784,)` would add."""
    values = image[pixels].astype(np.float32) / np.float32(255.0)
    columns: Float32 = weights.w_mask[pixels] + values[:, None] * weights.w_value[pixels]
    return columns


def set_logits(weights: JudgeWeights, images: NDArray[np.uint8], image_of: NDArray[np.integer], moves: NDArray[np.integer]) -> Float32:
    """The judge's logits `(B, 10)` on sets of revealed pixels.

    Args:
        weights: the judge.
        images: `(I, 784)` uint8.
        image_of: `(B,)` which image each set is about.
        moves: `(B, P)` pixel indices, -1 where none. The order does not matter, to the last bit: columns are added in pixel order.
    """
    ordered = np.sort(np.asarray(moves, dtype=np.int64), axis=1)
    out = np.empty((len(ordered), CLASSES), dtype=np.float32)
    leaf = leaf_weights(weights)
    _set_logits(weights.w_mask, weights.w_value, leaf, images, np.asarray(image_of, dtype=np.int64), ordered, out)
    return out


def reply_logits(weights: JudgeWeights, image: NDArray[np.uint8], revealed: NDArray[np.integer], replies: NDArray[np.integer]) -> Float32:
    """The judge's logits `(A, 10)` after each of the `replies` `(A,)` is added to the `revealed` pixels `(K,)` of one image `(784,)`."""
    moves = np.empty((len(replies), len(revealed) + 1), dtype=np.int64)
    moves[:, :-1] = revealed
    moves[:, -1] = replies
    return set_logits(weights, image.reshape(1, PIXELS_PER_IMAGE), np.zeros(len(replies), dtype=np.int64), moves)


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy")
def second_layer(hidden, leaf, out, rows):  # type: ignore[no-untyped-def]
    """Second hidden layer `relu(W2 h + b2)` of the first `rows` rows of `hidden (M, H1)` into `out (M, H2)`; `rows` is rounded up to even.

    Two rows by four outputs at a time: eight running sums stay in vector registers and each weight that is loaded serves two rows. A row's
    result does not depend on its place or on its neighbours.
    """
    w2t = leaf.w2t
    b2 = leaf.b2
    zero = np.float32(0.0)
    for unit in range(0, w2t.shape[0], 4):
        w_0 = w2t[unit]
        w_1 = w2t[unit + 1]
        w_2 = w2t[unit + 2]
        w_3 = w2t[unit + 3]
        for row in range(0, rows, 2):
            a = hidden[row]
            b = hidden[row + 1]
            a_0 = zero
            a_1 = zero
            a_2 = zero
            a_3 = zero
            b_0 = zero
            b_1 = zero
            b_2 = zero
            b_3 = zero
            for k in range(w_0.shape[0]):
                x = a[k]
                y = b[k]
                a_0 += x * w_0[k]
                a_1 += x * w_1[k]
                a_2 += x * w_2[k]
                a_3 += x * w_3[k]
                b_0 += y * w_0[k]
                b_1 += y * w_1[k]
                b_2 += y * w_2[k]
                b_3 += y * w_3[k]
            out[row, unit] = max(zero, a_0 + b2[unit])
            out[row, unit + 1] = max(zero, a_1 + b2[unit + 1])
            out[row, unit + 2] = max(zero, a_2 + b2[unit + 2])
            out[row, unit + 3] = max(zero, a_3 + b2[unit + 3])
            out[row + 1, unit] = max(zero, b_0 + b2[unit])
            out[row + 1, unit + 1] = max(zero, b_1 + b2[unit + 1])
            out[row + 1, unit + 2] = max(zero, b_2 + b2[unit + 2])
            out[row + 1, unit + 3] = max(zero, b_3 + b2[unit + 3])


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy")
def class_logit(second, leaf, klass):  # type: ignore[no-untyped-def]
    """One class's logit from one row `(H2,)` of the second hidden layer."""
    weights = leaf.w3t[klass]
    total = np.float32(0.0)
    for k in range(weights.shape[0]):
        total += second[k] * weights[k]
    return total + leaf.b3[klass]


@njit(cache=True, nogil=True)
def _set_logits(w_mask, w_value, leaf, images, image_of, moves, out):  # type: ignore[no-untyped-def]
    block = 32  # rows per pass: their hidden layers stay in the first-level cache
    width = w_mask.shape[1]
    hidden = np.zeros((block, width), dtype=np.float32)
    second = np.zeros((block, leaf.w2t.shape[0]), dtype=np.float32)
    for start in range(0, len(moves), block):
        rows = min(block, len(moves) - start)
        for row in range(rows):
            h = hidden[row]
            h[:] = leaf.b1
            image = images[image_of[start + row]]
            for pixel in moves[start + row]:
                if pixel >= 0:
                    value = np.float32(image[pixel]) / np.float32(255.0)
                    mask_column = w_mask[pixel]
                    value_column = w_value[pixel]
                    for k in range(width):
                        h[k] += mask_column[k] + value * value_column[k]
            for k in range(width):
                h[k] = max(np.float32(0.0), h[k])
        second_layer(hidden, leaf, second, rows)
        for row in range(rows):
            for klass in range(out.shape[1]):
                out[start + row, klass] = class_logit(second[row], leaf, klass)
