"""Sparse masks: drawing pixels to reveal, turning them into planes, and the first layer of the `mlp` judge forwards and backwards.

`B` is the batch, `K` the pixels revealed per image, `I` the number of images. A list of pixels is padded with -1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np
from numba import njit
from numpy.typing import NDArray

from debate_rl.errors import UserError
from debate_rl.games.pixels import PIXELS_PER_IMAGE, SIDE, legal_pixels

# How training draws masks where black pixels may be revealed too: from all legal pixels, from those at most NEAR rows and columns from a
# lit one, or for every other image from the lit pixels alone.
Masks = Literal["uniform", "near", "mixed"]
MASKS: Final[tuple[Masks, ...]] = get_args(Masks)
NEAR: Final = 2


@dataclass(frozen=True)
class PixelPool:
    """The pixels of each image that may be revealed, flat: image `i` has `pixels[offsets[i]:offsets[i + 1]]`, in rising order."""

    offsets: NDArray[np.int64]  # (I + 1,)
    pixels: NDArray[np.int16]  # (total,)


def pixel_pool(images: NDArray[np.uint8], threshold: float = 0.0, black: bool = False) -> PixelPool:
    """Which pixels of images `(I, 784)` or `(I, 28, 28)` may be revealed: value / 255 above the threshold, or all of them with `black`."""
    flat = images.reshape(len(images), -1)
    if flat.shape[1] != PIXELS_PER_IMAGE:
        raise UserError(f"an image has {flat.shape[1]} pixels; the judges take {SIDE} x {SIDE} = {PIXELS_PER_IMAGE}")
    return _pool_of(legal_pixels(flat, threshold=threshold, black=black))


def training_pools(images: NDArray[np.uint8], threshold: float, black: bool, masks: Masks) -> tuple[PixelPool, ...]:
    """The pools that training draws from, each with the same chance for every mask; arguments as in `pixel_pool`."""
    pool = pixel_pool(images, threshold, black)
    if masks == "uniform":
        return (pool,)
    if masks == "mixed":
        return pool, pixel_pool(images, threshold)
    lit = legal_pixels(images.reshape(len(images), -1), threshold=threshold).reshape(-1, SIDE, SIDE)
    padded = np.pad(lit, ((0, 0), (NEAR, NEAR), (NEAR, NEAR)))
    close = np.zeros_like(lit)
    for down in range(2 * NEAR + 1):
        for right in range(2 * NEAR + 1):
            close |= padded[:, down : down + SIDE, right : right + SIDE]
    return (_pool_of(close.reshape(len(images), -1)),)


def _pool_of(allowed: NDArray[np.bool_]) -> PixelPool:
    offsets = np.zeros(len(allowed) + 1, dtype=np.int64)
    np.cumsum(allowed.sum(1), out=offsets[1:])
    return PixelPool(offsets, np.nonzero(allowed)[1].astype(np.int16))


def draw_training_masks(
    pools: tuple[PixelPool, ...], image_of: NDArray[np.integer], pixels: int, generator: np.random.Generator
) -> NDArray[np.int16]:
    """As `draw_masks`, every row from one of `training_pools` at random."""
    if len(pools) == 1:
        return draw_masks(pools[0], image_of, pixels, generator)
    chosen = generator.integers(len(pools), size=len(image_of))
    drawn = np.stack([draw_masks(pool, image_of, pixels, generator) for pool in pools])
    return drawn[chosen, np.arange(len(image_of))]


def draw_masks(pool: PixelPool, image_of: NDArray[np.integer], pixels: int, generator: np.random.Generator) -> NDArray[np.int16]:
    """Random pixels to reveal `(B, K)`, without replacement, uniform over the sets of `pixels` = K legal pixels of each image.

    An image with fewer than K legal pixels has all of them revealed; the rest of its row is -1.
    """
    uniforms = generator.random((len(image_of), pixels))
    out = np.empty((len(image_of), pixels), dtype=np.int16)
    _draw(pool.offsets, pool.pixels, np.asarray(image_of, dtype=np.int64), uniforms, out)
    return out


def pixel_values(images: NDArray[np.uint8], image_of: NDArray[np.integer], pixels: NDArray[np.int16]) -> NDArray[np.float32]:
    """Values in [0, 1] `(B, K)` of the revealed pixels `(B, K)` of images `(I, 784)`; 0 where a row is padded."""
    values = images[np.asarray(image_of)[:, None], pixels].astype(np.float32) / np.float32(255.0)  # -1 reads the last pixel: masked next
    values[pixels < 0] = 0.0
    return values


def mask_planes(pixels: NDArray[np.int16], values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Planes `(B, 2, 28, 28)` of revealed pixels `(B, K)` and their values `(B, K)`."""
    planes = np.zeros((len(pixels), 2, PIXELS_PER_IMAGE), dtype=np.float32)
    rows, columns = np.nonzero(pixels >= 0)
    at = pixels[rows, columns]
    planes[rows, 0, at] = 1.0
    planes[rows, 1, at] = values[rows, columns]
    return planes.reshape(-1, 2, SIDE, SIDE)


@njit(cache=True, nogil=True)
def _draw(offsets, pool, image_of, uniforms, out):  # type: ignore[no-untyped-def]
    # Floyd's sampling: one uniform per pixel, whatever the number of legal pixels
    wanted = out.shape[1]
    chosen = np.empty(wanted, dtype=np.int64)
    for row in range(len(out)):
        start = offsets[image_of[row]]
        legal = offsets[image_of[row] + 1] - start
        if legal <= wanted:
            for k in range(wanted):
                out[row, k] = pool[start + k] if k < legal else -1
            continue
        for k in range(wanted):
            last = legal - wanted + k
            pick = np.int64(uniforms[row, k] * (last + 1))
            for before in range(k):
                if chosen[before] == pick:
                    pick = last
                    break
            chosen[k] = pick
            out[row, k] = pool[start + pick]


@njit(cache=True, nogil=True, fastmath=True)
def add_columns(pixels, values, w_mask, w_value, b1, out):  # type: ignore[no-untyped-def]
    """First layer before its relu: `out (B, H1) = b1 + Σ_j w_mask[pixel_j] + value_j * w_value[pixel_j]`."""
    width = out.shape[1]
    for row in range(len(out)):
        h = out[row]
        h[:] = b1
        for j in range(pixels.shape[1]):
            pixel = pixels[row, j]
            if pixel >= 0:
                value = values[row, j]
                mask_column = w_mask[pixel]
                value_column = w_value[pixel]
                for k in range(width):
                    h[k] += mask_column[k] + value * value_column[k]


@njit(cache=True, nogil=True, fastmath=True)
def scatter_columns(pixels, values, gradient, mask, value):  # type: ignore[no-untyped-def]
    """The transpose of `add_columns`: adds the gradient `(B, H1)` of its output to those of its weights, `mask` and `value` `(784, H1)`."""
    width = gradient.shape[1]
    for row in range(len(gradient)):
        g = gradient[row]
        for j in range(pixels.shape[1]):
            pixel = pixels[row, j]
            if pixel >= 0:
                v = values[row, j]
                mask_row = mask[pixel]
                value_row = value[pixel]
                for k in range(width):
                    mask_row[k] += g[k]
                    value_row[k] += v * g[k]
