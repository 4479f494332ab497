from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from html import unescape
from html.parser import HTMLParser
from typing import Any

import pytest

from debate_rl.evaluation.report.content import gather
from debate_rl.evaluation.report.markdown import speed_markdown
from debate_rl.evaluation.report.svg import DARK, LIGHT
from debate_rl.evaluation.report.tables import speed_html
from tests.evaluation.report.conftest import Row, Run, percents, pick

VOID = {"meta", "link", "input", "br", "img", "hr"}


class Page(HTMLParser):
    """A page's elements and its text; notes tags that do not close in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.faults: list[str] = []
        self.feed(html)
        self.faults += self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("style", "script"):
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def cells(html: str) -> list[str]:
    """The text of each cell of Table 2."""
    table = re.search(r'<table class="table2".*?</table>', html, re.DOTALL)
    assert table
    return [Page(cell).text for cell in re.findall(r"<td.*?</td>", table[0], re.DOTALL)]


def games(html: str) -> dict[str, Any]:
    """The data that the page's script reads."""
    found = re.search(r'<script type="application/json" id="games">(.*?)</script>', html, re.DOTALL)
    assert found
    loaded: dict[str, Any] = json.loads(found[1])
    return loaded


def test_the_page_is_well_formed_and_its_ids_are_unique(run: Run) -> None:
    page = Page(run.html)
    assert page.faults == []
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [str(attributes["href"])[1:] for tag, attributes in page.elements if tag == "a"]
    assert links and set(links) <= set(ids)
    labels = [name for _, attributes in page.elements for name in str(attributes.get("aria-labelledby") or "").split()]
    assert labels and set(labels) <= set(ids)
    assert len(run.html.encode()) < 2_000_000


def test_nothing_is_fetched(run: Run) -> None:
    page = Page(run.html)
    sources = [
        str(attributes[key]) for _, attributes in page.elements for key in ("src", "href", "xlink:href", "srcset") if key in attributes
    ]
    assert sources and all(source.startswith(("#", "data:")) for source in sources)
    rest = run.html.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|//[a-z]+\.[a-z]|@import|url\(", rest)
    policy = next(attributes for _, attributes in page.elements if attributes.get("http-equiv") == "Content-Security-Policy")
    assert str(policy["content"]).startswith("default-src 'none'")


def test_table_2_shows_the_rows_figures(run: Run) -> None:
    shown = iter(cells(run.html))
    for pixels in (4, 6):
        judge = pick(run.rows, "judge_ece", pixels=pixels, shown="random")["judge"]
        for first in ("honest", "liar", "mean"):
            wanted = [
                pick(run.rows, "honest_win_rate", rollouts=40, pixels=pixels, first=first, commit=commit, lies=lies)
                for commit, lies in (("none", "none"), ("precommit", "worst"))
            ]
            if first == "honest":
                accuracies = [row for row in run.rows if row["metric"] == "judge_accuracy" and row["judge"] == judge]
                wanted.insert(0, pick(accuracies, "judge_accuracy", pixels=pixels))
            for row in wanted:
                value, low, high = percents(row)
                assert re.search(rf"(^| ){re.escape(value)} {re.escape(low)}.{re.escape(high)} paper \d\d\.\d ", next(shown))
    assert next(shown, None) is None


def test_the_headline_and_every_chart_show_the_rows_figures(run: Run) -> None:
    text = Page(run.html).text
    tips = re.findall(r"<(?:circle|rect)[^>]*><title>(.*?)</title>", run.html)
    content = gather(run.rows)
    curve = content.curves[0]
    assert curve.start is not None
    ends = [curve.start.row, *(figure.row for _, figure in curve.points)]
    assert len({str(row["protocol"]["images"]) for row in ends}) == 1  # one curve, one set of images
    assert f"{percents(dict(ends[0]))[0]} → {percents(dict(ends[-1]))[0]} %" in text
    figures = [figure for curve in content.curves for _, figure in curve.points]
    figures += [figure for series in content.accuracy for _, figure in series.points]
    figures += [figure for control in content.controls for figure in control.figures.values()]
    assert len(figures) > 40
    for figure in figures:
        value, low, high = percents(dict(figure.row))
        words = f"{value} % (95 %: {low} to {high}), n = {figure.n:,}"
        assert any(words in tip for tip in tips), words
        assert re.search(rf"{value} {low}.{high}", text)


def test_the_curve_lies_where_its_values_are(run: Run) -> None:
    board = re.search(r'<svg[^>]*aria-labelledby="curve6-t.*?</svg>', run.html, re.DOTALL)
    assert board
    ticks = {int(word): float(y) - 4.5 for y, word in re.findall(r'y="([\d.]+)"[^>]*text-anchor="end"[^>]*>(\d+)</text>', board[0])}
    assert len(ticks) >= 2
    (low, bottom), (high, top) = min(ticks.items()), max(ticks.items())
    dots = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"[^>]*><title>([\d.]+) %', board[0])
    assert len(dots) == 4
    for _, y, value in dots:
        assert float(y) == pytest.approx(bottom + (float(value) - low) / (high - low) * (top - bottom), abs=0.2)
    places = [float(x) for x, _, _ in dots]
    assert places == sorted(places)
    assert (places[2] - places[1]) / (places[3] - places[2]) == pytest.approx(0.5, abs=1e-3)  # 5, 10 and 40 on a log axis


def test_the_confusion_matrices_are_the_tables_without_their_diagonal(run: Run) -> None:
    for pixels in ("4", "6"):
        for kind, matrix in (("random", run.tables[pixels]["random"]["confusion"]), ("lies", run.tables[pixels]["lies"])):
            board = re.search(rf'<svg[^>]*aria-labelledby="confusion{kind}{pixels}-t.*?</svg>', run.html, re.DOTALL)
            assert board
            shown = {(int(i), int(j)): value for i, j, value in re.findall(r"<title>(\d) → (\d): ([\d.]+) %</title>", board[0])}
            assert len(shown) == 90
            assert all(value == f"{matrix[i][j]:.2f}" and i != j for (i, j), value in shown.items())


def test_calibration_is_that_of_the_tables(run: Run) -> None:
    text = Page(run.html).text
    for pixels in ("4", "6"):
        parts = run.tables[pixels]
        for table in (parts["random"]["reliability"], parts["answer"], parts["claims"]):
            assert f"ECE {100 * table['ece']:.1f} %" in text
            assert f"n = {table['n']:,}" in text


def test_the_games_are_those_of_the_records(run: Run) -> None:
    data = games(run.html)
    assert data["pixels"] == 6 and data["games"]
    known = {(r["index"], r["first"], r["claims"]["liar"], tuple(r["moves"])): r for r in run.records if r["pixels"] == 6}
    for game in data["games"]:
        record = known[game["index"], game["seats"][0], game["lie"], tuple(game["moves"])]
        assert (game["label"], game["winner"]) == (record["label"], record["winner"])
        image = run.digits.images[game["index"]].ravel()
        assert game["values"] == [int(image[move]) for move in game["moves"]]
        for belief, lead, logits in zip(game["belief"], game["lead"], record["logits"], strict=True):
            assert sum(belief) == pytest.approx(1, abs=1e-3)
            assert belief.index(max(belief)) == logits.index(max(logits))
            assert lead == pytest.approx(logits[record["label"]] - logits[game["lie"]], abs=1e-3)
        assert (game["lead"][-1] > 0) == (game["winner"] == "honest")
        first, winner = record["first"], record["winner"]
        assert game["panel"] == f"Honest {'first' if first == 'honest' else 'second'}, and {'wins' if winner == 'honest' else 'loses'}"
    buttons = re.findall(r'data-game="(\d+)"', run.html)
    assert buttons == [str(number) for number in range(len(data["games"]))]


def test_an_empty_run_says_what_would_fill_it(report: Callable[..., str]) -> None:
    html = report([])
    page = Page(html)
    assert page.faults == []
    assert page.text.count("Fill it with debate-rl reproduce") == 8
    assert "<table" not in html and games(html) == {"pixels": 0, "games": []}


@pytest.mark.parametrize("metric", ["judge_accuracy", "judge_ece", "honest_win_rate", "rollouts_per_second_per_core"])
@pytest.mark.parametrize("keep", [True, False])
def test_any_part_may_be_missing(run: Run, report: Callable[..., str], metric: str, keep: bool) -> None:
    html = report([row for row in run.rows if (row["metric"] == metric) == keep])
    assert Page(html).faults == []
    assert "Fill it with" in html


@pytest.mark.parametrize("count", range(0, 40, 3))
def test_any_one_row_is_enough(run: Run, report: Callable[..., str], count: int) -> None:
    assert Page(report([run.rows[count * len(run.rows) // 40]])).faults == []


def test_broken_tables_are_left_out(run: Run, report: Callable[..., str]) -> None:
    broken: dict[str, Any] = {
        "6": {"random": None, "lies": [[1, 2], [3]], "answer": {"n": 3}, "claims": {"n": 0, "ece": None, "bins": []}},
        "x": 1,
        "4": {"random": {"confusion": "no", "reliability": [1]}, "lies": [[float("nan")] * 10] * 10},
    }
    html = report(run.rows, [], broken)
    assert Page(html).faults == []
    assert "No confusion matrices" in html and "No calibration tables" in html


HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&$x^2$"


def test_hostile_strings_stay_text(run: Run, report: Callable[..., str]) -> None:
    rows = copy.deepcopy(run.rows)
    for row in rows:
        row["command"] = row["config_hash"] = row["judge"]["name"] = HOSTILE
        row["code"] = {"version": HOSTILE, "commit": HOSTILE}
        row["machine"] = {"cpu": HOSTILE}
        for seat in ("honest", "liar"):
            if row["agents"].get(seat, {}).get("name") in ("greedy", "random"):
                row["agents"][seat] = {"name": HOSTILE, "rollouts": HOSTILE}
        row["protocol"][HOSTILE] = HOSTILE
    records = copy.deepcopy(run.records)
    for record in records:
        record["agents"]["honest"]["name"] = HOSTILE
    hostile = report(rows, records, run.tables)
    page = Page(hostile)
    assert page.faults == []
    assert hostile.count("<script") == run.html.count("<script") == 2
    assert not any(tag == "img" for tag, _ in page.elements)
    assert not any(key.startswith("on") for _, attributes in page.elements for key in attributes)
    assert "onerror=alert(1)>" in page.text


def test_hostile_claims_are_no_games(run: Run, report: Callable[..., str]) -> None:
    records = []
    for change in (
        {"label": HOSTILE},
        {"first": HOSTILE},
        {"winner": HOSTILE},
        {"moves": [HOSTILE] * 6},
        {"index": 10**9},
        {"logits": [[0]]},
    ):
        records.append({**run.records[0], **change})
    html = report(run.rows, records)
    assert games(html)["games"] == [] and "No game records" in html


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_colours_agree_with_the_style_sheet_and_are_easy_to_read(run: Run) -> None:
    style = re.search(r"<style>(.*?)</style>", run.html, re.DOTALL)
    assert style
    light, dark = re.findall(r":root \{(.*?)\}", style[1], re.DOTALL)[:2]
    for block, colours in ((light, LIGHT), (dark, DARK)):
        declared = dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", block))
        assert {name: declared[name] for name in colours} == colours
        for name, colour in declared.items():
            if name in ("paper", "page", "rule"):
                continue
            for ground in ("paper", "page"):
                bright, dim = sorted((_luminance(colour), _luminance(declared[ground])), reverse=True)
                assert (bright + 0.05) / (dim + 0.05) >= 4.5, (name, ground)


def test_speed_and_sources_are_the_rows(run: Run) -> None:
    text = Page(run.html).text
    speeds: list[Row] = [row for row in run.rows if row["metric"] == "rollouts_per_second_per_core"]
    assert speeds
    assert all(f"{row['value']:,.0f}" in text for row in speeds)
    # the page's columns and cells are those of the docs
    heads, _, *lines = ([cell.strip() for cell in line.strip("|").split("|")] for line in speed_markdown(speeds).splitlines())
    cells = [unescape(cell) for cell in re.findall(r"<t[hd](?: [^>]*)?>(.*?)</t[hd]>", speed_html(speeds))]
    assert [heads, *lines] == [cells[start : start + len(heads)] for start in range(0, len(cells), len(heads))]
    assert {"Threads", "Ply", "Machine"} <= set(heads)
    for row in run.rows:
        assert row["judge"]["hash"] in text and row["config_hash"] in text
