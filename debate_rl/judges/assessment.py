"""How good a judge is without a debate: random legal pixels of every image, over several draws of the masks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from debate_rl.errors import UserError
from debate_rl.games.pixels import CLASSES
from debate_rl.judges.calibration import BINS, Reliability
from debate_rl.judges.pretrained import AnyJudge
from debate_rl.judges.sparse import draw_masks, pixel_pool

MASK_SEEDS: Final = (0, 1, 2, 3, 4)


@dataclass(frozen=True, eq=False)
class Assessment:
    """A judge's figures on random pixels. Shares are in [0, 1], the confusion matrix in percent of all images."""

    pixels: int
    images: int
    seeds: tuple[int, ...]  # one draw of the masks each
    accuracies: tuple[float, ...]  # per seed
    cross_entropy: float  # nats, mean over images and seeds
    reliability: Reliability  # over images and seeds
    confusion: NDArray[np.float64]  # (10, 10) [label, answer], percent of all images, mean over seeds; sums to 100

    @property
    def accuracy(self) -> float:
        """Mean over seeds."""
        return float(np.mean(self.accuracies))

    @property
    def spread(self) -> float:
        """Standard deviation over seeds (n - 1)."""
        return float(np.std(self.accuracies, ddof=1)) if len(self.accuracies) > 1 else 0.0

    @property
    def ece(self) -> float:
        """Expected calibration error over images and seeds."""
        return self.reliability.error()

    def as_json(self) -> dict[str, Any]:
        """The figures as plain JSON values."""
        return {
            "pixels": self.pixels,
            "images": self.images,
            "mask_seeds": list(self.seeds),
            "accuracy": round(self.accuracy, 6),
            "accuracy_sd": round(self.spread, 6),
            "accuracies": [round(value, 6) for value in self.accuracies],
            "cross_entropy": round(self.cross_entropy, 6),
            "ece": round(self.ece, 6),
            "reliability": [
                {key: 0.0 if value is None else round(value, 6) for key, value in row.items()} for row in self.reliability.table()["bins"]
            ],
            "confusion_percent": np.round(self.confusion, 4).tolist(),
        }


def assess_judge(
    judge: AnyJudge,
    images: NDArray[np.uint8],
    labels: NDArray[np.integer],
    pixels: int | None = None,
    seeds: Sequence[int] = MASK_SEEDS,
    threshold: float = 0.0,
    black: bool = False,
    bins: int = BINS,
    batch_size: int = 1_000,
    progress: Callable[[int, int], None] | None = None,
) -> Assessment:
    """Assess a judge on random legal pixels of every image.

    Args:
        judge: any loaded judge.
        images: `(N, 28, 28)` or `(N, 784)` uint8.
        labels: `(N,)`.
        pixels: how many are revealed; by default as many as the judge was trained on. An image with fewer shows all of them.
        seeds: of the masks; one pass over all images each.
        threshold: a pixel may be revealed if its value in [0, 1] is greater than this.
        black: any pixel may be revealed.
        bins: of the reliability table.
        batch_size: images at a time.
        progress: called with (images done, images in all).
    """
    count = len(images)
    revealed = judge.pixels if pixels is None else pixels
    if count == 0 or count != len(labels):
        raise UserError(f"{count} images and {len(labels)} labels; there must be one label per image and at least one image")
    if not seeds:
        raise UserError("a judge's assessment needs at least one mask seed")
    if revealed < 1:
        raise UserError(f"pixels is {revealed}; it must be at least 1")
    flat = images.reshape(count, -1)
    pool = pixel_pool(flat, threshold, black)
    logits = np.empty((len(seeds), count, CLASSES), dtype=np.float64)
    for row, seed in enumerate(seeds):
        moves = draw_masks(pool, np.arange(count), revealed, np.random.default_rng(np.random.SeedSequence([seed, revealed])))
        for start in range(0, count, batch_size):
            part = np.arange(start, min(count, start + batch_size))
            logits[row, part] = judge.set_logits(flat, part, moves[part])
            if progress is not None:
                progress(row * count + int(part[-1]) + 1, len(seeds) * count)
    return summarize(logits, labels, revealed, tuple(seeds), bins)


def summarize(
    logits: NDArray[np.floating], labels: NDArray[np.integer], pixels: int, seeds: tuple[int, ...], bins: int = BINS
) -> Assessment:
    """Figures of logits `(S, N, 10)`, one row of images per mask seed, against labels `(N,)`."""
    wide = np.asarray(logits, dtype=np.float64)
    wide = wide - wide.max(-1, keepdims=True)
    log_p = wide - np.log(np.exp(wide).sum(-1, keepdims=True))  # (S, N, 10)
    truth = np.asarray(labels, dtype=np.int64)
    answers = wide.argmax(-1)  # (S, N)
    right = answers == truth
    reliability = Reliability(bins)
    for confidence, row in zip(np.exp(log_p.max(-1)), right, strict=True):
        reliability.add(confidence, row, np.arange(len(truth)))
    confusion = np.zeros((CLASSES, CLASSES))
    np.add.at(confusion, (np.broadcast_to(truth, answers.shape).ravel(), answers.ravel()), 100.0 / right.size)
    return Assessment(
        pixels=pixels,
        images=len(truth),
        seeds=seeds,
        accuracies=tuple(float(value) for value in right.mean(1)),
        cross_entropy=float(-log_p[:, np.arange(len(truth)), truth].mean()),
        reliability=reliability,
        confusion=confusion,
    )
