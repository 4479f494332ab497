"""How far a judge's confidence can be trusted: reliability tables and the expected calibration error.

That is the error of Naeini et al. 2015 / Guo et al. 2017: confidence (the largest softmax probability) in 15 equal bins, the mean over
predictions of the gap between confidence and accuracy of a bin.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

BINS = 15
BOOTSTRAP = "basic bootstrap, clustered by image"


class Reliability:
    """Counts of confidence against correctness in equal-width bins, added to batch by batch; `N` images, `K` bins."""

    def __init__(self, bins: int = BINS) -> None:
        """Start an empty table of `bins` bins over [0, 1]."""
        self.counts = np.zeros(bins, dtype=np.int64)
        self.confidence = np.zeros(bins)
        self.correct = np.zeros(bins)
        # Per image, for resampling: confidence less correctness in each bin, and the number of observations.
        self._gaps = np.zeros((0, bins))  # (N, K)
        self._sizes = np.zeros(0)  # (N,)

    def add(self, confidence: NDArray[np.floating[Any]], correct: NDArray[np.bool_], images: NDArray[np.integer[Any]]) -> None:
        """Add observations `(B,)`: the confidence in [0, 1], whether the answer was right, and which image it is about, counted from 0."""
        bins = len(self.counts)
        sure = np.asarray(confidence, np.float64)
        right = np.asarray(correct, np.float64)
        where = np.minimum((sure * bins).astype(np.int64), bins - 1)
        self.counts += np.bincount(where, minlength=bins)
        self.confidence += np.bincount(where, weights=sure, minlength=bins)
        self.correct += np.bincount(where, weights=right, minlength=bins)
        missing = int(images.max(initial=-1)) + 1 - len(self._gaps)
        if missing > 0:
            room = max(missing, len(self._gaps))  # doubling, as images come one by one
            self._gaps = np.concatenate([self._gaps, np.zeros((room, bins))])
            self._sizes = np.concatenate([self._sizes, np.zeros(room)])
        np.add.at(self._gaps, (images, where), sure - right)
        np.add.at(self._sizes, images, 1.0)

    def interval(self, resamples: int = 1000) -> tuple[float, float]:
        """95 % interval of `error`: basic bootstrap over images. (Resampling alone makes the error larger; this form takes that off.)"""
        seen = self._sizes > 0
        gaps, sizes = self._gaps[seen], self._sizes[seen]
        n = len(sizes)
        if n < 2:
            return 0.0, 1.0
        generator = np.random.Generator(np.random.PCG64(0))
        errors = np.empty(resamples)
        for number in range(resamples):
            weights = np.bincount(generator.integers(0, n, n), minlength=n).astype(np.float64)
            errors[number] = np.abs(weights @ gaps).sum() / (weights @ sizes)
        low, high = np.quantile(errors, [0.025, 0.975])
        error = self.error()
        return max(0.0, 2 * error - float(high)), min(1.0, max(error, 2 * error - float(low)))

    def error(self) -> float:
        """Expected calibration error: the mean gap between confidence and accuracy, weighted by the bins' counts."""
        total = int(self.counts.sum())
        return float(np.abs(self.confidence - self.correct).sum() / total) if total else float("nan")

    def table(self) -> dict[str, Any]:
        """JSON-ready: `ece`, `n`, and per bin its `count`, mean `confidence` and `accuracy` (None where empty)."""
        rows = []
        for index, count in enumerate(self.counts.tolist()):
            rows.append(
                {
                    "low": index / len(self.counts),
                    "high": (index + 1) / len(self.counts),
                    "count": count,
                    "confidence": float(self.confidence[index] / count) if count else None,
                    "accuracy": float(self.correct[index] / count) if count else None,
                }
            )
        return {"ece": self.error() if self.counts.sum() else None, "n": int(self.counts.sum()), "bins": rows}
