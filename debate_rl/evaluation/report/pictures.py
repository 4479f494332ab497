"""The same charts as PNG files, drawn with matplotlib from the same content (no pyplot: nothing global)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from debate_rl.errors import UserError
from debate_rl.evaluation.report.content import CONTROLS, GAPS, BarWords, Confusion, Content, Control, Curve, ReliabilityTable
from debate_rl.evaluation.report.gallery import PANELS, Gallery, Game
from debate_rl.evaluation.report.rows import Estimate, percent
from debate_rl.evaluation.report.svg import LIGHT
from debate_rl.games.pixels import SIDE

DPI = 150
ACCENT, SECOND, QUOTE, INK, SOFT, RULE = (LIGHT[name] for name in ("accent", "second", "quote", "ink", "soft", "rule"))
HONEST, LIAR = LIGHT["honest"], LIGHT["liar"]


def write_pictures(folder: Path, content: Content, pixels: int, gallery: Gallery) -> list[Path]:
    """Draw every chart that has data into `folder`; returns the files, in the page's order.

    Raises:
        UserError: a file cannot be written.
    """
    drawn: list[tuple[str, Figure]] = []
    if content.curves:
        drawn.append(("curve.png", curve_figure(content.curves)))
    if content.controls:
        drawn.append(("controls.png", controls_figure(content.controls)))
    if content.gaps:
        drawn.append(("exploitability.png", controls_figure(content.gaps, GAPS)))
    if content.accuracy:
        drawn.append(("pixels.png", accuracy_figure(content)))
    if content.confusions:
        drawn.append(("confusion.png", confusion_figure(content.confusions)))
    if pixels:
        drawn.append(("gallery.png", gallery_figure(pixels, gallery)))
    if content.reliability:
        drawn.append(("calibration.png", calibration_figure(content.reliability)))
    paths = []
    for name, figure in drawn:
        path = folder / name
        try:
            FigureCanvasAgg(figure).print_png(str(path))  # type: ignore[no-untyped-call]
        except OSError as error:
            raise UserError(f"cannot write {path} ({error.strerror}): free some space or choose another folder") from error
        paths.append(path)
    return paths


def _figure(width: float, height: float) -> Figure:
    return Figure(figsize=(width, height), dpi=DPI, layout="constrained", facecolor="white")


def _tidy(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=11, fontweight="bold", color=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(RULE)
    axes.tick_params(colors=SOFT, labelsize=9)
    axes.xaxis.label.set_color(SOFT)
    axes.yaxis.label.set_color(SOFT)


def _errors(figures: Sequence[Estimate]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Distances of the interval's ends in percent points, `(2, n)`."""
    below = [max(0.0, figure.value - figure.low) for figure in figures]
    above = [max(0.0, figure.high - figure.value) for figure in figures]
    return 100 * np.array([below, above])


def curve_figure(curves: Sequence[Curve]) -> Figure:
    """Honest win rate against the search budget."""
    figure = _figure(5.6 * len(curves), 4.0)
    for axes, curve in zip(figure.subplots(1, len(curves), squeeze=False)[0], curves, strict=True):
        _tidy(axes, f"{curve.pixels} pixels: honest wins, %")
        budgets = np.array([budget for budget, _ in curve.points], dtype=np.float64)
        figures = [found for _, found in curve.points]
        start = (budgets.min() if len(budgets) else 10) / 6
        axes.set_xscale("log")
        for value, side in ((curve.paper_start, "right"), (curve.paper_end, "left")):
            if value is not None:
                axes.axhline(100 * value, color=QUOTE, linestyle=":", linewidth=1.4)
                where = 0.99 if side == "right" else 0.01
                drop = -4 if side == "right" else 4
                axes.annotate(
                    f"paper {percent(value)}",
                    (where, 100 * value),
                    xycoords=("axes fraction", "data"),
                    xytext=(0, drop),
                    textcoords="offset points",
                    ha=side,
                    va="top" if side == "right" else "bottom",
                    color=QUOTE,
                    fontsize=9,
                )
        if len(budgets):
            values = np.array([100 * found.value for found in figures])
            low, high = (np.array([100 * getattr(found, end) for found in figures]) for end in ("low", "high"))
            axes.fill_between(budgets, low, high, color=ACCENT, alpha=0.18, linewidth=0)
            axes.errorbar(budgets, values, _errors(figures), color=ACCENT, marker="o", markersize=5, linewidth=2, capsize=3)
            note = (budgets[-1], low[-1])
            axes.annotate(
                percent(figures[-1].value), note, xytext=(0, -6), textcoords="offset points", ha="center", va="top", fontweight="bold"
            )
        if curve.start:
            axes.errorbar([start], [100 * curve.start.value], _errors([curve.start]), color=ACCENT, marker="o", markersize=5, capsize=3)
            axes.annotate(
                percent(curve.start.value),
                (start, 100 * curve.start.high),
                xytext=(0, 5),
                textcoords="offset points",
                ha="center",
                fontweight="bold",
            )
            if len(budgets):
                axes.plot([start, budgets[0]], [100 * curve.start.value, 100 * figures[0].value], color=ACCENT, linestyle="--", alpha=0.7)
        ticks = [start] + [10.0**k for k in range(1, 6) if len(budgets) and budgets.min() <= 10**k <= max(budgets.max(), 10_000)]
        axes.set_xticks(ticks, ["no search"] + [f"{int(tick):,}" for tick in ticks[1:]])
        axes.minorticks_off()
        axes.set_xlim(start / 1.8, (max(budgets.max(), 10_000) if len(budgets) else 10_000) * 1.8)
        axes.set_ylim(top=100)
        axes.set_xlabel("rollouts per move (log scale)")
        axes.grid(axis="y", color=RULE, linewidth=0.6)
        axes.set_axisbelow(True)
    return figure


def controls_figure(controls: Sequence[Control], labels: BarWords = CONTROLS) -> Figure:
    """Controls as bars with intervals, a panel per number of pixels."""
    counts = sorted({pixels for control in controls for pixels in control.figures}, reverse=True)
    figure = _figure(6.4 * len(counts), 1.0 + 0.5 * len(controls))
    for axes, pixels in zip(figure.subplots(1, len(counts), squeeze=False)[0], counts, strict=True):
        shown = [control for control in controls if pixels in control.figures]
        figures = [control.figures[pixels] for control in shown]
        places = np.arange(len(shown))[::-1]
        axes.barh(places, [100 * found.value for found in figures], 0.55, color=ACCENT, alpha=0.45)
        axes.errorbar([100 * found.value for found in figures], places, xerr=_errors(figures), fmt="none", ecolor=INK, capsize=3)
        for place, found in zip(places, figures, strict=True):
            axes.annotate(
                percent(found.value), (100 * found.high, place), xytext=(6, 0), textcoords="offset points", va="center", fontsize=9
            )
        names = [f"{_plain(control.pair)}\n{_plain(control.judged)}" for control in shown]
        axes.set_yticks(places, names, fontsize=8)
        axes.set_xlim(0, 108)
        _tidy(axes, f"{pixels} pixels: {labels.unit}")
        axes.tick_params(axis="y", labelsize=8, length=0)
    return figure


def _plain(words: str) -> str:
    """Words as they are: matplotlib would read dollar signs as mathematics."""
    return words.replace("$", r"\$")


def accuracy_figure(content: Content) -> Figure:
    """Accuracy against the number of pixels."""
    figure = _figure(8.4, 4.4)
    axes = figure.subplots()
    judges = 0
    for series in content.accuracy:
        debate = series.kind == "debate"
        colour = ACCENT if debate else (SECOND, SOFT)[judges % 2]
        counts = [pixels for pixels, _ in series.points]
        figures = [found for _, found in series.points]
        axes.errorbar(
            counts,
            [100 * found.value for found in figures],
            _errors(figures),
            color=colour,
            marker="s" if debate else "o",
            linestyle="-" if debate or judges == 0 else "--",
            markersize=5,
            linewidth=2,
            capsize=3,
            label=_plain(series.name),
        )
        judges += not debate
    for curve in content.curves:
        for value in (curve.paper_start, curve.paper_end):
            if value is not None:
                axes.plot(
                    curve.pixels + 0.16, 100 * value, marker="D", color="white", markeredgecolor=QUOTE, markersize=7, linestyle="none"
                )
    if any(curve.paper_start is not None for curve in content.curves):
        axes.plot([], [], marker="D", color="white", markeredgecolor=QUOTE, markersize=7, linestyle="none", label="the paper")
    _tidy(axes, f"{content.dataset}: truth wins, %")
    axes.set_xticks(range(1, 13))
    axes.set_ylim(top=100)
    axes.set_xlabel("pixels revealed")
    axes.grid(axis="y", color=RULE, linewidth=0.6)
    axes.legend(frameon=False, fontsize=9)
    return figure


def confusion_figure(confusions: Sequence[Confusion]) -> Figure:
    """Confusion matrices, two in a line."""
    lines = (len(confusions) + 1) // 2
    figure = _figure(11, 5.4 * lines)
    grid = figure.subplots(lines, 2, squeeze=False).ravel()
    for axes in grid[len(confusions) :]:
        axes.set_axis_off()
    for axes, confusion in zip(grid, confusions, strict=False):
        matrix = np.array(confusion.matrix)
        peak = float(matrix.max()) or 1.0
        axes.imshow(matrix, cmap="Reds", vmin=0, vmax=peak * 1.15)
        for i in range(10):
            for j in range(10):
                if i != j:
                    colour = "white" if matrix[i, j] > 0.7 * peak else INK
                    value = float(matrix[i, j])
                    words = "0" if value < 0.005 else f"{value:.2f}"[0 if value >= 1 else 1 :]
                    axes.text(j, i, words, ha="center", va="center", fontsize=7.5, color=colour)
        title = "Random pixels" if confusion.kind == "random" else "Successful lies"
        _tidy(axes, f"{title}, {confusion.pixels} pixels, %")
        axes.set_xticks(range(10))
        axes.set_yticks(range(10))
        column = "judge's answer" if confusion.kind == "random" else "lie"
        axes.set_xlabel(f"{column} (percent of all test images)")
        axes.set_ylabel("label")
    return figure


def calibration_figure(tables: Sequence[ReliabilityTable]) -> Figure:
    """Reliability diagrams, three in a line."""
    lines = (len(tables) + 2) // 3
    figure = _figure(12, 4.1 * lines)
    grid = figure.subplots(lines, 3, squeeze=False).ravel()
    for axes in grid[len(tables) :]:
        axes.set_axis_off()
    titles = {"random": "Before debate", "answer": "After debate, among ten", "claims": "After debate, two claims"}
    for axes, table in zip(grid, tables, strict=False):
        low, high, _, confidence, accuracy = (np.array(column) for column in zip(*table.bins, strict=True))
        axes.bar((low + high) / 2 * 100, accuracy * 100, (high - low) * 95, color=ACCENT, alpha=0.35)
        axes.plot(confidence * 100, accuracy * 100, "o", color=ACCENT, markersize=4)
        axes.plot([0, 100], [0, 100], "--", color=SOFT, linewidth=1)
        axes.set_xlim(0, 100)
        axes.set_ylim(0, 100)
        axes.set_xlabel("judge's confidence, %")
        axes.set_ylabel("how often right, %")
        _tidy(axes, f"{titles.get(table.kind, table.kind)}, {table.pixels} px")
        axes.text(3, 92, f"ECE {percent(table.ece)} %", fontsize=9, fontweight="bold", color=INK)
    return figure


def gallery_figure(pixels: int, gallery: Gallery) -> Figure:
    """The paper's figure 4: four panels of games; debaters' view on the left, judge's view on the right."""
    per_line, lines = 2, 3
    gap, title, caption, between = 2.0, 7.0, 4.0, 7.0  # in image pixels
    game_width, game_height = 2 * SIDE + gap, SIDE + caption + 1.5
    panel_width, panel_height = per_line * (game_width + 3 * gap), title + lines * game_height
    width, height = 2 * panel_width + between, 2 * panel_height + between + 4
    figure = Figure(figsize=(14, 14 * height / width), dpi=DPI, facecolor="white")
    # One plot for all boards: a plot each would take many times as long to draw.
    axes = figure.add_axes((0.01, 0.01, 0.98, 0.98))
    axes.set_axis_off()
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    for place, (first, winner, words) in enumerate(PANELS):
        left, top = (place % 2) * (panel_width + between), (place // 2) * (panel_height + between)
        colour = HONEST if winner == "honest" else LIAR
        axes.text(left, top + 3.5, words, fontsize=13, fontweight="bold", color=colour)
        for number, game in enumerate(gallery[first, winner]):
            x = left + (number % per_line) * (game_width + 3 * gap)
            y = top + title + (number // per_line) * game_height
            axes.text(x, y + caption - 1.4, f"True {game.label}, lie {game.lie}", fontsize=9, color=INK)
            axes.text(x + SIDE + gap, y + caption - 1.4, f"{game.label} vs. {game.lie}", fontsize=9, color=INK)
            _board(axes, game, (x, y + caption), full=True)
            _board(axes, game, (x + SIDE + gap, y + caption), full=False)
    words = f"Debates of {pixels} pixels: what the debaters see, and what the judge sees. Honest: round, blue. Liar: square, red."
    axes.text(0, height - 0.5, words, fontsize=10, color=SOFT)
    return figure


def _board(axes: Axes, game: Game, corner: tuple[float, float], *, full: bool) -> None:
    left, top = corner
    shown = game.image if full else np.zeros_like(game.image)
    if not full:
        for move in game.moves:
            shown.flat[move] = game.image.flat[move]
    limits = axes.get_xlim(), axes.get_ylim()
    axes.imshow(shown, cmap="gray", vmin=0, vmax=255, extent=(left, left + SIDE, top + SIDE, top), interpolation="nearest", aspect="auto")
    axes.set_xlim(limits[0])  # imshow sets them to its own picture's
    axes.set_ylim(limits[1])
    for ply, move in enumerate(game.moves):
        honest = game.seat(ply) == "honest"
        row, column = divmod(move, SIDE)
        x, y = left + game.marks[ply, 0], top + game.marks[ply, 1]
        colour = "#5b9bff" if honest else "#ff6a5e"
        axes.plot([left + column + 0.5, x], [top + row + 0.5, y], color=colour, linewidth=0.8)
        axes.plot(
            x, y, "o" if honest else "s", markersize=11, color=HONEST if honest else LIAR, markeredgecolor="white", markeredgewidth=0.6
        )
        axes.text(x, y + 0.05, str(ply + 1), color="white", fontsize=7.5, fontweight="bold", ha="center", va="center_baseline")
