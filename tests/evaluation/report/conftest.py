"""A real reproduction, small enough for tests: real digits, shipped judges, searches of a few rollouts, played by the library itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from debate_rl.data import Digits
from debate_rl.evaluation.report import read_run, write_report
from debate_rl.evaluation.report.content import gather
from debate_rl.evaluation.report.folder import GALLERY, TABLES
from debate_rl.evaluation.report.gallery import pick_games
from debate_rl.evaluation.report.page import page_html
from debate_rl.evaluation.reproduce import Reproduction, collect, plan, play_jobs
from debate_rl.judges.pretrained import load_judge
from debate_rl.machine import describe
from debate_rl.runs import RunFolder

Row = dict[str, Any]
IMAGES = 60  # of the test split


@dataclass(frozen=True)
class Run:
    """A finished run and the report drawn from it."""

    folder: Path
    digits: Digits
    rows: list[Row]
    records: list[dict[str, Any]]
    tables: dict[str, Any]
    page: Path
    html: str


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory, mnist_test: Digits) -> Run:
    """Both judges, all controls, a curve of three budgets, a sweep over pixels. Do not change it: copy."""
    digits = Digits(mnist_test.name, mnist_test.split, mnist_test.images[:IMAGES], mnist_test.labels[:IMAGES], mnist_test.hash)
    settings = Reproduction(
        judges={4: "mlp-4", 6: "mlp-6"},
        count=12,
        repetitions=1,
        agent={"name": "mcts", "rollouts": 40},
        budgets=(5, 10),
        budget_count=8,
        control_count=8,
        sweep_pixels=(1, 2, 4, 6, 8),
        sweep_count=5,
        sweep_rollouts=5,
        masks=2,
        block=16,
    )
    judges = {pixels: load_judge(name) for pixels, name in settings.judges.items()}
    jobs = plan(settings, digits, judges)
    with RunFolder.open(
        tmp_path_factory.mktemp("outputs"), "reproduce", "small", {"dataset": {"name": "mnist"}, "split": "test"}
    ) as folder:
        play_jobs(folder, jobs, digits, settings.block, lambda name, done, total: None)
        provenance = {
            "config_hash": folder.config_hash,
            "code": {"version": "0", "commit": None},
            "command": "pytest",
            "machine": describe(),
        }
        found = collect(folder, settings, jobs, digits, judges, provenance)
        folder.write(TABLES, json.dumps(found.tables))
        folder.write(GALLERY, "".join(json.dumps(record) + "\n" for record in found.gallery))
        folder.finish(row.line() for row in found.rows)
    rows, records = read_run(folder.path)
    games = list(records)
    page = write_report(folder.path, rows, games, digits)
    return Run(folder.path, digits, rows, games, found.tables, page, page.read_text(encoding="utf-8"))


@pytest.fixture
def report(run: Run) -> Callable[..., str]:
    """The page of other rows, records or tables; without the pictures, which take their time."""

    def write(rows: list[Row], records: list[dict[str, Any]] | None = None, tables: dict[str, Any] | None = None) -> str:
        return page_html(gather(rows, tables), *pick_games(records or [], run.digits))

    return write


def pick(rows: list[Row], metric: str, *, rollouts: int | None = None, **protocol: object) -> Row:
    """The one row of a metric with these protocol values, and this budget where one is asked for."""
    found = [
        row
        for row in rows
        if row["metric"] == metric
        and all(row["protocol"].get(key) == value for key, value in protocol.items())
        and (rollouts is None or row["agents"]["honest"].get("rollouts") == rollouts)
    ]
    # The curve's points repeat a figure on fewer images: the one on most is meant.
    found.sort(key=lambda row: row["n"])
    assert found and (len(found) == 1 or found[-2]["n"] < found[-1]["n"]), [row["protocol"] for row in found]
    return found[-1]


def percents(row: Row) -> tuple[str, str, str]:
    """A row's value and the ends of its interval, as a page prints them."""
    return f"{100 * row['value']:.1f}", f"{100 * row['ci95'][0]:.1f}", f"{100 * row['ci95'][1]:.1f}"
