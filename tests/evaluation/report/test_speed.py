"""Tables of speed against rows written by hand."""

from __future__ import annotations

from typing import Any

from debate_rl.evaluation.report import speed
from debate_rl.evaluation.report.rows import DASH, Row


def row(metric: str, value: float, judge: str = "mlp-6", rollouts: int | None = None, **protocol: Any) -> Row:
    agent = {"name": "mcts", "rollouts": rollouts}
    agents = {"honest": agent, "liar": agent} if rollouts else {}
    return {"metric": metric, "value": value, "judge": {"name": judge}, "agents": agents, "protocol": {"game": "pixels", **protocol}}


def cells(text: str) -> list[list[str]]:
    """A Markdown table without its head."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.strip().splitlines()[2:]]


def test_without_rows_there_is_no_table() -> None:
    for table in (speed.leaves_markdown, speed.search_markdown, speed.contenders_markdown, speed.scaling_markdown):
        assert table([]) == ""


def test_a_judges_leaves_stand_beside_its_own_product() -> None:
    rows = []
    for judge, rate in (("a", 2e6), ("b", 5e6)):
        rows += [
            row(speed.LEAVES, rate, judge, part="leaves", of="matrix product", layer=[256, 32]),
            row(speed.LEAVES, rate / 4, judge, part="leaves", of="whole leaf", layer=[256, 32]),
            row(speed.SHARE, 0.25 if judge == "a" else 0.5, judge, part="leaves", of="whole leaf"),
        ]
    assert cells(speed.leaves_markdown(rows)) == [
        ["`a`", "256 x 32", "matrix product", "2.000", DASH],
        ["`a`", "256 x 32", "whole leaf", "0.500", "25 %"],
        ["`b`", "256 x 32", "matrix product", "5.000", DASH],
        ["`b`", "256 x 32", "whole leaf", "1.250", "50 %"],
    ]


def test_a_ply_of_the_search_has_its_own_leaves_and_shares() -> None:
    rows = []
    for ply, rate, share in ((1, 1e6, 0.5), (2, 3e6, 0.125)):
        told = {"part": "search", "threads": 1, "ply": ply}
        rows += [
            row(speed.ROLLOUTS, rate, rollouts=10, **told),
            row(speed.LEAVES, rate / 2, rollouts=10, **told),
            row(speed.SHARE, share, rollouts=10, against="whole leaf", **told),
            row(speed.SHARE, share / 2, rollouts=10, against="matrix product", **told),
        ]
    rows.append(row(speed.ROLLOUTS, 9e6, rollouts=10, part="contenders", of="search"))
    assert cells(speed.search_markdown(rows)) == [
        ["`mlp-6`", "1", "sampled", "1", "1.000", "0.500", "50 %", "25 %"],
        ["`mlp-6`", "1", "sampled", "2", "3.000", "1.500", "12 %", "6 %"],
    ]


def test_other_searches_are_measured_by_ours() -> None:
    rows = [row(speed.ROLLOUTS, rate, rollouts=1000, part="contenders", of=of) for of, rate in (("search", 1e6), ("pytorch", 40_000.0))]
    assert cells(speed.contenders_markdown(rows)) == [["search", "1,000", "1,000,000", "1.0"], ["pytorch", "1,000", "40,000", "25.0"]]


def test_what_grows_is_named_with_the_memory_of_a_tree() -> None:
    rows = [
        row(speed.ROLLOUTS, 1e6, rollouts=10, part="rollouts"),
        row("bytes_per_tree", 2**21, rollouts=10, part="rollouts"),
        row(speed.ROLLOUTS, 2e6, rollouts=10, part="legal pixels", legal_pixels=50),
    ]
    assert cells(speed.scaling_markdown(rows)) == [
        ["legal pixels in the image", "50", "2.000", DASH],
        ["rollouts per move", "10", "1.000", "2.00"],
    ]
