"""How far a judge's confidence can be trusted: reliability tables and the expected calibration error."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

BINS = 15


class Reliability:
    """Counts of confidence against correctness in equal-width bins, added to batch by batch."""

    def __init__(self, bins: int = BINS) -> None:
        """Start an empty table of `bins` bins over [0, 1]."""
        self.counts = np.zeros(bins, dtype=np.int64)
        self.confidence = np.zeros(bins)
        self.correct = np.zeros(bins)

    def add(self, confidence: NDArray[np.floating[Any]], correct: NDArray[np.bool_]) -> None:
        """Add observations: `confidence (B,)` in [0, 1] and whether the answer was right, `(B,)`."""
        bins = len(self.counts)
        where = np.minimum((np.asarray(confidence, np.float64) * bins).astype(np.int64), bins - 1)
        self.counts += np.bincount(where, minlength=bins)
        self.confidence += np.bincount(where, weights=confidence, minlength=bins)
        self.correct += np.bincount(where, weights=correct.astype(np.float64), minlength=bins)

    def error(self) -> float:
        """Expected calibration error: the mean gap between confidence and accuracy, weighted by the bins' counts (Naeini et al. 2015)."""
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


def softmax(logits: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Probabilities over the last axis."""
    shifted = np.asarray(logits, np.float64)
    shifted = np.exp(shifted - shifted.max(axis=-1, keepdims=True))
    probabilities: NDArray[np.float64] = shifted / shifted.sum(axis=-1, keepdims=True)
    return probabilities
