"""`debate-rl solve`: who wins under perfect play, and how often recorded debaters threw a won game away."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from debate_rl import results
from debate_rl.cli.choices import Note, check_fit, check_pixels, fitting_judge, judge_of_any_kind
from debate_rl.cli.context import Context
from debate_rl.cli.data import DatasetSettings
from debate_rl.cli.evaluate import line
from debate_rl.data import Digits
from debate_rl.errors import UserError
from debate_rl.evaluation.blunders import Recorded, blunder_rows, find_recorded, hold_against, summed_blunders
from debate_rl.evaluation.protocol import Study
from debate_rl.evaluation.reproduce import image_range
from debate_rl.evaluation.rows import Source
from debate_rl.evaluation.solutions import EXACT, Problem, solution_rows, solve_problem, sum_up, usable_device
from debate_rl.games.pixels import VERSION as GAME_VERSION
from debate_rl.games.pixels import Commit, Seat, special_rules
from debate_rl.judges.pretrained import AnyJudge, Judge
from debate_rl.results import ResultRow
from debate_rl.runs import RunFolder
from debate_rl.search.exact import VERSION as EXACT_VERSION


@dataclass(frozen=True)
class Settings:
    """The configuration of `debate-rl solve`."""

    judges: Mapping[int, str]
    pixels: tuple[int, ...]
    name: str = "solve"
    dataset: DatasetSettings = field(default_factory=DatasetSettings)
    split: Literal["train", "test"] = "test"
    start: int = 0
    count: int = 100
    first: tuple[Seat, ...] = ("honest", "liar")
    commit: tuple[Commit, ...] = ("precommit", "none")
    threshold: float = 0.0
    black: bool = False
    budget: int | None = None
    device: str | None = None
    against: str | None = None
    studies: tuple[str, ...] | None = None
    block: int = 16

    def __post_init__(self) -> None:
        """Refuse settings outside their range."""
        check_pixels(self.pixels, self.judges)
        if self.block < 1:
            raise UserError(f"block is {self.block}; it must be at least 1")
        if self.budget is not None and self.budget < 1:
            raise UserError(f"budget is {self.budget}; it must be at least 1, or null for no limit")
        if self.device is not None and (self.budget is not None or self.against is not None or set(self.pixels) != {4}):
            raise UserError("device judges every set of games of 4 pixels: set pixels=[4], and neither budget nor against")
        if self.studies is not None and self.against is None:
            raise UserError("studies names parts of the run that against is to name; give both or neither")


def run(settings: Settings, context: Context) -> None:
    """Solve what is missing, hold the recorded games against it, sum up, print."""
    threads = context.use_threads()
    context.bar.unit = "images"
    digits = settings.dataset.load(settings.split)
    jobs = prepare(settings, digits, context.bar.note)
    recorded = _recorded(settings, jobs)
    config = {
        **context.config,
        "judge_hashes": {str(job.study.pixels): job.judge.hash for job in jobs},
        "versions": {"game": GAME_VERSION, "exact": EXACT_VERSION},
    }
    with context.open_folder(settings.name, config) as folder:
        if not context.finished_before(folder):
            for job in jobs:
                solve_problem(
                    folder, job, digits, settings.block, context.bar, budget=settings.budget, threads=threads, device=settings.device
                )
            for job, part in recorded:
                assert isinstance(job.judge, Judge)
                hold_against(folder, part, job.judge, digits, settings.block, context.bar, budget=settings.budget, threads=threads)
            context.bar.clear()
            folder.finish(row.line() for row in _rows(folder, settings, digits, jobs, recorded))
        context.bar.clear()
        for row in results.read(folder.results):
            context.say(_line(row))
        context.say(f"rows    {folder.results}")


def prepare(settings: Settings, digits: Digits, note: Note) -> list[Problem]:
    """One job per number of pixels, its judge checked."""
    legal: dict[str, Any] = {"threshold": settings.threshold, "black": settings.black}
    if settings.device is not None:
        usable_device(settings.device)
    jobs = []
    for pixels in settings.pixels:
        name, setting = settings.judges[pixels], f"judges.{pixels}"
        judge: AnyJudge
        if settings.device is None:
            judge = fitting_judge(name, settings.dataset.name, pixels, setting=setting, note=note, **legal)
        else:
            judge = judge_of_any_kind(name)
            check_fit(judge, settings.dataset.name, pixels, setting=setting, note=note, **legal)
        study = Study(f"games-{pixels}", pixels, EXACT, EXACT, first=settings.first, commit=settings.commit, repetitions=1, **legal)
        jobs.append(Problem(study, image_range(digits, settings.start, settings.count, pixels, **legal), judge))
    return jobs


def _recorded(settings: Settings, jobs: list[Problem]) -> list[tuple[Problem, Recorded]]:
    if settings.against is None:
        return []
    found = []
    for job in jobs:
        parts = find_recorded(Path(settings.against), job.study, job.indices, settings.studies)
        found += [(job, part) for part in parts]
    if not found:
        raise UserError(f"{settings.against} holds no games between searching debaters about these images at these numbers of pixels")
    return found


def _rows(
    folder: RunFolder, settings: Settings, digits: Digits, jobs: list[Problem], recorded: list[tuple[Problem, Recorded]]
) -> list[ResultRow]:
    rules = special_rules(settings.threshold, settings.black)
    rows = []
    for job in jobs:
        source = Source(digits.name, digits.split, 0, "logits", folder.provenance, job.judge, job.indices, rules=rules)
        rows += solution_rows(source, job.study, sum_up([folder.read_shard(job.study.name, index) for index in job.indices]))
    for job, part in recorded:
        source = Source(digits.name, digits.split, 0, "logits", folder.provenance, job.judge, rules=rules)
        rows += blunder_rows(source, summed_blunders(folder, part), part.agents, job.study.pixels)
    return rows


def _line(row: ResultRow) -> str:
    if row.metric == "honest_win_rate":
        side = {"liar": " (the unproved lost)", "honest": " (the unproved won)"}.get(str(row.protocol.get("unproved")), "")
        return f"{line(row)}  perfect play{side}"
    rule = row.protocol
    low, high = row.ci95 or (0.0, 1.0)
    figure = f"{100 * row.value:5.1f} %  [{100 * low:.1f}, {100 * high:.1f}]  n = {row.n}"
    first = "both orders" if rule["first"] == "mean" else f"{rule['first']} first"
    if row.metric == "proved_share":
        return f"{rule['pixels']:>3} pixels  {rule['commit']:<9} {first:<13} proved for {rule['outcome']:<7} {figure}"
    ply = f"move {rule['ply'] + 1}" if "ply" in rule else "all moves"
    budget = row.agents["honest"].get("rollouts", row.agents["honest"]["name"])
    return f"{rule['pixels']:>3} pixels  {rule['commit']:<9} {first:<13} {budget!s:>6} {rule['seat']:<6} {ply:<9} loses a won game {figure}"
