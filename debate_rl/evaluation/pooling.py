"""Figures over several judges: judges trained from other seeds are a sample too, and how they differ belongs into the interval."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from debate_rl.errors import UserError
from debate_rl.evaluation.statistics import Z95
from debate_rl.results import ResultRow

POOLED: Final = "images, and t over the judges, in quadrature"

# Two-sided 95 % points of Student's t by degrees of freedom.
_T95: Final = (
    12.706,
    4.303,
    3.182,
    2.776,
    2.571,
    2.447,
    2.365,
    2.306,
    2.262,
    2.228,
    2.201,
    2.179,
    2.160,
    2.145,
    2.131,
    2.120,
    2.110,
    2.101,
)


def pool_judges(rows: Iterable[ResultRow]) -> list[ResultRow]:
    """One row per figure over all judges that were measured alike: the same metric, protocol and agents.

    The value is the mean over the judges. The interval adds two half-widths in quadrature: that of one judge's figure, from the images
    (the root mean square over the judges; the same images are shown to all, so more judges do not make it smaller), and Student's t over
    the judges' values. Rows without an interval, or of one judge alone, are left out.

    Raises:
        UserError: two rows of one judge answer the same question.
    """
    groups: dict[str, list[ResultRow]] = {}
    for row in rows:
        if row.ci95 is not None and row.judge:
            key = json.dumps([row.metric, row.n, row.protocol, row.agents], sort_keys=True)
            groups.setdefault(key, []).append(row)
    return [_pool(group) for group in groups.values() if len(group) > 1]


def _pool(group: Sequence[ResultRow]) -> ResultRow:
    hashes = [str(row.judge.get("hash")) for row in group]
    if len(set(hashes)) < len(hashes):
        raise UserError(f"two rows of one judge ({hashes[0]}) say the same of {group[0].metric}; give each judge's rows once")
    values = [row.value for row in group]
    mean = math.fsum(values) / len(values)
    images = math.sqrt(math.fsum(((row.ci95[1] - row.ci95[0]) / 2) ** 2 for row in group if row.ci95) / len(group))
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
    t = _T95[len(values) - 2] if len(values) - 2 < len(_T95) else Z95
    half = math.hypot(images, t * spread / math.sqrt(len(values)))
    protocol: dict[str, Any] = {**group[0].protocol, "judges": len(group)}
    judge = {"name": f"{len(group)} x {group[0].judge.get('name')}", "hash": "+".join(sorted(hashes))}
    seconds = math.fsum(row.seconds for row in group)
    interval = (max(0.0, mean - half), min(1.0, mean + half))
    return replace(group[0], value=mean, ci95=interval, ci_method=POOLED, protocol=protocol, judge=judge, seconds=seconds)
