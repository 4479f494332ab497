"""The report as one self-contained page: style, script, charts and pictures are inside, nothing is fetched."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from debate_rl.evaluation.report import charts, paper, tables
from debate_rl.evaluation.report.content import GAPS, Content
from debate_rl.evaluation.report.gallery import Gallery, gallery_html, payload
from debate_rl.evaluation.report.rows import percent, protocol
from debate_rl.evaluation.report.svg import Board

# Whatever a string from a row might try, the browser loads nothing.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

REPRODUCE = "debate-rl reproduce"


def page_html(content: Content, pixels: int, gallery: Gallery) -> str:
    """The whole page; `pixels` is how many a game of the gallery reveals."""
    sections = [
        ("curve", "Honest win rate against search", _headline(content)),
        ("table2", "Table 2, beside the paper's", _table2(content)),
        ("controls", "Controls", _controls(content)),
        ("exploitability", "Exploitability", _exploitability(content)),
        ("pixels", "Accuracy against the number of pixels", _accuracy(content)),
        ("confusion", "What is taken for what", _confusions(content)),
        ("gallery", "Sample debates", _gallery(pixels, gallery)),
        ("calibration", "Can the judge's confidence be trusted?", _calibration(content)),
        ("cost", "Cost and provenance", _cost(content)),
    ]
    short = ("Curve", "Table 2", "Controls", "Exploitability", "Pixels", "Confusion", "Games", "Calibration", "Cost")
    shown = [(section, words) for section, words in zip(sections, short, strict=True) if section[2]]
    links = "".join(f'<li><a href="#{name}">{words}</a></li>' for (name, _, _), words in shown)
    body = "".join(
        f'<section id="{name}" aria-labelledby="{name}-h"><h2 id="{name}-h">{escape(title)}</h2>{inside}</section>'
        for (name, title, inside), _ in shown
    )
    games = json.dumps(payload(pixels, gallery), separators=(",", ":")).replace("<", "\\u003c")
    style, script = _static("report.css"), _static("report.js")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}"><title>debate-rl report</title>'
        f'<link rel="icon" href="data:,"><style>{style}</style></head><body><a class="skip" href="#curve">Skip to the results</a>'
        f"<header><h1>When does truth win a debate?</h1>{_lede(content)}"
        f'<nav aria-label="Sections"><ul>{links}</ul></nav></header><main>{body}</main>'
        f'<footer><p class="note">The paper: {escape(paper.SOURCE)}. All else on this page is drawn from result rows and game records. '
        f"Intervals are 95 %, clustered by image.</p></footer>"
        f'<script type="application/json" id="games">{games}</script><script>{script}</script></body></html>\n'
    )


def missing(what: str, command: str) -> str:
    """A sentence in place of a part that has no data, with the command that would fill it."""
    return f'<p class="missing">{escape(what)} Fill it with <code>{escape(command)}</code>.</p>'


def _static(name: str) -> str:
    return files("debate_rl.evaluation.report").joinpath("static", name).read_text(encoding="utf-8")


def _figure(board: Board, name: str) -> str:
    return f"<figure>{board.inline(name)}</figure>"


def _scroll(table: str, name: str) -> str:
    """A table that scrolls sideways by itself where the screen is too narrow, also by keyboard."""
    return f'<div class="scroll" role="region" aria-label="{escape(name)}" tabindex="0">{table}</div>'


def _lede(content: Content) -> str:
    judges = sorted({str(row["judge"].get("name")) for row in content.rows if isinstance(row.get("judge"), Mapping)})
    splits = sorted({str(protocol(row).get("split")) for row in content.rows if protocol(row).get("split")})
    where = f"Data: {content.dataset} {' and '.join(splits)}. Judges: {', '.join(judges)}." if judges else ""
    return (
        '<p class="lede">Two debaters see a digit; their judge sees only the few pixels they reveal in turn. '
        "One debater argues for the truth, the other for a lie. The more often truth wins, the better debate works.</p>"
        f'<p class="meta">{escape(where)}</p>'
    )


def _headline(content: Content) -> str:
    if not content.curves:
        return missing("No curve yet: neither the judge alone nor any debate was measured.", REPRODUCE)
    parts = []
    curve = content.curves[0]
    if curve.start and curve.points:
        budget, end = curve.points[-1]
        parts.append(
            f'<p class="claim"><span class="big">{percent(curve.start.value)} <span class="arrow">→</span> {percent(end.value)}'
            f"<small> %</small></span></p><p>The judge alone, shown {curve.pixels} random nonzero pixels, is right about "
            f"{percent(curve.start.value)} % of the images. When two searches of {budget:,} rollouts per move choose the pixels, "
            f"the honest one wins {percent(end.value)} % of them, even counting an image as lost if any of the nine possible lies wins.</p>"
        )
    figures = "".join(_figure(charts.curve_board(curve), f"curve{curve.pixels}") for curve in content.curves)
    parts.append(f'<div class="charts">{figures}</div>')
    published = any(curve.paper_end is not None for curve in content.curves)
    parts.append(
        '<p class="note">Honest win rate with a precommitted lie, worst of nine, mean of both orders; bars and band are 95 % intervals.'
        + (" Dotted lines: the paper's figures without search and with 10,000 rollouts.</p>" if published else "</p>")
    )
    for curve in content.curves:
        if not curve.points:
            parts.append(missing(f"No debates of {curve.pixels} pixels yet.", REPRODUCE))
    numbers = "".join(_scroll(tables.curve_html(curve), f"Figures of the {curve.pixels}-pixel curve") for curve in content.curves)
    parts.append(f"<details><summary>The figures</summary>{numbers}</details>")
    return "".join(parts)


def _table2(content: Content) -> str:
    if not content.table:
        return missing("No cell of Table 2 was measured yet.", REPRODUCE)
    return (
        f"<p>Percent of test images, with the 95 % interval. <em>Inside</em>: the paper's figure lies within our interval. "
        f"{escape(tables.table2_note(content.table))}</p>" + _scroll(tables.table2_html(content.table), "Table 2")
    )


def _controls(content: Content) -> str:
    if not content.controls:
        return missing("No controls were played yet.", REPRODUCE)
    figures = "".join(_figure(board, f"controls{place}") for place, board in enumerate(charts.controls_boards(content.controls)))
    return (
        "<p>The same games with something taken away: no debate at all, debaters that do not search, or only one side speaking. "
        "Without precommitment any wrong answer of the judge is the liar's; two-way, it only chooses between the truth and one lie.</p>"
        f'<div class="charts">{figures}</div>{_scroll(tables.controls_html(content.controls), "Controls")}'
    )


def _exploitability(content: Content) -> str:
    """Empty where no best response was played: that is a comparison of its own, not a part of every run."""
    boards = charts.controls_boards(content.gaps, GAPS)
    if not boards:
        return ""
    figures = "".join(_figure(board, f"gaps{place}") for place, board in enumerate(boards))
    return (
        "<p>What an agent loses when its opponent knows it: the share of images (or games) that it would win under perfect play of both "
        "sides, less what it wins from a best response.</p>"
        f'<div class="charts">{figures}</div>{_scroll(tables.controls_html(content.gaps, "Exploited agent"), "Exploitability")}'
    )


def _accuracy(content: Content) -> str:
    if not content.accuracy:
        return missing("The judge was not measured at any number of pixels yet.", REPRODUCE)
    debate = any(series.kind == "debate" for series in content.accuracy)
    return (
        "<p>How often truth comes out when more pixels are shown: chosen at random, or by debaters.</p>"
        f'<div class="wide scroll" role="region" aria-label="Chart of accuracy" tabindex="0">'
        f"{_figure(charts.accuracy_board(content), 'accuracy')}</div>"
        + ("" if debate else missing("No debates at several pixel counts yet.", REPRODUCE))
        + f"<details><summary>The figures</summary>{_scroll(tables.accuracy_html(content), 'Accuracy by number of pixels')}</details>"
    )


def _confusions(content: Content) -> str:
    if not content.confusions:
        return missing("No confusion matrices in this run folder yet.", REPRODUCE)
    figures = "".join(_figure(charts.confusion_board(c), f"confusion{c.kind}{c.pixels}") for c in content.confusions)
    return (
        "<p>Percent of all test images; right answers are left out. On the left the judge errs by itself on random pixels, "
        "on the right a liar convinces it in a precommitted debate (the paper's figure 3).</p>"
        f'<div class="charts">{figures}</div>'
    )


def _gallery(pixels: int, gallery: Gallery) -> str:
    if not pixels:
        return missing("No game records in this run folder yet.", REPRODUCE)
    bars = "".join(
        f'<li><span>{digit}</span><span class="track"><span class="fill"></span></span>'
        '<span class="share"></span><span class="who"></span></li>'
        for digit in range(10)
    )
    buttons = (
        ("start", "First", "Back to no pixels"),
        ("back", "Back", "One pixel back"),
        ("next", "Next", "One pixel on"),
        ("end", "Last", "All pixels"),
    )
    steps = "".join(f'<button type="button" data-part="{part}" title="{title}">{words}</button>' for part, words, title in buttons)
    viewer = (
        '<div class="viewer" id="viewer" tabindex="-1" role="group" aria-label="Game viewer" hidden><h3 data-part="title"></h3>'
        '<p class="note" data-part="claims"></p><div class="stage">'
        '<div><p class="label">What the debaters see</p><svg class="boardview" viewBox="0 0 28 28" data-part="debater" role="img" '
        'aria-label="The whole digit with the revealed pixels marked"></svg></div>'
        '<div><p class="label">What the judge sees</p><svg class="boardview" viewBox="0 0 28 28" data-part="judge" role="img" '
        'aria-label="The revealed pixels alone"></svg></div>'
        f'<div class="belief"><p class="label">The judge\'s belief</p><ul class="bars">{bars}</ul></div></div>'
        '<p class="status" data-part="status" role="status"></p>'
        f'<div class="controls">{steps}<input type="range" min="0" max="{pixels}" value="{pixels}" step="1" data-part="slider" '
        'aria-label="Pixels shown"><button type="button" data-part="before">Previous game</button>'
        '<button type="button" data-part="after">Next game</button></div>'
        '<p class="note">Arrow keys: left and right step through a game, up and down change the game.</p></div>'
    )
    return (
        f"<p>Precommitted games of {pixels} pixels: per panel the first images for which such a game was played, and of an image's games "
        "the closest. Moves are numbered; the judge sees neither the numbers nor who made them. Choose a game to step through it.</p>"
        '<p class="legend"><span><span class="mark-honest"></span>honest: round, blue</span>'
        '<span><span class="mark-liar"></span>liar: square, red</span></p>'
        f"{viewer}{gallery_html(gallery)}"
    )


def _calibration(content: Content) -> str:
    if not content.reliability:
        return missing("No calibration tables in this run folder yet.", REPRODUCE)
    figures = "".join(_figure(charts.reliability_board(table), f"reliability{i}") for i, table in enumerate(content.reliability))
    return (
        "<p>Bars on the dashed line mean that the judge is right as often as its confidence says. Below the line it is too sure of "
        "itself, above it not sure enough. ECE is the mean distance from the line, weighted by how often it happens.</p>"
        f'<div class="charts small">{figures}</div>'
    )


def _cost(content: Content) -> str:
    if not content.rows:
        return missing("No result rows in this run folder yet.", REPRODUCE)
    rows: Sequence[Mapping[str, Any]] = content.rows
    speed = tables.speed_html(rows)
    return (
        (_scroll(speed, "Speed") if speed else missing("Speed was not measured in this run.", "debate-rl bench"))
        + _scroll(tables.sources_html(rows), "Where the figures come from")
        + f"<details><summary>All {len(rows)} result rows</summary>{_scroll(tables.all_rows_html(rows), 'All result rows')}</details>"
    )
