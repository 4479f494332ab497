"""The paper's network on a few revealed pixels, several times faster than on planes and the same function.

With `K` pixels revealed, the first convolution differs from its bias only in their 5 x 5 neighbourhoods: after the pool, in at most 9
cells per pixel ("touched" cells) of 14 x 14. So the second convolution is that of a constant map, one for the whole batch, plus the
kernel times what the touched cells differ by. Its outputs, pooled, are dense again and go through the dense layers as they are.

`B` is the batch, `K` the pixels revealed, `N` the touched cells of a batch. Cells are numbered `row * 14 + column`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from debate_rl.games.pixels import SIDE
from debate_rl.judges.networks import PaperConvNet

KERNEL: Final = 5  # pixels along an edge of both convolutions
REACH: Final = KERNEL // 2
HALF: Final = SIDE // 2  # cells along an edge after the first pool
QUARTER: Final = HALF // 2  # and after the second
PADDED: Final = HALF + 2 * REACH


def sparse_logits(network: PaperConvNet, pixels: NDArray[np.int16], values: NDArray[np.float32], dropped: Tensor | None = None) -> Tensor:
    """Logits `(B, 10)` of revealed pixels `(B, K)` (-1 where none) and their values `(B, K)` in [0, 1], with gradients. On the CPU only."""
    starts, cells = touched_cells(pixels)
    first = network.conv1
    hidden = _first(first.weight, cast(Tensor, first.bias), pixels, values, starts, cells)  # (N, 32)
    constant = functional.relu(cast(Tensor, first.bias))  # (32,) what an untouched cell holds
    background = network.conv2(constant.view(1, -1, 1, 1).expand(1, -1, HALF, HALF))[0].permute(1, 2, 0)  # (14, 14, 64)
    kernel = network.conv2.weight.permute(1, 2, 3, 0).reshape(len(constant), -1)  # (32, 25 * 64)
    spread = (hidden - constant) @ kernel  # (N, 25 * 64)
    pooled = _second(spread, background.contiguous(), starts, cells)  # (B, 64 * 49)
    return network.tail(pooled, dropped)


def touched_cells(pixels: NDArray[np.int16]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The cells that the pixels `(B, K)` touch, `(N,)`, rising within an image; image `i` has `[starts[i]:starts[i + 1]]` of them."""
    starts = np.zeros(len(pixels) + 1, dtype=np.int64)
    cells = np.empty(len(pixels) * min(9 * pixels.shape[1], HALF * HALF), dtype=np.int64)
    _touched(pixels, starts, cells)
    return starts, cells[: starts[-1]]


class _FirstLayer(torch.autograd.Function):
    """conv1, relu and pool in the touched cells: `(N, 32)`."""

    @staticmethod
    def forward(
        ctx: Any,
        weight: Tensor,
        bias: Tensor,
        pixels: NDArray[np.int16],
        values: NDArray[np.float32],
        starts: NDArray[np.int64],
        cells: NDArray[np.int64],
    ) -> Tensor:
        kernel = weight.detach().permute(1, 2, 3, 0).contiguous().numpy()  # (2, 5, 5, 32)
        out = np.empty((len(cells), len(bias)), dtype=np.float32)
        best = np.empty(out.shape, dtype=np.int8)
        _first_forward(pixels, values, starts, cells, kernel, bias.detach().numpy(), out, best)
        ctx.saved = (pixels, values, starts, cells, best, kernel.shape)
        return torch.from_numpy(out)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        pixels, values, starts, cells, best, shape = ctx.saved
        kernel = np.zeros(shape, dtype=np.float32)
        bias = np.zeros(shape[-1], dtype=np.float32)
        _first_backward(pixels, values, starts, cells, best, gradients[0].contiguous().numpy(), kernel, bias)
        return torch.from_numpy(kernel).permute(3, 0, 1, 2), torch.from_numpy(bias), None, None, None, None


class _SecondPool(torch.autograd.Function):
    """Add what the touched cells spread to the constant map's convolution, relu and pool: `(B, 64 * 49)`, channels first."""

    @staticmethod
    def forward(ctx: Any, spread: Tensor, background: Tensor, starts: NDArray[np.int64], cells: NDArray[np.int64]) -> Tensor:
        batch, channels = len(starts) - 1, background.shape[2]
        out = np.empty((batch, channels, QUARTER * QUARTER), dtype=np.float32)
        best = np.empty((batch, QUARTER * QUARTER, channels), dtype=np.int8)
        _second_forward(spread.detach().numpy(), background.detach().numpy(), starts, cells, out, best)
        ctx.saved = (starts, cells, best)
        return torch.from_numpy(out.reshape(batch, -1))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        starts, cells, best = ctx.saved
        channels = best.shape[2]
        gradient = gradients[0].contiguous().numpy().reshape(len(best), channels, -1)
        spread = np.empty((len(cells), KERNEL * KERNEL * channels), dtype=np.float32)
        background = np.zeros((HALF, HALF, channels), dtype=np.float32)
        _second_backward(gradient, starts, cells, best, spread, background)
        return torch.from_numpy(spread), torch.from_numpy(background), None, None


_first = cast("Callable[..., Tensor]", _FirstLayer.apply)
_second = cast("Callable[..., Tensor]", _SecondPool.apply)


@njit(cache=True, nogil=True)
def _touched(pixels, starts, cells):  # type: ignore[no-untyped-def]
    marked = np.zeros(HALF * HALF, dtype=np.bool_)
    count = 0
    for image in range(len(pixels)):
        marked[:] = False
        for pixel in pixels[image]:
            if pixel >= 0:
                row, column = pixel // SIDE, pixel % SIDE
                for r in range(max(0, row - REACH) // 2, min(SIDE - 1, row + REACH) // 2 + 1):
                    for c in range(max(0, column - REACH) // 2, min(SIDE - 1, column + REACH) // 2 + 1):
                        marked[r * HALF + c] = True
        for cell in range(HALF * HALF):
            if marked[cell]:
                cells[count] = cell
                count += 1
        starts[image + 1] = count


@njit(cache=True, nogil=True, fastmath=True)
def _first_forward(pixels, values, starts, cells, kernel, bias, out, best):  # type: ignore[no-untyped-def]
    channels = len(bias)
    total = np.empty(channels, dtype=np.float32)
    for image in range(len(pixels)):
        for n in range(starts[image], starts[image + 1]):
            row, column = 2 * (cells[n] // HALF), 2 * (cells[n] % HALF)
            for place in range(4):
                r, c = row + place // 2, column + place % 2
                total[:] = bias
                for j in range(pixels.shape[1]):
                    pixel = pixels[image, j]
                    if pixel >= 0:
                        # a convolution here is a correlation: out[r, c] = sum of kernel[y, x] * in[r + y - 2, c + x - 2]
                        y, x = pixel // SIDE - r + REACH, pixel % SIDE - c + REACH
                        if 0 <= y < KERNEL and 0 <= x < KERNEL:
                            value = values[image, j]
                            for k in range(channels):
                                total[k] += kernel[0, y, x, k] + value * kernel[1, y, x, k]
                for k in range(channels):
                    if place == 0 or total[k] > out[n, k]:
                        out[n, k] = total[k]
                        best[n, k] = place
            for k in range(channels):
                if not out[n, k] > 0.0:
                    out[n, k] = 0.0
                    best[n, k] = -1  # relu is shut: no gradient


@njit(cache=True, nogil=True, fastmath=True)
def _first_backward(pixels, values, starts, cells, best, gradient, kernel, bias):  # type: ignore[no-untyped-def]
    for image in range(len(pixels)):
        for n in range(starts[image], starts[image + 1]):
            row, column = 2 * (cells[n] // HALF), 2 * (cells[n] % HALF)
            for k in range(len(bias)):
                place = best[n, k]
                if place >= 0:
                    bias[k] += gradient[n, k]
            for j in range(pixels.shape[1]):
                pixel = pixels[image, j]
                if pixel >= 0:
                    value = values[image, j]
                    for place in range(4):
                        y = pixel // SIDE - row - place // 2 + REACH
                        x = pixel % SIDE - column - place % 2 + REACH
                        if 0 <= y < KERNEL and 0 <= x < KERNEL:
                            for k in range(len(bias)):
                                g = gradient[n, k] if best[n, k] == place else np.float32(0.0)
                                kernel[0, y, x, k] += g
                                kernel[1, y, x, k] += value * g


@njit(cache=True, nogil=True, fastmath=True)
def _second_forward(spread, background, starts, cells, out, best):  # type: ignore[no-untyped-def]
    channels = background.shape[2]
    sums = np.zeros((PADDED, PADDED, channels), dtype=np.float32)  # a rim, so that no tap needs a test
    top = np.empty(channels, dtype=np.float32)
    for image in range(len(out)):
        sums[REACH : REACH + HALF, REACH : REACH + HALF] = background
        for n in range(starts[image], starts[image + 1]):
            row, column = cells[n] // HALF, cells[n] % HALF
            for y in range(KERNEL):
                for x in range(KERNEL):
                    # the cell is read at tap (y, x) by the output two rows and columns away from it, less the tap
                    target = sums[row + 2 * REACH - y, column + 2 * REACH - x]
                    source = spread[n, (y * KERNEL + x) * channels : (y * KERNEL + x + 1) * channels]
                    for k in range(channels):
                        target[k] += source[k]
        for cell in range(QUARTER * QUARTER):
            row, column = 2 * (cell // QUARTER) + REACH, 2 * (cell % QUARTER) + REACH
            places = best[image, cell]
            top[:] = sums[row, column]
            places[:] = 0
            for place in range(1, 4):
                other = sums[row + place // 2, column + place % 2]
                for k in range(channels):
                    if other[k] > top[k]:
                        top[k] = other[k]
                        places[k] = place
            for k in range(channels):
                if not top[k] > 0.0:
                    top[k] = 0.0
                    places[k] = -1
                out[image, k, cell] = top[k]


@njit(cache=True, nogil=True, fastmath=True)
def _second_backward(gradient, starts, cells, best, spread, background):  # type: ignore[no-untyped-def]
    channels = background.shape[2]
    sums = np.zeros((PADDED, PADDED, channels), dtype=np.float32)
    for image in range(len(gradient)):
        sums[:] = 0.0
        for cell in range(QUARTER * QUARTER):
            row, column = 2 * (cell // QUARTER), 2 * (cell % QUARTER)
            for k in range(channels):
                place = best[image, cell, k]
                if place >= 0:
                    g = gradient[image, k, cell]
                    sums[row + place // 2 + REACH, column + place % 2 + REACH, k] = g
                    background[row + place // 2, column + place % 2, k] += g
        for n in range(starts[image], starts[image + 1]):
            row, column = cells[n] // HALF, cells[n] % HALF
            for y in range(KERNEL):
                for x in range(KERNEL):
                    source = sums[row + 2 * REACH - y, column + 2 * REACH - x]
                    target = spread[n, (y * KERNEL + x) * channels : (y * KERNEL + x + 1) * channels]
                    for k in range(channels):
                        target[k] = source[k]
