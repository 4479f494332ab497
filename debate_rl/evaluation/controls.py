"""What the judge makes of pixels that nobody argued about: the figures that debate has to be compared with.

`random`: the judge's accuracy on random nonzero pixels, which is also the honest win rate against the best of nine lies chosen after the
pixels are seen. The two-way controls ask the judge for the likelier of two claims on random pixels instead: against one random lie, and
against the lie that is best for the image on average, chosen without seeing the pixels shown. They separate what precommitting to a
claim gives from what debating it gives.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from debate_rl.data import Digits
from debate_rl.games.pixels import CLASSES
from debate_rl.judges.calibration import Reliability
from debate_rl.judges.kernels import set_logits, softmax
from debate_rl.judges.pretrained import Judge
from debate_rl.judges.sparse import draw_masks, pixel_pool


@dataclass(frozen=True)
class NoDebate:
    """The judge on random pixels of `n` images, each shown under `M` masks."""

    correct: NDArray[np.float64]  # (n, M) is the judge's answer right
    random_lie: NDArray[np.float64]  # (n,) share of masks and lies for which the label beats the lie
    best_lie: NDArray[np.float64]  # (n,) share of masks for which the label beats the image's best lie
    confusion: NDArray[np.float64]  # (10, 10) label by answer, percent of all images, the diagonal included
    reliability: Reliability


def judge_random_pixels(
    judge: Judge,
    digits: Digits,
    indices: NDArray[np.integer],
    pixels: int,
    *,
    masks: int,
    seed: int,
    threshold: float = 0.0,
    black: bool = False,
) -> NoDebate:
    """Show the judge `masks` random masks of `pixels` legal pixels (by default nonzero ones) for each image; `masks` must be even and at
    least 2.

    The best lie of an image is chosen on one half of its masks and measured on the other, and the other way round, so that it does
    not profit from the luck of the masks it is measured on.
    """
    images = np.ascontiguousarray(digits.images.reshape(len(digits.images), -1)[indices])
    labels = digits.labels[indices].astype(np.int64)
    n = len(labels)
    pool = pixel_pool(images, threshold, black)
    rows = np.arange(n)
    beaten = np.empty((n, masks, CLASSES), dtype=np.bool_)  # the label beats each other class
    correct = np.empty((n, masks), dtype=np.float64)
    confusion = np.zeros((CLASSES, CLASSES))
    reliability = Reliability()
    for number in range(masks):
        generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, pixels, number])))
        shown = draw_masks(pool, rows, pixels, generator)
        logits = set_logits(judge.weights, images, rows, shown)
        beaten[:, number] = logits[rows, labels][:, None] > logits
        answers = logits.argmax(axis=1)
        correct[:, number] = answers == labels
        np.add.at(confusion, (labels, answers), 100.0 / (n * masks))
        reliability.add(softmax(logits).max(axis=1), answers == labels, rows)
    lies = np.ones((n, CLASSES), dtype=np.bool_)
    lies[rows, labels] = False
    half = masks // 2
    best = np.zeros(n)
    for chosen_on, measured_on in ((slice(0, half), slice(half, None)), (slice(half, None), slice(0, half))):
        truth_wins = np.where(lies, beaten[:, chosen_on].mean(axis=1), np.inf)  # (n, 10)
        best += beaten[:, measured_on][rows, :, truth_wins.argmin(axis=1)].mean(axis=1) / 2
    return NoDebate(
        correct=correct,
        random_lie=(beaten.mean(axis=1) * lies).sum(axis=1) / (CLASSES - 1),
        best_lie=best,
        confusion=confusion,
        reliability=reliability,
    )
