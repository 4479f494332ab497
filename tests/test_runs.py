from __future__ import annotations

import gzip
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from debate_rl import runs
from debate_rl.errors import UserError
from debate_rl.runs import RunFolder, config_hash, pack, unpack

CONFIG = {"seed": 0, "agent": {"name": "mcts", "c_puct": 1.0}, "dataset": {"name": "mnist", "source": None}, "threads": 2, "name": "x"}
RECORDS: list[dict[str, Any]] = [{"index": 1, "moves": [3, 5], "logits": [[0.1, -2.5]], "word": "ß"}, {"index": 1, "moves": []}]


def folder(tmp_path: Path, **changes: Any) -> RunFolder:
    return RunFolder.open(tmp_path, "evaluate", "run", {**CONFIG, **changes})


def test_the_hash_sees_what_can_change_a_result_and_nothing_else() -> None:
    known = config_hash(CONFIG)
    same = [
        {"threads": 8},
        {"output": "/tmp"},
        {"progress": False},
        {"name": "y"},
        {"block": 3},
        {"dataset": {"source": "/x", "name": "mnist"}},
    ]
    other = [{"seed": 1}, {"agent": {"name": "mcts", "c_puct": 2.0}}, {"dataset": {"name": "fashion_mnist"}}, {"more": None}]
    assert {config_hash({**CONFIG, **change}) for change in same} == {known}
    assert len({config_hash({**CONFIG, **change}) for change in other} | {known}) == 1 + len(other)
    assert config_hash(dict(reversed(CONFIG.items()))) == known


def test_a_folder_keeps_its_configuration_log_and_records(tmp_path: Path) -> None:
    with folder(tmp_path) as run:
        assert run.path == tmp_path / "evaluate" / f"run-{config_hash(CONFIG)}"
        assert yaml.safe_load((run.path / "config.yaml").read_text()) == CONFIG
        assert run.missing_shards("games-6", [2, 0, 1]) == [2, 0, 1]
        run.write_shard("games-6", 0, RECORDS)
        assert run.missing_shards("games-6", [2, 0, 1]) == [2, 1]
        assert run.read_shard("games-6", 0) == RECORDS
        assert not run.finished
        run.log("two\nlines")
        run.finish(["{}", "{}"])
    with folder(tmp_path, threads=1) as again:
        assert again.path == run.path and again.finished
        assert again.results.read_text() == "{}\n{}\n"
        assert list(runs.read_records(again.path)) == list(runs.read_records(again.path, "games-6")) == RECORDS
    log = (run.path / "log.txt").read_text().splitlines()
    assert log[0].endswith(" two lines") and log[1].endswith(" finished")
    assert runs.read_config(run.path)["threads"] == 1
    assert not list(run.path.rglob(".tmp-*"))


def test_a_folder_is_reopened_by_its_path(tmp_path: Path) -> None:
    with folder(tmp_path) as run:
        path = run.path
    with RunFolder.reopen(path) as again:
        assert (again.path, again.config, again.config_hash) == (path, CONFIG, run.config_hash)
    with pytest.raises(UserError, match="not a run folder"):
        RunFolder.reopen(tmp_path)


@pytest.mark.parametrize("text", ["a: [", "[" * 1_000, "a: 2001-99-99", "a: \x00", "? [a]\n: b"], ids=lambda text: repr(text[:8]))
def test_a_configuration_that_cannot_be_read_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(UserError, match="not valid YAML") as caught:
        RunFolder.reopen(tmp_path)
    assert "\n" not in str(caught.value)


def test_equal_records_give_equal_bytes() -> None:
    first = pack(RECORDS)
    time.sleep(1.1)  # gzip would store the time in seconds
    assert pack(RECORDS) == first
    assert unpack(first) == RECORDS
    assert gzip.decompress(first).count(b"\n") == len(RECORDS)


@given(st.lists(st.dictionaries(st.text(), st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()), max_size=5))
def test_any_records_come_back(records: list[dict[str, Any]]) -> None:
    assert unpack(pack(records)) == records


@given(st.data())
def test_a_cut_or_flipped_shard_is_never_taken_for_a_whole_one(data: st.DataObject) -> None:
    whole = pack(RECORDS)
    at = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(ValueError):
        unpack(whole[:at])
    flipped = bytearray(whole)
    flipped[at] ^= 1 << data.draw(st.integers(0, 7))
    with suppress(ValueError):
        assert unpack(bytes(flipped)) == RECORDS  # bytes of the header that mean nothing, such as the time


@pytest.mark.parametrize("damage", [lambda data: data[:-5], lambda data: b"", lambda data: data[:20] + b"\0" + data[21:]])
def test_a_broken_shard_is_reported_and_computed_again(tmp_path: Path, damage: Any) -> None:
    with folder(tmp_path) as run:
        run.write_shard("games", 7, RECORDS)
        path = run.shard_path("games", 7)
        path.write_bytes(damage(path.read_bytes()))
        with pytest.raises(UserError, match="is broken"):
            run.read_shard("games", 7)
        with pytest.raises(UserError, match="is broken"):
            list(runs.read_records(run.path))
        assert run.missing_shards("games", [7]) == [7]
        assert not path.exists()
        assert "the shard games/7 is broken" in (run.path / "log.txt").read_text()
        with pytest.raises(UserError, match="is missing"):
            run.read_shard("games", 7)


@pytest.mark.parametrize("lines", [b"[" * 100_000, b"{", b"\xff"], ids=["nested too deep", "no JSON", "no text"])
def test_a_whole_shard_of_odd_lines_is_one_line(tmp_path: Path, lines: bytes) -> None:
    with folder(tmp_path) as run:
        path = run.shard_path("games", 7)
        path.parent.mkdir(parents=True)
        path.write_bytes(gzip.compress(lines))
        for read in (lambda: run.read_shard("games", 7), lambda: list(runs.read_records(run.path))):
            with pytest.raises(UserError, match="is broken") as caught:
                read()
            assert "\n" not in str(caught.value)


def test_records_that_json_cannot_hold_leave_no_file(tmp_path: Path) -> None:
    with folder(tmp_path) as run:
        with pytest.raises(ValueError):
            run.write_shard("games", 1, [{"value": float("nan")}])
        assert run.missing_shards("games", [1]) == [1]


@pytest.mark.parametrize("name", ["", "a b", "../up", "a/b", ".hidden", "-m"])
def test_odd_names_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match="must consist of"):
        RunFolder.open(tmp_path, "evaluate", name, CONFIG)
    with folder(tmp_path) as run, pytest.raises(UserError, match="must consist of"):
        run.shard_path(name, 0)


def test_the_librarys_warnings_go_to_the_log_of_the_open_folder(tmp_path: Path) -> None:
    import logging

    with folder(tmp_path) as run:
        logging.getLogger("debate_rl.results").warning("something %s", "odd")
    logging.getLogger("debate_rl.results").warning("too late")
    assert (run.path / "log.txt").read_text().rstrip().endswith("warning: something odd")


def test_a_failed_run_says_so_in_its_log(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), folder(tmp_path) as run:
        raise RuntimeError("boom")
    assert (run.path / "log.txt").read_text().rstrip().endswith("stopped: RuntimeError boom")


# locks, kills and full disks, with real processes

PREAMBLE = f"""
import sys, time
from pathlib import Path
from debate_rl.runs import RunFolder
from debate_rl.errors import UserError
CONFIG = {CONFIG!r}
root = Path(sys.argv[1])
"""


def start(code: str, root: Path) -> subprocess.Popen[str]:
    script = PREAMBLE + textwrap.dedent(code)
    return subprocess.Popen([sys.executable, "-c", script, str(root)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_second_process_is_told_who_holds_the_folder_and_takes_over_when_it_is_dead(tmp_path: Path) -> None:
    holder = start("run = RunFolder.open(root, 'evaluate', 'run', CONFIG)\nprint('open', flush=True)\ntime.sleep(60)", tmp_path)
    assert holder.stdout is not None and holder.stdout.readline() == "open\n"
    with pytest.raises(UserError, match=f"in use by process {holder.pid}:"):
        folder(tmp_path)
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    with folder(tmp_path) as run:
        assert (run.path / ".lock").read_text() == f"{os.getpid()}\n"
        with pytest.raises(UserError, match=f"in use by process {os.getpid()}:"):
            folder(tmp_path)


WRITER = """
run = RunFolder.open(root, 'evaluate', 'run', CONFIG)
print('open', flush=True)
for index in run.missing_shards('games', range(400)):
    run.write_shard('games', index, [{'index': index, 'filler': [index + n for n in range(20000)]}] * 3)
run.finish(['{}'])
"""


def test_kills_at_random_moments_leave_only_whole_files_and_the_same_bytes_in_the_end(tmp_path: Path) -> None:
    chance = random.Random(0)
    path = tmp_path / "evaluate" / f"run-{config_hash(CONFIG)}"
    for _ in range(10):
        before, wanted = len(list(path.rglob("0*.gz"))), chance.randint(0, 5)
        writer = start(WRITER, tmp_path)
        assert writer.stdout is not None and writer.stdout.readline() == "open\n"
        while len(list(path.rglob("0*.gz"))) < before + wanted and writer.poll() is None:
            time.sleep(0.001)
        time.sleep(chance.uniform(0.0, 0.03))
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
        assert writer.returncode == -signal.SIGKILL, "the writer ended before it was killed"
        for shard in path.rglob("*.jsonl.gz"):
            if not shard.name.startswith("."):
                records = unpack(shard.read_bytes())
                assert len(records) == 3 and shard.name == f"{records[0]['index']:05d}.jsonl.gz"
    assert list(path.rglob("*.jsonl.gz")), "the kills came too early to test anything"
    with RunFolder.open(tmp_path, "evaluate", "run", CONFIG) as run:
        assert not list(run.path.rglob(".tmp-*"))
        for index in run.missing_shards("games", range(20)):
            run.write_shard("games", index, [{"index": index, "filler": [index + n for n in range(20000)]}] * 3)
    with RunFolder.open(tmp_path / "straight", "evaluate", "run", CONFIG) as straight:
        for index in range(20):
            straight.write_shard("games", index, [{"index": index, "filler": [index + n for n in range(20000)]}] * 3)
            assert straight.shard_path("games", index).read_bytes() == run.shard_path("games", index).read_bytes()


class KilledError(BaseException):
    """Stands for the end of the process."""


def test_a_file_is_replaced_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed between the writing and the renaming, the old content is there, and the new one lies whole beside it."""
    path = tmp_path / "file"
    runs.write_whole(path, b"old")
    drafts: list[bytes] = []

    def kill(draft: str, target: Path) -> None:
        assert Path(target) == path and Path(draft).parent == tmp_path  # of the same file system
        drafts.append(Path(draft).read_bytes())
        raise KilledError

    with monkeypatch.context() as patched, pytest.raises(KilledError):
        patched.setattr(os, "replace", kill)
        runs.write_whole(path, b"new and longer")
    assert (path.read_bytes(), drafts) == (b"old", [b"new and longer"])
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
    runs.write_whole(path, b"new and longer")
    assert path.read_bytes() == b"new and longer"


def test_a_run_killed_while_it_writes_its_rows_is_not_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def kill(draft: str, target: Path) -> None:
        raise KilledError

    with pytest.raises(KilledError), folder(tmp_path) as run:
        run.write_shard("games", 0, RECORDS)
        monkeypatch.setattr(os, "replace", kill)
        run.finish(["{}"])
    monkeypatch.undo()
    with folder(tmp_path) as again:
        assert not again.finished and again.missing_shards("games", [0]) == []


def test_half_written_files_are_removed_at_the_start(tmp_path: Path) -> None:
    with folder(tmp_path) as run:
        run.write_shard("games", 0, RECORDS)
        draft = run.shard_path("games", 1).parent / ".tmp-00001.jsonl.gz-abc"
        draft.write_bytes(b"half")
    with folder(tmp_path):
        assert not draft.exists()


@contextmanager
def nobody() -> Iterator[None]:
    """Without root's right to write everywhere."""
    if os.geteuid() == 0:
        os.seteuid(65534)
        try:
            yield
        finally:
            os.seteuid(0)
    else:
        yield


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    output = tmp_path / "outputs"
    output.mkdir()
    for path in (output, *output.parents):
        if path.is_relative_to(tmp_path.parents[1]):
            path.chmod(0o555)
    try:
        with nobody(), pytest.raises(UserError, match=r"cannot write .*Permission denied.*set output") as caught:
            RunFolder.open(output, "evaluate", "run", CONFIG)
        assert "\n" not in str(caught.value)
    finally:
        for path in (output, *output.parents):
            if path.is_relative_to(tmp_path.parents[1]):
                path.chmod(0o755)


def test_a_file_that_cannot_be_added_to_is_one_line(tmp_path: Path) -> None:
    with folder(tmp_path) as run:
        run.append("times.jsonl", "a\n")
        run.append("times.jsonl", "b\n")
        assert (run.path / "times.jsonl").read_text() == "a\nb\n"
        (run.path / "folder").mkdir()
        with pytest.raises(UserError, match=r"cannot write .*folder") as caught:
            run.append("folder", "a\n")
        assert "\n" not in str(caught.value)
        (run.path / "full").symlink_to("/dev/full")
        with pytest.raises(UserError, match=r"no room to write .*full .*free some space"):
            run.append("full", "a\n")


def test_an_output_that_is_a_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "outputs").touch()
    with pytest.raises(UserError, match=r"cannot write .*Not a directory"):
        RunFolder.open(tmp_path / "outputs", "evaluate", "run", CONFIG)


def test_a_full_disk_is_one_line_and_leaves_no_half_file(tmp_path: Path) -> None:
    full = start(
        """
        import resource
        run = RunFolder.open(root, 'evaluate', 'run', CONFIG)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))  # writing past it fails as on a full disk
        try:
            run.write_shard('games', 0, [{'filler': [(n * 7919) % 104729 for n in range(20000)]}])
        except UserError as error:
            print(error)
        print(list(run.path.rglob('.tmp-*')), run.missing_shards('games', [0]))
        """,
        tmp_path,
    )
    out, err = full.communicate()
    assert full.returncode == 0, err
    first, second = out.splitlines()
    assert first.startswith("no room to write ") and "free some space" in first
    assert second == "[] [0]"


def test_a_really_full_disk(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True).returncode:
        pytest.skip("needs the right to mount a small file system")
    try:
        with RunFolder.open(disk, "evaluate", "run", CONFIG) as run:
            with pytest.raises(UserError, match=r"no room to write .*No space left on device"):
                for index in range(100):
                    run.write_shard("games", index, [{"filler": [random.Random(n).random() for n in range(2000)]}])
            assert not list(run.path.rglob(".tmp-*"))
            assert all(unpack(shard.read_bytes()) for shard in run.path.rglob("*.jsonl.gz"))
            with pytest.raises(UserError, match=r"no room to write .*times\.jsonl"):
                for _ in range(100):
                    run.append("times.jsonl", "x" * 4096)
    finally:
        subprocess.run(["umount", str(disk)], check=True)
