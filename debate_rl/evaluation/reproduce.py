"""The paper's experiment, whole: which studies it takes, and what is made of them.

A reproduction is a list of `Job`s (a study and the images it covers), played one block of images after another. A finished image is a
shard in the run folder and is never played again, so a run that was killed goes on where it stopped and ends with the same rows.
"""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numba
import numpy as np

from debate_rl.agents import make_agent
from debate_rl.agents.base import Agent
from debate_rl.data import Digits
from debate_rl.errors import UserError
from debate_rl.evaluation.controls import judge_random_pixels
from debate_rl.evaluation.protocol import SILENT, Average, Study, play_images
from debate_rl.evaluation.records import Record
from debate_rl.evaluation.report.folder import GALLERY, TABLES
from debate_rl.evaluation.rows import Source, accuracy_row, calibration_row, lie_rows, no_debate_rows, speed_row, study_rows
from debate_rl.evaluation.summary import Summary
from debate_rl.games.pixels import VERSION as GAME_VERSION
from debate_rl.games.pixels import Commit, Seat, check_threshold, legal_pixels, special_rules
from debate_rl.judges.pretrained import Judge
from debate_rl.results import ResultRow
from debate_rl.runs import RunFolder
from debate_rl.search.puct import VERSION as SEARCH_VERSION

# Told the name of the part at work, what is done and what there is to do in all, in rollouts (1 for an agent that does not search).
Progress = Callable[[str, float, float], None]


TIMES = "times.jsonl"  # what each block of images took, in a run folder


@dataclass(frozen=True)
class Reproduction:
    """What to play.

    Attributes:
        judges: pixels of a game -> name of the judge trained for it; the keys are the pixel counts of the table.
        start: first image of the split.
        count: images of the table's studies, from `start` on.
        first: orders to play.
        commit: commit modes to play.
        repetitions: games per lie, averaged.
        average: what is averaged, see `protocol`.
        seed: the run's seed.
        agent: settings of the searching debater in both seats.
        budgets: rollouts per move for the curve of honest win rate against search.
        budget_count: images per point of that curve; 0 leaves it out. The last point, the table's own agent, comes from the table.
        control_count: images for the controls; 0 leaves them out.
        sweep_pixels: pixels per game for the curve against the number of pixels.
        sweep_count: images per point of that curve; 0 leaves the debates out.
        sweep_rollouts: rollouts per move there.
        masks: random masks per image for the judge alone; even.
        threshold: which pixels may be revealed, see `games.pixels.Rules`.
        black: likewise.
        block: images played together; a run that is killed loses at most the block it was at.
    """

    judges: Mapping[int, str]
    start: int = 0
    count: int = 100
    first: tuple[Seat, ...] = ("honest", "liar")
    commit: tuple[Commit, ...] = ("precommit", "none")
    repetitions: int = 3
    average: Average = "logits"
    seed: int = 0
    agent: Mapping[str, Any] = field(default_factory=lambda: {"name": "mcts", "rollouts": 10_000})
    budgets: tuple[int, ...] = (10, 30, 100, 300, 1000, 3000)
    budget_count: int = 0
    control_count: int = 0
    sweep_pixels: tuple[int, ...] = tuple(range(1, 13))
    sweep_count: int = 0
    sweep_rollouts: int = 300
    masks: int = 10
    threshold: float = 0.0
    black: bool = False
    block: int = 8

    def __post_init__(self) -> None:
        """Refuse settings outside their range."""
        if not self.judges:
            raise UserError("judges is empty: name a judge for at least one number of pixels")
        for name, low in (("start", 0), ("count", 1), ("budget_count", 0), ("control_count", 0), ("sweep_count", 0), ("block", 1)):
            if getattr(self, name) < low:
                raise UserError(f"{name} is {getattr(self, name)}; it must be at least {low}")
        check_threshold(self.threshold)
        if self.masks < 2 or self.masks % 2:
            raise UserError(f"masks is {self.masks}; it must be even and at least 2")


@dataclass(frozen=True)
class Job:
    """A study, the images it covers and the judge it is played before."""

    study: Study
    indices: tuple[int, ...]
    judge: Judge

    def __post_init__(self) -> None:
        """Refuse a study of no images."""
        refuse_no_images(self.study, self.indices)

    def work(self) -> float:
        """Rollouts per image, counting 1 per move of an agent that does not search."""
        moves = self.study.games_per_image() * self.study.pixels
        rollouts = [float(agent.get("rollouts", 1)) for agent in (self.study.honest, self.study.liar) if agent != SILENT]
        return moves * sum(rollouts) / len(rollouts)


def plan(settings: Reproduction, digits: Digits, judges: Mapping[int, Judge]) -> list[Job]:
    """All studies of a reproduction, the table's last: what is quick comes first, so that a partial report is soon worth reading."""
    jobs: list[Job] = []
    legal: dict[str, Any] = {"threshold": settings.threshold, "black": settings.black}
    common: dict[str, Any] = {"first": settings.first, "repetitions": settings.repetitions, "seed": settings.seed, **legal}
    greedy, random = {"name": "greedy"}, {"name": "random"}

    def add(name: str, count: int, pixels: int, judge: Judge, honest: Mapping[str, Any], liar: Mapping[str, Any], **more: Any) -> None:
        if count > 0:
            study = Study(name=name, pixels=pixels, honest=honest, liar=liar, **{**common, **more})
            jobs.append(Job(study, image_range(digits, settings.start, count, pixels, **legal), judge))

    for pixels, judge in judges.items():
        controls = (
            ("random", random, random),
            ("greedy", greedy, greedy),
            ("honest-alone", greedy, SILENT),
            ("liar-alone", SILENT, greedy),
        )
        for name, honest, liar in controls:
            # A lone advocate has no order; random play needs no averaging, its repetitions are games of their own.
            orders = {"first": settings.first[:1]} if SILENT in (honest, liar) else {}
            add(f"{name}-{pixels}", settings.control_count, pixels, judge, honest, liar, commit=settings.commit, repetitions=1, **orders)
    widest = judges[max(judges)]
    # Both curves vary the search's budget or fix one of their own: an agent without rollouts has neither.
    curves = "precommit" in settings.commit and "rollouts" in settings.agent
    for pixels in settings.sweep_pixels if curves else ():
        agent = {**settings.agent, "rollouts": settings.sweep_rollouts}
        add(f"pixels-{pixels}", settings.sweep_count, pixels, widest, agent, agent, commit=("precommit",))
    for pixels, judge in judges.items():
        for rollouts in settings.budgets if curves else ():
            agent = {**settings.agent, "rollouts": rollouts}
            add(f"budget-{pixels}-{rollouts}", settings.budget_count, pixels, judge, agent, agent, commit=("precommit",))
    for pixels, judge in judges.items():
        add(f"table-{pixels}", settings.count, pixels, judge, settings.agent, settings.agent, commit=settings.commit)
    return jobs


def refuse_no_images(study: Study, indices: Sequence[int]) -> None:
    """Raise UserError where there is nothing to play about."""
    if not indices:
        raise UserError(f"none of the images chosen has {study.pixels} pixels to reveal; choose fewer pixels or other images")


def image_range(digits: Digits, start: int, count: int, pixels: int, *, threshold: float = 0.0, black: bool = False) -> tuple[int, ...]:
    """Indices `start … start + count - 1`, without images that have fewer legal pixels than the game reveals.

    Raises:
        UserError: the range leaves the split.
    """
    if start < 0 or count < 1 or start + count > len(digits.labels):
        last = len(digits.labels) - 1
        raise UserError(f"images {start} to {start + count - 1} are not all in {digits.name} {digits.split}, which has 0 to {last}")
    enough = legal_pixels(digits.images[start : start + count], threshold=threshold, black=black).sum(axis=1) >= pixels
    return tuple((start + np.flatnonzero(enough)).tolist())


def identity(judges: Mapping[int, Judge]) -> dict[str, Any]:
    """What besides its configuration decides a run's games: the judges' weights and the versions of the rules and of the search.

    It belongs into the hash of the run folder: the same name may stand for other weights one day, and finished images must not be mixed
    with those of other code.
    """
    return {
        "judge_hashes": {str(pixels): judge.hash for pixels, judge in judges.items()},
        "versions": {"game": GAME_VERSION, "search": SEARCH_VERSION},
    }


def play_jobs(folder: RunFolder, jobs: Sequence[Job], digits: Digits, block: int, progress: Progress) -> None:
    """Play what is missing of all jobs, writing one shard per image and study."""
    total = sum(job.work() * len(job.indices) for job in jobs)
    done = 0.0
    warm: set[tuple[str, str]] = set()
    for job in jobs:
        missing = folder.missing_shards(job.study.name, job.indices)
        done += job.work() * (len(job.indices) - len(missing))
        progress(job.study.name, done, total)
        if not missing:
            continue
        _warm_up(job, digits, warm)
        honest, liar = _agents(job)
        for begin in range(0, len(missing), block):
            images = missing[begin : begin + block]
            started = time.perf_counter()
            found = play_images(job.study, digits, images, job.judge, honest, liar)
            seconds = time.perf_counter() - started
            for index, records in found.items():
                folder.write_shard(job.study.name, index, records)
            _note_time(folder, job, len(images), seconds)
            done += job.work() * len(images)
            progress(job.study.name, done, total)


def _agents(job: Job) -> tuple[Agent | None, Agent | None]:
    """The seats' agents; None for a silent one. Equal settings share one agent, and so its memory."""
    honest = None if job.study.honest == SILENT else make_agent(job.study.honest, job.judge)
    if job.study.liar == job.study.honest and not job.study.honest.get("reuse_tree", False):
        return honest, honest
    return honest, None if job.study.liar == SILENT else make_agent(job.study.liar, job.judge)


def _warm_up(job: Job, digits: Digits, warm: set[tuple[str, str]]) -> None:
    """Compile or load the kernels of a pair of agents with one short game, so that it does not count as the first block's time.

    Only for our own agents: what one of the user's does when asked for a move is not ours to repeat.
    """
    pair = (str(job.study.honest["name"]), str(job.study.liar["name"]))
    if pair in warm or not set(pair) <= {"mcts", "greedy", "random", SILENT["name"]}:
        return
    warm.add(pair)
    one = {"rollouts": 1}
    honest, liar = ({**agent, **one} if "rollouts" in agent else agent for agent in (job.study.honest, job.study.liar))
    short = replace(job, study=replace(job.study, honest=honest, liar=liar, first=job.study.first[:1], commit=("none",), repetitions=1))
    play_images(short.study, digits, job.indices[:1], job.judge, *_agents(short))


def summarise(folder: RunFolder, job: Job, average: Average) -> Summary:
    """Read a finished job's shards."""
    summary = Summary(average)
    for index in job.indices:
        records = folder.read_shard(job.study.name, index)
        try:
            if any((record["index"], record["pixels"]) != (index, job.study.pixels) for record in records):
                raise ValueError("games about another image, or of another length")
            summary.add(records)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
            path = folder.shard_path(job.study.name, index)
            raise UserError(f"{path} does not hold this run's games ({error!r}): delete it and run the same command again") from error
    return summary


@dataclass
class Results:
    """What a reproduction found."""

    rows: list[ResultRow]
    tables: dict[str, Any]  # per pixel count, see `collect`
    gallery: list[Record]


def collect(
    folder: RunFolder,
    settings: Reproduction,
    jobs: Sequence[Job],
    digits: Digits,
    judges: Mapping[int, Judge],
    provenance: Mapping[str, Any],
) -> Results:
    """Rows, tables and gallery of finished jobs; `provenance` is the run's, see `RunFolder.provenance`.

    `tables[str(pixels)]` holds, where the parts were played: `random` (the judge's answers on random pixels: `confusion` in percent of
    all images, label by answer, and `reliability`), and of the table's study `lies` (successful lies in percent of all images, label by
    lie), `answer` and `claims` (reliability after debate, among ten answers and between the two claims). Reliability tables are
    `calibration.Reliability.table`.
    """
    rows: list[ResultRow] = []
    tables: dict[str, Any] = {str(pixels): {} for pixels in judges}
    gallery: list[Record] = []

    def source(judge: Judge, seconds: float) -> Source:
        rules = special_rules(settings.threshold, settings.black)
        return Source(digits.name, digits.split, settings.seed, settings.average, provenance, judge, seconds=seconds, rules=rules)

    everything = range(len(digits.labels))
    # A curve against search rests on the same images from its start, the judge alone, to its last point, the table's agent.
    legal: dict[str, Any] = {"threshold": settings.threshold, "black": settings.black}
    points = settings.budget_count or settings.count
    curve = {pixels: image_range(digits, settings.start, points, pixels, **legal) for pixels in judges}
    for pixels, judge in judges.items():
        for shown in sorted({pixels, *settings.sweep_pixels}):
            for images in (everything, curve[pixels]) if shown == pixels else (everything,):
                started = time.perf_counter()
                found = judge_random_pixels(judge, digits, np.array(images), shown, masks=settings.masks, seed=settings.seed, **legal)
                of = source(judge, time.perf_counter() - started).about(images)
                if shown == pixels and images is everything:
                    rows += no_debate_rows(of, shown, found)
                    tables[str(pixels)]["random"] = {"confusion": found.confusion.tolist(), "reliability": found.reliability.table()}
                else:  # away from the judge's own pixel count only its accuracy is of interest
                    rows.append(accuracy_row(of, shown, found))
    times = _times(folder)
    for job in jobs:
        summary = summarise(folder, job, settings.average)
        spent_on = times[job.study.name]
        of = source(job.judge, spent_on["seconds"]).about(job.indices)
        rows += study_rows(of, job.study, summary.outcomes)
        if job.study.name.startswith("table-"):
            head_count = len(curve[job.study.pixels])  # the first of the table's images
            if head_count < len(job.indices) and "precommit" in job.study.commit:
                head = summary.outcomes.head(head_count)
                rows += study_rows(of, replace(job.study, commit=("precommit",)), head)
            if "precommit" in job.study.commit:
                rows += lie_rows(of, job.study, summary.outcomes)
            tables[str(job.study.pixels)] |= summary.tables()
            gallery += summary.picks()
            if "none" in job.study.commit:
                rows.append(calibration_row(of, {"pixels": job.study.pixels, "shown": "debate", "commit": "none"}, summary.answer))
            if spent_on["core_seconds"] > 0:
                rows.append(speed_row(of, job.study, spent_on["rollouts"] / spent_on["core_seconds"]))
    return Results(rows, tables, gallery)


def write_results(folder: RunFolder, results: Results) -> None:
    """Leave the results in the run folder, for `report`; the rows come last, and with them the run is finished."""
    folder.write(TABLES, json.dumps(results.tables) + "\n")
    folder.write(GALLERY, "".join(json.dumps(record) + "\n" for record in results.gallery))
    folder.finish(row.line() for row in results.rows)


def spent_seconds(folder: RunFolder, study: str) -> float:
    """Wall time spent on a study, over all its sessions."""
    return float(_times(folder)[study]["seconds"])


def _note_time(folder: RunFolder, job: Job, images: int, seconds: float) -> None:
    # Sessions of one run may use different numbers of threads.
    core_seconds = seconds * numba.get_num_threads()
    line = {"study": job.study.name, "images": images, "seconds": seconds, "core_seconds": core_seconds, "rollouts": job.work() * images}
    folder.append(TIMES, json.dumps(line) + "\n")


def _times(folder: RunFolder) -> defaultdict[str, Counter[str]]:
    """What each study took over all its sessions: `seconds`, `core_seconds`, `rollouts`. A line cut short by a kill is skipped: times are
    not results."""
    path = folder.path / TIMES
    spent: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else ():
        with contextlib.suppress(ValueError, KeyError, TypeError, OverflowError, RecursionError):
            entry = json.loads(line)
            found = {key: float(entry[key]) for key in ("seconds", "core_seconds", "rollouts")}
            if all(map(math.isfinite, found.values())):
                spent[entry["study"]].update(found)
    return spent
