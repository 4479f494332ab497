from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate_rl.evaluation.statistics import NORMAL, RATIO, WILSON, mean_interval, ratio_interval, wilson
from debate_rl.judges.kernels import softmax


def test_wilson_matches_published_values():
    # Newcombe 1998, table I: 81 of 263, 15 of 148, 0 of 20 and 1 of 29.
    for successes, n, low, high in ((81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)):
        assert wilson(successes, n) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(1, 500), st.data())
def test_wilson_holds_the_share_and_is_symmetric(n, data):
    successes = data.draw(st.integers(0, n))
    low, high = wilson(successes, n)
    assert 0.0 <= low <= successes / n <= high <= 1.0
    mirrored = wilson(n - successes, n)
    assert mirrored == pytest.approx((1 - high, 1 - low), abs=1e-12)


def test_intervals_cover_at_their_rate():
    rng = np.random.default_rng(0)
    for draw, truth in ((lambda: (rng.random(80) < 0.8).astype(float), 0.8), (lambda: (rng.random((80, 2)) < 0.8).mean(axis=1), 0.8)):
        covered = 0
        for _ in range(2000):
            _, low, high, _ = mean_interval(draw())
            covered += low <= truth <= high
        assert 0.93 <= covered / 2000 <= 0.97


def test_the_method_is_named_and_clustered():
    assert mean_interval([0.0, 1.0, 1.0])[3] == WILSON
    value, low, high, method = mean_interval([0.5, 1.0, 0.0, 1.0])
    assert method == NORMAL
    half = 1.959963984540054 * np.std([0.5, 1.0, 0.0, 1.0], ddof=1) / 2
    assert (value, low, high) == pytest.approx((0.625, 0.625 - half, min(1.0, 0.625 + half)))
    assert math.isnan(mean_interval([])[0])
    value, low, high, _ = mean_interval([2 / 3] * 4)
    assert low < value < high  # four equal shares are not a certainty


def test_two_orders_of_one_image_are_one_observation():
    """Perfectly correlated orders must not shrink the interval."""
    one = (np.random.default_rng(1).random(300) < 0.7).astype(float)
    _, low, high, _ = mean_interval(one)
    _, low_mean, high_mean, _ = mean_interval((one + one) / 2)
    assert high_mean - low_mean == pytest.approx(high - low, rel=0.02)


def test_softmax_is_stable():
    rows = softmax(np.array([[1000.0, 1000.0], [-1000.0, 0.0]]))
    assert rows == pytest.approx(np.array([[0.5, 0.5], [0.0, 1.0]]))


def test_a_ratio_weighs_images_by_their_cases_and_covers_the_truth():
    value, low, high, method = ratio_interval([1, 0, 3], [2, 0, 4])
    assert value == pytest.approx(4 / 6) and method == RATIO
    residual = np.array([1, 0, 3]) - 4 / 6 * np.array([2, 0, 4])
    half = 1.959963984540054 * math.sqrt((residual**2).sum() * 3 / 2) / 6
    assert (low, high) == pytest.approx((max(0.0, 4 / 6 - half), min(1.0, 4 / 6 + half)))
    assert math.isnan(ratio_interval([0, 0], [0, 0])[0])
    none, low, high, method = ratio_interval([0, 0, 0], [5, 2, 9])
    assert (none, low, method) == (0.0, 0.0, WILSON) and high == pytest.approx(wilson(0, 3)[1])  # three images, not sixteen moves
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(1000):
        chances = rng.beta(2, 2, 150)  # images differ, so their moves are no independent observations
        wholes = rng.integers(1, 30, 150)
        _, low, high, _ = ratio_interval(rng.binomial(wholes, chances), wholes)
        covered += low <= 0.5 <= high
    assert 0.93 <= covered / 1000 <= 0.97
