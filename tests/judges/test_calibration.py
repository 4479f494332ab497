"""Reliability tables and calibration errors against figures worked out by hand and a plain-Python twin."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate_rl.judges.calibration import Reliability


def test_reliability_by_hand() -> None:
    table = Reliability(bins=2)
    table.add(np.array([0.2, 0.4, 0.9]), np.array([False, True, True]), np.array([0, 0, 1]))
    table.add(np.array([1.0]), np.array([False]), np.array([1]))
    found = table.table()
    assert [row["count"] for row in found["bins"]] == [2, 2]
    assert found["bins"][0]["confidence"] == pytest.approx(0.3)
    assert found["bins"][1]["accuracy"] == pytest.approx(0.5)
    assert found["ece"] == pytest.approx((abs(0.6 - 1) + abs(1.9 - 1)) / 4)
    assert Reliability().table()["ece"] is None


def test_the_calibration_interval_covers_and_counts_images() -> None:
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(150):
        table = Reliability(bins=5)
        sure = rng.random(400)
        # overconfident by 0.1 wherever there is room: the true error is 0.1 less what the lowest tenth lacks
        table.add(sure, rng.random(400) < np.maximum(0, sure - 0.1), np.arange(400))
        low, high = table.interval(200)
        covered += low <= 0.095 <= high
    assert covered >= 130
    one, ten = Reliability(bins=5), Reliability(bins=5)
    sure, right = rng.random(200), rng.random(200) < 0.5
    one.add(sure, right, np.arange(200))
    for _ in range(10):  # the same observations ten times over are no more images
        ten.add(sure, right, np.arange(200))
    assert ten.interval() == pytest.approx(one.interval())
    assert Reliability().interval() == (0.0, 1.0)


@given(st.integers(0, 2**32 - 1), st.integers(1, 20))
@settings(max_examples=30, deadline=None)
def test_the_table_equals_the_plain_twin(seed: int, bins: int) -> None:
    rng = np.random.default_rng(seed)
    confidence = np.concatenate([rng.random(50), [0.0, 1.0]])
    right = rng.random(52) < confidence
    table = Reliability(bins)
    table.add(confidence, right, np.arange(52))
    error = 0.0
    for i, found in enumerate(table.table()["bins"]):
        members = [(c, r) for c, r in zip(confidence, right, strict=True) if i / bins <= c < (i + 1) / bins or (i == bins - 1 and c == 1.0)]
        assert found["count"] == len(members)
        if members:
            assert found["confidence"] == pytest.approx(sum(c for c, _ in members) / len(members))
            assert found["accuracy"] == pytest.approx(sum(bool(r) for _, r in members) / len(members))
            error += abs(sum(c - r for c, r in members)) / 52
        else:
            assert found["confidence"] is None and found["accuracy"] is None
    assert table.error() == pytest.approx(error)
