"""Figures over several judges."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest

from debate_rl import results
from debate_rl.errors import UserError
from debate_rl.evaluation.pooling import POOLED, pool_judges
from debate_rl.results import ResultRow

SCRIPT = Path(__file__).parents[2] / "scripts" / "pool_judges.py"


def row(value: float, judge: str, half: float = 0.03, **protocol: object) -> ResultRow:
    interval = (value - half, value + half)
    return ResultRow(
        "honest_win_rate", value, interval, "wilson", 100, protocol={"first": "mean", **protocol}, judge={"name": "mlp-6", "hash": judge}
    )


def test_the_spread_between_judges_is_part_of_the_interval() -> None:
    rows = [row(0.80, "a"), row(0.86, "b"), row(0.83, "c"), row(0.5, "a", first="liar")]
    (pooled,) = pool_judges(rows)  # the last stands alone
    assert pooled.value == pytest.approx(0.83)
    half = math.hypot(0.03, 4.303 * 0.03 / math.sqrt(3))  # sample standard deviation 0.03, t of two degrees of freedom
    assert pooled.ci95 == pytest.approx((0.83 - half, 0.83 + half), abs=1e-4)
    assert (pooled.n, pooled.ci_method, pooled.protocol["judges"], pooled.judge) == (100, POOLED, 3, {"name": "3 x mlp-6", "hash": "a+b+c"})


def test_judges_that_agree_leave_the_interval_of_the_images() -> None:
    (pooled,) = pool_judges([row(0.7, "a", half=0.03), row(0.7, "b", half=0.04)])
    half = math.sqrt((0.03**2 + 0.04**2) / 2)
    assert pooled.ci95 == pytest.approx((0.7 - half, 0.7 + half))


def test_one_judge_twice_is_refused() -> None:
    with pytest.raises(UserError, match="two rows of one judge"):
        pool_judges([row(0.7, "a"), row(0.8, "a")])


def test_run_folders_are_pooled_from_the_command_line(tmp_path: Path) -> None:
    for name, value in (("one", 0.6), ("two", 0.8)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "results.jsonl").write_text(row(value, name).line() + "\n")
    ran = subprocess.run([sys.executable, SCRIPT, tmp_path / "one", tmp_path / "two"], capture_output=True, text=True, check=False)
    (tmp_path / "pooled.jsonl").write_text(ran.stdout)
    (pooled,) = results.read(tmp_path / "pooled.jsonl")
    assert ran.returncode == 0 and pooled.value == pytest.approx(0.7)
    alone = subprocess.run([sys.executable, SCRIPT, tmp_path / "one"], capture_output=True, text=True, check=False)
    assert (alone.returncode, alone.stderr) == (2, "pool_judges: give at least two run folders, one per judge\n")
    missing = subprocess.run([sys.executable, SCRIPT, tmp_path / "one", tmp_path / "none"], capture_output=True, text=True, check=False)
    assert missing.returncode == 2 and missing.stderr.count("\n") == 1
