from __future__ import annotations

import copy
import io
import re

import pytest
from rich.console import Console

from debate_rl.evaluation.report import table2_markdown, terminal_table
from debate_rl.evaluation.report.markdown import (
    accuracy_markdown,
    controls_markdown,
    curves_markdown,
    judges_markdown,
    speed_markdown,
)
from tests.evaluation.report.conftest import Row, Run, percents, pick


def in_terminal(rows: list[Row], width: int = 80) -> str:
    """What a terminal of that width shows."""
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(terminal_table(rows))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def wins(rows: list[Row]) -> list[tuple[Row, Row]]:
    """Both debate cells of each row of Table 2, in order."""
    return [
        (
            pick(rows, "honest_win_rate", rollouts=40, pixels=pixels, first=first, commit="none"),
            pick(rows, "honest_win_rate", rollouts=40, pixels=pixels, first=first, commit="precommit", lies="worst"),
        )
        for pixels in (4, 6)
        for first in ("honest", "liar", "mean")
    ]


def test_the_terminals_table_fits_80_columns_and_holds_the_rows(run: Run) -> None:
    shown = in_terminal(run.rows)
    assert max(len(line) for line in shown.splitlines()) <= 80
    assert "…" not in shown
    lines = [line for line in shown.splitlines() if re.match(r" *[46] +(honest|liar|mean)", line)]
    assert len(lines) == 6
    for line, cells in zip(lines, wins(run.rows), strict=True):
        for row in cells:
            value, low, high = percents(row)
            assert re.search(rf"{re.escape(value)} \[{re.escape(low)}.{re.escape(high)}\]", line)
    assert shown.count("paper") >= 14 and re.search(r"✓ inside|▲ higher|▼ lower", shown)


def test_the_widest_figures_fit_too(run: Run) -> None:
    rows = copy.deepcopy(run.rows)
    for row in rows:
        row["value"], row["ci95"] = 1.0, [1.0, 1.0]
    shown = in_terminal(rows)
    assert "…" not in shown and "100.0 [100.0" in shown and max(map(len, shown.splitlines())) <= 80


def test_a_terminals_table_without_rows_is_empty() -> None:
    assert terminal_table([]).row_count == 0


def test_markdown_table_2_holds_the_rows(run: Run) -> None:
    lines = table2_markdown(run.rows).splitlines()
    assert len({line.count("|") for line in lines[:8]}) == 1
    for line, cells in zip(lines[2:8], wins(run.rows), strict=True):
        for cell, row in zip(line.split("|")[4:6], cells, strict=True):
            value, low, high = percents(row)
            assert re.match(rf" \*\*{re.escape(value)}\*\* \[{re.escape(low)}.{re.escape(high)}\]<br>paper \d\d\.\d, [^-]\d", cell)
    assert "40 rollouts per move, 12 test images" in lines[9]


def test_the_other_markdown_tables_hold_the_rows(run: Run) -> None:
    accuracies = [row for row in run.rows if row["metric"] == "judge_accuracy" and row["n"] == len(run.digits)]
    errors = [row for row in run.rows if row["metric"] == "judge_ece" and row["protocol"]["shown"] == "random"]
    greedy = [row for row in run.rows if row["agents"]["liar"].get("name") == "greedy" and row["protocol"]["first"] == "mean"]
    curve = [pick(run.rows, "honest_win_rate", rollouts=10, pixels=pixels, first="mean", lies="worst") for pixels in (4, 6)]
    for table, rows in ((curves_markdown, curve), (controls_markdown, greedy), (accuracy_markdown, accuracies), (judges_markdown, errors)):
        drawn = table(run.rows)
        assert rows and drawn.endswith("|\n") and len({line.count("|") for line in drawn.splitlines()}) == 1
        for row in rows:
            value, low, high = percents(row)
            assert value in drawn
            if row["metric"] != "judge_ece":
                assert f"**{value}** [{low}" in drawn and f"{high}]" in drawn
    speeds = [row for row in run.rows if row["metric"] == "rollouts_per_second_per_core"]
    assert all(f"| {row['value']:,.0f} |" in speed_markdown(run.rows) for row in speeds)


@pytest.mark.parametrize("table", [table2_markdown, curves_markdown, controls_markdown, accuracy_markdown, judges_markdown, speed_markdown])
def test_markdown_tables_without_rows_are_empty(table: object) -> None:
    assert callable(table) and table([]) == ""


def test_names_cannot_break_out_of_a_markdown_cell(run: Run) -> None:
    rows = copy.deepcopy(run.rows)
    for row in rows:
        row["judge"]["name"] = "a|b\n<script>`*"
        for seat in ("honest", "liar"):
            if row["agents"][seat].get("name") == "greedy":
                row["agents"][seat]["name"] = "a|b\n<script>`*"
    for drawn in (controls_markdown(rows), accuracy_markdown(rows), judges_markdown(rows)):
        assert "<script" not in drawn and "&lt;script" in drawn
        assert len({line.replace("\\|", "").count("|") for line in drawn.splitlines()}) == 1
