"""`debate-rl evaluate`: debates between any two agents, and who wins them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from debate_rl import results
from debate_rl.agents import make_agent
from debate_rl.cli.choices import Note, check_pixels, fitting_judge
from debate_rl.cli.context import Context
from debate_rl.cli.data import DatasetSettings
from debate_rl.data import Digits
from debate_rl.errors import UserError
from debate_rl.evaluation.exploitability import BEST_RESPONSE, exploitability_rows, is_measured
from debate_rl.evaluation.protocol import SILENT, Average, Study
from debate_rl.evaluation.reproduce import Job, Results, identity, image_range, play_jobs, spent_seconds, summarise, write_results
from debate_rl.evaluation.rows import Source, lie_rows, study_rows
from debate_rl.games.pixels import Commit, Seat, special_rules
from debate_rl.results import ResultRow
from debate_rl.runs import RunFolder


@dataclass(frozen=True)
class Settings:
    """The configuration of `debate-rl evaluate`."""

    judges: Mapping[int, str]
    honest: Mapping[str, Any]
    liar: Mapping[str, Any]
    pixels: tuple[int, ...]
    name: str = "evaluate"
    dataset: DatasetSettings = field(default_factory=DatasetSettings)
    split: Literal["train", "test"] = "test"
    start: int = 0
    count: int = 100
    first: tuple[Seat, ...] = ("honest", "liar")
    commit: tuple[Commit, ...] = ("precommit", "none")
    repetitions: int = 3
    average: Average = "logits"
    seed: int = 0
    threshold: float = 0.0
    black: bool = False
    block: int = 8

    def __post_init__(self) -> None:
        """Refuse settings outside their range."""
        check_pixels(self.pixels, self.judges)
        if self.block < 1:
            raise UserError(f"block is {self.block}; it must be at least 1")


def run(settings: Settings, context: Context) -> None:
    """Play what is missing, sum up, print the win rates."""
    context.use_threads()
    context.bar.unit = "rollouts"
    digits = settings.dataset.load(settings.split)
    jobs = prepare(settings, digits, context.bar.note)
    config = {**context.config, **identity({job.study.pixels: job.judge for job in jobs})}
    with context.open_folder(settings.name, config) as folder:
        if not context.finished_before(folder):
            play_jobs(folder, jobs, digits, settings.block, context.bar)
            _sum_up(folder, jobs, settings, digits)
        context.bar.clear()
        for row in results.read(folder.results):
            if row.metric != "successful_lie_rate":  # ten lines a game that few would read: they are in the rows
                context.say(line(row))
        context.say(f"rows    {folder.results}")
        context.say(f"report  debate-rl report run={folder.path}")


def prepare(settings: Settings, digits: Digits, note: Note) -> list[Job]:
    """The jobs of a run, their judges and agents checked."""
    jobs: list[Job] = []
    legal: dict[str, Any] = {"threshold": settings.threshold, "black": settings.black}
    for pixels in settings.pixels:
        study = Study(
            name=f"games-{pixels}",
            pixels=pixels,
            honest=_expecting(settings.honest, settings.liar),
            liar=_expecting(settings.liar, settings.honest),
            first=settings.first,
            commit=settings.commit,
            repetitions=settings.repetitions,
            seed=settings.seed,
            **legal,
        )
        judge = fitting_judge(settings.judges[pixels], settings.dataset.name, pixels, setting=f"judges.{pixels}", note=note, **legal)
        jobs.append(Job(study, image_range(digits, settings.start, settings.count, pixels, **legal), judge))
    check_agents(jobs)
    return jobs


def _expecting(agent: Mapping[str, Any], other: Mapping[str, Any]) -> Mapping[str, Any]:
    """A seat's agent; a best response that names no opponent expects the one in the other seat."""
    if agent.get("name") != BEST_RESPONSE or agent.get("against") is not None:
        return agent
    if other == SILENT:
        raise UserError("a best response to a silent seat has no opponent; choose another agent for one of the seats")
    return {**agent, "against": dict(other)}


def check_agents(jobs: Sequence[Job]) -> None:
    """Raise UserError for agents with bad settings, before a run folder is made for them."""
    for job in jobs:
        for agent in (job.study.honest, job.study.liar):
            if agent != SILENT:
                make_agent(agent, job.judge)


def _sum_up(folder: RunFolder, jobs: list[Job], settings: Settings, digits: Digits) -> None:
    found = Results([], {}, [])
    for job in jobs:
        summary = summarise(folder, job, settings.average)
        seconds = spent_seconds(folder, job.study.name)
        rules = special_rules(settings.threshold, settings.black)
        source = Source(
            digits.name, digits.split, settings.seed, settings.average, folder.provenance, job.judge, job.indices, seconds, rules
        )
        found.rows.extend(study_rows(source, job.study, summary.outcomes))
        if "precommit" in job.study.commit:
            found.rows.extend(lie_rows(source, job.study, summary.outcomes))
        if is_measured(job.study):
            found.rows.extend(exploitability_rows(source, job.study, summary.outcomes, digits, job.judge))
        found.tables[str(job.study.pixels)] = summary.tables()
        found.gallery.extend(summary.picks())
    write_results(folder, found)


def line(row: ResultRow) -> str:
    """A win rate, or an agent's exploitability, as one line for people."""
    rule = {key: str(row.protocol.get(key, "?")) for key in ("pixels", "commit", "lies", "first", "seat")}
    lies = f", {rule['lies']} lie" if rule["commit"] == "precommit" else ""
    low, high = row.ci95 or (0.0, 1.0)
    first = "mean of both orders" if rule["first"] == "mean" else f"{rule['first']} first"
    what = "honest wins" if row.metric == "honest_win_rate" else f"the {rule['seat']} agent loses to its best response"
    return (
        f"{rule['pixels']:>3} pixels  {rule['commit']:<9}{lies:<13} {first:<20} {what} {100 * row.value:5.1f} %"
        f"  [{100 * low:.1f}, {100 * high:.1f}]  n = {row.n}"
    )
