"""Result rows of the pixel debate, made from what studies and controls came to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from debate_rl.evaluation.controls import NoDebate
from debate_rl.evaluation.protocol import SILENT, Outcomes, Study
from debate_rl.evaluation.statistics import WILSON, mean_interval, wilson
from debate_rl.games.pixels import CLASSES
from debate_rl.judges.assessment import Assessment
from debate_rl.judges.calibration import BOOTSTRAP, Reliability
from debate_rl.judges.pretrained import AnyJudge
from debate_rl.results import ResultRow

NOBODY: dict[str, Any] = {"honest": SILENT, "liar": SILENT}


@dataclass(frozen=True)
class Source:
    """What the rows about one judge, one set of images and one part of a run repeat.

    Attributes:
        dataset: e.g. `mnist`.
        split: `train` or `test`.
        seed: the run's seed.
        average: see `protocol`.
        provenance: `RunFolder.provenance`.
        judge: the judge.
        indices: the images, ascending.
        seconds: wall time of the part the figures come from: a study, or the judge alone.
        rules: `games.pixels.special_rules` of the run.
    """

    dataset: str
    split: str
    seed: int
    average: str
    provenance: Mapping[str, Any]
    judge: AnyJudge
    indices: Sequence[int] = ()
    seconds: float = 0.0
    rules: Mapping[str, Any] = field(default_factory=dict)

    def about(self, indices: Sequence[int]) -> Source:
        """The same about other images."""
        return replace(self, indices=indices)

    def row(
        self,
        metric: str,
        figure: tuple[float, float, float, str] | float,
        protocol: Mapping[str, Any],
        agents: Mapping[str, Any] = NOBODY,
        seeds: Sequence[int] = (),
    ) -> ResultRow:
        """A row; `figure` is a value with its interval's ends and method, or a value that has no interval."""
        value, low, high, method = figure if isinstance(figure, tuple) else (figure, None, None, "")
        span = {"start": int(self.indices[0]), "count": int(self.indices[-1]) - int(self.indices[0]) + 1}
        return ResultRow(
            metric=metric,
            value=value,
            ci95=None if low is None or high is None else (low, high),
            ci_method=method,
            n=len(self.indices),
            seeds=tuple(seeds) or (self.seed,),
            protocol={"game": "pixels", "dataset": self.dataset, "split": self.split, "images": span, **self.rules, **protocol},
            agents=dict(agents),
            judge={"name": self.judge.name, "hash": self.judge.hash},
            seconds=self.seconds,
            **self.provenance,
        )


def study_rows(source: Source, study: Study, outcomes: Outcomes) -> list[ResultRow]:
    """Honest win rates of a study: per commit mode and order, and their mean over the orders; precommit against the worst and a random lie.

    The mean's interval comes from each image's mean over the orders, so that the two orders of an image count as one observation.
    """
    agents = {"honest": dict(study.honest), "liar": dict(study.liar)}
    source = source.about(outcomes.indices)
    return [
        source.row("honest_win_rate", mean_interval(values), {**cell, "average": source.average, "repetitions": study.repetitions}, agents)
        for cell, values in outcome_cells(study, outcomes)
    ]


def lie_rows(source: Source, study: Study, outcomes: Outcomes) -> list[ResultRow]:
    """How often each lie succeeds where it is one: `successful_lie_rate` per lie, over the images of another label, mean of the orders."""
    agents = {"honest": dict(study.honest), "liar": dict(study.liar)}
    labels, rows = np.array(outcomes.labels), []
    order = study.first[0] if len(study.first) == 1 else "mean"
    success = np.mean([np.array(outcomes.lies[first], dtype=np.float64) for first in study.first], axis=0)  # (n, 10)
    for lie in range(CLASSES):
        others = np.flatnonzero(labels != lie)
        if len(others):
            protocol = {"pixels": study.pixels, "commit": "precommit", "first": order, "lie": lie}
            shown = source.about([outcomes.indices[place] for place in others])
            rows.append(shown.row("successful_lie_rate", mean_interval(success[others, lie]), protocol, agents))
    return rows


def outcome_cells(study: Study, outcomes: Outcomes) -> Iterator[tuple[dict[str, Any], NDArray[np.float64]]]:
    """The figures that a study's outcomes give: what each is (`pixels`, `commit`, `first`, `lies`), and honest's value per image `(n,)`."""
    cells = []
    if "precommit" in study.commit:
        cells += [("precommit", "worst", outcomes.no_lie_succeeds), ("precommit", "random", outcomes.random_lie_fails)]
    if "none" in study.commit:
        cells += [("none", "none", outcomes.open_wins)]
    for commit, lies, of in cells:
        per_order: dict[str, NDArray[np.float64]] = {first: of(first) for first in study.first}
        if len(per_order) == 2:
            per_order["mean"] = np.mean(list(per_order.values()), axis=0)
        for first, values in per_order.items():
            yield {"pixels": study.pixels, "commit": commit, "first": first, "lies": lies}, values


def accuracy_row(source: Source, pixels: int, found: NoDebate) -> ResultRow:
    """The judge's accuracy on random pixels of the source's images."""
    return source.row("judge_accuracy", mean_interval(found.correct.mean(axis=1)), *_random_pixels(pixels, found.correct.shape[1]))


def no_debate_rows(source: Source, pixels: int, found: NoDebate) -> list[ResultRow]:
    """The judge alone: accuracy and calibration error on random pixels, and the two-way controls."""
    protocol, agents, seeds = _random_pixels(pixels, found.correct.shape[1])
    rows = [accuracy_row(source, pixels, found), calibration_row(source, protocol, found.reliability, seeds)]
    for lies, values in (("random", found.random_lie), ("best", found.best_lie)):
        two_way = {**protocol, "commit": "precommit", "first": "mean", "lies": lies}
        rows.append(source.row("honest_win_rate", mean_interval(values), two_way, agents, seeds))
    return rows


def _random_pixels(pixels: int, masks: int) -> tuple[dict[str, Any], dict[str, Any], range]:
    return {"pixels": pixels, "shown": "random", "masks": masks}, NOBODY, range(masks)


def assessment_rows(
    found: Assessment,
    judge: AnyJudge,
    dataset: str,
    split: str,
    seconds: float,
    provenance: Mapping[str, Any],
    rules: Mapping[str, Any],
) -> list[ResultRow]:
    """A judge's assessment: accuracy, calibration error and cross entropy on random pixels of a whole split; the rest as in `Source`."""
    source = Source(dataset, split, found.seeds[0], "", provenance, judge, range(found.images), seconds, rules)
    protocol, agents, _ = _random_pixels(found.pixels, len(found.seeds))
    # One mask per image would vary this much; the mean over several masks varies less, so the interval errs on the wide side.
    accuracy = (found.accuracy, *wilson(found.accuracy * found.images, found.images), f"{WILSON}, as for one mask per image")
    return [
        source.row("judge_accuracy", accuracy, protocol, agents, found.seeds),
        calibration_row(source, protocol, found.reliability, found.seeds),
        source.row("judge_cross_entropy", found.cross_entropy, protocol, agents, found.seeds),
    ]


def calibration_row(source: Source, protocol: Mapping[str, Any], found: Reliability, seeds: Sequence[int] = ()) -> ResultRow:
    """Expected calibration error, with its interval from resampled images."""
    return source.row("judge_ece", (found.error(), *found.interval(), BOOTSTRAP), protocol, seeds=seeds)


def speed_row(source: Source, study: Study, rate: float) -> ResultRow:
    """Rollouts per second and core of a study's games, everything included. What else the machine did is not taken out."""
    agents = {"honest": dict(study.honest), "liar": dict(study.liar)}
    return source.row("rollouts_per_second_per_core", rate, {"pixels": study.pixels}, agents)
