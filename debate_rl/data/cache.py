"""The per-user cache: where it is, who may write to it, and how a file gets in whole or not at all.

`<cache>/MNIST/raw/` is laid out as torchvision lays out its own root, so `torchvision.datasets.MNIST(<cache>)` can read it.
Readers need no lock: a file appears by one rename and is verified whenever it is read.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from debate_rl.data.catalog import Dataset
from debate_rl.errors import UserError
from debate_rl.runs import replace_synced

CACHE_VARIABLE: Final = "DEBATE_RL_CACHE"
"""Environment variable that moves the cache."""

LOCK_LIMIT_S: Final = 1800.0
"""Seconds to wait for another process that is fetching the same data."""

_WORKSPACE: Final = ".fetch-"
_POLL_S: Final = 0.05


def cache_folder() -> Path:
    """The cache: `$DEBATE_RL_CACHE`, else `debate-rl` in `$XDG_CACHE_HOME`, `~/.cache` or, on a Mac, `~/Library/Caches`."""
    override = os.environ.get(CACHE_VARIABLE)
    if override:
        return Path(override).expanduser().absolute()
    try:
        platform = Path("~/Library/Caches" if sys.platform == "darwin" else os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    except RuntimeError as error:
        raise UserError(f"no home folder to keep the data in: set {CACHE_VARIABLE} to a writable folder") from error
    return platform.absolute() / "debate-rl"


def raw_folder(cache: Path, dataset: Dataset) -> Path:
    """The folder of a data set's four IDX files inside the cache."""
    return cache / dataset.folder / "raw"


@contextlib.contextmanager
def locked(cache: Path, dataset: Dataset, notify: Callable[[str], None]) -> Iterator[Path]:
    """Hold the right to fill the cache for `dataset`; yields an empty workspace folder inside the cache, removed afterwards.

    The lock belongs to the open file, so the kernel frees it when its holder dies; what a killed holder left is removed by the next one.
    Raises UserError when the cache cannot be written, or when another process has held the lock for half an hour.
    """
    home = cache / dataset.folder
    with _writing(cache):
        home.mkdir(parents=True, exist_ok=True)
        handle = os.open(home / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        _wait_for_lock(handle, cache, dataset, notify)
        with _writing(cache):
            for leftover in home.glob(f"{_WORKSPACE}*"):
                shutil.rmtree(leftover, ignore_errors=True)
            workspace = Path(tempfile.mkdtemp(prefix=_WORKSPACE, dir=home))
        try:
            yield workspace
        finally:
            shutil.rmtree(workspace, ignore_errors=True)
    finally:
        os.close(handle)


def store(cache: Path, dataset: Dataset, files: dict[str, bytes], workspace: Path) -> None:
    """Put verified `files` into the cache: each whole or not at all, from a draft in the workspace.

    Call it while holding `locked`. Raises UserError when the disk is full or the cache cannot be written.
    """
    folder = raw_folder(cache, dataset)
    with _writing(cache):
        folder.mkdir(exist_ok=True)
        for name, data in files.items():
            replace_synced(folder / name, data, workspace)


def _wait_for_lock(handle: int, cache: Path, dataset: Dataset, notify: Callable[[str], None]) -> None:
    deadline = time.monotonic() + LOCK_LIMIT_S
    waiting = False
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if not waiting:
                notify(f"waiting for another process that is fetching {dataset.name}")
                waiting = True
        except OSError as error:
            raise UserError(_unwritable(cache, error)) from error
        if time.monotonic() > deadline:
            raise UserError(
                f"another process has been fetching {dataset.name} into {cache} for {LOCK_LIMIT_S / 60:.0f} minutes: end it, then try again"
            )
        time.sleep(_POLL_S)


@contextlib.contextmanager
def _writing(cache: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(_unwritable(cache, error)) from error


def _unwritable(cache: Path, error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return f"no room for the data in the cache {cache} ({error.strerror}): free 60 MB there, or set {CACHE_VARIABLE} to another folder"
    return f"the cache {cache} cannot be written ({error.strerror or error}): set {CACHE_VARIABLE} to a writable folder"
