"""Result rows of the pixel debate, made from what studies and controls came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from debate_rl.evaluation.controls import NoDebate
from debate_rl.evaluation.protocol import SILENT, Outcomes, Study
from debate_rl.evaluation.statistics import NORMAL, Z95, mean_interval
from debate_rl.judges.pretrained import Judge
from debate_rl.results import ResultRow


@dataclass(frozen=True)
class Provenance:
    """What every row of a run repeats: where its figures come from."""

    dataset: str
    split: str
    start: int
    average: str
    seed: int
    config_hash: str
    code: Mapping[str, Any]
    command: str
    machine: Any


def _row(
    source: Provenance, judge: Judge, metric: str, value: float, interval: tuple[float, float], method: str, n: int,
    protocol: Mapping[str, Any], agents: Mapping[str, Any], seconds: float,
) -> ResultRow:  # fmt: skip
    return ResultRow(
        metric=metric,
        value=value,
        ci95=interval,
        ci_method=method,
        n=n,
        seeds=(source.seed,),
        protocol={
            "game": "pixels",
            "dataset": source.dataset,
            "split": source.split,
            "images": {"start": source.start, "count": n},
            **protocol,
        },
        agents=dict(agents),
        judge={"name": judge.name, "hash": judge.hash},
        config_hash=source.config_hash,
        code=dict(source.code),
        command=source.command,
        machine=source.machine,
        seconds=seconds,
    )


def study_rows(source: Provenance, judge: Judge, study: Study, outcomes: Outcomes, seconds: float) -> list[ResultRow]:
    """Honest win rates of a study: per commit mode and order, and their mean over the orders; precommit against the worst and a random lie.

    The mean's interval comes from each image's mean over the orders, so that the two orders of an image count as one observation.
    """
    agents = {"honest": dict(study.honest), "liar": dict(study.liar)}
    rows = []
    cells = []
    if "precommit" in study.commit:
        cells += [("precommit", "worst", outcomes.worst), ("precommit", "random", outcomes.random)]
    if "none" in study.commit:
        cells += [("none", "none", outcomes.open)]
    for commit, lies, of in cells:
        per_order: dict[str, NDArray[np.float64]] = {str(first): of(first) for first in study.first}
        if len(per_order) == 2:
            per_order["mean"] = sum(per_order.values()) / 2  # type: ignore[assignment]
        for first, values in per_order.items():
            value, low, high, method = mean_interval(values)
            protocol = {
                "pixels": study.pixels,
                "commit": commit,
                "first": first,
                "lies": lies,
                "average": source.average,
                "repetitions": study.repetitions,
            }
            rows.append(_row(source, judge, "honest_win_rate", value, (low, high), method, len(values), protocol, agents, seconds))
    return rows


def no_debate_rows(source: Provenance, judge: Judge, pixels: int, found: NoDebate, seconds: float) -> list[ResultRow]:
    """The judge alone: accuracy and calibration error on random pixels, and the two-way controls."""
    silent = {"honest": SILENT, "liar": SILENT}
    n, masks = found.correct.shape
    protocol: dict[str, Any] = {"pixels": pixels, "shown": "random", "mask_seeds": masks}
    rows = []
    value, low, high, method = mean_interval(found.correct.mean(axis=1))
    rows.append(_row(source, judge, "judge_accuracy", value, (low, high), method, n, protocol, silent, seconds))
    rows.append(judge_error_row(source, judge, protocol, found.correct.mean(axis=1), found.reliability.error(), seconds))
    for lies, values in (("random", found.random_lie), ("best", found.best_lie)):
        value, low, high, method = mean_interval(values)
        two_way = {**protocol, "commit": "precommit", "first": "mean", "lies": lies}
        rows.append(_row(source, judge, "honest_win_rate", value, (low, high), method, n, two_way, silent, seconds))
    return rows


def judge_error_row(
    source: Provenance, judge: Judge, protocol: Mapping[str, Any], accuracy: NDArray[np.float64], error: float, seconds: float
) -> ResultRow:
    """Expected calibration error. Its interval is that of the accuracy it is compared with: the confidences hardly vary beside it."""
    half = Z95 * float(np.std(accuracy, ddof=1)) / np.sqrt(len(accuracy)) if len(accuracy) > 1 else 1.0
    silent = {"honest": SILENT, "liar": SILENT}
    interval = (max(0.0, error - half), min(1.0, error + half))
    return _row(source, judge, "judge_ece", error, interval, NORMAL, len(accuracy), protocol, silent, seconds)


def speed_row(source: Provenance, judge: Judge, study: Study, rate: float, n: int, seconds: float) -> ResultRow:
    """Rollouts per second and core of a study's games, everything included. What else the machine did is not taken out."""
    agents = {"honest": dict(study.honest), "liar": dict(study.liar)}
    return _row(
        source, judge, "rollouts_per_second_per_core", rate, (rate, rate), "none: one run", n, {"pixels": study.pixels}, agents, seconds
    )
