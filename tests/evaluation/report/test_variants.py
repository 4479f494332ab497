"""Variants of the game side by side say what their rows say."""

from __future__ import annotations

from typing import Any

from debate_rl.evaluation.report.rows import DASH
from debate_rl.evaluation.report.variants import lies_markdown, strengths_board, variants_markdown


def row(metric: str, value: float, judge: str, budgets: tuple[int, int] = (100, 100), n: int = 50, **protocol: object) -> dict[str, Any]:
    agents = {seat: {"name": "mcts", "rollouts": budget} for seat, budget in zip(("honest", "liar"), budgets, strict=True)}
    return {
        "metric": metric,
        "value": value,
        "ci95": [max(0.0, value - 0.05), min(1.0, value + 0.05)],
        "n": n,
        "protocol": {"game": "pixels", "dataset": "mnist", "pixels": 6, **protocol},
        "agents": agents if "shown" not in protocol else {seat: {"name": "silent"} for seat in agents},
        "judge": {"name": judge, "hash": f"hash of {judge}"},
    }


def win(value: float, judge: str, first: str = "mean", **more: Any) -> dict[str, Any]:
    return row("honest_win_rate", value, judge, commit="precommit", lies="worst", first=first, **more)


def lines(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.replace(DASH, "-").splitlines()[2:]]


def test_a_line_per_judge_kind_of_pixels_and_debaters() -> None:
    rows = [
        row("judge_accuracy", 0.6, "mlp-6", shown="random"),
        row("judge_accuracy", 0.3, "mlp-6", shown="random", black=True),  # the same judge shown other pixels
        win(0.8, "mlp-6"),
        win(0.7, "mlp-6", "honest"),
        win(0.9, "mlp-6", "liar"),
        win(0.5, "mlp-6", budgets=(100, 30)),
        row("judge_accuracy", 0.4, "mlp-6-black", shown="random", black=True),
        win(0.95, "mlp-6-black", black=True),
        row("honest_win_rate", 0.65, "mlp-6-black", black=True, commit="none", lies="none", first="mean"),
        win(0.75, "mlp-6-threshold0.2", threshold=0.2),
    ]
    found = lines(variants_markdown(rows))
    assert [line[:4] for line in found] == [
        ["`mlp-6`", "nonzero", "6", "mcts 100"],
        ["`mlp-6`", "nonzero", "6", "mcts 100 against mcts 30"],
        ["`mlp-6-black`", "any pixel", "6", "mcts 100"],
        ["`mlp-6-threshold0.2`", "above 0.2", "6", "mcts 100"],
    ]
    assert [cell.split()[0] for cell in found[0][4:]] == ["**60.0**", "**70.0**", "**90.0**", "**80.0**", "-"]
    assert [cell.split()[0] for cell in found[2][4:]] == ["**40.0**", "-", "-", "**95.0**", "**65.0**"]
    assert found[3][4] == "-" and variants_markdown([]) == ""


def test_lies_by_digit_and_the_share_of_eight_and_nine() -> None:
    rates = [0.0, 0.02, 0.04, 0.0, 0.0, 0.04, 0.0, 0.0, 0.06, 0.04]
    rows = [row("successful_lie_rate", rate, "mlp-6", commit="precommit", first="mean", lie=lie) for lie, rate in enumerate(rates)]
    (line,) = lines(lies_markdown(rows))
    assert line == ["`mlp-6`", "nonzero", "6", "mcts 100", *("0.0", "2.0", "4.0", "0.0", "0.0", "4.0", "0.0", "0.0", "6.0", "4.0"), "50.0"]
    none = [row("successful_lie_rate", 0.0, "mlp-6", commit="precommit", first="mean", lie=lie) for lie in range(9)]
    assert lines(lies_markdown(none))[0][-2:] == ["-", "-"]  # no figure for nine, and no successful lie to take a share of


def test_strengths_of_both_sides_as_a_map() -> None:
    rows = [win(0.5 + 0.1 * own - 0.2 * other, "mlp-6", budgets=(10**own, 10**other)) for own in (1, 2) for other in (1, 2)]
    board = strengths_board(rows)
    assert board is not None
    assert "honest 10, liar 10: 40.0 %; honest 10, liar 100: 20.0 %; honest 100, liar 10: 50.0 %" in board.description
    drawing = board.standalone("x")
    assert all(f">{figure}<" in drawing for figure in ("40.0", "20.0", "50.0", "30.0"))
    assert strengths_board(rows[:2]) is None and strengths_board([]) is None
