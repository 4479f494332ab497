"""`debate-rl report`: draw a run's report again from its folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from debate_rl import data
from debate_rl.cli.context import Context
from debate_rl.cli.data import DatasetSettings
from debate_rl.cli.typed import build
from debate_rl.errors import UserError
from debate_rl.evaluation.report import read_run, terminal_table, write_report
from debate_rl.runs import read_config


@dataclass(frozen=True)
class Settings:
    """The configuration of `debate-rl report`."""

    run: str | None = None


def run(settings: Settings, context: Context) -> None:
    """Write the page and the pictures; print Table 2 where a cell of it was measured."""
    from rich.console import Console

    folder = Path(settings.run).expanduser() if settings.run is not None else newest_run(context.common.output)
    rows, records = read_run(folder)
    digits = _digits(folder)
    page = write_report(folder, rows, records, digits)
    table = terminal_table(rows)
    if table.row_count:
        Console().print(table)
    context.say(f"report  {page}")


def newest_run(output: Path) -> Path:
    """The reproduction or evaluation under `output` whose rows were written last. Raises UserError where no run has finished."""
    finished = [path for verb in ("reproduce", "evaluate") for path in (Path(output).expanduser() / verb).glob("*/results.jsonl")]
    if not finished:
        raise UserError(f"no finished run under {output}: run debate-rl reproduce first, or name a run folder with run=...")
    return max(finished, key=lambda path: path.stat().st_mtime_ns).parent


def _digits(folder: Path) -> data.Digits:
    """The images a run was about."""
    config = read_config(folder)
    dataset, split = config.get("dataset"), config.get("split")
    if not isinstance(dataset, Mapping) or not isinstance(split, str):
        raise UserError(f"{folder / 'config.yaml'} does not say which images the run was about (dataset and split)")
    return build(DatasetSettings, dataset, "dataset").load(split)
