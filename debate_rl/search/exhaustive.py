"""Exact play by judging every set of four pixels of an image, on any device and with any torch judge.

The proof search (`exact`) looks at few sets, one after another; this looks at all of them, in large passes, which is what a GPU is good
at, and asks nothing of the judge but logits. Only games of four pixels: `A` legal pixels have C(A, 4) sets, 20 million for an ordinary
image of 150.

Operations: C(A, 4) times the judge. For an `mlp` judge of layers `H1` and `H2` a set costs `H1` additions and
`2 (H1 H2 + 10 H2)` floating-point operations: 5.2e11 for 150 pixels and 384 x 32, 5e15 for 10,000 such images, some three minutes at 30
TFLOP/s. The rest is memory traffic: a set's first layer is written and read once, `8 H1` bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from debate_rl.errors import UserError
from debate_rl.games.pixels import CLASSES, HONEST, NO_LIE, PIXELS_PER_IMAGE, SIDE, GameBatch
from debate_rl.judges.kernels import JudgeWeights, image_columns
from debate_rl.search.exact import PROVED_HONEST, PROVED_LIAR, UNPROVED, Solution, by_image_and_order

PIXELS = 4  # in the games that are solved here

Judging = Callable[[Tensor], Tensor]
"""Logits `(R, 10)` of sets `(R, 4)` int64, given as indices of an image's legal pixels."""


@dataclass(frozen=True)
class Values:
    """For which claims the seat that moves last wins, under perfect play of both. Claims as in `proof`: the label's own place is the game
    without precommitment.

    Attributes:
        start: `(10,)` bool, from the empty position.
        after_one: `(10, A)` after each first pixel.
        after_two: `(10, A, A)` after each pair; the diagonal means nothing.
    """

    start: Tensor
    after_one: Tensor
    after_two: Tensor


def judge_with_weights(weights: JudgeWeights, image: NDArray[np.uint8], pixels: NDArray[np.integer], device: torch.device) -> Judging:
    """An `mlp` judge on an image `(784,)` with legal pixels `(A,)`: the first layer is a sum of columns, as in the kernels."""
    columns = torch.from_numpy(image_columns(weights, image, pixels)).to(device)  # (A, H1)
    b1, w2, b2, w3, b3 = (torch.from_numpy(np.ascontiguousarray(array)).to(device) for array in weights[2:])

    def judge(sets: Tensor) -> Tensor:
        hidden = b1 + columns[sets[:, 0]]
        for place in range(1, sets.shape[1]):
            hidden += columns[sets[:, place]]
        return torch.addmm(b3, torch.addmm(b2, hidden.relu_(), w2).relu_(), w3)

    return judge


def judge_with_network(network: nn.Module, image: NDArray[np.uint8], pixels: NDArray[np.integer], device: torch.device) -> Judging:
    """Any network that takes planes `(B, 2, 28, 28)` and gives logits `(B, 10)`; it is used as it is, so put it in `eval` mode and on
    the device before."""
    places = torch.from_numpy(np.asarray(pixels, np.int64)).to(device)
    values = torch.from_numpy(image[pixels].astype(np.float32) / np.float32(255.0)).to(device)

    def judge(sets: Tensor) -> Tensor:
        planes = torch.zeros((len(sets), 2, PIXELS_PER_IMAGE), device=device)
        planes[:, 0].scatter_(1, places[sets], 1.0)
        planes[:, 1].scatter_(1, places[sets], values[sets])
        logits: Tensor = network(planes.view(-1, 2, SIDE, SIDE))
        return logits

    return judge


def claims_won(logits: Tensor, label: int, last_is_honest: bool) -> Tensor:
    """`(R, 10)` bool: the claims that the last mover wins on judged sets with these logits `(R, 10)`. A tie is the liar's."""
    honest = logits[:, label, None] > logits
    honest[:, label] = True
    honest[:, label] = honest.all(dim=1)
    return honest if last_is_honest else ~honest


def solve_games(
    judging_of: Callable[[NDArray[np.uint8], NDArray[np.integer]], Judging],
    games: GameBatch,
    device: torch.device,
    *,
    progress: Callable[[int], object] | None = None,
) -> Solution:
    """Who wins each of `B` debates of four pixels from the start if both sides play perfectly; what `exact.solve` gives, by other means.

    Args:
        judging_of: the judge on an image `(784,)` with legal pixels `(A,)`.
        games: debates without moves.
        device: see `solve_exhaustively`.
        progress: told after each image and order how many debates it settled.

    Raises:
        UserError: debates of another length, or with moves made.
    """
    if games.pixels != PIXELS or games.counts.any():
        raise UserError(f"judging every set solves games of {PIXELS} pixels from their start only")
    found = Solution(np.full(games.size, UNPROVED, np.int8), np.zeros(games.size, np.int64))
    for group in by_image_and_order(games):
        image, label, first = (int(array[group[0]]) for array in (games.image_of, games.labels, games.first))
        pixels = np.flatnonzero(games.legal[image])
        last_is_honest = (first + PIXELS - 1) % 2 == HONEST
        values = solve_exhaustively(judging_of(games.images[image], pixels), len(pixels), label, last_is_honest, device)
        last_wins = values.start.cpu().numpy()[np.where(games.lies[group] == NO_LIE, label, games.lies[group])]
        found.outcomes[group] = np.where(last_wins == last_is_honest, PROVED_HONEST, PROVED_LIAR)
        found.judged[group[0]] = math.comb(len(pixels), PIXELS)
        if progress is not None:
            progress(len(group))
    return found


@torch.inference_mode()
def solve_exhaustively(
    judging: Judging, n_pixels: int, label: int, last_is_honest: bool, device: torch.device, *, chunk: int = 1 << 16
) -> Values:
    """Judge every set of four of `n_pixels` pixels and play the game backwards, for all ten claims at once.

    Args:
        judging: the judge on the image.
        n_pixels: `A`, at least 4.
        label: the image's class.
        last_is_honest: who moves last.
        device: where the tables lie: about `20 A^3` bytes.
        chunk: sets judged at a time.

    Raises:
        UserError: fewer than four pixels.
    """
    if n_pixels < PIXELS:
        raise UserError(f"an image with {n_pixels} pixels to reveal is too thin for games of {PIXELS}")
    # Does the last mover win from a triple? Filled for ascending places only until the end.
    wins = torch.zeros((CLASSES, n_pixels, n_pixels, n_pixels), dtype=torch.bool, device=device)
    places = torch.arange(n_pixels, device=device)
    # A set of four is met once, at its lowest place.
    for lowest in range(n_pixels - 3):
        higher = places[lowest + 1 :]
        triples = torch.combinations(higher, 3)  # (R, 3) ascending
        here = torch.zeros_like(wins[:, : len(higher), : len(higher), : len(higher)])
        x, y, z = (triples - (lowest + 1)).unbind(1)
        for begin in range(0, len(triples), chunk):
            part = slice(begin, begin + chunk)
            sets = torch.cat([torch.full_like(triples[part, :1], lowest), triples[part]], dim=1)
            here[:, x[part], y[part], z[part]] = claims_won(judging(sets), label, last_is_honest).T
        # The fourth pixel completes the triple of the other three, whichever of the four it is.
        wins[:, lowest + 1 :, lowest + 1 :, lowest + 1 :] |= here
        wins[:, lowest, lowest + 1 :, lowest + 1 :] |= here.any(dim=3) | here.any(dim=2) | here.any(dim=1)
    for axes in ((0, 1, 3, 2), (0, 2, 1, 3), (0, 3, 2, 1)):  # to every order of the three
        wins |= wins.permute(axes).clone()
    for axes in ((0, 2, 3, 1), (0, 3, 1, 2)):
        wins |= wins.permute(axes).clone()
    same = torch.eye(n_pixels, dtype=torch.bool, device=device)
    # The other side picks the third pixel: it must be lost for every pick. A pixel that is out is no pick.
    out = same[:, None, :] | same[None, :, :]
    after_two = (wins | out).all(dim=3)
    after_one = (after_two & ~same).any(dim=2)
    return Values(after_one.all(dim=1), after_one, after_two)
