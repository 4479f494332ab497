"""Tables of `debate-rl bench` for the docs: leaves, the search ply by ply, other searches beside it, and how it scales."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from debate_rl.evaluation.report.markdown import markdown_table
from debate_rl.evaluation.report.rows import DASH, Row, agent, judge_name, matching, protocol, rollouts

LEAVES = "leaves_per_second_per_core"
ROLLOUTS = "rollouts_per_second_per_core"
SHARE = "leaf_rate_share"
SCALES = {
    "threads": "threads",
    "legal pixels": "legal pixels in the image",
    "rollouts": "rollouts per move",
    "exact plies": "last plies played exactly, 100 rollouts",
    "pixels": "pixels in a game",
}


def leaves_markdown(rows: Iterable[Row]) -> str:
    """Leaves per second when nothing else is done, and as a share of the matrix product's."""
    everything = list(rows)
    body = []
    for row in matching(everything, LEAVES, part="leaves"):
        settings = protocol(row)
        layer = settings.get("layer")
        words = " x ".join(map(str, layer)) if isinstance(layer, list) else DASH
        share = _share(row, matching(everything, SHARE, part="leaves", of=settings.get("of")))
        body.append([f"`{judge_name(row)}`", words, str(settings.get("of")), _millions(row), share])
    return markdown_table(["Judge", "Second layer", "Of", "M leaves/s", "Of the matrix product"], body) if body else ""


def search_markdown(rows: Iterable[Row]) -> str:
    """The search of whole games and ply by ply: rollouts, leaves, and the share of its time that the leaves take."""
    everything = list(rows)
    body = []
    for row in matching(everything, ROLLOUTS, part="search"):
        same = {key: protocol(row).get(key) for key in ("part", "threads", "ply")}
        leaves = [other for other in matching(everything, LEAVES, **same) if _search(other) == _search(row)]
        shares = [_share(row, matching(everything, SHARE, against=of, **same)) for of in ("whole leaf", "matrix product")]
        ply, exact = str(same["ply"] or "whole game"), "exact" if agent(row, "honest").get("exact_plies") else "sampled"
        body.append(
            [f"`{judge_name(row)}`", str(same["threads"]), exact, ply, _millions(row), _millions(leaves[-1]) if leaves else DASH, *shares]
        )
    heads = [
        "Judge",
        "Threads",
        "Last ply",
        "Ply",
        "M rollouts/s per core",
        "M leaves/s per core",
        "Time in leaves",
        "Of the matrix product",
    ]
    return markdown_table(heads, body) if body else ""


def contenders_markdown(rows: Iterable[Row]) -> str:
    """The same search written in other ways, timed in the same run."""
    found = matching(rows, ROLLOUTS, part="contenders")
    ours = next((_value(row) for row in found if protocol(row).get("of") == "search"), None)
    body = []
    for row in found:
        value = _value(row)
        times = f"{ours / value:,.1f}" if ours and value else DASH
        body.append([str(protocol(row).get("of")), f"{rollouts(row) or 0:,}", f"{value:,.0f}", times])
    return markdown_table(["Search", "Rollouts per move", "Rollouts/s per core", "Ours is so many times as fast"], body) if body else ""


def scaling_markdown(rows: Iterable[Row]) -> str:
    """Whole games as one thing grows: rollouts per second, and the memory of a tree."""
    everything = list(rows)
    body = []
    for part, words in SCALES.items():
        for row in matching(everything, ROLLOUTS, part=part):
            searching = {"rollouts": rollouts(row), "exact plies": agent(row, "honest").get("exact_plies")}
            value = searching[part] if part in searching else protocol(row).get(part.replace(" ", "_"))
            trees = [other for other in matching(everything, "bytes_per_tree", part=part) if rollouts(other) == rollouts(row)]
            size = f"{_value(trees[-1]) / 2**20:.2f}" if trees else DASH
            body.append([words, f"{value:,}" if isinstance(value, int) else DASH, _millions(row), size])
    return markdown_table(["What grows", "To", "M rollouts/s per core", "MiB per tree"], body) if body else ""


def _search(row: Row) -> tuple[str, Mapping[str, object]]:
    """Which judge, and which search before it."""
    return judge_name(row), agent(row, "honest")


def _value(row: Row) -> float:
    value = row.get("value")
    return float(value) if isinstance(value, int | float) else 0.0


def _millions(row: Row) -> str:
    return f"{_value(row) / 1e6:.3f}"


def _share(row: Row, rows: Iterable[Row]) -> str:
    same = [other for other in rows if _search(other) == _search(row)]
    return f"{100 * _value(same[-1]):.0f} %" if same else DASH
