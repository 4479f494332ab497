from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import debate_rl
from debate_rl import results
from debate_rl.errors import UserError
from debate_rl.results import METRICS, ResultRow

ROOT = Path(__file__).parents[1]

WHOLE: dict[str, Any] = {
    "metric": "honest_win_rate",
    "value": 0.5,
    "ci95": [0.25, 0.75],
    "ci_method": "wilson, clustered by image",
    "n": 12,
    "seeds": [0, 1],
    "protocol": {"game": "pixels", "pixels": 6},
    "agents": {"honest": {"name": "mcts", "rollouts": 10}, "liar": {"name": "random"}},
    "judge": {"name": "mlp-6", "hash": "ab"},
    "config_hash": "0123",
    "code": {"version": "0.1.0", "commit": None},
    "command": "debate-rl reproduce",
    "machine": {"cores": 2},
    "seconds": 1.5,
}


def test_a_row_has_the_fields_of_the_contract_in_its_order() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    contract = page.split("### Result row")[1].split("###")[0]
    named = [name for name in re.findall(r"`(\w+)`", contract) if name in WHOLE]
    assert named == list(WHOLE)
    assert list(ResultRow.from_dict(WHOLE).to_dict()) == named


def test_rows_come_back_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "results.jsonl"
    first, second = ResultRow.from_dict(WHOLE), ResultRow("judge_ece", 0.25)
    results.append(path, [first])
    results.append(path, [second])
    assert results.read(path) == [first, second]
    assert [json.loads(line) for line in path.read_text().splitlines()] == [WHOLE, second.to_dict()]


@given(st.floats(0, 1), st.lists(st.integers(0, 2**40)), st.text())
def test_any_row_survives_its_line(value: float, seeds: list[int], command: str) -> None:
    row = ResultRow("judge_accuracy", value, seeds=seeds, command=command)
    assert "\n" not in row.line()
    assert ResultRow.from_dict(json.loads(row.line())) == row


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metric": "judge_acuracy"}, "did you mean 'judge_accuracy'"),
        ({"metric": "xyz"}, "known: "),
        ({"value": float("nan")}, "finite"),
        ({"value": "0.5"}, "finite"),
        ({"value": True}, "finite"),
        ({"value": 1.5}, "between 0 and 1"),
        ({"value": 50}, "between 0 and 1"),
        ({"ci95": [0.5]}, "two numbers"),
        ({"ci95": [0.7, 0.2]}, "lower end"),
        ({"ci95": [0.2, 1.2]}, "between 0 and 1"),
        ({"ci95": [None, 1]}, "finite"),
        ({"ci_method": ""}, "ci_method is empty"),
        ({"n": -1}, "zero or more"),
        ({"n": 1.0}, "whole number"),
        ({"seeds": [0.5]}, "seeds"),
        ({"seeds": 3}, "seeds"),
        ({"protocol": []}, "protocol"),
        ({"command": None}, "command"),
        ({"seconds": float("inf")}, "seconds"),
        ({"colour": "red"}, "unknown field 'colour'"),
        ({"value": 10**400}, "value is 1000.*; it must be a finite number"),  # too large for a float
        ({"ci95": [0.5, -(10**400)]}, "finite"),
        ({"seconds": 10**400}, "seconds is 1000.*finite"),
        ({"metric": []}, r"unknown metric \[\]"),  # unhashable
        ({"metric": {}}, r"unknown metric \{\}"),
    ],
)
def test_impossible_rows_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        ResultRow.from_dict({**WHOLE, **change})
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 1000


def test_metrics_that_are_no_shares_may_leave_the_unit_interval() -> None:
    assert ResultRow("rollouts_per_second_per_core", 1e6).value == 1e6


def test_a_broken_last_line_is_tolerated_reported_and_cut_off(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "results.jsonl"
    rows = [ResultRow("judge_ece", 0.25), ResultRow("judge_ece", 0.5)]
    results.append(path, rows)
    whole = path.read_bytes()
    for cut in (1, 7, len(rows[1].line())):
        path.write_bytes(whole[:-cut])
        caplog.clear()
        assert results.read(path) == rows[:1]
        assert "unfinished" in caplog.text
        results.append(path, rows[1:])
        assert path.read_bytes() == whole
    path.write_bytes(b'{"metric": ' + b"x" * 10_000)  # longer than the block in which the line's begin is looked for
    results.append(path, rows)
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    "line",
    [
        *("{", "[]", '{"metric": "judge_ece"}', '{"metric": "judge_ece", "value": 7}', '{"metric": [], "value": 0.5}'),
        pytest.param('{"metric": "judge_ece", "value": 1' + "0" * 400 + "}", id="too large for a float"),
        pytest.param('{"metric": "judge_ece", "value": 1' + "0" * 9000 + "}", id="too large for Python to read"),
        pytest.param("[" * 100_000, id="nested too deep"),
        pytest.param('{"a":' * 100_000, id="objects nested too deep"),
    ],
)
def test_another_malformed_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "results.jsonl"
    good = ResultRow("judge_ece", 0.25).line()
    path.write_text(f"{good}\n{line}\n{good}\n")
    with pytest.raises(UserError, match=re.escape(f"{path}, line 2: ")) as caught:
        results.read(path)
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_used_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        results.read(tmp_path / "nothing.jsonl")
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot be written"):
        results.append(tmp_path / "file" / "results.jsonl", [])


def _git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false")
    return subprocess.run(("git", "-C", str(folder), *identity, *arguments), check=True, capture_output=True, text=True).stdout.strip()


def test_the_commit_is_that_of_our_own_checkout(tmp_path: Path) -> None:
    checkout = tmp_path / "project"
    (checkout / "debate_rl").mkdir(parents=True)
    (checkout / "debate_rl" / "a.py").write_text("1")
    assert results._commit(checkout) is None  # no repository
    _git(checkout, "init", "-q")
    assert results._commit(checkout) is None  # no commit
    _git(checkout, "add", ".")
    _git(checkout, "commit", "-q", "-m", "first")
    commit = _git(checkout, "rev-parse", "HEAD")
    assert results._commit(checkout) == commit
    (checkout / "notes.txt").write_text("not code")
    assert results._commit(checkout) == commit
    (checkout / "debate_rl" / "b.py").write_text("2")
    assert results._commit(checkout) == f"{commit}+dirty"
    # installed into an environment that lies in somebody's checkout
    assert results._commit(checkout / "debate_rl") is None


def test_the_version_is_the_packages() -> None:
    assert results.code_version()["version"] == debate_rl.__version__


def test_every_metric_is_explained() -> None:
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert [metric for metric in METRICS if f"`{metric}`" not in page] == []
