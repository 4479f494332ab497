"""`debate-rl reproduce`: the paper's whole experiment, its report, and our table beside the paper's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from debate_rl import results
from debate_rl.cli.context import Context
from debate_rl.cli.data import DatasetSettings
from debate_rl.cli.evaluate import check_agents
from debate_rl.data import Digits
from debate_rl.evaluation.report import read_run, terminal_table, write_report
from debate_rl.evaluation.reproduce import Reproduction, collect, identity, plan, play_jobs, write_results
from debate_rl.judges.pretrained import load_judge
from debate_rl.runs import RunFolder


@dataclass(frozen=True)
class Settings(Reproduction):
    """The configuration of `debate-rl reproduce`: a `Reproduction` and where its images come from."""

    name: str = "reproduce"
    dataset: DatasetSettings = field(default_factory=DatasetSettings)
    split: Literal["train", "test"] = "test"


def run(settings: Settings, context: Context) -> None:
    """Play what is missing, sum up, write the report, print the table."""
    context.use_threads()
    context.bar.unit = "rollouts"
    judges = {pixels: load_judge(judge) for pixels, judge in sorted(settings.judges.items())}
    digits = settings.dataset.load(settings.split)
    jobs = plan(settings, digits, judges)
    check_agents(jobs)
    config = {**context.config, **identity(judges)}
    with context.open_folder(settings.name, config) as folder:
        if folder.finished:
            context.bar.note(f"finished before: {folder.path}")
        else:
            context.bar.note(f"run folder: {folder.path}")
            play_jobs(folder, jobs, digits, settings.block, context.bar)
            context.bar.clear()
            write_results(folder, collect(folder, settings, jobs, digits, judges, folder.provenance))
        report(folder, digits, context)


def report(folder: RunFolder, digits: Digits, context: Context) -> None:
    """Write the report if it is not there, then print the table and where the report is."""
    from rich.console import Console

    page = folder.path / "report" / "index.html"
    if not page.exists():
        rows, records = read_run(folder.path)
        page = write_report(folder.path, rows, records, digits)
    context.bar.clear()
    Console().print(terminal_table([row.to_dict() for row in results.read(folder.results)]))
    context.say(f"rows    {folder.results}")
    context.say(f"report  {page}")
