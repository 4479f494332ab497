from __future__ import annotations

import gzip
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from debate_rl.cli.report import newest_run
from debate_rl.errors import UserError
from debate_rl.evaluation.report import read_run, write_report
from debate_rl.evaluation.report.folder import GALLERY, TABLES
from tests.cli.conftest import Run as Command
from tests.cli.conftest import cli
from tests.evaluation.report.conftest import Run

__all__ = ["cli"]  # a fixture

PICTURES = {"curve.png", "controls.png", "pixels.png", "confusion.png", "gallery.png", "calibration.png"}


@pytest.fixture
def copy(run: Run, tmp_path: Path) -> Path:
    """A copy of the run's folder that a test may change."""
    return Path(shutil.copytree(run.folder, tmp_path / "copy"))


def test_a_report_is_a_page_and_six_pictures(run: Run) -> None:
    assert {path.name for path in run.page.parent.iterdir()} == {"index.html", *PICTURES}
    for name in PICTURES:
        with Image.open(run.page.parent / name) as picture:
            assert picture.format == "PNG" and min(picture.size) >= 500
            pixels = np.asarray(picture.convert("L"))
            assert pixels.std() > 10  # something is drawn
            assert pixels[:, :4].mean() > 200 and pixels[-4:].mean() > 200  # and has a margin


def test_without_the_chosen_games_they_come_from_the_tables_shards(run: Run, copy: Path) -> None:
    (copy / GALLERY).unlink()
    _, records = read_run(copy)
    games = list(records)
    assert {record["pixels"] for record in games} == {6}
    assert [record["index"] for record in games] == sorted(record["index"] for record in games)
    assert all(record["agents"]["honest"] == {**record["agents"]["honest"], "name": "mcts", "rollouts": 40} for record in games)


def test_a_run_that_is_not_finished_can_be_looked_at(run: Run, copy: Path) -> None:
    (copy / "results.jsonl").unlink()
    (copy / TABLES).unlink()
    rows, records = read_run(copy)
    html = write_report(copy, rows, records, run.digits).read_text(encoding="utf-8")
    assert rows == [] and 'class="game"' in html and "No cell of Table 2 was measured yet." in html


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (TABLES, "{", "tables.json is broken"),
        (GALLERY, '{"a": 1}\n{', "gallery.jsonl is broken"),
        ("results.jsonl", "[1]\n", "results.jsonl, line 1: a row must be a JSON object"),
        pytest.param(TABLES, "[" * 100_000, "tables.json is broken", id="tables nested too deep"),
        pytest.param(GALLERY, '{"a":' * 100_000, "gallery.jsonl is broken", id="gallery nested too deep"),
    ],
)
def test_broken_files_are_named(run: Run, copy: Path, name: str, text: str, message: str) -> None:
    (copy / name).write_text(text)
    with pytest.raises(UserError, match=message) as caught:
        rows, records = read_run(copy)
        write_report(copy, rows, records, run.digits)
    assert "\n" not in str(caught.value)


def test_a_broken_shard_is_named(copy: Path) -> None:
    (copy / GALLERY).unlink()
    shard = next((copy / "records" / "table-6").iterdir())
    for damaged in (shard.read_bytes()[:-9], gzip.compress(b"[" * 100_000)):
        shard.write_bytes(damaged)
        with pytest.raises(UserError, match=f"{shard.name} is broken") as caught:
            list(read_run(copy)[1])
        assert "\n" not in str(caught.value)


def test_folders_that_hold_no_run_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a folder"):
        read_run(tmp_path / "nowhere")
    with pytest.raises(UserError, match=r"neither results\.jsonl nor records/"):
        read_run(tmp_path)


def test_a_report_that_cannot_be_written_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "report").write_text("in the way")
    with pytest.raises(UserError, match="cannot make"):
        write_report(tmp_path, run.rows, [], run.digits)
    other = tmp_path / "other"
    (other / "report" / "curve.png").mkdir(parents=True)
    with pytest.raises(UserError, match=r"cannot write .*curve\.png"):
        write_report(other, run.rows, [], run.digits)


def test_the_verb_draws_the_same_report_again(run: Run, copy: Path, cli: Command) -> None:
    shutil.rmtree(copy / "report")
    code, out, err = cli("report", f"run={copy}")
    assert (code, err) == (0, "")
    page = copy / "report" / "index.html"
    assert f"report  {page}" in out and "Table 2" in out
    assert {path.name for path in page.parent.iterdir()} == {"index.html", *PICTURES}
    assert page.read_text(encoding="utf-8") == run.html


def test_the_verb_takes_the_run_that_finished_last(copy: Path, tmp_path: Path) -> None:
    for place, name in enumerate(("reproduce/older", "evaluate/newer", "judge/newest")):
        folder = Path(shutil.copytree(copy, tmp_path / "outputs" / name, ignore=shutil.ignore_patterns("report", "records")))
        os.utime(folder / "results.jsonl", (1e9 + place, 1e9 + place))
    assert newest_run(tmp_path / "outputs") == tmp_path / "outputs" / "evaluate" / "newer"


def test_the_verb_refuses_what_is_no_run(copy: Path, tmp_path: Path, cli: Command) -> None:
    assert cli("report")[::2] == (
        2,
        "debate-rl: no finished run under outputs: run debate-rl reproduce first, or name a run folder with run=...\n",
    )
    code, _, err = cli("report", "run=nowhere")
    assert code == 2 and "nowhere is not a folder" in err and err.count("\n") == 1
    (copy / "config.yaml").write_text(json.dumps({"name": "x"}))
    code, _, err = cli("report", f"run={copy}")
    assert code == 2 and "does not say which images the run was about" in err
