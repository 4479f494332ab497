from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from debate_rl import results
from debate_rl.cli.app import BAD_INPUT, BROKEN_PIPE, INTERRUPTED
from debate_rl.cli.verbs import VERBS
from tests.cli.conftest import Run

COMMAND = [sys.executable, "-m", "debate_rl"]


@pytest.mark.parametrize("words", [(), ("--help",), ("-h",), ("help",)])
def test_the_overview_names_every_verb(cli: Run, words: tuple[str, ...]) -> None:
    code, out, err = cli(*words)
    assert (code, err) == (0, "")
    assert all(f"  {verb.name} " in out and verb.summary in out for verb in VERBS.values())


@pytest.mark.parametrize("name", VERBS)
def test_a_verbs_help_has_examples_groups_settings_and_comments(cli: Run, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    code, out, err = cli(name, "--help")
    assert (code, err) == (0, "")
    assert cli("help", name).out == out
    assert max(len(line) for line in out.splitlines()) <= 140
    assert all(f"debate-rl {name} {overrides}".rstrip() in out for overrides, _ in VERBS[name].examples)
    assert "threads=null" in out and "how many cores to use" in out


def test_help_is_quick_and_loads_neither_hydra_nor_numba() -> None:
    code = (
        "import resource, sys\nfrom debate_rl.cli import main\nmain(['reproduce', '--help'])\n"
        "assert not {'hydra', 'numba', 'numpy', 'torch', 'rich'} & set(sys.modules), sys.modules.keys()\n"
        "used = resource.getrusage(resource.RUSAGE_SELF)\nprint(used.ru_utime + used.ru_stime)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert 0.0 < float(done.stdout.splitlines()[-1]) < 2.0  # seconds of CPU, the interpreter's start included


def test_the_version_is_printed(cli: Run) -> None:
    assert cli("--version").out.startswith(f"debate-rl {results.code_version()['version']}")


def test_examples_of_the_help_compose() -> None:
    from debate_rl.cli.app import _action
    from debate_rl.cli.compose import compose

    for verb in VERBS.values():
        for overrides, _ in verb.examples:
            words = _action(verb, [verb.name, *shlex.split(overrides)])[1:]
            if "-m" not in words:
                compose(verb.name, words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("dta", "unknown verb 'dta'; did you mean 'data'?"),
        ("zzz", "unknown verb 'zzz'; choose one of data, judge"),
        ("data --force", "unknown option '--force'; there are -h/--help, -m/--multirun, --cfg and --version"),
        ("data inedx=3", "unknown setting 'inedx'; did you mean 'index'? (debate-rl data --help lists all)"),
        ("data +new=3", "unknown setting 'new'; there are: dataset, action, refresh, split, index"),
        ("data ~index", "'~index' takes a setting away; give it another value instead"),
        ("data 3", "cannot read '3'; an override is key=value, with odd characters in quotes: "),
        ("data dataset=mnits", "unknown option dataset=mnits; did you mean dataset=mnist?"),
        ("data dataset=null", "unknown option dataset=null; choose one of fashion_mnist, mnist"),
        ("data judge=mlp-6", "debate-rl data: unknown setting 'judge'; there are: dataset"),
        ("data dataset.nmae=x", "unknown setting 'dataset.nmae'; did you mean 'dataset.name'? (debate-rl data --help lists all)"),
        ("data dataset.name=mnits", "unknown data set 'mnits': choose one of mnist, fashion_mnist"),
        ("data action=shwo", "action is 'shwo'; it must be fetch, verify or show (did you mean show?)"),
        ("data shwo", "action is 'shwo'; it must be fetch, verify or show (did you mean show?)"),
        ("data index=1.5", "index is 1.5; it must be a whole number"),
        ("data index=1,2", "'index=1,2' gives several values; add -m to run them one after another, or write a list as [1,2]"),
        ("data index=${nothing}", "Interpolation key 'nothing' not found (see debate-rl data --help)"),
        ("data threads=two", "threads is 'two'; it must be a whole number"),
        ("data show index=10000", "index is 10000; mnist test has images 0 to 9999"),
        ("data show index=-1", "index is -1; mnist test has images 0 to 9999"),
        ("judge judge=mlp-7", "unknown option judge=mlp-7; did you mean judge="),
        ("judge judge.name=nobody", "unknown judge 'nobody'; give one of "),
        ("judge train judge.batches=0 threads=1", "judge: judge training: batches is 0; it must be at least 1"),
        ("judge train judge.widths=[64] threads=1", "judge.widths is [64]; it must be a list of 2 items"),
        ("judge evaluate mask_seeds=[] threads=1", "mask_seeds is []; it must list at least one seed, each zero or more"),
        ("judge evaluate threads=0", "threads is 0; it must lie between 1 and "),
        ("evaluate agent@honest=own", "the setting honest.name has no value yet; give it as honest.name=..."),
        (
            "evaluate honest=random",
            "honest is chosen with agent@honest=..., one of best_response, exact, greedy, mcts, mcts-20, own, random, silent",
        ),
        ("evaluate agent@liar=mtcs", "unknown option agent=mtcs; did you mean agent=mcts?"),
        ("evaluate agent@judge=mcts", "debate-rl evaluate: unknown setting 'agent@judge'; did you mean 'agent@"),
        (
            "evaluate honest.rolouts=3",
            "unknown setting 'honest.rolouts'; did you mean 'honest.rollouts'? (debate-rl evaluate --help lists all)",
        ),
        ("evaluate honest.rollouts=0", "rollouts is 0; it must lie between 1 and 100,000,000"),
        ("evaluate pixels=[5]", "pixels lists 5, but judges names none for it; there are 4, 6 (or add one with +judges.5=...)"),
        ("evaluate first=[honset]", "first[0] is 'honset'; it must be honest or liar (did you mean honest?)"),
        ("evaluate commit=none", "commit is 'none'; it must be a list, e.g. commit=[none]"),
        ("evaluate start=9990", "images 9990 to 10089 are not all in mnist test, which has 0 to 9999"),
        (
            "evaluate judges.6=mlp-4 dataset=fashion_mnist pixels=[6]",
            "judges.6 is mlp-4, a judge trained on mnist, but dataset.name is fashion",
        ),
        (
            "reproduce judges.4=fashion_mnist-mlp-4",
            "judges.4 is fashion_mnist-mlp-4, a judge trained on fashion_mnist, but dataset.name is m",
        ),
        ("bench judged_by=fashion_mnist-mlp-6", "judged_by is fashion_mnist-mlp-6, a judge trained on fashion_mnist, but dataset.name"),
        (
            "evaluate judges.6=${dataset.name}-mlp-9",
            "unknown judge 'mnist-mlp-9'; give one of fashion_mnist-mlp-4, fashion_mnist-mlp-6, mlp-4, mlp-6",
        ),
        ("reproduce agent=silent", "agent is silent, which only debate-rl evaluate can play, in one of its seats; choose mcts,"),
        ("bench agent=silent", "agent is silent, which only debate-rl evaluate can play, in one of its seats; choose mcts"),
        ("play agent@liar=silent", "liar is silent, which only debate-rl evaluate can play, in one of its seats; choose mcts,"),
        ("play role=liar agent@honest=silent", "honest is silent, which only debate-rl evaluate can play"),
        ("reproduce experiment=fulll", "unknown option experiment=fulll; did you mean experiment=full?"),
        ("reproduce masks=3", "masks is 3; it must be even and at least 2"),
        ("reproduce name=a/b experiment=tiny", "name is 'a/b'; it must consist of"),
        ("reproduce judges=null", "judges is None; it must be a mapping"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2_and_leaves_nothing(cli: Run, tmp_path: Path, words: str, message: str) -> None:
    code, out, err = cli(*words.split())
    assert code == BAD_INPUT
    assert err.startswith(f"debate-rl: {message}"), err
    assert err.count("\n") == 1
    assert out == ""
    assert list(tmp_path.iterdir()) == []


def test_a_plus_before_a_group_does_no_harm(cli: Run) -> None:
    assert cli("reproduce", "--cfg", "+experiment=full").out == cli("reproduce", "--cfg", "experiment=full").out


def test_cfg_prints_the_composed_configuration(cli: Run) -> None:
    import yaml

    code, out, _ = cli("judge", "--cfg", "judge=mlp-4", "train")
    config = yaml.safe_load(out)
    assert code == 0
    assert (config["action"], config["judge"]["name"], config["judge"]["pixels"]) == ("train", "mnist-mlp-4", 4)


def test_an_output_folder_that_cannot_be_written_is_one_line(cli: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code, _, err = cli("evaluate", "output=file", "count=1", "agent@honest=random", "agent@liar=random")
    assert code == BAD_INPUT and err.startswith("debate-rl: cannot write file/evaluate/evaluate-") and err.count("\n") == 1
    code, out, err = cli("bench", "output=file", "threads=1")
    assert code == BAD_INPUT and err.startswith("debate-rl: cannot write file/bench/bench-") and err.count("\n") == 1
    assert out == "", "nothing is measured before the folder is open"


@pytest.mark.parametrize("delay_s", [0.5, 4.0])  # while the kernels are compiled or loaded, and while they run
def test_ctrl_c_is_one_line_and_exit_code_130(tmp_path: Path, delay_s: float) -> None:
    command = [*COMMAND, "evaluate", "pixels=[6]", "threads=1", "block=1"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None and process.stderr.readline().startswith("run folder: ")
            time.sleep(delay_s)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=240)
        finally:
            process.kill()
    assert process.returncode == INTERRUPTED
    # Where Python dropped the interrupt inside a callback it says so itself, before our line.
    assert err.splitlines()[-1] == "debate-rl: interrupted; run the same command to resume"
    assert out == ""


def test_a_dropped_ctrl_c_is_found_at_the_next_step(tmp_path: Path) -> None:
    code = """
import os, signal
from debate_rl.cli import interrupt
from debate_rl.cli.progress import Bar
interrupt.listen()
class Dropper:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(100):
            pass
dropper = Dropper()
del dropper  # an exception in a finaliser is dropped by Python
try:
    Bar(enabled=False)("x", 0, 1)
except KeyboardInterrupt:
    print("found")
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.stdout == "found\n", done.stderr


def test_a_reader_that_goes_away_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([*COMMAND, "reproduce", "--help"], stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (done.returncode, done.stderr) == (BROKEN_PIPE, "")


def test_a_sweep_runs_every_combination_in_its_own_folder_and_leaves_nothing_else(cli: Run, tmp_path: Path) -> None:
    words = ("agent@honest=random", "agent@liar=random", "count=2", "threads=1", "pixels=[4]", "commit=[none]")
    code, out, err = cli("evaluate", "-m", *words, "seed=1,2", "repetitions=1,2")
    assert code == 0, err
    assert [path.name for path in tmp_path.iterdir()] == ["outputs"]
    folders = sorted((tmp_path / "outputs" / "evaluate").iterdir())
    assert len(folders) == 4 and all((folder / "results.jsonl").is_file() for folder in folders)
    assert out.count("rows    ") == 4
    commands = {results.read(folder / "results.jsonl")[0].command for folder in folders}
    again = shlex.split(next(command for command in commands if "seed=2" in command and "repetitions=1" in command))
    assert "finished before" in cli(*again[1:]).err  # a row's command is that of its own run


def test_a_bad_value_in_a_sweep_does_not_stop_the_others(cli: Run, tmp_path: Path) -> None:
    code, _, err = cli("judge", "evaluate", "-m", "pixels=6,six", "mask_seeds=[0]", "threads=1")
    assert code == BAD_INPUT
    assert "debate-rl: [1] pixels is 'six'; it must be a whole number\n" in err
    assert len(list((tmp_path / "outputs" / "judge").iterdir())) == 1


@pytest.mark.parametrize(
    "words", ["evaluate -m sed=1,2", "evaluate -m seed=1,2 honest.rolouts=1", "evaluate -m agent@honest=random,greddy"]
)
def test_unknown_keys_in_a_sweep_are_one_line(cli: Run, tmp_path: Path, words: str) -> None:
    code, out, err = cli(*words.split())
    assert (code, out) == (BAD_INPUT, "")
    assert err.startswith("debate-rl: unknown ") and "did you mean" in err and err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
