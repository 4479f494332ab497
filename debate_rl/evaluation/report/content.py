"""What a report shows, gathered from rows, records and tables; every renderer (page, pictures, terminal, docs) draws from this."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from debate_rl.evaluation.report import paper
from debate_rl.evaluation.report.rows import (
    DASH,
    SEARCH,
    SILENT,
    Estimate,
    Row,
    agent,
    agent_name,
    best,
    estimate,
    judge_accuracy,
    judge_name,
    main_dataset,
    main_search,
    matching,
    of_dataset,
    protocol,
    rollouts,
    row_judge,
    search_family,
    search_settings,
    win_rate,
)
from debate_rl.games.pixels import SEATS

# Rows by who plays, how it is judged, their place, and the number of pixels.
_Groups = dict[tuple[str, str, tuple[int, int]], dict[int, list[Row]]]


@dataclass(frozen=True)
class Curve:
    """Honest win rate (precommitted, worst of nine lies, mean of orders) against the search budget.

    Attributes:
        pixels: revealed in a game.
        start: the judge alone on random pixels, or None where it was not measured.
        points: `(rollouts per move, figure)`, by growing budget.
        paper_start: the paper's figure for the start, or None where it has none.
        paper_end: the paper's figure at 10,000 rollouts, likewise.
    """

    pixels: int
    start: Estimate | None
    points: tuple[tuple[int, Estimate], ...]
    paper_start: float | None
    paper_end: float | None


@dataclass(frozen=True)
class Cell:
    """One cell of Table 2: ours, and the paper's where it has one."""

    ours: Estimate | None
    paper: float | None

    def verdict(self) -> tuple[str, str]:
        """A mark and words for how the two compare: `inside`, `ours higher`, `ours lower`."""
        if self.ours is None:
            return DASH, "not measured"
        if self.paper is None:
            return DASH, "no figure in the paper"
        if self.ours.holds(self.paper):
            return "✓", "inside"
        return ("▲", "ours higher") if self.ours.low > self.paper else ("▼", "ours lower")


@dataclass(frozen=True)
class TableRow:
    """One row of Table 2."""

    pixels: int
    first: str
    judge: Cell
    open: Cell
    precommit: Cell

    def cells(self) -> tuple[Cell, Cell, Cell]:
        """In the order of the columns."""
        return self.judge, self.open, self.precommit


@dataclass(frozen=True)
class Series:
    """Figures by number of pixels."""

    name: str
    kind: str  # `judge` or `debate`
    points: tuple[tuple[int, Estimate], ...]


@dataclass(frozen=True)
class Control:
    """One pairing (or one exploited agent) under one way of judging, per number of pixels."""

    pair: str
    judged: str
    figures: Mapping[int, Estimate]
    order: tuple[int, int] = (9, 9)


@dataclass(frozen=True)
class BarWords:
    """What a chart of `Control`s is called, what its figures are, and the same with their unit."""

    title: str
    figure: str
    unit: str


CONTROLS = BarWords("Controls", "honest win rate", "honest wins, %")
GAPS = BarWords("Exploitability", "what a best response gains", "lost to a best response, points")


@dataclass(frozen=True)
class Confusion:
    """A 10 x 10 matrix, label by answer or lie, percent of all images; the diagonal is not shown."""

    kind: str  # `random` or `lies`
    pixels: int
    matrix: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class ReliabilityTable:
    """Confidence against accuracy.

    Attributes:
        kind: `random` (before debate), `answer` (after debate, among ten), `claims` (after debate, between the two claims).
        pixels: revealed.
        n: observations.
        ece: expected calibration error.
        bins: `(low, high, count, mean confidence, accuracy)` of each bin that is not empty.
        figure: the result row's figure, where there is one.
    """

    kind: str
    pixels: int
    n: int
    ece: float
    bins: tuple[tuple[float, float, int, float, float], ...]
    figure: Estimate | None = None


@dataclass
class Content:
    """Everything a report draws."""

    dataset: str
    rows: list[Row]
    curves: list[Curve]
    table: list[TableRow]
    controls: list[Control]
    accuracy: list[Series]
    gaps: list[Control] = field(default_factory=list)
    confusions: list[Confusion] = field(default_factory=list)
    reliability: list[ReliabilityTable] = field(default_factory=list)


def gather(rows: Iterable[Row], tables: Mapping[str, Any] | None = None) -> Content:
    """Gather a report's content.

    Args:
        rows: result rows; those about other data sets than the main one are left out.
        tables: as `debate_rl.evaluation.reproduce.collect` makes them: per number of pixels, `random` (`confusion`, `reliability`), `lies`,
            `answer` and `claims`. Missing or misshapen parts are left out.
    """
    everything = list(rows)
    dataset = main_dataset(everything)
    ours = of_dataset(everything, dataset)
    content = Content(
        dataset=dataset,
        rows=ours,
        curves=[curve for pixels in (6, 4) if (curve := search_curve(ours, pixels)) is not None],
        table=table2(ours),
        controls=control_rows(ours),
        accuracy=accuracy_series(ours),
        gaps=gap_rows(ours),
    )
    for pixels, parts in sorted(_by_count(tables or {}), reverse=True):
        random = parts.get("random")
        random = random if isinstance(random, Mapping) else {}
        for kind, matrix in (("random", random.get("confusion")), ("lies", parts.get("lies"))):
            content.confusions += [found] if (found := confusion_from(kind, pixels, matrix)) else []
        for kind, table in (("random", random.get("reliability")), ("answer", parts.get("answer")), ("claims", parts.get("claims"))):
            content.reliability += [known] if (known := reliability_from(kind, pixels, table, ours)) else []
    return content


def _by_count(tables: Mapping[str, Any]) -> list[tuple[int, Mapping[str, Any]]]:
    return [(int(pixels), parts) for pixels, parts in tables.items() if str(pixels).isdigit() and isinstance(parts, Mapping)]


def search_curve(rows: Sequence[Row], pixels: int) -> Curve | None:
    """The curve for one number of pixels; None where there is neither a debate nor a judged random mask."""
    family = _same_images(search_family(rows, pixels))
    points = []
    for budget in sorted({budget for row in family if (budget := rollouts(row)) is not None}):
        figure = win_rate((row for row in family if rollouts(row) == budget), "mean", "precommit")
        if figure is not None:
            points.append((budget, figure))
    images = protocol(points[-1][1].row).get("images") if points else None
    alike = [row for row in matching(rows, "judge_accuracy", pixels=pixels, shown="random") if protocol(row).get("images") == images]
    start = judge_accuracy(alike or rows, pixels, row_judge(points[-1][1].row) if points else None)
    if start is None and not points:
        return None
    published = main_dataset(rows) == paper.DATASET
    return Curve(
        pixels=pixels,
        start=start,
        points=tuple(points),
        paper_start=paper.JUDGE_ACCURACY.get(pixels) if published else None,
        paper_end=paper.honest_win(pixels, "mean", "precommit") if published else None,
    )


def _same_images(family: Sequence[Row]) -> list[Row]:
    """The rows about those images that cover most budgets: a curve's points must not differ by their images."""
    budgets: dict[str, set[int | None]] = {}
    for row in family:
        budgets.setdefault(repr(protocol(row).get("images")), set()).add(rollouts(row))
    most = max((len(covered) for covered in budgets.values()), default=0)
    return [row for row in family if len(budgets[repr(protocol(row).get("images"))]) == most]


def table2(rows: Sequence[Row]) -> list[TableRow]:
    """The paper's Table 2; empty where none of its cells was measured."""
    published = main_dataset(rows) == paper.DATASET
    table = []
    for pixels in paper.PIXELS:
        debates = main_search(rows, pixels)
        accuracy = judge_accuracy(rows, pixels, row_judge(debates[0]) if debates else None)
        for first in paper.ORDERS:
            wins = {
                commit: Cell(win_rate(debates, first, commit), paper.honest_win(pixels, first, commit) if published else None)
                for commit in ("none", "precommit")
            }
            judge = Cell(accuracy, paper.JUDGE_ACCURACY[pixels] if published else None)
            table.append(TableRow(pixels, first, judge, wins["none"], wins["precommit"]))
    return table if any(cell.ours for row in table for cell in row.cells()) else []


def accuracy_series(rows: Sequence[Row]) -> list[Series]:
    """Accuracy against the number of pixels: one series per judge on random pixels, and the search that debated at most counts."""
    judges: dict[str | None, list[Row]] = {}
    for row in matching(rows, "judge_accuracy", shown="random"):
        judges.setdefault(row_judge(row), []).append(row)
    found = [
        Series(f"judge {judge_name(group[0])}, random pixels", "judge", points)
        for group in judges.values()
        if (points := _by_pixels(group))
    ]
    debates: dict[tuple[object, ...], list[Row]] = {}
    for row in matching(rows, "honest_win_rate", commit="precommit", lies="worst", first="mean"):
        if rollouts(row) is not None:
            debates.setdefault((row_judge(row), search_settings(row), rollouts(row)), []).append(row)
    series = [(_by_pixels(group), group[0]) for group in debates.values()]
    if series:
        points, row = max(series, key=lambda entry: (len(entry[0]), rollouts(entry[1]) or 0))
        found += [Series(f"debate, {rollouts(row):,} rollouts", "debate", points)] if points else []
    return found


def _by_pixels(rows: Sequence[Row]) -> tuple[tuple[int, Estimate], ...]:
    counts = sorted({count for row in rows if isinstance(count := protocol(row).get("pixels"), int)})
    found = [(pixels, best(row for row in rows if protocol(row).get("pixels") == pixels)) for pixels in counts]
    return tuple((pixels, figure) for pixels, figure in found if figure is not None)


def control_rows(rows: Sequence[Row]) -> list[Control]:
    """Every pairing that was measured, the paper's own last; the mean of the orders, or the one order that was played."""
    # Search plays at many budgets and pixel counts; here it is only the yardstick where something else was played too.
    others = {protocol(row).get("pixels") for row in matching(rows, "honest_win_rate") if rollouts(row) is None}
    main = {id(row) for pixels in others if isinstance(pixels, int) for row in main_search(rows, pixels)}
    groups: _Groups = {}
    for row in matching(rows, "honest_win_rate"):
        settings = protocol(row)
        pixels = settings.get("pixels")
        if not isinstance(pixels, int) or estimate(row) is None or (rollouts(row) is not None and id(row) not in main):
            continue
        pair, place = _pair(row)
        judged, rank = _judged(settings)
        groups.setdefault((pair, judged, (place, rank)), {}).setdefault(pixels, []).append(row)
    return _bars(groups)


def gap_rows(rows: Sequence[Row]) -> list[Control]:
    """How exploitable each agent is: a pair of agent and seat per group, the mean of the orders or the one order that was played."""
    groups: _Groups = {}
    for row in matching(rows, "exploitability"):
        settings = protocol(row)
        pixels, seat = settings.get("pixels"), settings.get("seat")
        if not isinstance(pixels, int) or seat not in SEATS or estimate(row) is None:
            continue
        settled = agent(row, seat)
        budget = settled.get("rollouts")
        name = _agent_words(str(settled.get("name", "")))
        words = f"{name}, {budget:,} rollouts" if type(budget) is int else name
        judged, rank = _judged(settings)
        # Weak agents first: their own best responses win most.
        place = (budget if type(budget) is int else -1) * len(SEATS) + SEATS.index(seat)
        groups.setdefault((f"{words[:1].upper()}{words[1:]}, {seat}", judged, (place, rank)), {}).setdefault(pixels, []).append(row)
    return _bars(groups)


def _bars(groups: _Groups) -> list[Control]:
    """One figure per group and number of pixels: the mean of the orders, or the one order that was played."""
    found = []
    for (pair, judged, order), by_pixels in groups.items():
        figures = {}
        for pixels, answers in by_pixels.items():
            mean = [row for row in answers if protocol(row).get("first") == "mean"]
            orders = {protocol(row).get("first") for row in answers}
            figure = best(mean) if mean else (best(answers) if len(orders) == 1 else None)
            if figure is not None:
                figures[pixels] = figure
        if figures:
            found.append(Control(pair, judged, dict(sorted(figures.items())), order))
    return sorted(found, key=lambda control: (control.order[0], control.pair, control.order[1]))  # a pair's figures stay together


def _pair(row: Row) -> tuple[str, int]:
    """Words for who debates, and their place in the table."""
    honest, liar = agent_name(row, "honest"), agent_name(row, "liar")
    if honest == liar == SILENT:
        return "No debate, random pixels", 0
    if liar == SILENT:
        return f"Only the honest side speaks ({_agent_words(honest)})", 7
    if honest == SILENT:
        return f"Only the liar speaks ({_agent_words(liar)})", 8
    if honest == liar:
        place = {"random": 1, "greedy": 2, SEARCH: 3}.get(honest, 4)
        return {"random": "Debaters that pick at random"}.get(honest, f"Debate, {_agent_words(honest)}"), place
    return f"Debate, honest {_agent_words(honest)}, liar {_agent_words(liar)}", 5


def _agent_words(name: str) -> str:
    return {SEARCH: "tree search", "": "unnamed agent"}.get(name, name)


def _judged(settings: Mapping[str, Any]) -> tuple[str, int]:
    """Words for how a game is judged, and their place."""
    if settings.get("commit") == "none":
        return "no precommit", 0
    lies = settings.get("lies")
    return {
        "worst": ("precommit, worst of nine", 1),
        "best": ("two-way, best lie", 2),
        "random": ("two-way, one random lie" if "shown" in settings else "precommit, one random lie", 3),
    }.get(str(lies), (f"lies: {lies}", 4))


def confusion_from(kind: str, pixels: int, matrix: Any) -> Confusion | None:
    """A matrix of percent with its diagonal cleared, or None where it is not 10 x 10 finite numbers."""
    try:
        array = np.array(matrix, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    if array.shape != (10, 10) or not np.isfinite(array).all():
        return None
    np.fill_diagonal(array, 0.0)
    return Confusion(kind, pixels, tuple(tuple(line) for line in array.tolist()))


def reliability_from(kind: str, pixels: int, table: Any, rows: Sequence[Row]) -> ReliabilityTable | None:
    """A reliability table (as `calibration.Reliability.table` gives it), or None where it is missing, empty or misshapen."""
    try:
        bins = tuple(
            (float(line["low"]), float(line["high"]), int(line["count"]), float(line["confidence"]), float(line["accuracy"]))
            for line in table["bins"]
            if line["count"]
        )
        n, ece = int(table["n"]), float(table["ece"])
    except (KeyError, TypeError, ValueError):
        return None
    shown = {"random": {"shown": "random"}, "answer": {"shown": "debate", "commit": "none"}}.get(kind)
    figure = best(matching(rows, "judge_ece", pixels=pixels, **shown)) if shown else None
    return ReliabilityTable(kind, pixels, n, ece, bins, figure) if bins and n > 0 else None
