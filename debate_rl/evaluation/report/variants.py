"""Tables and charts that set variants of the game side by side, for the docs: other judges, other pixels, debaters of unequal strength."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from debate_rl.evaluation.report.markdown import figure_cell, markdown_table
from debate_rl.evaluation.report.rows import (
    DASH,
    SEARCH,
    Estimate,
    Row,
    agent,
    best,
    estimate,
    judge_name,
    matching,
    percent,
    protocol,
    row_judge,
    win_rate,
)
from debate_rl.evaluation.report.svg import Board
from debate_rl.games.pixels import CLASSES, SEATS

MEAN = "mean"


def variants_markdown(rows: Iterable[Row]) -> str:
    """A line per judge, kind of pixels and debaters, in the order of the rows: the judge alone, and who wins its debates."""
    everything = list(rows)
    body = []
    for group in _variants(everything, "honest_win_rate"):
        first = group[0]
        settings = protocol(first)
        alone = [
            row
            for row in matching(everything, "judge_accuracy", shown="random", pixels=settings.get("pixels"))
            if row_judge(row) == row_judge(first) and _pool(row) == _pool(first)
        ]
        cells = [figure_cell(win_rate(group, order, "precommit")) for order in (*SEATS, MEAN)]
        body.append([*_named(first), figure_cell(best(alone)), *cells, figure_cell(win_rate(group, MEAN, "none"))])
    heads = ["Judge", "May be revealed", "Pixels", "Debaters", "Judge alone, %"]
    heads += ["Precommit, honest first", "Precommit, liar first", "Precommit, mean", "No precommit, mean"]
    return markdown_table(heads, body) if body else ""


def lies_markdown(rows: Iterable[Row]) -> str:
    """How often each lie succeeds, a line per variant and a column per lie."""
    body = []
    for group in _variants(list(rows), "successful_lie_rate"):
        figures = [best(row for row in group if protocol(row).get("lie") == lie) for lie in range(CLASSES)]
        known = [figure.value for figure in figures if figure]
        # What eight and nine would hold of all successful lies if no digit were an easier lie than another: a fifth.
        share = percent(sum(figure.value for figure in figures[8:] if figure) / sum(known)) if sum(known) > 0 else DASH
        body.append([*_named(group[0]), *(percent(figure.value) if figure else DASH for figure in figures), share])
    heads = ["Judge", "May be revealed", "Pixels", "Debaters", *map(str, range(CLASSES)), "8 and 9 of all"]
    return markdown_table(heads, body) if body else ""


def strengths_board(rows: Iterable[Row]) -> Board | None:
    """Honest win rate by both sides' rollouts per move, as a heat map; None where nobody searched with unequal budgets."""
    cells: dict[tuple[int, int], list[Row]] = {}
    for row in matching(rows, "honest_win_rate", commit="precommit", lies="worst", first=MEAN):
        honest, liar = (agent(row, seat) for seat in SEATS)
        budgets = honest.get("rollouts"), liar.get("rollouts")
        if honest.get("name") == liar.get("name") == SEARCH and isinstance(budgets[0], int) and isinstance(budgets[1], int):
            cells.setdefault((budgets[0], budgets[1]), []).append(row)
    figures = {key: figure for key, found in cells.items() if (figure := best(found))}
    down, across = (sorted({key[seat] for key in figures}) for seat in (0, 1))
    if len(down) * len(across) < 4:
        return None
    return _heat_map(figures, down, across)


def _heat_map(figures: dict[tuple[int, int], Estimate], honest: Sequence[int], liar: Sequence[int]) -> Board:
    left, top, width, height = 96.0, 66.0, 92.0, 56.0
    words = "; ".join(f"honest {own:,}, liar {other:,}: {percent(figure.value)} %" for (own, other), figure in sorted(figures.items()))
    board = Board(left + width * len(liar) + 10, top + height * len(honest) + 12, "Honest win rate by both sides' search", f"{words}.")
    board.text((6, 16), "precommit, honest wins, %", bold=True)
    board.text((left + width * len(liar) / 2, 38), "liar's rollouts per move", "middle", "var(--soft)")
    board.text((14, top + height * len(honest) / 2), "honest's rollouts per move", "middle", "var(--soft)", turn=-90)
    for column, other in enumerate(liar):
        board.text((left + (column + 0.5) * width, top - 8), f"{other:,}", "middle")
    for line, own in enumerate(honest):
        y = top + line * height
        board.text((left - 8, y + height / 2 + 5), f"{own:,}", "end")
        for column, other in enumerate(liar):
            figure = figures.get((own, other))
            corner, middle = (left + column * width, y), left + (column + 0.5) * width
            board.rect((corner[0] + 1, y + 1), width - 2, height - 2, "var(--rule)", 0.35, 4)
            if figure:
                tip = f"honest {own:,}, liar {other:,}: {percent(figure.value)} %, n = {figure.n:,}"
                board.rect((corner[0] + 1, y + 1), width - 2, height - 2, "var(--honest)", round(0.75 * figure.value, 3), 4, tip)
                ink = "var(--paper)" if figure.value > 0.7 else "var(--ink)"
                board.text((middle, y + height / 2), percent(figure.value), "middle", ink, 15, bold=True)
                board.text((middle, y + height / 2 + 17), f"{percent(figure.low)}{DASH}{percent(figure.high)}", "middle", ink, 11)
    return board


def _variants(rows: Sequence[Row], metric: str) -> list[list[Row]]:
    """Rows of debates by judge, kind of pixels and debaters."""
    groups: dict[str, list[Row]] = {}
    for row in matching(rows, metric):
        if estimate(row) and "shown" not in protocol(row):
            key = repr((row_judge(row), _pool(row), protocol(row).get("pixels"), [_debater(row, seat) for seat in SEATS]))
            groups.setdefault(key, []).append(row)
    return list(groups.values())


def _pool(row: Row) -> tuple[Any, Any, Any]:
    settings = protocol(row)
    return settings.get("dataset"), settings.get("threshold", 0.0), settings.get("black", False)


def _debater(row: Row, seat: str) -> str:
    settings = agent(row, seat)
    budget = settings.get("rollouts")
    return f"{settings.get('name', '')} {budget:,}" if type(budget) is int else str(settings.get("name", ""))


def _named(row: Row) -> list[str]:
    """Judge, what may be revealed, pixels, debaters."""
    _, threshold, black = _pool(row)
    pixels = "any pixel" if black else f"above {threshold:g}" if threshold else "nonzero"
    honest, liar = (_debater(row, seat) for seat in SEATS)
    return [f"`{judge_name(row)}`", pixels, str(protocol(row).get("pixels")), honest if honest == liar else f"{honest} against {liar}"]
