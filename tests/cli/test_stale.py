"""Run folders that others have changed: rows and figures that lie, reports older than their rows, judges swapped under the same name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from debate_rl import results
from debate_rl.cli.evaluate import line
from debate_rl.judges.pretrained import load_judge, save_judge
from debate_rl.results import ResultRow
from tests.cli.conftest import Run
from tests.weights import random_weights

RANDOM = ("agent@honest=random", "agent@liar=random", "count=1", "repetitions=1", "threads=1")
CARD = {"name": "tiny", "architecture": "mlp", "dataset": "mnist", "pixels": 4}


def judge_file(path: Path, seed: int, **card: Any) -> str:
    return save_judge(path, random_weights(seed, hidden=32, second=32)._asdict(), {**CARD, **card})


@pytest.mark.parametrize(
    "protocol", [{}, {"commit": "precommit"}, {"pixels": None, "first": []}, {"pixels": [6], "commit": {}, "lies": 3}], ids=str
)
def test_a_row_of_an_odd_protocol_is_still_printed(protocol: dict[str, Any]) -> None:
    text = line(ResultRow("honest_win_rate", 0.25, n=7, protocol=protocol))
    assert "honest wins  25.0 %" in text and "n = 7" in text and "\n" not in text
    assert text.count("?") == len(
        {"pixels", "commit", "first", *(["lies"] if protocol.get("commit") == "precommit" else [])} - set(protocol)
    )
    assert "?" in line(ResultRow("exploitability", 0.25, protocol=protocol))


def test_a_finished_run_of_odd_rows_is_printed(cli: Run, tmp_path: Path) -> None:
    words = ("evaluate", *RANDOM, "pixels=[4]")
    assert cli(*words).code == 0
    (folder,) = (tmp_path / "outputs" / "evaluate").iterdir()
    (folder / "results.jsonl").write_text(ResultRow("honest_win_rate", 0.5).line() + "\n")
    code, out, err = cli(*words)
    assert code == 0 and "finished before" in err and "  ? pixels" in out
    (folder / "results.jsonl").write_text('{"metric": "honest_win_rate"}\n{}\n')
    code, out, err = cli(*words)
    assert code == 2 and "results.jsonl, line 1: " in err and err.splitlines()[-1].startswith("debate-rl: ")


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "{}", "null", '{"accuracy": 0.5}'),
        pytest.param("[" * 100_000, id="nested too deep"),
        '{"accuracy": "x", "pixels": 4, "images": 50, "ece": 0.1, "cross_entropy": 1.0}',
        '{"accuracy": 0.5, "pixels": 4, "images": "many", "ece": 0.1, "cross_entropy": 1.0}',
        '{"accuracy": 0.5, "pixels": 4, "images": 50, "ece": 0.1, "cross_entropy": 1.0, "mask_seeds": 3}',
        pytest.param('{"accuracy": 1' + "0" * 400 + ', "pixels": 4, "images": 50}', id="too large for a float"),
        None,
    ],
)
def test_a_judge_whose_assessment_is_broken_is_one_line(cli: Run, tmp_path: Path, finished: Path, text: str | None) -> None:
    (folder,) = (finished / "outputs" / "judge").iterdir()
    assessment = folder / "assessment.json"
    whole = assessment.read_text()
    try:
        assessment.unlink() if text is None else assessment.write_text(text)
        code, out, err = cli(*ASSESS, f"output={finished / 'outputs'}", f"judge.name={finished / 'tiny.safetensors'}")
    finally:
        assessment.write_text(whole)
    assert code == 2
    assert err.splitlines()[-1].startswith(f"debate-rl: {assessment} is broken: delete the run folder and run this again (")
    assert err.count("\n") == 2 and "finished before" in err and "accuracy" not in out


ASSESS = ("judge", "evaluate", "mask_seeds=[0]", "threads=1")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a judge and its assessment."""
    from debate_rl.cli import main

    folder = tmp_path_factory.mktemp("finished")
    judge_file(folder / "tiny.safetensors", 0)
    assert main([*ASSESS, f"output={folder / 'outputs'}", f"judge.name={folder / 'tiny.safetensors'}"]) == 0
    return folder


@pytest.mark.parametrize("test", [{}, {"accuracy": "x"}, {"accuracy": 0.5, "pixels": 4}], ids=str)
def test_a_card_without_all_figures_is_one_line(cli: Run, tmp_path: Path, test: dict[str, Any]) -> None:
    judge_file(tmp_path / "tiny.safetensors", 0, test=test)
    code, _, err = cli("judge", "judge.name=tiny.safetensors")
    assert code == 2 and err.startswith("debate-rl: the judge's card tiny.json lacks figures in its test (") and err.count("\n") == 1


TINY = (
    "reproduce",
    "experiment=tiny",
    "count=1",
    "repetitions=1",
    "agent.rollouts=2",
    "sweep_count=0",
    "budget_count=0",
    "control_count=0",
)


def test_a_report_older_than_its_rows_is_written_anew(cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from debate_rl.cli import reproduce

    written: list[Path] = []

    def write(folder: Path, rows: Any, records: Any, images: Any) -> Path:  # drawing takes its time
        assert rows and list(records)
        page = folder / "report" / "index.html"
        page.parent.mkdir(exist_ok=True)
        page.write_text("new")
        written.append(page)
        return page

    monkeypatch.setattr(reproduce, "write_report", write)
    words = (*TINY, "threads=1")
    assert cli(*words).code == 0
    (page,) = written
    rows = page.parents[1] / "results.jsonl"
    for rows_time, page_time, again in ((10**18, 10**18 + 1, False), (10**18, 10**18, False), (10**18 + 1, 10**18, True)):
        page.write_text("old")
        os.utime(rows, ns=(rows_time, rows_time))
        os.utime(page, ns=(page_time, page_time))
        result = cli(*words)
        assert result.code == 0 and "finished before" in result.err and f"report  {page}" in result.out
        assert page.read_text() == ("new" if again else "old")
    page.unlink()
    assert cli(*words).code == 0 and page.read_text() == "new"


@pytest.mark.parametrize(
    "words",
    [
        ("evaluate", *RANDOM, "pixels=[4]", "judges.4=tiny.safetensors"),
        ("solve", "start=14", "count=1", "pixels=[4]", "budget=1", "threads=1", "judges.4=tiny.safetensors"),
        (*TINY, "threads=1", "judges.4=tiny.safetensors"),
        (*ASSESS, "judge.name=tiny.safetensors"),
    ],
    ids=lambda words: words[0],
)
def test_another_judge_of_the_same_name_is_another_run(
    cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    from debate_rl.cli import reproduce

    monkeypatch.setattr(reproduce, "write_report", lambda folder, *given: folder)  # drawing takes its time
    judge = tmp_path / "tiny.safetensors"
    hashes = []
    for seed in (0, 1):
        hashes.append(judge_file(judge, seed))
        result = cli(*words)
        assert result.code == 0, result.err
        assert "finished before" not in result.err
    folders = list((tmp_path / "outputs" / words[0]).iterdir())
    assert len(folders) == 2
    named = [{row.judge["hash"] for row in results.read(folder / "results.jsonl") if row.judge.get("name") == "tiny"} for folder in folders]
    assert sorted(named, key=str) == sorted(({name} for name in hashes), key=str)
    assert "finished before" in cli(*words).err  # the second judge is still there
    judge_file(judge, 0)
    assert load_judge(judge).hash == hashes[0] and "finished before" in cli(*words).err
