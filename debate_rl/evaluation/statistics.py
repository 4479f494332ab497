"""Intervals. All of them treat the image as the unit that was sampled: what happens on one image is one observation."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

Z95 = 1.959963984540054  # two-sided 95 % point of the normal distribution

WILSON = "wilson, clustered by image"
NORMAL = "normal, clustered by image"
RATIO = "normal, ratio of sums, clustered by image"


def wilson(successes: float, n: int) -> tuple[float, float]:
    """Wilson's score interval (1927) for a share of `n` independent yes/no observations, 95 %."""
    if n <= 0:
        return 0.0, 1.0
    share = successes / n
    centre = share + Z95**2 / (2 * n)
    half = Z95 * math.sqrt(share * (1 - share) / n + Z95**2 / (4 * n**2))
    scale = 1 + Z95**2 / n
    # At 0 and n one end is the share itself; rounding must not push it past.
    low = 0.0 if successes == 0 else (centre - half) / scale
    high = 1.0 if successes == n else (centre + half) / scale
    return max(0.0, low), min(1.0, high)


def mean_interval(values: ArrayLike, low: float = 0.0, high: float = 1.0) -> tuple[float, float, float, str]:
    """Mean of one value per image, its 95 % interval within `[low, high]`, and the method's name.

    Yes/no values get Wilson's interval, others the normal one from their sample variance; shares that are all alike get Wilson's too.
    """
    sample = np.asarray(values, dtype=np.float64)
    n = len(sample)
    if n == 0:
        return math.nan, low, high, NORMAL
    mean = float(sample.mean())
    if (low, high) == (0.0, 1.0) and np.isin(sample, (0.0, 1.0)).all():
        return mean, *wilson(float(sample.sum()), n), WILSON
    if (low, high) == (0.0, 1.0) and (n == 1 or np.ptp(sample) == 0):
        return mean, *wilson(mean * n, n), WILSON  # no spread seen is not no spread
    half = Z95 * float(sample.std(ddof=1)) / math.sqrt(n) if n > 1 else high - low
    return mean, max(low, mean - half), min(high, mean + half), NORMAL


def ratio_interval(parts: ArrayLike, wholes: ArrayLike) -> tuple[float, float, float, str]:
    """A ratio of sums over images, `sum(parts) / sum(wholes)`, its 95 % interval within [0, 1], and the method's name.

    The variance is that of the linearised ratio (Cochran 1977, section 6.4), so an image with more cases weighs more. Where the images
    show no spread, Wilson's interval over as many observations as there are images with a case.
    """
    part, whole = np.asarray(parts, dtype=np.float64), np.asarray(wholes, dtype=np.float64)
    n, total = int((whole > 0).sum()), float(whole.sum())
    if n == 0:
        return math.nan, 0.0, 1.0, RATIO
    ratio = float(part.sum()) / total
    residual = part - ratio * whole
    if n == 1 or not np.abs(residual).max() > 1e-12:
        return ratio, *wilson(ratio * n, n), WILSON
    images = len(whole)
    half = Z95 * math.sqrt(float((residual**2).sum()) * images / (images - 1)) / total
    return ratio, max(0.0, ratio - half), min(1.0, ratio + half), RATIO
