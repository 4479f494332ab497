from __future__ import annotations

import copy
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate_rl.evaluation.report import paper
from debate_rl.evaluation.report.content import Cell, control_rows, gather, search_curve, table2
from debate_rl.evaluation.report.rows import Estimate, best, estimate, judge_accuracy, main_search, rollouts, row_judge
from tests.evaluation.report.conftest import Run, pick

ROW: dict[str, Any] = {"value": 0.5, "ci95": [0.4, 0.6], "n": 10}


@pytest.mark.parametrize(
    "change",
    [
        {"value": math.nan},
        {"value": None},
        {"value": "0.5"},
        {"value": True},
        {"ci95": None},
        {"ci95": [0.4]},
        {"ci95": "ab"},
        {"ci95": [0.4, math.inf]},
    ],
)
def test_rows_without_a_figure_give_none(change: dict[str, Any]) -> None:
    assert estimate(ROW) is not None
    assert estimate({**ROW, **change}) is None
    assert best([{**ROW, **change}]) is None


@pytest.mark.parametrize("budget", [True, 0, -5, "100", 100.0, None, [100]])
def test_a_search_without_a_budget_is_no_search_row(budget: Any) -> None:
    def row(rollouts: Any) -> dict[str, Any]:
        return {"agents": {seat: {"name": "mcts", "rollouts": rollouts} for seat in ("honest", "liar")}}

    assert rollouts(row(100)) == 100
    assert rollouts(row(budget)) is None


def test_more_images_win_then_the_later() -> None:
    few, many, later = ({**ROW, "n": n, "value": value} for n, value in ((10, 0.5), (20, 0.55), (20, 0.45)))
    found = best([many, few])
    assert found is not None and found.row is many
    found = best([many, later, few])
    assert found is not None and found.row is later


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_the_verdict_says_where_the_papers_figure_lies(a: float, b: float, published: float) -> None:
    low, high = min(a, b), max(a, b)
    mark, words = Cell(Estimate((low + high) / 2, low, high, 1, {}), published).verdict()
    if low <= published <= high:
        assert (mark, words) == ("✓", "inside")
    elif published < low - 1e-6:
        assert (mark, words) == ("▲", "ours higher")
    elif published > high + 1e-6:
        assert (mark, words) == ("▼", "ours lower")


def test_the_table_takes_its_cells_from_the_table_study(run: Run) -> None:
    for pixels in (4, 6):
        rows = main_search(run.rows, pixels)
        assert {rollouts(row) for row in rows} == {40}
        judge = pick(run.rows, "judge_ece", pixels=pixels, shown="random")["judge"]
        assert {row_judge(row) for row in rows} == {judge["hash"]}
    for row in table2(run.rows):
        for cell, commit, lies in ((row.open, "none", "none"), (row.precommit, "precommit", "worst")):
            wanted = pick(run.rows, "honest_win_rate", rollouts=40, pixels=row.pixels, first=row.first, commit=commit, lies=lies)
            assert cell.ours is not None and cell.ours.row == wanted
            assert cell.paper == paper.honest_win(row.pixels, row.first, commit)
        assert row.judge.ours is not None and row.judge.ours.row["protocol"]["pixels"] == row.pixels


def test_the_judges_accuracy_is_that_of_the_judge_made_for_the_pixels(run: Run) -> None:
    alone = [row for row in run.rows if row["metric"] != "honest_win_rate"]
    for pixels in (4, 6):
        found = judge_accuracy(alone, pixels)
        assert found is not None and found.row["judge"]["name"].endswith(f"-{pixels}")
        other = next(row for row in alone if row["protocol"]["pixels"] == pixels and row_judge(row) != row_judge(found.row))
        chosen = judge_accuracy(alone, pixels, row_judge(other))
        assert chosen is not None and chosen.row == other


def test_the_curve_runs_over_one_searchs_budgets(run: Run) -> None:
    for pixels in (4, 6):
        curve = search_curve(run.rows, pixels)
        assert curve is not None and curve.start is not None
        assert [budget for budget, _ in curve.points] == [5, 10, 40]
        assert len({row_judge(figure.row) for _, figure in curve.points}) == 1
        assert row_judge(curve.start.row) == row_judge(curve.points[-1][1].row)
    # A sweep over another setting of the search is no part of it.
    other = copy.deepcopy(pick(run.rows, "honest_win_rate", rollouts=40, pixels=6, first="mean", lies="worst"))
    for seat in ("honest", "liar"):
        other["agents"][seat] |= {"c_puct": 5.0, "rollouts": 80}
    assert search_curve([*run.rows, other], 6) == search_curve(run.rows, 6)


def test_every_control_is_there_with_its_rows_figure(run: Run) -> None:
    controls = control_rows(run.rows)
    pairs = [control.pair for control in controls]
    assert list(dict.fromkeys(pairs)) == [
        "No debate, random pixels",
        "Debaters that pick at random",
        "Debate, greedy",
        "Debate, tree search",
        "Only the honest side speaks (greedy)",
        "Only the liar speaks (greedy)",
    ]
    assert pairs == sorted(pairs, key=pairs.index)  # members of a group stand together
    for control in controls:
        assert set(control.figures) == {4, 6}
        for pixels, figure in control.figures.items():
            assert figure.row["protocol"]["pixels"] == pixels
            assert figure.row["protocol"]["first"] == ("honest" if control.pair.startswith("Only") else "mean")
            if "tree" in control.pair:
                assert rollouts(figure.row) == 40


def test_other_data_sets_stay_out_and_have_no_paper(run: Run) -> None:
    fashion = []
    for row in run.rows:
        other = copy.deepcopy(row)
        other["protocol"]["dataset"] = "fashion_mnist"
        other["value"] = 0.123
        fashion.append(other)
    mixed = gather([*run.rows, *fashion[:3]])
    assert mixed.dataset == "mnist" and len(mixed.rows) == len(run.rows)
    alone = gather(fashion)
    assert alone.dataset == "fashion_mnist"
    assert all(cell.paper is None for row in alone.table for cell in row.cells())
    assert all(curve.paper_end is None and curve.paper_start is None for curve in alone.curves)
