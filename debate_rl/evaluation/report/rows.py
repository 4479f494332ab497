"""Find figures among result rows.

A figure is asked for by its metric and the part of its protocol that matters; several rows may answer (a curve's point and a table's cell
are the same figure on more images), so one rule picks: more rollouts first, then the default average, then more images, then the later.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]

SEARCH = "mcts"
SILENT = "silent"

DASH = "\N{EN DASH}"  # between the ends of an interval, and for "nothing here"
MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class Estimate:
    """One measured figure with its 95 % interval.

    Attributes:
        value: a share in [0, 1] for accuracies and win rates.
        low: lower end of the interval.
        high: upper end.
        n: how many images (or games) it rests on.
        row: where it comes from.
    """

    value: float
    low: float
    high: float
    n: int
    row: Row

    def holds(self, other: float) -> bool:
        """Whether another figure lies inside the interval. Ends count; a figure printed to 0.1 % is not refused for rounding."""
        return self.low - 5e-10 <= other <= self.high + 5e-10


def estimate(row: Row) -> Estimate | None:
    """A row's figure, or None where value or interval is missing or not a finite number."""
    interval = row.get("ci95")
    if not isinstance(interval, Sequence) or isinstance(interval, str) or len(interval) != 2:
        return None
    numbers = [row.get("value"), *interval]
    if not all(_is_number(number) for number in numbers):
        return None
    value, low, high = (float(number) for number in numbers)
    n = row.get("n")
    return Estimate(value, low, high, int(n) if isinstance(n, int) and n > 0 else 0, row)


def protocol(row: Row) -> Mapping[str, Any]:
    """A row's protocol, empty where it has none."""
    found = row.get("protocol")
    return found if isinstance(found, Mapping) else {}


def agent(row: Row, seat: str) -> Mapping[str, Any]:
    """The settings of the agent in one seat, empty where the row names none."""
    agents = row.get("agents")
    found = agents.get(seat) if isinstance(agents, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def agent_name(row: Row, seat: str) -> str:
    """The name of the agent in one seat, or an empty string."""
    return str(agent(row, seat).get("name", ""))


def rollouts(row: Row) -> int | None:
    """The search budget per move when the same tree search sits in both seats, else None."""
    pair = [agent(row, seat) for seat in ("honest", "liar")]
    budgets = [settings.get("rollouts") for settings in pair]
    if any(settings.get("name") != SEARCH for settings in pair) or budgets[0] != budgets[1]:
        return None
    return budgets[0] if type(budgets[0]) is int and budgets[0] > 0 else None


def search_settings(row: Row) -> tuple[tuple[str, str], ...]:
    """What makes two searches of different budgets the same search: both seats' settings but the budget."""
    return tuple(
        (f"{seat}.{key}", repr(value))
        for seat in ("honest", "liar")
        for key, value in sorted(agent(row, seat).items())
        if key != "rollouts"
    )


def matching(rows: Iterable[Row], metric: str, **wanted: object) -> list[Row]:
    """Rows of one metric whose protocol has all the wanted values."""
    return [row for row in rows if row.get("metric") == metric and all(protocol(row).get(key) == value for key, value in wanted.items())]


def best(rows: Iterable[Row]) -> Estimate | None:
    """The figure to show among rows that answer the same question; None where there is none."""
    ranked = []
    for place, row in enumerate(rows):
        figure = estimate(row)
        if figure is not None:
            ranked.append((rollouts(row) or 0, protocol(row).get("average", "logits") == "logits", figure.n, place, figure))
    return max(ranked, key=lambda entry: entry[:4])[4] if ranked else None


def row_judge(row: Row) -> str | None:
    """The hash of the judge behind a row."""
    judge = row.get("judge")
    found = judge.get("hash") if isinstance(judge, Mapping) else None
    return str(found) if found else None


def judge_name(row: Row) -> str:
    """The name of the judge behind a row."""
    judge = row.get("judge")
    return str(judge.get("name", "judge")) if isinstance(judge, Mapping) else "judge"


def judge_accuracy(rows: Iterable[Row], pixels: int, judge: str | None = None) -> Estimate | None:
    """The judge's accuracy on random pixels.

    Of the judge with this hash where it was measured; else of the one that was made for this number of pixels, which is the one whose
    calibration was measured at it; else of any.
    """
    everything = list(rows)
    found = matching(everything, "judge_accuracy", pixels=pixels, shown="random")
    made_for = {row_judge(row) for row in matching(everything, "judge_ece", pixels=pixels, shown="random")}
    same = [row for row in found if judge and row_judge(row) == judge] or [row for row in found if row_judge(row) in made_for]
    return best(same or found)


def search_family(rows: Iterable[Row], pixels: int) -> list[Row]:
    """Honest win rates of the main search at one number of pixels: one judge, one search, any budget.

    A sweep over another setting, or with a judge made for another number of pixels, has fewer rows and is another family.
    """
    families: dict[tuple[object, ...], list[Row]] = {}
    for row in matching(rows, "honest_win_rate", pixels=pixels):
        if rollouts(row) is not None and estimate(row) is not None:
            families.setdefault((row_judge(row), search_settings(row)), []).append(row)
    return max(families.values(), key=len) if families else []


def self_play(rows: Iterable[Row], pixels: int) -> list[Row]:
    """Honest win rates of an agent that does not search against itself, where it is the only such agent besides the random one."""
    found = [
        row
        for row in matching(rows, "honest_win_rate", pixels=pixels)
        if agent(row, "honest") == agent(row, "liar") and agent_name(row, "honest") not in ("", SILENT, "random") and estimate(row)
    ]
    return found if len({(row_judge(row), search_settings(row)) for row in found}) == 1 else []


def main_search(rows: Iterable[Row], pixels: int) -> list[Row]:
    """The rows of the main search at its main budget: the one with most of the table's cells, the larger of equals.

    Where nobody searched, the rows of the one agent that sat in both seats.
    """
    cells: dict[int, set[tuple[Any, ...]]] = {}
    everything = list(rows)
    family = search_family(everything, pixels) or self_play(everything, pixels)
    for row in family:
        budget, settings = rollouts(row), protocol(row)
        if budget is not None or "rollouts" not in agent(row, "honest"):
            cells.setdefault(budget or 0, set()).add((settings.get("commit"), settings.get("lies"), settings.get("first")))
    main = max(cells, key=lambda budget: (len(cells[budget]), budget)) if cells else None
    return [row for row in family if (rollouts(row) or 0) == main]


def win_rate(rows: Iterable[Row], first: str, commit: str) -> Estimate | None:
    """Honest win rate among the given rows; precommit means the worst of nine lies, the paper's figure."""
    found = [row for row in rows if (protocol(row).get("first"), protocol(row).get("commit")) == (first, commit)]
    return best(row for row in found if commit != "precommit" or protocol(row).get("lies") == "worst")


def main_dataset(rows: Iterable[Row]) -> str:
    """The data set most rows are about; the paper's where no row names one."""
    counts: dict[str, int] = {}
    for row in rows:
        name = protocol(row).get("dataset")
        if isinstance(name, str):
            counts[name] = counts.get(name, 0) + 1
    return max(counts, key=lambda name: (counts[name], name == "mnist")) if counts else "mnist"


def of_dataset(rows: Iterable[Row], dataset: str) -> list[Row]:
    """The rows about one data set, with those that name none."""
    return [row for row in rows if protocol(row).get("dataset", dataset) == dataset]


def main_rows(rows: Iterable[Row]) -> list[Row]:
    """The rows about the data set that most are about."""
    everything = list(rows)
    return of_dataset(everything, main_dataset(everything))


def percent(share: float, digits: int = 1) -> str:
    """A share as percent without the sign: `88.9`."""
    return f"{100 * share:.{digits}f}"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
