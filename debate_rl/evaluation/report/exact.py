"""Tables of exact play for the docs: Table 2 under perfect play, how often searching debaters throw a won game away, and exploitability."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from debate_rl.evaluation.report import paper
from debate_rl.evaluation.report.content import gap_rows
from debate_rl.evaluation.report.markdown import bars_markdown, figure_cell, markdown_table
from debate_rl.evaluation.report.rows import (
    DASH,
    Estimate,
    Row,
    agent,
    agent_name,
    best,
    main_rows,
    main_search,
    matching,
    percent,
    protocol,
    rollouts,
    row_judge,
    win_rate,
)
from debate_rl.games.pixels import SEATS

EXACT = "exact"


def perfect_markdown(rows: Iterable[Row]) -> str:
    """Table 2 under perfect play, beside our search and the paper's; empty without rows of exact play."""
    everything = list(rows)
    body = []
    for pixels in paper.PIXELS:
        solved = [row for row in matching(everything, "honest_win_rate", pixels=pixels) if agent_name(row, "honest") == EXACT]
        searched = main_search(everything, pixels)
        for first in paper.ORDERS:
            cells = [str(pixels), first]
            for commit in ("none", "precommit"):
                published = paper.honest_win(pixels, first, commit)
                cells += [_bounds(solved, first, commit), figure_cell(win_rate(searched, first, commit))]
                cells.append(percent(published) if published is not None else DASH)
            if solved:
                body.append(cells)
    heads = [f"{commit}: {who}" for commit in ("No precommit", "Precommit") for who in ("perfect play", "search", "paper's search")]
    return markdown_table(["Pixels", "First player", *heads], body) if body else ""


def _bounds(rows: Sequence[Row], first: str, commit: str) -> str:
    """A win rate under perfect play; where games were left unproved, the two that bound it."""
    whole = [row for row in rows if "unproved" not in protocol(row)]
    if whole:
        return figure_cell(win_rate(whole, first, commit))
    ends: list[Estimate | None] = [
        win_rate([row for row in rows if protocol(row).get("unproved") == seat], first, commit) for seat in ("liar", "honest")
    ]
    low, high = ends
    if low is None or high is None:
        return DASH
    return f"between **{percent(low.value)}** [{percent(low.low)}{DASH} and **{percent(high.value)}** {DASH}{percent(high.high)}]"


def losing_moves_markdown(rows: Iterable[Row]) -> str:
    """Moves that throw a won game away, in percent of the moves made from won positions: a line per budget and seat, a column per move."""
    found = matching(list(rows), "losing_move_rate")
    settings = sorted(
        {(int(protocol(row)["pixels"]), str(protocol(row)["commit"]), rollouts(row) or 0) for row in found},
        key=lambda key: (key[0], key[1] != "precommit", key[2]),
    )
    longest = max((pixels for pixels, _, _ in settings), default=0)
    body = []
    for pixels, commit, budget in settings:
        for seat in SEATS:
            here = [
                row
                for row in found
                if (protocol(row)["pixels"], protocol(row)["commit"], rollouts(row) or 0, protocol(row)["seat"])
                == (pixels, commit, budget, seat)
            ]
            total = best(row for row in here if protocol(row)["first"] == "mean" and "ply" not in protocol(row))
            plies = [best(row for row in here if protocol(row).get("ply") == ply) for ply in range(longest)]
            name = f"{budget:,}" if budget else str(agent(here[0], seat).get("name", "")) if here else ""
            words = "none" if commit == "none" else "yes"
            body.append([str(pixels), words, name, seat, figure_cell(total), *(figure_cell(figure) for figure in plies)])
    heads = ["Pixels", "Precommit", "Rollouts per move", "Seat", "All moves", *(f"Move {ply + 1}" for ply in range(longest))]
    return markdown_table(heads, body) if body else ""


def exploitability_markdown(rows: Iterable[Row]) -> str:
    """What agents lose to an opponent that knows them, in percent of images or games; a column per number of pixels."""
    return bars_markdown(gap_rows(main_rows(rows)), "Exploited agent")


def proved_markdown(rows: Iterable[Row]) -> str:
    """How many games were proved, and for whom, per number of pixels, commit mode and order."""
    found = matching(list(rows), "proved_share")
    keys = sorted(
        {(protocol(row)["pixels"], protocol(row)["commit"], protocol(row)["first"], row_judge(row), row["n"]) for row in found},
        key=lambda key: tuple(map(str, key)),
    )
    body = []
    for pixels, commit, first, judge, n in keys:
        here = [
            row
            for row in found
            if (protocol(row)["pixels"], protocol(row)["commit"], protocol(row)["first"], row_judge(row), row["n"])
            == (pixels, commit, first, judge, n)
        ]
        shares = {protocol(row)["outcome"]: float(row["value"]) for row in here}
        per_image = 9 if commit == "precommit" else 1
        counts = [round(shares.get(seat, 0.0) * n * per_image) for seat in SEATS]
        open_games = n * per_image - sum(counts)
        body.append([str(pixels), commit, first, f"{n * per_image:,}", *(f"{count:,}" for count in (*counts, open_games))])
    heads = ["Pixels", "Commit", "First player", "Games", "Proved for honest", "Proved for the liar", "Open"]
    return markdown_table(heads, body) if body else ""
