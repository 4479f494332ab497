"""The report's tables as Markdown, for README and docs. Each ends with a newline and is empty where its rows are missing."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from debate_rl.evaluation.report import paper
from debate_rl.evaluation.report.content import Cell, Control, accuracy_series, control_rows, search_curve, table2
from debate_rl.evaluation.report.rows import (
    DASH,
    Estimate,
    Row,
    estimate,
    judge_name,
    main_rows,
    matching,
    percent,
    protocol,
    row_judge,
)
from debate_rl.evaluation.report.tables import COLUMNS, SPEED_COLUMNS, difference, interval, speed_cells, table2_note
from debate_rl.judges.pretrained import load_judge, shipped_judges


def table2_markdown(rows: Iterable[Row]) -> str:
    """Table 2 beside the paper's, with a note on what it rests on."""
    table = table2(main_rows(rows))
    if not table:
        return ""
    body = []
    for row in table:
        judge = _cell(row.judge) if row.first == paper.ORDERS[0] else ""
        body.append([str(row.pixels), row.first, judge, _cell(row.open), _cell(row.precommit)])
    note = f"\n{table2_note(table)} ✓: the paper's figure lies inside our 95 % interval.\n"
    return markdown_table(["Pixels", "First player", *COLUMNS], body) + note


def curves_markdown(rows: Iterable[Row]) -> str:
    """Honest win rate by rollouts per move, a column per number of pixels."""
    everything = main_rows(rows)
    curves = [curve for pixels in (6, 4) if (curve := search_curve(everything, pixels)) is not None]
    budgets = sorted({budget for curve in curves for budget, _ in curve.points})
    if not curves:
        return ""
    body = [["no search", *(figure_cell(curve.start) for curve in curves)]]
    body += [[f"{budget:,}", *(figure_cell(dict(curve.points).get(budget)) for curve in curves)] for budget in budgets]
    return markdown_table(["Rollouts per move", *(f"{curve.pixels} pixels" for curve in curves)], body)


def controls_markdown(rows: Iterable[Row]) -> str:
    """The controls, a column per number of pixels."""
    return bars_markdown(control_rows(main_rows(rows)), "Who speaks")


def bars_markdown(controls: Sequence[Control], head: str) -> str:
    """Figures by who plays and how it is judged, a column per number of pixels."""
    columns = sorted({pixels for control in controls for pixels in control.figures}, reverse=True)
    body = []
    for pair, group in itertools.groupby(controls, key=lambda control: control.pair):
        for place, control in enumerate(group):
            words = _escape(pair) if place == 0 else ""
            body.append([words, _escape(control.judged), *(figure_cell(control.figures.get(pixels)) for pixels in columns)])
    return markdown_table([head, "Judged by", *(f"{pixels} pixels" for pixels in columns)], body) if body else ""


def accuracy_markdown(rows: Iterable[Row]) -> str:
    """Accuracy by number of pixels, a column per judge and for debate."""
    series = accuracy_series(main_rows(rows))
    columns = [dict(line.points) for line in series]
    counts = sorted({pixels for column in columns for pixels in column})
    body = [[str(pixels), *(figure_cell(column.get(pixels)) for column in columns)] for pixels in counts]
    return markdown_table(["Pixels", *(_escape(line.name) for line in series)], body) if body else ""


def judges_markdown(rows: Iterable[Row]) -> str:
    """Every judge on random pixels: accuracy, calibration error, and the paper's accuracy; of all data sets."""
    everything = list(rows)
    body = []
    for row in matching(everything, "judge_accuracy", shown="random"):
        figure, settings = estimate(row), protocol(row)
        same = matching(everything, "judge_ece", shown="random", pixels=settings.get("pixels"), dataset=settings.get("dataset"))
        errors = [found for other in same if row_judge(other) == row_judge(row) and isinstance(found := other.get("value"), float)]
        if figure is None or not errors:
            continue
        published = paper.JUDGE_ACCURACY.get(settings["pixels"]) if settings.get("dataset") == paper.DATASET else None
        words = [_escape(judge_name(row)), _escape(str(settings.get("dataset"))), str(settings.get("pixels"))]
        body.append([*words, figure_cell(figure), percent(published) if published is not None else DASH, percent(errors[-1])])
    return markdown_table(["Judge", "Data", "Pixels", "Accuracy, %", "Paper, %", "Calibration error, %"], body) if body else ""


def shipped_markdown() -> str:
    """The judges that come with the package, from their cards: accuracy on the test split, calibration, size, training time, hash."""
    body = []
    for judge in map(load_judge, shipped_judges()):
        test, training = judge.card["test"], judge.card["training"]
        accuracy = f"{100 * test['accuracy']:.2f} ± {100 * test['accuracy_sd']:.2f}"
        figures = [accuracy, f"{100 * test['ece']:.2f}", f"{test['cross_entropy']:.3f}", f"{training['seconds']:.0f}"]
        widths = " x ".join(map(str, judge.card["widths"]))
        body.append([f"`{judge.name}`", judge.dataset, str(judge.pixels), widths, *figures, f"`{judge.hash}`"])
    figures = ["accuracy, %", "calibration error, %", "cross entropy, nats", "training, s"]
    return markdown_table(["judge", "data set", "pixels", "widths", *figures, "hash"], body)


def speed_markdown(rows: Iterable[Row]) -> str:
    """Measured speeds, and the machine."""
    body = [[_escape(cell) for cell in line] for line in speed_cells(rows)]
    return markdown_table(SPEED_COLUMNS, body) if body else ""


def _cell(cell: Cell) -> str:
    ours = f"**{percent(cell.ours.value)}** [{interval(cell.ours)}]" if cell.ours else DASH
    if cell.paper is None:
        return ours
    mark, words = cell.verdict()
    against = f"paper {percent(cell.paper)}"
    return f"{ours}<br>{against}, {difference(cell)} {mark} {words}" if cell.ours else f"{ours}<br>{against}"


def figure_cell(figure: Estimate | None) -> str:
    """A figure with its interval, in percent; a dash for none."""
    return f"**{percent(figure.value)}** [{interval(figure)}]" if figure else DASH


def markdown_table(heads: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """A table in Markdown; the cells are taken as they are."""
    lines = [heads, ["---"] * len(heads), *body]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _escape(words: str) -> str:
    """Words that end no cell and start no markup or HTML."""
    plain = " ".join(words.split())
    for sign, safe in (
        ("&", "&amp;"),
        ("<", "&lt;"),
        (">", "&gt;"),
        ("\\", "\\\\"),
        ("|", "\\|"),
        ("`", "\\`"),
        ("*", "\\*"),
        ("[", "\\["),
    ):
        plain = plain.replace(sign, safe)
    return plain
