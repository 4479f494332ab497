"""The tables of exact play say what their rows say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from debate_rl.data import Digits
from debate_rl.evaluation.report.content import gather
from debate_rl.evaluation.report.exact import exploitability_markdown, losing_moves_markdown, perfect_markdown, proved_markdown
from debate_rl.evaluation.report.gallery import pick_games
from debate_rl.evaluation.report.page import page_html
from debate_rl.evaluation.report.pictures import write_pictures
from debate_rl.evaluation.report.rows import DASH

JUDGE = {"name": "mlp-4", "hash": "a"}
EXACT = {"honest": {"name": "exact"}, "liar": {"name": "exact"}}
SEARCH = {seat: {"name": "mcts", "rollouts": 1000} for seat in ("honest", "liar")}


def row(metric: str, value: float, agents: dict[str, Any], **protocol: object) -> dict[str, Any]:
    return {
        "metric": metric,
        "value": value,
        "ci95": [max(0.0, value - 0.02), min(1.0, value + 0.02)],
        "n": 100,
        "protocol": {"game": "pixels", "dataset": "mnist", "pixels": 4, **protocol},
        "agents": agents,
        "judge": JUDGE,
    }


def win(value: float, agents: dict[str, Any], **protocol: object) -> dict[str, Any]:
    return row("honest_win_rate", value, agents, **{"commit": "precommit", "lies": "worst", "first": "mean", **protocol})


def cells(table: str, start: str) -> list[str]:
    (line,) = [line for line in table.splitlines() if line.startswith(start)]
    return [cell.strip() for cell in line.replace(DASH, "-").strip("|").split("|")]


def test_perfect_play_stands_beside_the_search_and_the_paper() -> None:
    rows = [win(0.985, EXACT), win(0.8, SEARCH), win(0.9, EXACT, commit="none", lies="none")]
    assert cells(perfect_markdown(rows), "| 4 | mean") == [
        *("4", "mean", "**90.0** [88.0-92.0]", "-", "59.7", "**98.5** [96.5-100.0]", "**80.0** [78.0-82.0]", "85.2"),
    ]
    assert perfect_markdown([win(0.8, SEARCH)]) == ""


def test_what_is_not_proved_is_shown_as_bounds() -> None:
    rows = [win(0.5, EXACT, unproved="liar"), win(0.7, EXACT, unproved="honest")]
    assert "between **50.0** [48.0- and **70.0** -72.0]" in cells(perfect_markdown(rows), "| 4 | mean")


def test_losing_moves_by_budget_seat_and_move() -> None:
    rows = [
        row("losing_move_rate", 0.10, SEARCH, commit="precommit", seat="honest", first="mean"),
        row("losing_move_rate", 0.20, SEARCH, commit="precommit", seat="honest", first="honest", ply=2),
        row("losing_move_rate", 0.30, SEARCH, commit="precommit", seat="honest", first="honest"),
    ]
    table = losing_moves_markdown(rows)
    line = cells(table, "| 4 | yes | 1,000 | honest")
    assert line[4:] == ["**10.0** [8.0-12.0]", "-", "-", "**20.0** [18.0-22.0]", "-"]
    assert losing_moves_markdown([]) == ""


def test_proved_games_are_counted() -> None:
    rows = [
        row("proved_share", 0.75, EXACT, commit="precommit", first="liar", outcome="honest"),
        row("proved_share", 0.15, EXACT, commit="precommit", first="liar", outcome="liar"),
    ]
    assert cells(proved_markdown(rows), "| 4 | precommit") == ["4", "precommit", "liar", "900", "675", "135", "90"]


def gap(value: float, agent: dict[str, Any], seat: str, **protocol: object) -> dict[str, Any]:
    where = {"commit": "precommit", "lies": "worst", "first": "mean", **protocol}
    return row("exploitability", value, {seat: agent}, seat=seat, **where)


def test_exploitability_by_agent_seat_and_judging(tmp_path: Path, mnist_test: Digits) -> None:
    search = {"name": "mcts", "rollouts": 1000}
    rows = [
        gap(0.125, search, "liar"),
        gap(0.375, {"name": "greedy"}, "honest"),
        gap(0.25, {"name": "greedy"}, "honest", lies="random"),
        gap(0.5, {"name": "greedy"}, "honest", first="liar"),  # one order; the mean of both is there
        gap(0.0625, {"name": "greedy"}, "honest", commit="none", lies="none"),
    ]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in exploitability_markdown(rows).splitlines()[2:]]
    assert [line[:2] for line in lines] == [
        ["Greedy, honest", "no precommit"],
        ["", "precommit, worst of nine"],
        ["", "precommit, one random lie"],
        ["Tree search, 1,000 rollouts, liar", "precommit, worst of nine"],
    ]
    assert [line[2].split()[0] for line in lines] == ["**6.2**", "**37.5**", "**25.0**", "**12.5**"]

    content, games = gather(rows), pick_games([], mnist_test)
    html = page_html(content, *games)
    assert '<section id="exploitability"' in html and "37.5" in html and "Tree search, 1,000 rollouts, liar" in html
    (picture,) = [path for path in write_pictures(tmp_path, content, *games) if path.name == "exploitability.png"]
    assert picture.stat().st_size > 10_000
    # It is no part of every run: without such rows there is neither a section nor a link to it.
    assert "exploitability" not in page_html(gather([win(0.8, SEARCH)]), *games).lower()
