"""The report's charts as SVG drawings (`svg.Board`)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from debate_rl.evaluation.report.content import CONTROLS, BarWords, Confusion, Content, Control, Curve, ReliabilityTable
from debate_rl.evaluation.report.rows import Estimate, percent
from debate_rl.evaluation.report.svg import Board, nest

LEFT, RIGHT, TOP, BOTTOM = 46.0, 16.0, 34.0, 46.0


class Axes:
    """A plot area with a percent axis: maps shares to heights, and draws grid and ticks."""

    def __init__(self, board: Board, low: float, high: float, *, left: float = LEFT, bottom: float = BOTTOM) -> None:
        """`low` and `high` are shares."""
        self.board = board
        self.low, self.high = low, high
        self.left, self.right = left, board.width - RIGHT
        self.top, self.bottom = TOP, board.height - bottom

    def y(self, share: float) -> float:
        """The height of a share."""
        return self.bottom - (share - self.low) / (self.high - self.low) * (self.bottom - self.top)

    def grid(self, step: float) -> None:
        """Lines and labels each `step`."""
        for index in range(math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9) + 1):
            y = self.y(index * step)
            self.board.line((self.left, y), (self.right, y))
            self.board.text((self.left - 8, y + 4.5), f"{100 * index * step:.0f}", "end", "var(--soft)")

    def x_label(self, words: str) -> None:
        """Name the horizontal axis."""
        self.board.text(((self.left + self.right) / 2, self.board.height - 6), words, "middle", "var(--soft)")


def tip(figure: Estimate) -> str:
    """A figure in words: value, interval, number of images."""
    return f"{percent(figure.value)} % (95 %: {percent(figure.low)} to {percent(figure.high)}), n = {figure.n:,}"


def curve_board(curve: Curve, width: float = 430, height: float = 320) -> Board:
    """The search-budget curve: from no search to 10,000 rollouts, with the paper's two figures as lines."""
    figures = ([curve.start] if curve.start else []) + [figure for _, figure in curve.points]
    references = [value for value in (curve.paper_start, curve.paper_end) if value is not None]
    summary = ", ".join(
        ([f"no search {tip(curve.start)}"] if curve.start else [])
        + [f"{budget:,} rollouts {tip(figure)}" for budget, figure in curve.points]
    )
    board = Board(width, height, f"{curve.pixels} pixels: honest win rate against the search budget", f"{summary}.")
    low = max(0.0, math.floor((min([figure.low for figure in figures] + references) - 0.03) * 10) / 10)
    axes = Axes(board, low, 1.0)
    axes.grid(0.1)
    board.text((axes.left - 36, 16), f"{curve.pixels} pixels · honest wins, %", bold=True)
    budgets = [budget for budget, _ in curve.points] or [10_000]
    first, last = math.log10(min(budgets)), math.log10(max(max(budgets), 10_000))
    start_x = axes.left + 44
    scale_left = start_x + 54
    scale = (axes.right - 20 - scale_left) / max(last - first, 1e-9)

    def x(budget: int) -> float:
        return scale_left + (math.log10(budget) - first) * scale

    for exponent in range(math.ceil(first - 1e-9), math.floor(last + 1e-9) + 1):
        board.text((x(10**exponent), axes.bottom + 18), f"{10**exponent:,}", "middle", "var(--soft)")
    board.text((start_x, axes.bottom + 18), "no search", "middle", "var(--soft)")
    middle = (start_x + scale_left) / 2
    for offset in (-3, 3):  # the axis is broken between "no search" and the logarithmic part
        board.line((middle + offset - 3, axes.bottom + 5), (middle + offset + 3, axes.bottom - 5), "var(--soft)", 1.2)
    axes.x_label("rollouts per move (log scale)")
    for value, end in ((curve.paper_start, False), (curve.paper_end, True)):
        if value is not None:
            y = axes.y(value)
            board.line((axes.left, y), (axes.right, y), "var(--quote)", 1.5, "2 4")
            where = (axes.left + 4, y - 6) if end else (axes.right, y + 16)
            board.text(where, f"paper {percent(value)}", "start" if end else "end", "var(--quote)")
    line = [(x(budget), figure) for budget, figure in curve.points]
    if line:
        upper = [(at, axes.y(figure.high)) for at, figure in line]
        lower = [(at, axes.y(figure.low)) for at, figure in reversed(line)]
        if len(line) > 1:
            board.path(upper + lower, fill="var(--accent)", opacity=0.18)
            board.path([(at, axes.y(figure.value)) for at, figure in line], stroke="var(--accent)", width=2.5)
    if curve.start:
        if line:
            start = (start_x, axes.y(curve.start.value))
            board.path([start, (line[0][0], axes.y(line[0][1].value))], stroke="var(--accent)", width=2, dash="5 5", opacity=0.7)
        line.insert(0, (start_x, curve.start))
    for at, figure in line:
        board.whisker((at, 0), axes.y(figure.low), axes.y(figure.high), "var(--accent)")
        board.dot((at, axes.y(figure.value)), 4.5, "var(--accent)", tip=tip(figure))
    if curve.start:
        board.text((start_x - 8, axes.y(curve.start.value) - 7), percent(curve.start.value), "end", bold=True)
    if curve.points:
        budget, figure = curve.points[-1]
        board.text((x(budget), axes.y(figure.low) + 18), percent(figure.value), "middle", bold=True)
    return board


def curves_board(curves: Sequence[Curve]) -> Board:
    """The curves side by side, as one picture for the docs."""
    boards = [curve_board(curve) for curve in curves]
    return nest(
        boards, 24, "Honest win rate against the search budget", " ".join(f"{board.title}: {board.description}" for board in boards)
    )


def controls_boards(controls: Sequence[Control], words: BarWords = CONTROLS) -> list[Board]:
    """One board of bars per number of pixels, the most pixels first."""
    counts = sorted({pixels for control in controls for pixels in control.figures}, reverse=True)
    return [controls_board(controls, pixels, words) for pixels in counts]


def controls_board(controls: Sequence[Control], pixels: int, labels: BarWords = CONTROLS, width: float = 430) -> Board:
    """Bars with intervals: one per way of judging, in groups by who debates."""
    shown = [control for control in controls if pixels in control.figures]
    groups = [list(group) for _, group in itertools.groupby(shown, key=lambda control: control.pair)]
    head, step, gap = 21.0, 20.0, 9.0
    height = TOP + len(groups) * (head + gap) + len(shown) * step + 30
    words = "; ".join(f"{control.pair}, {control.judged}: {tip(control.figures[pixels])}" for control in shown)
    board = Board(width, height, f"{labels.title} at {pixels} pixels: {labels.figure}", f"{words}.")
    left, right = 182.0, width - 52
    bottom = height - 30

    def x(share: float) -> float:
        return left + share * (right - left)

    board.text((0, 16), f"{pixels} pixels · {labels.unit}", bold=True)
    for tenth in range(0, 11, 2):
        board.line((x(tenth / 10), TOP), (x(tenth / 10), bottom))
        board.text((x(tenth / 10), bottom + 18), f"{10 * tenth}", "middle", "var(--soft)")
    y = TOP
    for group in groups:
        board.rect((0, y), width, head - 3, "var(--paper)")  # the grid pauses behind a heading
        board.text((0, y + 14), _short(group[0].pair, 54), bold=True)
        y += head
        for control in group:
            figure = control.figures[pixels]
            board.text((0, y + 13.5), _short(control.judged, 27), fill="var(--soft)")
            board.rect((left, y + 3), max(0.5, x(figure.value) - left), 13, "var(--accent)", 0.45, 2, tip(figure))
            board.whisker((0, y + 9.5), x(figure.low), x(figure.high), "var(--ink)", upright=False)
            board.text((x(figure.high) + 8, y + 14), percent(figure.value), bold=True)
            y += step
        y += gap
    return board


def _short(words: str, most: int) -> str:
    """Words cut to a length, for names that their authors made long."""
    return words if len(words) <= most else words[: most - 1] + "…"


def accuracy_board(content: Content, width: float = 860, height: float = 380) -> Board:
    """Accuracy against the number of pixels: each judge on random pixels, and debate where it was played."""
    words = "; ".join(
        f"{series.name}: " + ", ".join(f"{pixels} pixels {tip(figure)}" for pixels, figure in series.points) for series in content.accuracy
    )
    board = Board(width, height, "Accuracy against the number of pixels", f"{words}.")
    figures = [figure for series in content.accuracy for _, figure in series.points]
    axes = Axes(board, max(0.0, math.floor((min(figure.low for figure in figures) - 0.02) * 10) / 10), 1.0)
    axes.top = TOP + 22
    axes.grid(0.1 if axes.low >= 0.5 else 0.2)
    board.text((axes.left - 36, 16), "truth wins, %", bold=True)
    counts = [pixels for series in content.accuracy for pixels, _ in series.points]
    first, last = min([*counts, 1]), max([*counts, 12])

    def x(pixels: float) -> float:
        return axes.left + 24 + (pixels - first) / (last - first) * (axes.right - axes.left - 48)

    for pixels in range(first, last + 1):
        board.text((x(pixels), axes.bottom + 18), f"{pixels}", "middle", "var(--soft)")
    axes.x_label("pixels revealed")
    key = axes.left
    for place, series in enumerate(content.accuracy):
        debate = series.kind == "debate"
        colour = "var(--accent)" if debate else ("var(--second)", "var(--soft)")[place % 2]
        dash = "6 4" if place == 1 and not debate else None
        line = series.points
        if len(line) > 1:
            upper = [(x(pixels), axes.y(figure.high)) for pixels, figure in line]
            lower = [(x(pixels), axes.y(figure.low)) for pixels, figure in reversed(line)]
            board.path(upper + lower, fill=colour, opacity=0.18)
            board.path([(x(pixels), axes.y(figure.value)) for pixels, figure in line], stroke=colour, width=2.5, dash=dash)
        for pixels, figure in line:
            at = (x(pixels), axes.y(figure.value))
            board.whisker(at, axes.y(figure.low), axes.y(figure.high), colour)
            _mark(board, at, debate, colour, f"{series.name}, {pixels} pixels: {tip(figure)}")
        _mark(board, (key + 6, 36), debate, colour)
        board.text((key + 16, 40.5), series.name, fill=colour)
        key += 34 + 7.2 * len(series.name)
    published = [curve for curve in content.curves if curve.paper_start is not None]
    for curve in published:
        for value, what in ((curve.paper_start, "judge"), (curve.paper_end, "debate")):
            if value is not None:
                board.diamond((x(curve.pixels) + 13, axes.y(value)), 5, "var(--quote)", f"paper, {what}: {percent(value)} %")
    if published:
        board.diamond((key + 6, 36), 5, "var(--quote)")
        board.text((key + 16, 40.5), "the paper", fill="var(--quote)")
    return board


def _mark(board: Board, at: tuple[float, float], debate: bool, colour: str, words: str = "") -> None:
    """Squares for debates, dots for the judge alone: told apart without colour."""
    if debate:
        board.rect((at[0] - 4.5, at[1] - 4.5), 9, 9, colour, tip=words)
    else:
        board.dot(at, 4.5, colour, tip=words)


def confusion_board(confusion: Confusion, size: float = 470) -> Board:
    """A confusion matrix as a heat map with its numbers, the diagonal left empty."""
    peak = max(max(line) for line in confusion.matrix) or 1.0
    column_name = "judge's answer" if confusion.kind == "random" else "lie"
    title = "Random pixels" if confusion.kind == "random" else "Successful lies in precommitted debate"
    largest = sorted(((value, i, j) for i, line in enumerate(confusion.matrix) for j, value in enumerate(line)), reverse=True)[:5]
    words = ", ".join(f"{i} taken for {j} {value:.2f} %" for value, i, j in largest if value > 0)
    board = Board(size, size + 28, f"{title}, {confusion.pixels} pixels", f"Percent of all test images. Largest: {words or 'none'}.")
    left, top = 42.0, 62.0
    cell = (size - left - 8) / 10
    board.text((6, 16), f"{title} · {confusion.pixels} pixels", bold=True)
    board.text((left + 5 * cell, 38), column_name, "middle", "var(--soft)")
    board.text((14, top + 5 * cell), "label", "middle", "var(--soft)", turn=-90)
    for digit in range(10):
        board.text((left + (digit + 0.5) * cell, top - 7), str(digit), "middle")
        board.text((left - 8, top + (digit + 0.5) * cell + 4.5), str(digit), "end")
    for i, line in enumerate(confusion.matrix):
        for j, value in enumerate(line):
            corner = (left + j * cell, top + i * cell)
            if i == j:
                board.line((corner[0] + 6, corner[1] + cell - 6), (corner[0] + cell - 6, corner[1] + 6))
                continue
            share = value / peak
            board.rect((corner[0] + 1, corner[1] + 1), cell - 2, cell - 2, "var(--rule)", 0.35, 3)
            board.rect((corner[0] + 1, corner[1] + 1), cell - 2, cell - 2, "var(--liar)", round(share, 3), 3, f"{i} → {j}: {value:.2f} %")
            ink = "var(--paper)" if share > 0.62 else "var(--ink)" if value >= 0.005 else "var(--soft)"
            # Shares below 1 % without their leading zero: ten columns have to fit a phone.
            number = "0" if value < 0.005 else f"{value:.2f}"[0 if value >= 1 else 1 :]
            board.text((corner[0] + cell / 2, corner[1] + cell / 2 + 4), number, "middle", ink, 12)
    return board


def reliability_board(table: ReliabilityTable, size: float = 400) -> Board:
    """A reliability diagram: accuracy per bin of confidence, a dot on the diagonal being a judge to trust."""
    title = {
        "random": "Before debate: random pixels",
        "answer": "After debate: answer among ten",
        "claims": "After debate: between the claims",
    }.get(table.kind, table.kind)
    bins = ", ".join(f"confidence {percent(mean)} % accuracy {percent(right)} %" for _, _, _, mean, right in table.bins)
    board = Board(size, size, f"{title}, {table.pixels} pixels", f"Expected calibration error {percent(table.ece)} %. {bins}.")
    axes = Axes(board, 0.0, 1.0, left=52)
    axes.grid(0.2)
    board.text((6, 16), f"{title} · {table.pixels} px", bold=True)
    left, right = axes.left, axes.right

    def x(share: float) -> float:
        return left + share * (right - left)

    for fifth in range(6):
        board.text((x(fifth / 5), axes.bottom + 18), f"{20 * fifth}", "middle", "var(--soft)")
    axes.x_label("judge's confidence, %")
    board.text((12, (axes.top + axes.bottom) / 2), "how often right, %", "middle", "var(--soft)", turn=-90)
    for low, high, count, mean, accuracy in table.bins:
        words = f"confidence {percent(mean)} %, right {percent(accuracy)} %, {count:,} times"
        board.rect((x(low) + 1, axes.y(accuracy)), x(high) - x(low) - 2, axes.bottom - axes.y(accuracy), "var(--accent)", 0.3, 0, words)
        board.dot((x(mean), axes.y(accuracy)), 2 + 5 * math.sqrt(count / table.n), "var(--accent)", tip=words)
    board.path([(x(0), axes.y(0)), (x(1), axes.y(1))], stroke="var(--soft)", width=1.5, dash="4 4")
    board.text((left + 10, axes.top + 16), f"ECE {percent(table.ece)} %", bold=True)
    board.text((left + 10, axes.top + 34), f"n = {table.n:,}", fill="var(--soft)")
    return board
