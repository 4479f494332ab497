"""Result rows against figures worked out by hand."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from debate_rl.evaluation.controls import NoDebate
from debate_rl.evaluation.protocol import SILENT, Outcomes, Study
from debate_rl.evaluation.rows import Source, assessment_rows, calibration_row, no_debate_rows, speed_row, study_rows
from debate_rl.evaluation.statistics import wilson
from debate_rl.judges.assessment import summarize
from debate_rl.judges.calibration import Reliability
from debate_rl.judges.pretrained import load_judge

MCTS, GREEDY = {"name": "mcts", "rollouts": 7}, {"name": "greedy"}
PROVENANCE = {"config_hash": "0123456789ab", "code": {"version": "1", "commit": None}, "command": "debate-rl x", "machine": {"cores": 2}}
Z = 1.959964


@pytest.fixture(scope="module")
def judge():
    return load_judge("mlp-4")


@pytest.fixture
def source(judge):
    return Source("mnist", "test", 3, "majority", PROVENANCE, judge, range(100), seconds=2.5)


def study(**more):
    return Study(**{"name": "s", "pixels": 4, "honest": MCTS, "liar": GREEDY, "repetitions": 2, "seed": 3, **more})


def lies(*successful):
    row = np.zeros(10, np.bool_)
    row[list(successful)] = True
    return row


@pytest.fixture
def outcomes():
    """Three images of a range from which the sixth was left out; with honest first one image is lost, with the liar first another."""
    return Outcomes(
        indices=[5, 7, 8],
        labels=[0, 1, 2],
        lies=defaultdict(list, honest=[lies(), lies(3), lies()], liar=[lies(), lies(), lies(4, 9)]),
        open_shares=defaultdict(list, honest=[1.0, 0.5, 0.0], liar=[1.0, 1.0, 1.0]),
    )


def test_a_study_gives_a_row_per_mode_lie_and_order_worked_out_by_hand(source, outcomes, judge):
    rows = study_rows(source, study(), outcomes)
    values = {(row.protocol["commit"], row.protocol["lies"], row.protocol["first"]): row.value for row in rows}
    assert len(rows) == len(values) == 9
    assert values == {
        ("precommit", "worst", "honest"): pytest.approx(2 / 3),
        ("precommit", "worst", "liar"): pytest.approx(2 / 3),
        ("precommit", "worst", "mean"): pytest.approx(2 / 3),
        ("precommit", "random", "honest"): pytest.approx((1 + 8 / 9 + 1) / 3),
        ("precommit", "random", "liar"): pytest.approx((1 + 1 + 7 / 9) / 3),
        ("precommit", "random", "mean"): pytest.approx((1 + 17 / 18 + 16 / 18) / 3),
        ("none", "none", "honest"): 0.5,
        ("none", "none", "liar"): 1.0,
        ("none", "none", "mean"): 0.75,
    }
    for row in rows:
        assert row.metric == "honest_win_rate"
        assert row.n == 3 and row.seeds == (3,) and row.seconds == 2.5  # images, not games
        assert row.agents == {"honest": MCTS, "liar": GREEDY}
        assert row.judge == {"name": "mlp-4", "hash": judge.hash}
        assert (row.config_hash, row.command) == ("0123456789ab", "debate-rl x")
        assert row.protocol["images"] == {"start": 5, "count": 4}  # the study's own, not the source's
        wanted = {"dataset": "mnist", "split": "test", "pixels": 4, "average": "majority", "repetitions": 2}
        assert wanted.items() <= row.protocol.items()
        assert "clustered by image" in row.ci_method


def test_the_two_orders_of_an_image_are_one_observation(source, outcomes):
    rows = {
        row.protocol["first"]: row for row in study_rows(source, study(commit=("precommit",)), outcomes) if row.protocol["lies"] == "worst"
    }
    # Yes or no, 2 of 3: Wilson's interval by hand.
    share, n = 2 / 3, 3
    half = Z * (share * (1 - share) / n + Z**2 / (4 * n**2)) ** 0.5
    wilson = [(share + Z**2 / (2 * n) + sign * half) / (1 + Z**2 / n) for sign in (-1, 1)]
    assert rows["honest"].ci95 == pytest.approx(wilson, abs=1e-5) and rows["honest"].ci_method.startswith("wilson")
    # Images' means over the orders are 1, 1/2, 1/2: variance 1/12, standard error 1/6. As six observations it would be narrower.
    assert rows["mean"].ci95 == pytest.approx((2 / 3 - Z / 6, 2 / 3 + Z / 6), abs=1e-5) and rows["mean"].ci_method.startswith("normal")


def test_a_study_of_one_order_has_no_mean_and_of_one_mode_no_other(source, outcomes):
    one = study_rows(source, study(first=("liar",), commit=("none",)), outcomes)
    assert [(row.protocol["first"], row.protocol["commit"], row.value) for row in one] == [("liar", "none", 1.0)]
    head = study_rows(source, study(first=("honest",), commit=("precommit",)), outcomes.head(2))
    assert [(row.n, row.value, row.protocol["images"]) for row in head] == [
        (2, 0.5, {"start": 5, "count": 3}),
        (2, pytest.approx(17 / 18), {"start": 5, "count": 3}),
    ]


def test_the_judge_alone_by_hand(source):
    reliability = Reliability()
    # Two images, two masks each, all answers 90 % sure: three of four right, a gap of 0.15.
    reliability.add(np.full(4, 0.9), np.array([True, False, True, True]), np.array([0, 0, 1, 1]))
    found = NoDebate(
        correct=np.array([[1.0, 0.0], [1.0, 1.0]]),
        random_lie=np.array([1.0, 1.0]),
        best_lie=np.array([0.5, 1.0]),
        confusion=np.zeros((10, 10)),
        reliability=reliability,
    )
    rows = no_debate_rows(source.about([20, 21]), 6, found)
    assert [(row.metric, row.protocol.get("lies"), row.value) for row in rows] == [
        ("judge_accuracy", None, 0.75),
        ("judge_ece", None, pytest.approx(0.15)),
        ("honest_win_rate", "random", 1.0),
        ("honest_win_rate", "best", 0.75),
    ]
    for row in rows:
        assert row.n == 2 and row.agents == {"honest": SILENT, "liar": SILENT}
        assert row.protocol["pixels"] == 6 and row.protocol["shown"] == "random" and row.protocol["images"] == {"start": 20, "count": 2}
        low, high = row.ci95
        assert low <= row.value <= high and "clustered by image" in row.ci_method
    # An image's masks are one observation: means 1/2 and 1, standard error 1/4.
    assert rows[0].ci95 == pytest.approx((0.75 - Z / 4, 1.0), abs=1e-5)
    assert calibration_row(source, {"shown": "debate"}, reliability).value == pytest.approx(0.15)


def test_an_assessment_has_the_rows_of_a_judge_alone(judge):
    # Two masks of four images, every answer 0 with probability p: right for the two images that are zeros.
    logits = np.zeros((2, 4, 10))
    logits[..., 0] = 3.0
    p = np.exp(3) / (np.exp(3) + 9)
    found = summarize(logits, np.array([0, 0, 1, 2]), 6, (8, 9))
    rows = assessment_rows(found, judge, "mnist", "test", 1.5, PROVENANCE, {"black": True})
    assert [(row.metric, row.value) for row in rows] == [
        ("judge_accuracy", 0.5),
        ("judge_ece", pytest.approx(p - 0.5)),
        ("judge_cross_entropy", pytest.approx(-np.log(p) / 2 - np.log((1 - p) / 9) / 2)),
    ]
    for row in rows:
        assert (row.n, row.seeds, row.seconds, row.agents) == (4, (8, 9), 1.5, {"honest": SILENT, "liar": SILENT})
        shown = {"pixels": 6, "shown": "random", "masks": 2, "black": True, "images": {"start": 0, "count": 4}}
        assert row.protocol == {"game": "pixels", "dataset": "mnist", "split": "test", **shown}
    assert rows[0].ci95 == wilson(2, 4) and rows[2].ci95 is None
    assert rows[1].ci95[0] <= rows[1].value <= rows[1].ci95[1]


def test_a_speed_has_no_interval(source):
    row = speed_row(source, study(), 123.0)
    assert (row.metric, row.value, row.ci95, row.ci_method) == ("rollouts_per_second_per_core", 123.0, None, "")
    assert row.agents["honest"] == MCTS and row.protocol["pixels"] == 4
