"""`debate-rl reproduce`: the paper's whole experiment, its report, and our table beside the paper's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from debate_rl import results
from debate_rl.cli.choices import Note, fitting_judge, refuse_silent
from debate_rl.cli.context import Context
from debate_rl.cli.data import DatasetSettings
from debate_rl.cli.evaluate import check_agents
from debate_rl.data import Digits
from debate_rl.evaluation.report import read_run, terminal_table, write_report
from debate_rl.evaluation.reproduce import Job, Reproduction, collect, identity, plan, play_jobs, write_results
from debate_rl.judges.pretrained import Judge
from debate_rl.runs import RunFolder


@dataclass(frozen=True)
class Settings(Reproduction):
    """The configuration of `debate-rl reproduce`: a `Reproduction` and where its images come from."""

    name: str = "reproduce"
    dataset: DatasetSettings = field(default_factory=DatasetSettings)
    split: Literal["train", "test"] = "test"

    def __post_init__(self) -> None:
        """Refuse settings outside their range."""
        super().__post_init__()
        refuse_silent(self.agent, "agent", "mcts, greedy, random or own")


def run(settings: Settings, context: Context) -> None:
    """Play what is missing, sum up, write the report, print the table."""
    context.use_threads()
    context.bar.unit = "rollouts"
    judges = load_judges(settings, context.bar.note)
    digits = settings.dataset.load(settings.split)
    jobs = prepare(settings, digits, judges)
    config = {**context.config, **identity(judges)}
    with context.open_folder(settings.name, config) as folder:
        if not context.finished_before(folder):
            play_jobs(folder, jobs, digits, settings.block, context.bar)
            context.bar.clear()
            write_results(folder, collect(folder, settings, jobs, digits, judges, folder.provenance))
        report(folder, digits, context)


def load_judges(settings: Settings, note: Note) -> dict[int, Judge]:
    """The judge for every number of pixels, each checked against the run."""
    return {
        pixels: fitting_judge(
            name,
            settings.dataset.name,
            pixels,
            setting=f"judges.{pixels}",
            note=note,
            threshold=settings.threshold,
            black=settings.black,
        )
        for pixels, name in sorted(settings.judges.items())
    }


def prepare(settings: Settings, digits: Digits, judges: Mapping[int, Judge]) -> list[Job]:
    """The jobs of a run, their agents checked."""
    jobs = plan(settings, digits, judges)
    check_agents(jobs)
    return jobs


def report(folder: RunFolder, digits: Digits, context: Context) -> None:
    """Write the report if there is none or an older one, then print the table and where the report is."""
    from rich.console import Console

    page = folder.path / "report" / "index.html"
    if not page.exists() or page.stat().st_mtime_ns < folder.results.stat().st_mtime_ns:
        rows, records = read_run(folder.path)
        page = write_report(folder.path, rows, records, digits)
    context.bar.clear()
    Console().print(terminal_table([row.to_dict() for row in results.read(folder.results)]))
    context.say(f"rows    {folder.results}")
    context.say(f"report  {page}")
