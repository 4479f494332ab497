"""The report's tables: Table 2 beside the paper's for the page and for the terminal, and the page's other tables."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from debate_rl.evaluation.report import paper
from debate_rl.evaluation.report.content import Cell, Content, Control, Curve, TableRow, table2
from debate_rl.evaluation.report.rows import (
    DASH,
    MINUS,
    Estimate,
    Row,
    agent,
    agent_name,
    judge_name,
    main_rows,
    percent,
    protocol,
    rollouts,
)
from debate_rl.machine import summary

COLUMNS = ("Judge, random pixels", "Honest wins, no precommit", "Honest wins, precommit")
SPEED_COLUMNS = ("Speed", "Of", "Threads", "Ply", "Value", "Setting", "Machine")


def interval(figure: Estimate) -> str:
    """`86.1–90.0`, in percent."""
    return f"{percent(figure.low)}{DASH}{percent(figure.high)}"


def difference(cell: Cell) -> str:
    """Ours less the paper's in points, with its sign; empty where either is missing."""
    return f"{100 * (cell.ours.value - cell.paper):+.1f}".replace("-", MINUS) if cell.ours and cell.paper is not None else ""


def table2_note(table: Sequence[TableRow]) -> str:
    """What the table's figures rest on, in one sentence."""
    figures = [cell.ours for row in table for cell in (row.open, row.precommit) if cell.ours]
    budgets = sorted({budget for figure in figures if (budget := rollouts(figure.row)) is not None})
    images = sorted({figure.n for figure in figures})
    repetitions = sorted({str(protocol(figure.row).get("repetitions")) for figure in figures if protocol(figure.row).get("repetitions")})
    if not figures:
        return "Only the judge was measured; no debates yet."
    words = [
        f"{_some(budgets)} rollouts per move" if budgets else f"{agent_name(figures[0].row, 'honest')} debaters, who do not search",
        f"{_some(images)} test images",
        *([f"{' or '.join(repetitions)} seeds per lie"] if repetitions else []),
    ]
    note = f"Ours: {', '.join(words)}; the paper: {paper.ROLLOUTS:,} rollouts."
    if budgets and max(budgets) < paper.ROLLOUTS:
        note += " With a smaller budget than the paper's the figures need not agree."
    return note


def _some(numbers: Sequence[int]) -> str:
    return f"{numbers[0]:,}" if len(numbers) == 1 else f"{numbers[0]:,} to {numbers[-1]:,}"


def table2_html(table: Sequence[TableRow]) -> str:
    """Table 2 for the page. Its roles are spelt out because the phone's layout turns rows into blocks, which would drop them."""
    heads = "".join(f'<th scope="col" role="columnheader">{escape(name)}</th>' for name in ("Pixels", "First player", *COLUMNS))
    body = ""
    for pixels, group in itertools.groupby(table, key=lambda row: row.pixels):
        members = list(group)
        body += '<tbody role="rowgroup">'
        for place, row in enumerate(members):
            span = f'rowspan="{len(members)}"'
            mean = ' class="mean"' if row.first == "mean" else ""
            body += f'<tr role="row"{mean}>'
            if place == 0:
                body += f'<th scope="rowgroup" role="rowheader" {span} class="group">{pixels}<span class="unit"> pixels</span></th>'
            body += f'<th scope="row" role="rowheader">{row.first}<span class="unit">{"" if mean else " first"}</span></th>'
            for column, cell in enumerate(row.cells()):
                if column > 0 or place == 0:
                    label = f'<span class="unit">{escape(COLUMNS[column])}</span>'
                    body += f'<td role="cell" {span if column == 0 else ""}>{label}{_cell_html(cell)}</td>'
            body += "</tr>"
        body += "</tbody>"
    return f'<table class="table2" role="table"><thead role="rowgroup"><tr role="row">{heads}</tr></thead>{body}</table>'


def _cell_html(cell: Cell) -> str:
    if cell.ours is None:
        ours = '<span class="none">not measured</span>'
    else:
        ours = f'<b class="value">{percent(cell.ours.value)}</b> <span class="ci">{interval(cell.ours)}</span>'
    if cell.paper is None:
        return ours
    published = f'<span class="paper">paper {percent(cell.paper)}</span>'
    if cell.ours is None:
        return f"{ours} {published}"
    mark, words = cell.verdict()
    kind = "in" if mark == "✓" else "out"
    return (
        f'{ours} {published} <span class="diff">{difference(cell)}</span> '
        f'<span class="verdict {kind}"><span aria-hidden="true">{mark}</span> {words}</span>'
    )


def terminal_table(rows: Iterable[Row]) -> Table:
    """Table 2 for the terminal (rich); print it with `rich.console.Console().print`. Fits 80 columns."""
    table = table2(main_rows(rows))
    drawn = Table(
        title="Table 2, percent [95 % interval], and the paper's",
        caption=table2_note(table),
        title_style="bold",
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
    )
    drawn.add_column("px", justify="right")
    drawn.add_column("first", min_width=6)
    for name in ("judge, random", "no precommit", "precommit"):
        drawn.add_column(name, no_wrap=True)
    for index, row in enumerate(table):
        last = index + 1 == len(table) or table[index + 1].pixels != row.pixels
        judge = _cell_terminal(row.judge) if row.first == paper.ORDERS[0] else Text("")
        drawn.add_row(str(row.pixels), row.first, judge, _cell_terminal(row.open), _cell_terminal(row.precommit), end_section=last)
    return drawn


def _cell_terminal(cell: Cell) -> Text:
    text = Text()
    if cell.ours:
        text.append(percent(cell.ours.value), style="bold").append(f" [{interval(cell.ours)}]")
    else:
        text.append("not measured", style="dim")
    if cell.paper is not None:
        text.append(f"\npaper {percent(cell.paper)}", style="dim")
        if cell.ours:
            mark, words = cell.verdict()
            text.append(f" {mark} {words.removeprefix('ours ')}", style="green" if mark == "✓" else "yellow")
    return text


def curve_html(curve: Curve) -> str:
    """A curve's figures as a table."""
    entries = [("no search", curve.start)] if curve.start else []
    entries += [(f"{budget:,}", figure) for budget, figure in curve.points]
    return _figures_html(f"{curve.pixels} pixels: rollouts per move", entries)


def accuracy_html(content: Content) -> str:
    """Accuracy by number of pixels as a table."""
    columns = [dict(series.points) for series in content.accuracy]
    counts = sorted({pixels for column in columns for pixels in column})
    heads = "".join(f'<th scope="col">{escape(series.name)}</th>' for series in content.accuracy)
    lines = "".join(
        f'<tr><th scope="row">{pixels}</th>' + "".join(f"<td>{_figure_html(column.get(pixels))}</td>" for column in columns) + "</tr>"
        for pixels in counts
    )
    return f'<table><thead><tr><th scope="col">Pixels</th>{heads}</tr></thead><tbody>{lines}</tbody></table>'


def _figures_html(name: str, entries: Sequence[tuple[str, Estimate | None]]) -> str:
    lines = "".join(
        f'<tr><th scope="row">{escape(word)}</th><td>{_figure_html(figure)}</td><td>{figure.n if figure else 0:,}</td></tr>'
        for word, figure in entries
    )
    return (
        f'<table><thead><tr><th scope="col">{escape(name)}</th><th scope="col">Honest wins, %</th><th scope="col">Images</th></tr></thead>'
        f"<tbody>{lines}</tbody></table>"
    )


def _figure_html(figure: Estimate | None) -> str:
    return f'<b class="value">{percent(figure.value)}</b> <span class="ci">{interval(figure)}</span>' if figure else DASH


def controls_html(controls: Sequence[Control], head: str = "Who speaks, and how it is judged") -> str:
    """The controls as a table, a column per number of pixels."""
    columns = sorted({pixels for control in controls for pixels in control.figures}, reverse=True)
    heads = "".join(f'<th scope="col">{pixels} pixels, %</th>' for pixels in columns)
    body = ""
    for pair, group in itertools.groupby(controls, key=lambda control: control.pair):
        body += f'<tbody><tr class="pair"><th scope="rowgroup" colspan="{len(columns) + 1}">{escape(pair)}</th></tr>'
        for control in group:
            cells = "".join(f"<td>{_figure_html(control.figures.get(pixels))}</td>" for pixels in columns)
            body += f'<tr><th scope="row" class="words">{escape(control.judged)}</th>{cells}</tr>'
        body += "</tbody>"
    return f'<table class="controls-table"><thead><tr><th scope="col">{escape(head)}</th>{heads}</tr></thead>{body}</table>'


def sources_html(rows: Sequence[Row]) -> str:
    """Where the figures come from: one line per command, judge, code and machine."""
    seen: dict[tuple[str, str, str, str, str], list[Row]] = {}
    for row in rows:
        judge, code = row.get("judge"), row.get("code")
        key = (
            str(row.get("command", DASH)),
            str(row.get("config_hash", DASH)),
            " ".join(str(judge.get(part, "")) for part in ("name", "hash")) if isinstance(judge, Mapping) else DASH,
            " ".join(str(code.get(part, "")) for part in ("version", "commit")) if isinstance(code, Mapping) else DASH,
            _machine_words(row.get("machine")),
        )
        seen.setdefault(key, []).append(row)
    names = ("Command", "Config hash", "Judge", "Code", "Machine", "Rows", "Longest")
    heads = "".join(f'<th scope="col">{name}</th>' for name in names)
    lines = []
    for key, group in seen.items():
        seconds = max((float(row["seconds"]) for row in group if isinstance(row.get("seconds"), int | float)), default=0.0)
        cells = "".join(f'<td class="words">{escape(word)}</td>' for word in key[1:])
        lines.append(f'<tr><th scope="row"><code>{escape(key[0])}</code></th>{cells}<td>{len(group)}</td><td>{seconds:,.0f} s</td></tr>')
    return f'<table class="sources"><thead><tr>{heads}</tr></thead><tbody>{"".join(lines)}</tbody></table>'


def _machine_words(machine: Any) -> str:
    if isinstance(machine, Mapping):
        return summary(machine) if machine else DASH
    return str(machine or DASH)


def speed_cells(rows: Iterable[Row]) -> list[list[str]]:
    """Measured speeds as `SPEED_COLUMNS`: a line for every row whose metric is a rate per second."""
    lines = []
    for row in rows:
        metric, value = str(row.get("metric", "")), row.get("value")
        if "_per_second" in metric and isinstance(value, int | float):
            settings, budget = protocol(row), rollouts(row)
            timed = settings.get("of", "search" if metric.startswith("rollouts") else DASH)
            words = ", ".join(
                ([f"{settings['pixels']} pixels"] if "pixels" in settings else [])
                + ([f"{budget:,} rollouts per move"] if budget else [])
                + ([judge_name(row)] if row.get("judge") else [])
            )
            told = (metric.replace("_", " "), timed, settings.get("threads", DASH), settings.get("ply", DASH))
            lines.append([*map(str, told), f"{value:,.0f}", words, _machine_words(row.get("machine"))])
    return lines


def speed_html(rows: Iterable[Row]) -> str:
    """Measured speeds; empty where there is none."""
    heads = "".join(f'<th scope="col">{name}</th>' for name in SPEED_COLUMNS)
    lines = ""
    for name, *cells in speed_cells(rows):
        kinds = (' class="words"' if column in ("Of", "Setting", "Machine") else "" for column in SPEED_COLUMNS[1:])
        inside = "".join(f"<td{kind}>{escape(cell)}</td>" for kind, cell in zip(kinds, cells, strict=True))
        lines += f'<tr><th scope="row">{escape(name)}</th>{inside}</tr>'
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>" if lines else ""


def all_rows_html(rows: Sequence[Row]) -> str:
    """Every row, as it is."""
    lines = []
    for row in rows:
        figures = row.get("ci95")
        ends = " to ".join(_short(end) for end in figures) if isinstance(figures, Sequence) and not isinstance(figures, str) else DASH
        lines.append(
            f'<tr><th scope="row">{escape(str(row.get("metric", DASH)))}</th>'
            f"<td>{escape(_short(row.get('value')))}</td><td>{escape(ends)}</td>"
            f'<td>{escape(_short(row.get("n")))}</td><td class="words">{escape(_setting(row))}</td></tr>'
        )
    heads = "".join(f'<th scope="col">{name}</th>' for name in ("Metric", "Value", "95 %", "n", "Setting"))
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _short(value: object) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _setting(row: Row) -> str:
    """A row's protocol and agents in one line."""
    words = [f"{key} {value}" for key, value in protocol(row).items() if not isinstance(value, Mapping)]
    for seat in ("honest", "liar"):
        settings = agent(row, seat)
        if settings:
            budget = f" {settings['rollouts']}" if "rollouts" in settings else ""
            words.append(f"{seat}: {settings.get('name', '?')}{budget}")
    return ", ".join(words)
