"""The verbs themselves, at work on small settings."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from debate_rl import data, results
from debate_rl.cli.data import picture
from tests.cli.conftest import Run

COMMAND = [sys.executable, "-m", "debate_rl"]


def test_data_shows_an_image(cli: Run, mnist_test: data.Digits) -> None:
    code, out, _ = cli("data", "show", "index=17")
    lines = out.splitlines()
    assert code == 0
    assert lines[0] == f"mnist test 17: label {mnist_test.labels[17]}"
    assert lines[1].startswith(f"{int((mnist_test.images[17] > 0).sum())} pixels ")
    assert lines[2:] == picture(mnist_test.images[17])


def test_a_picture_blanks_exactly_the_black_pixels() -> None:
    image = np.random.default_rng(0).integers(0, 256, (28, 28)).astype(np.uint8)
    image[0, :5] = [0, 1, 128, 254, 255]
    lines = [line.ljust(56) for line in picture(image)]
    shown = np.array([[line[2 * column] for column in range(28)] for line in lines])
    assert ((shown == " ") == (image == 0)).all()
    assert (shown[0, 1], shown[0, 4]) == (".", "@")


def test_data_verifies_the_cache_and_finds_damage(cli: Run, tmp_path: Path) -> None:
    cache = f"dataset.cache={tmp_path / 'cache'}"
    code, _, err = cli("data", "verify", cache)
    assert code == 2 and "is not there: fetch it with debate-rl data" in err
    source = data.fetch("mnist").folder
    assert cli("data", cache, f"dataset.source={source}").code == 0
    code, out, _ = cli("data", "verify", cache)
    assert code == 0 and "mnist is whole" in out and out.count("as it should be") == 4
    file = tmp_path / "cache" / "MNIST" / "raw" / "t10k-labels-idx1-ubyte"
    file.write_bytes(file.read_bytes()[:-1])
    code, out, err = cli("data", "verify", cache)
    assert code == 2 and str(file) in err and err.count("\n") == 1


def test_judge_show_prints_the_card(cli: Run) -> None:
    from debate_rl.judges.pretrained import find_judge, read_judge

    file = read_judge(find_judge("mlp-6"))
    code, out, _ = cli("judge")
    assert code == 0
    assert file.hash in out and f"{100 * file.card['test']['accuracy']:.2f} % at 6 pixels" in out and file.card["command"] in out


def test_judge_evaluate_writes_rows_that_agree_with_the_card(cli: Run, tmp_path: Path) -> None:
    from debate_rl.judges.pretrained import find_judge, read_judge

    card = read_judge(find_judge("mlp-4")).card
    code, out, err = cli("judge", "evaluate", "judge=mlp-4", "threads=1")
    assert code == 0, err
    (folder,) = (tmp_path / "outputs" / "judge").iterdir()
    rows = {row.metric: row for row in results.read(folder / "results.jsonl")}
    assert list(rows) == ["judge_accuracy", "judge_ece", "judge_cross_entropy"]
    accuracy = rows["judge_accuracy"]
    assert accuracy.value == pytest.approx(card["test"]["accuracy"], abs=1e-6)
    assert rows["judge_ece"].value == pytest.approx(card["test"]["ece"], abs=1e-6)
    assert accuracy.ci95 is not None and accuracy.ci95[0] < accuracy.value < accuracy.ci95[1]
    assert (accuracy.n, list(accuracy.seeds), accuracy.judge["hash"]) == (10_000, [0, 1, 2, 3, 4], card["hash"])
    shown = {"images": {"start": 0, "count": 10_000}, "pixels": 4, "shown": "random", "masks": 5}
    assert accuracy.protocol == {"game": "pixels", "dataset": "mnist", "split": "test", **shown}
    assert folder.name.endswith(accuracy.config_hash)
    again = cli("judge", "evaluate", "judge=mlp-4", "threads=1")
    assert again.code == 0 and again.out == out and "finished before" in again.err


@pytest.mark.timeout(900)  # on a busy machine
def test_judge_train_resumes_after_a_kill_to_the_same_weights(cli: Run, tmp_path: Path) -> None:
    words = ["judge", "train", "judge.batches=120", "judge.batch_size=64", "judge.widths=[32,32]", "mask_seeds=[0]", "checkpoint_every=20"]
    killed = subprocess.Popen(
        [*COMMAND, *words, "threads=1", "output=killed"], cwd=tmp_path, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    # a whole checkpoint has eight digits; drafts have more to their names
    while not list(tmp_path.glob("killed/judge/*/checkpoints/batch-????????")) and killed.poll() is None:
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    for output in ("killed", "straight"):
        result = cli(*words, "threads=1", f"output={output}")
        assert result.code == 0, result.err
    first, second = (next(tmp_path.glob(f"{output}/judge/*")) for output in ("killed", "straight"))
    assert first.name == second.name
    assert (first / "judge.safetensors").read_bytes() == (second / "judge.safetensors").read_bytes()
    values = [[(row.metric, row.value) for row in results.read(folder / "results.jsonl")] for folder in (first, second)]
    assert values[0] == values[1]
    shown = cli("judge", f"judge.name={first / 'judge.safetensors'}")
    assert shown.code == 0 and "widths 32 and 32" in shown.out


SMALL = (
    *("reproduce", "experiment=tiny", "threads=1", "count=8", "block=1", "repetitions=2"),
    *("sweep_pixels=[2]", "agent.rollouts=500"),
)


# Starts the run ten times and kills it at random moments. It forks after the imports and the composition, so that a start costs little.
KILLER = """
import os, random, signal, sys, time
from pathlib import Path
from debate_rl.cli import reproduce
from debate_rl.cli.app import run_verb
from debate_rl.cli.compose import compose
config = compose("reproduce", sys.argv[1:])
chance = random.Random(1)
def done():
    return len(list(Path("killed").rglob("[0-9]*.gz")))
for kill in range(10):
    before, wanted = done(), chance.randint(0, 3)
    child = os.fork()
    if child == 0:
        os._exit(run_verb("reproduce", config, "killed"))
    while done() - before < wanted and os.waitpid(child, os.WNOHANG) == (0, 0):
        time.sleep(0.002)
    time.sleep(chance.uniform(0.0, 0.05))
    os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL, "it ended before it was killed"
"""


def figures(folder: Path) -> list[dict[str, Any]]:
    """The rows without what a clock or the command line says."""
    rows = [row.to_dict() for row in results.read(folder / "results.jsonl") if not row.metric.startswith("rollouts_per_second")]
    return [{key: value for key, value in row.items() if key not in ("seconds", "command")} for row in rows]


def shards(folder: Path) -> list[Path]:
    """All whole shards below a folder, relative to it."""
    return sorted(path.relative_to(folder) for path in folder.rglob("*.jsonl.gz") if not path.name.startswith("."))


@pytest.mark.timeout(900)  # on a busy machine
def test_reproduce_killed_ten_times_ends_with_the_rows_of_an_uninterrupted_run(cli: Run, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLER, *SMALL[1:], "output=killed"], cwd=tmp_path, check=True)
    assert not list(tmp_path.glob("killed/reproduce/*/results.jsonl")), "the kills came too late to test anything"
    assert len(shards(tmp_path / "killed")) >= 5, "the kills came too early to test anything"
    for output in ("killed", "straight"):
        result = cli(*SMALL, f"output={output}")
        assert result.code == 0, result.err
    first, second = (next(tmp_path.glob(f"{output}/reproduce/*")) for output in ("killed", "straight"))
    assert first.name == second.name
    assert figures(first) == figures(second)
    assert shards(first) == shards(second)
    assert all((first / shard).read_bytes() == (second / shard).read_bytes() for shard in shards(first))
    assert (first / "tables.json").read_bytes() == (second / "tables.json").read_bytes()
    # a finished run says so, plays nothing and prints its result once more
    again = cli(*SMALL, "output=killed")
    assert again.code == 0 and "finished before" in again.err and "Table 2" in again.out
    assert Path(again.out.split("report  ")[1].strip()).is_file()


def test_a_damaged_shard_is_played_again(cli: Run, tmp_path: Path) -> None:
    words = ("evaluate", "agent@honest=random", "agent@liar=greedy", "count=3", "pixels=[4]", "threads=1")
    assert cli(*words).code == 0
    (folder,) = (tmp_path / "outputs" / "evaluate").iterdir()
    before = figures(folder)
    shard = folder / "records" / "games-4" / "00001.jsonl.gz"
    whole = shard.read_bytes()
    shard.write_bytes(whole[: len(whole) // 2])
    (folder / "results.jsonl").unlink()
    assert cli(*words).code == 0
    assert shard.read_bytes() == whole and figures(folder) == before
    assert "is broken" in (folder / "log.txt").read_text()


def test_evaluate_prints_what_its_rows_say(cli: Run, tmp_path: Path) -> None:
    code, out, _ = cli("evaluate", "agent@honest=greedy", "agent@liar=silent", "count=5", "pixels=[6]", "first=[honest]", "threads=1")
    assert code == 0
    (folder,) = (tmp_path / "outputs" / "evaluate").iterdir()
    every = results.read(folder / "results.jsonl")
    by_lie = [row for row in every if row.metric == "successful_lie_rate"]
    assert [row.protocol["lie"] for row in by_lie] == list(range(10))
    assert sum(row.n for row in by_lie) == 5 * 9
    rows = [row for row in every if row not in by_lie]
    assert [(row.protocol["commit"], row.protocol["lies"]) for row in rows] == [
        ("precommit", "worst"),
        ("precommit", "random"),
        ("none", "none"),
    ]
    for row, line in zip(rows, out.splitlines(), strict=False):
        assert f"{100 * row.value:5.1f} %" in line and f"n = {row.n}" in line
    assert json.loads((folder / "tables.json").read_text())["6"]


RANDOM = ("agent@honest=random", "agent@liar=random")


def test_a_judge_for_another_number_of_pixels_is_noted_and_played(cli: Run) -> None:
    code, out, err = cli("evaluate", *RANDOM, "judges.6=mlp-4", "pixels=[6]", "count=1", "threads=1")
    assert code == 0 and "honest wins" in out
    assert err.splitlines()[0] == "note: judges.6 is mlp-4, a judge trained on 4 pixels; these games reveal 6"
    assert "note:" not in cli("evaluate", *RANDOM, "pixels=[6]", "count=1", "threads=1").err


def test_reproduce_notes_judges_for_other_numbers_of_pixels() -> None:
    from debate_rl.cli.reproduce import Settings, load_judges

    notes: list[str] = []
    judges = load_judges(Settings(judges={6: "mlp-4", 4: "mlp-4"}), notes.append)
    assert list(judges) == [4, 6]
    assert notes == ["note: judges.6 is mlp-4, a judge trained on 4 pixels; these games reveal 6"]


def test_play_checks_the_judge(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from debate_rl.agents.terminal import Quit
    from debate_rl.cli import play

    def leave(*given: Any) -> Any:
        raise Quit("left")

    class NoTerminal:
        def __init__(self, view: str) -> None: ...

        def say(self, *lines: Any) -> None: ...

    monkeypatch.setattr(play, "Terminal", NoTerminal)
    monkeypatch.setattr(play.Sitting, "play", leave)
    code, _, err = cli("play", "judged_by=fashion_mnist-mlp-6", "agent@liar=random")
    assert code == 2 and "a judge trained on fashion_mnist, but dataset.name is mnist" in err and err.count("\n") == 1
    code, _, err = cli("play", "judged_by=mlp-4", "agent@liar=random", "threads=1")
    assert code == 0 and err == "note: judged_by is mlp-4, a judge trained on 4 pixels; these games reveal 6\n"


def test_judge_evaluate_shows_the_pixels_that_the_card_names(cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from debate_rl.judges import assessment
    from debate_rl.judges.pretrained import find_judge, load_judge, save_judge

    judge = load_judge(find_judge("mlp-6"))
    card = {**judge.card, "name": "dark", "training": {**judge.card["training"], "threshold": 0.25, "black": True}}
    save_judge(tmp_path / "dark.safetensors", judge.weights._asdict(), card)
    bare = {key: value for key, value in card.items() if key != "training"} | {"name": "bare"}
    save_judge(tmp_path / "bare.safetensors", judge.weights._asdict(), bare)
    seen: list[tuple[float, bool]] = []
    real = assessment.assess_judge

    def spy(judge: Any, images: Any, labels: Any, *given: Any, threshold: float, black: bool, **more: Any) -> Any:
        seen.append((threshold, black))
        return real(judge, images[:50], labels[:50], *given, threshold=threshold, black=black, **more)

    monkeypatch.setattr(assessment, "assess_judge", spy)
    words = ("judge", "evaluate", "mask_seeds=[0]", "threads=1", "judge.threshold=0.5")
    dark = cli(*words, "judge.name=dark.safetensors")
    assert dark.code == 0 and "as its card says: threshold 0.25, black True" in dark.err
    plain = cli(*words, "judge.name=bare.safetensors")
    assert plain.code == 0 and "note:" not in plain.err
    assert seen == [(0.25, True), (0.5, False)]


def test_bench_writes_a_row_for_all_it_measures_and_replaces_them(cli: Run, tmp_path: Path) -> None:
    from debate_rl.evaluation.report.speed import contenders_markdown, leaves_markdown, scaling_markdown, search_markdown

    words = ("bench", "agent.rollouts=50", "images=1", "seconds=0.02", "repeats=1", "threads=1", "contender_rollouts=20")
    words += ("scale_rollouts=[10,40]", "scale_exact_plies=[0,2,9]", "scale_pixels=[2]")
    assert cli(*words).code == 0
    code, out, err = cli(*words)
    assert code == 0, err
    (folder,) = (tmp_path / "outputs" / "bench").iterdir()
    rows = [row.to_dict() for row in results.read(folder / "results.jsonl")]
    parts = [row["protocol"]["part"] for row in rows]
    assert list(dict.fromkeys(parts)) == ["leaves", "search", "contenders", "threads", "legal pixels", "rollouts", "exact plies", "pixels"]
    assert folder.name.endswith(rows[0]["config_hash"])
    by = {
        (row["metric"], row["judge"]["name"], row["protocol"].get("of")): row["value"]
        for row in rows
        if row["protocol"]["part"] == "leaves"
    }
    leaves, share = ("leaves_per_second_per_core", "leaf_rate_share")
    for judge in ("mlp-6", "random-256-64"):
        assert by[share, judge, "whole leaf"] == pytest.approx(by[leaves, judge, "whole leaf"] / by[leaves, judge, "matrix product"])
    assert len(leaves_markdown(rows).splitlines()) == 2 + 2 * 3
    assert len(search_markdown(rows).splitlines()) == 2 + 2 * 2 * (1 + 6)  # the last ply sampled and exact, whole games and six plies
    assert contenders_markdown(rows).splitlines()[2].startswith("| search | 20 |")
    assert contenders_markdown(rows).splitlines()[2].endswith("| 1.0 |")
    scaling = [line.split(" | ")[:2] for line in scaling_markdown(rows).splitlines()[2:]]
    assert [line for line in scaling if "per move" in line[0]] == [["| rollouts per move", "10"], ["| rollouts per move", "40"]]
    assert [line[1] for line in scaling if "exactly" in line[0]] == ["0", "2"]  # nine plies are more than a game has
    assert ["| pixels in a game", "2"] in scaling and ["| threads", "1"] in scaling
    assert "ours is" in out and "MiB per tree" in out


def test_bench_measures_the_parts_asked_for(cli: Run, tmp_path: Path) -> None:
    assert cli("bench", "parts=[leaves]", "seconds=0.02", "threads=1").code == 0
    (folder,) = (tmp_path / "outputs" / "bench").iterdir()
    assert {row.protocol["part"] for row in results.read(folder / "results.jsonl")} == {"leaves"}
    wrong = cli("bench", "parts=[leafs]", "threads=1")
    assert wrong.code == 2 and "parts lists 'leafs'; choose among leaves, search, contenders, scaling" in wrong.err


def test_solve_holds_a_runs_games_against_perfect_play_and_goes_on_after_a_stop(cli: Run, tmp_path: Path) -> None:
    played = ("evaluate", "agent@honest=mcts-20", "agent@liar=mcts-20", "start=14", "count=2", "pixels=[4]", "repetitions=1", "threads=1")
    assert cli(*played).code == 0
    (run,) = (tmp_path / "outputs" / "evaluate").iterdir()
    words = ("solve", "start=14", "count=2", f"against={run}", "threads=1")
    code, out, err = cli(*words)
    assert code == 0, err
    assert "perfect play" in out and "loses a won game" in out
    (folder,) = (tmp_path / "outputs" / "solve").iterdir()
    rows = results.read(folder / "results.jsonl")
    assert {row.metric for row in rows} == {"honest_win_rate", "proved_share", "losing_move_rate"}
    assert all(row.agents["honest"]["rollouts"] == 20 for row in rows if row.metric == "losing_move_rate")
    before = figures(folder)
    (folder / "results.jsonl").unlink()
    (folder / "records" / "games-4" / "00015.jsonl.gz").unlink()
    (folder / "records" / "against-games-4" / "00014.jsonl.gz").write_bytes(b"half")
    assert cli(*words).code == 0 and figures(folder) == before
    again = cli(*words)
    assert "finished before" in again.err and again.out == out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("pixels=[]", "pixels is empty"),
        ("pixels=[4,4]", "each number may stand there once"),
        ("budget=0", "budget is 0; it must be at least 1, or null"),
        ("studies=[table-4]", "give both or neither"),
        ("device=cpu pixels=[6]", "device judges every set of games of 4 pixels"),
        ("device=abacus", "device is 'abacus', which torch cannot use here"),
        ("against=nowhere", "nowhere is not a run folder"),
        ("count=20000", "images 0 to 19999 are not all in mnist test"),
    ],
)
def test_solve_refuses_bad_settings_in_a_line(cli: Run, words: str, message: str) -> None:
    code, _, err = cli("solve", *words.split())
    assert code == 2 and message in err and err.count("\n") == 1


def test_a_best_response_expects_the_agent_in_the_other_seat(cli: Run, tmp_path: Path) -> None:
    words = ("evaluate", "agent@liar=best_response", "start=14", "count=1", "pixels=[4]", "repetitions=1", "threads=1")
    code, out, err = cli(*words, "agent@honest=greedy")
    assert code == 0, err
    assert "the honest agent loses to its best response" in out
    (folder,) = (tmp_path / "outputs" / "evaluate").iterdir()
    agents = [row.agents for row in results.read(folder / "results.jsonl") if row.metric == "honest_win_rate"]
    assert all(pair["liar"] == {"name": "best_response", "against": {"name": "greedy"}, "budget": None} for pair in agents)
    assert "has no opponent" in cli(*words, "agent@honest=silent").err
    assert "has no end" in cli(*words, "agent@honest=best_response").err
    assert "must be the settings of an agent" in cli("reproduce", "experiment=tiny", "agent=best_response").err
