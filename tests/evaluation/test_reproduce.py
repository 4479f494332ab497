"""Which images a reproduction plays, how much work that is, what is collected, and that a run that was stopped ends with the same rows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from debate_rl.data import Digits
from debate_rl.errors import UserError
from debate_rl.evaluation.protocol import SILENT, Study
from debate_rl.evaluation.report.content import search_curve, table2
from debate_rl.evaluation.report.tables import table2_note
from debate_rl.evaluation.reproduce import Job, Reproduction, collect, image_range, plan, play_jobs
from debate_rl.judges.pretrained import load_judge
from debate_rl.runs import RunFolder

THIN = 12  # has three nonzero pixels
SETTINGS = Reproduction(
    judges={4: "mlp-4"},
    start=10,
    count=5,
    repetitions=1,
    agent={"name": "mcts", "rollouts": 8},
    budgets=(2, 4),
    budget_count=2,
    control_count=4,
    sweep_pixels=(2, 4),
    sweep_count=3,
    sweep_rollouts=3,
    masks=2,
    block=2,
)


class StoppedError(Exception):
    """Stands for a kill."""


@pytest.fixture(scope="module")
def judges():
    return {4: load_judge("mlp-4")}


def twenty_digits(mnist_test: Digits) -> Digits:
    images = mnist_test.images[:20].copy()
    images[THIN] = 0
    images[THIN, 14, 10:13] = 255
    return Digits("mnist", "test", images, mnist_test.labels[:20].copy(), "")


@pytest.fixture(scope="module")
def digits(mnist_test) -> Digits:
    return twenty_digits(mnist_test)


def quiet(name: str, done: float, total: float) -> None:
    """No progress."""


def run_folder(root: Path) -> RunFolder:
    return RunFolder.open(root, "reproduce", "tiny", {"seed": 0}, provenance={"command": "test", "machine": {}})


def collected(folder: RunFolder, digits: Digits, judges, settings=SETTINGS):
    jobs = plan(settings, digits, judges)
    return collect(folder, settings, jobs, digits, judges, folder.provenance)


def figures(rows) -> list[str]:
    """Rows as they are written, without what the clock says."""
    return [replace(row, seconds=0.0).line() for row in rows if row.metric != "rollouts_per_second_per_core"]


def test_image_ranges_leave_out_images_with_too_few_pixels(digits):
    assert image_range(digits, 10, 5, 3) == (10, 11, 12, 13, 14)
    assert image_range(digits, 10, 5, 4) == (10, 11, 13, 14)  # not refilled: a range names the same images for every number of pixels
    assert image_range(digits, THIN, 1, 4) == ()
    assert image_range(digits, 19, 1, 4) == (19,)
    assert all(type(index) is int for index in image_range(digits, 10, 5, 4))
    for start, count in ((19, 2), (-1, 2), (0, 0), (20, 1)):
        with pytest.raises(UserError, match="0 to 19"):
            image_range(digits, start, count, 4)


def test_the_plan_lists_every_study_with_its_images(digits, judges):
    jobs = plan(SETTINGS, digits, judges)
    both = (10, 11, 13)  # of 10 to 13
    assert {job.study.name: job.indices for job in jobs} == {
        "random-4": both,
        "greedy-4": both,
        "honest-alone-4": both,
        "liar-alone-4": both,
        "pixels-2": (10, 11, 12),
        "pixels-4": (10, 11),
        "budget-4-2": (10, 11),
        "budget-4-4": (10, 11),
        "table-4": (10, 11, 13, 14),
    }
    studies = {job.study.name: job.study for job in jobs}
    assert jobs[-1].study.name == "table-4" and studies["table-4"].honest == studies["table-4"].liar == SETTINGS.agent
    assert studies["table-4"].commit == ("precommit", "none") and studies["table-4"].first == ("honest", "liar")
    assert studies["honest-alone-4"].liar == SILENT and studies["honest-alone-4"].first == ("honest",)
    assert studies["liar-alone-4"].honest == SILENT and studies["liar-alone-4"].liar == {"name": "greedy"}
    assert studies["budget-4-2"].honest["rollouts"] == 2 and studies["pixels-2"].honest["rollouts"] == 3
    assert studies["pixels-2"].commit == studies["budget-4-2"].commit == ("precommit",)
    assert {job.study.seed for job in jobs} == {0} and all(job.judge is judges[4] for job in jobs)


def test_the_plan_leaves_out_what_is_not_asked_for(digits, judges):
    def names(**more):
        return [job.study.name for job in plan(replace(SETTINGS, **more), digits, judges)]

    assert names(control_count=0, sweep_count=0, budget_count=0) == ["table-4"]
    controls = ["random-4", "greedy-4", "honest-alone-4", "liar-alone-4"]
    assert names(commit=("none",)) == [*controls, "table-4"]  # both curves are about precommitted games
    assert names(agent={"name": "greedy"}) == [*controls, "table-4"]


def test_the_work_of_an_image_by_hand(judges):
    agent, greedy = {"name": "mcts", "rollouts": 100}, {"name": "greedy"}

    def work(honest, liar, **more):
        return Job(Study("s", 4, honest, liar, **more), (0,), judges[4]).work()

    # Two orders of (nine lies + one without), three repetitions, four moves each: 240 moves.
    assert work(agent, agent) == 240 * 100
    assert work(agent, greedy) == 240 * (100 + 1) / 2  # each makes half of the moves
    assert work(greedy, SILENT) == 240
    assert work(agent, agent, first=("liar",), commit=("precommit",), repetitions=1) == 9 * 4 * 100


@pytest.fixture(scope="module")
def whole(digits, judges, tmp_path_factory):
    """The results of a run in one go, what it reported, and its records."""
    seen: list[tuple[str, float, float]] = []
    with run_folder(tmp_path_factory.mktemp("whole")) as folder:
        jobs = plan(SETTINGS, digits, judges)
        play_jobs(folder, jobs, digits, SETTINGS.block, lambda *told: seen.append(told))
        results = collected(folder, digits, judges)
        records = {(job.study.name, index): folder.read_shard(job.study.name, index) for job in jobs for index in job.indices}
    return results, seen, records


def test_progress_counts_all_work_once(whole, digits, judges):
    _, seen, _ = whole
    total = sum(job.work() * len(job.indices) for job in plan(SETTINGS, digits, judges))
    assert {told[2] for told in seen} == {total} and seen[-1][:2] == ("table-4", total)
    assert [told[1] for told in seen] == sorted(told[1] for told in seen)


def test_records_are_about_the_images_they_are_filed_under(whole, digits):
    for (study, index), records in whole[2].items():
        assert {record["index"] for record in records} == {index} and {record["label"] for record in records} == {int(digits.labels[index])}
        image = digits.images[index].reshape(-1)
        assert all(image[record["moves"]].all() for record in records), study


def test_what_is_collected_rests_on_the_images_that_were_played(whole, judges):
    results, _, records = whole
    for row in results.rows:
        assert row.config_hash and row.command == "test" and row.judge["hash"] == judges[4].hash

    def find(metric, **protocol):
        return [row for row in results.rows if row.metric == metric and protocol.items() <= row.protocol.items()]

    agents = {"honest": SETTINGS.agent, "liar": SETTINGS.agent}
    table = [row for row in find("honest_win_rate", lies="none", pixels=4, first="liar") if row.agents == agents]
    assert [row.n for row in table] == [4] and table[0].protocol["images"] == {"start": 10, "count": 5}
    # By hand from the records.
    games = [
        record
        for (study, _), shard in records.items()
        if study == "table-4"
        for record in shard
        if (record["commit"], record["first"]) == ("none", "liar")
    ]
    assert len(games) == 4 and table[0].value == pytest.approx(np.mean([record["winner"] == "honest" for record in games]))
    worst = [row for row in find("honest_win_rate", lies="worst", pixels=4, first="honest") if row.agents == agents and row.n == 4]
    lost = {
        index
        for (study, index), shard in records.items()
        if study == "table-4"
        for record in shard
        if (record["commit"], record["first"], record["winner"]) == ("precommit", "honest", "liar")
    }
    assert [row.value for row in worst] == [pytest.approx(1 - len(lost) / 4)]
    thin = find("honest_win_rate", lies="worst", pixels=2, first="mean")
    assert [(row.n, row.protocol["images"]) for row in thin] == [(3, {"start": 10, "count": 3})]
    everything = find("judge_accuracy", pixels=4, images={"start": 0, "count": 20})
    assert [row.n for row in everything] == [20]
    assert results.tables["4"]["answer"]["n"] == 4 * 2 and results.tables["4"]["claims"]["n"] == 4 * 2 * 9
    assert {record["index"] for record in results.gallery} <= {10, 11, 13, 14}
    (speed,) = find("rollouts_per_second_per_core")
    assert speed.value > 0 and speed.n == 4


@pytest.mark.parametrize("block", [1, 3])
def test_a_run_that_was_stopped_goes_on_in_other_blocks_and_ends_with_the_same_rows(whole, digits, judges, tmp_path, block):
    jobs = plan(SETTINGS, digits, judges)
    stops = 0
    while True:
        calls = 0

        def stop(name: str, done: float, total: float) -> None:
            nonlocal calls
            calls += 1
            if calls > 12 and done < total:
                raise StoppedError

        with run_folder(tmp_path) as folder:
            try:
                play_jobs(folder, jobs, digits, (block, 2)[stops % 2], stop)
            except StoppedError:
                stops += 1
                continue
            results = collected(folder, digits, judges)
            break
    assert stops >= 1
    assert figures(results.rows) == figures(whole[0].rows)
    assert (results.tables, results.gallery) == (whole[0].tables, whole[0].gallery)


# The rest of a run, in a process that has four threads: the tests' has one (see conftest).
GO_ON = """
import sys, numba
from pathlib import Path
from debate_rl import data
from debate_rl.evaluation.reproduce import plan, play_jobs
from debate_rl.judges.pretrained import load_judge
from tests.evaluation import test_reproduce as tests

digits = tests.twenty_digits(data.load("mnist", "test"))
judges = {4: load_judge("mlp-4")}
numba.set_num_threads(3)
with tests.run_folder(Path(sys.argv[1])) as folder:
    missing = [len(folder.missing_shards(job.study.name, job.indices)) for job in plan(tests.SETTINGS, digits, judges)]
    assert 0 < sum(missing) < 25, missing
    play_jobs(folder, plan(tests.SETTINGS, digits, judges), digits, 5, tests.quiet)
"""


def test_a_run_that_was_stopped_goes_on_with_other_threads_and_ends_with_the_same_rows(whole, digits, judges, tmp_path):
    jobs = plan(SETTINGS, digits, judges)

    def stop(name: str, done: float, total: float) -> None:
        if done > 0:
            raise StoppedError

    with run_folder(tmp_path) as folder, pytest.raises(StoppedError):
        play_jobs(folder, jobs[-1:], digits, 1, stop)  # the table's first image
    ran = subprocess.run(
        [sys.executable, "-c", GO_ON, str(tmp_path)],
        env={**os.environ, "NUMBA_NUM_THREADS": "4"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    with run_folder(tmp_path) as folder:
        assert all(not folder.missing_shards(job.study.name, job.indices) for job in jobs)
        threads = {
            round(entry["core_seconds"] / entry["seconds"])
            for entry in map(json.loads, (folder.path / "times.jsonl").read_text().splitlines())
        }
        assert threads == {1, 3}
        results = collected(folder, digits, judges)
    assert figures(results.rows) == figures(whole[0].rows)
    assert (results.tables, results.gallery) == (whole[0].tables, whole[0].gallery)


def test_a_curve_rests_on_the_same_images_where_one_is_too_thin(tmp_path: Path, digits: Digits, judges) -> None:
    settings = replace(SETTINGS, budget_count=3, count=5, sweep_count=0, control_count=0)
    jobs = plan(settings, digits, judges)
    with RunFolder.open(tmp_path, "reproduce", "thin", {}) as folder:
        play_jobs(folder, jobs, digits, 2, lambda *_: None)
        rows = [row.to_dict() for row in collect(folder, settings, jobs, digits, judges, {"config_hash": folder.config_hash}).rows]
    assert jobs[0].indices == (10, 11)
    curve = search_curve(rows, 4)
    assert curve is not None and curve.start is not None
    assert [budget for budget, _ in curve.points] == [2, 4, 8]
    assert [figure.n for figure in (curve.start, *(figure for _, figure in curve.points))] == [2, 2, 2, 2]


def test_other_rules_reach_every_study_and_every_row(tmp_path: Path, digits: Digits, judges) -> None:
    settings = replace(SETTINGS, threshold=0.5, count=2, control_count=2)
    jobs = plan(settings, digits, judges)
    assert all((job.study.threshold, job.study.black) == (0.5, False) for job in jobs)
    with run_folder(tmp_path) as folder:
        play_jobs(folder, jobs, digits, 2, quiet)
        found = collected(folder, digits, judges, settings)
    assert found.rows and all(row.protocol["threshold"] == 0.5 for row in found.rows)


def test_a_range_without_one_fitting_image_is_refused(digits: Digits, judges) -> None:
    with pytest.raises(UserError, match="none of the images chosen has 4 pixels to reveal"):
        plan(replace(SETTINGS, start=THIN, count=1, budget_count=1, control_count=1, sweep_count=1), digits, judges)


def test_an_agent_that_does_not_search_fills_the_table(tmp_path: Path, digits: Digits, judges) -> None:
    settings = replace(SETTINGS, agent={"name": "greedy"})
    with run_folder(tmp_path) as folder:
        play_jobs(folder, plan(settings, digits, judges), digits, 2, quiet)
        rows = [row.to_dict() for row in collected(folder, digits, judges, settings).rows]
    filled = [row for row in table2(rows) if row.pixels == 4]
    assert [row.precommit.ours is not None for row in filled] == [True] * 3
    assert "greedy debaters" in table2_note(filled)
