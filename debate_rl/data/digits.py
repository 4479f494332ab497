"""`load` and `fetch`: the complete, verified digits of a split, from a local folder, the cache or a source."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from debate_rl.data.cache import cache_folder, locked, raw_folder, store
from debate_rl.data.catalog import Dataset, IdxFile, dataset
from debate_rl.data.idx import parse_idx, read_file, verify
from debate_rl.data.sources import SOURCE_LIMIT_S, SourceError, deliver, local_files, read_local
from debate_rl.errors import UserError

SOURCE_VARIABLE: Final = "DEBATE_RL_DATA_SOURCE"
"""Environment variable with a local folder of IDX files, used before the cache and every other source."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Digits:
    """One whole split. `hash` is the md5 of the image file and of the label file, joined by a dash: the official ones, always."""

    name: str
    split: str
    images: NDArray[np.uint8]  # (N, 28, 28), 0 black to 255 white
    labels: NDArray[np.uint8]  # (N,), 0 to 9
    hash: str

    def __len__(self) -> int:
        """The number of images."""
        return len(self.labels)


@dataclass(frozen=True)
class Fetched:
    """What `fetch` found or did: the cache folder of the four files, their md5s, and the source (`cache` when they were there already)."""

    name: str
    folder: Path
    source: str
    md5: dict[str, str]


def load(name: str, split: str, *, source: str | Path | None = None, cache: str | Path | None = None) -> Digits:
    """The complete split `train` (60,000 images) or `test` (10,000) of `mnist` or `fashion_mnist`, verified against the official md5s.

    A local folder (`source`, else `$DEBATE_RL_DATA_SOURCE`) is read in place; otherwise the cache is read, and filled first when need be.
    The hash is computed at every load (about 0.1 s for a training split). The arrays are the caller's own and may be written to.

    Raises UserError for an unknown name or split, a local file that is not the official one, and when no source delivers.
    """
    entry = dataset(name)
    files = entry.split(split)
    local = _local(entry, source)
    if local:
        return _digits(entry, split, files, read_local(local, files))
    home = _cache(cache)
    verified, _ = _cached(home, entry, files)
    if len(verified) < len(files):
        folder = fetch(name, cache=home).folder
        verified, _ = _cached(home, entry, files)
        if len(verified) < len(files):
            raise UserError(f"the files in {folder} change while they are read: end whatever writes there, then try again")
    return _digits(entry, split, files, verified)


def fetch(
    name: str,
    *,
    source: str | Path | None = None,
    cache: str | Path | None = None,
    refresh: bool = False,
    limit_s: float = SOURCE_LIMIT_S,
    notify: Callable[[str], None] = _log.info,
) -> Fetched:
    """Make sure that the cache holds the four official files of `name`, and say where they came from.

    Order: a local folder (`source`, else `$DEBATE_RL_DATA_SOURCE`), the cache unless `refresh`, then the data set's sources; a tool that a
    source uses may run for `limit_s` seconds. `notify` is told one line per step. Any number of processes may call this at once: one
    fetches, the others wait.

    Raises UserError for an unknown name, a bad local folder, an unwritable cache, and, with every reason, when no source delivers.
    """
    entry = dataset(name)
    home = _cache(cache)
    local = _local(entry, source)
    if local:
        files = read_local(local, entry.files)
        if refresh or not _complete(home, entry):
            with locked(home, entry, notify) as workspace:
                store(home, entry, files, workspace)
        return _fetched(entry, home, str(next(iter(local.values())).parent))
    if not refresh and _complete(home, entry):
        return _fetched(entry, home, "cache")
    with locked(home, entry, notify) as workspace:
        verified, faults = _cached(home, entry, entry.files)
        if len(verified) == len(entry.files) and not refresh:
            return _fetched(entry, home, "cache")
        for fault in faults:
            notify(f"{fault}; fetching it again")
        winner, files = _first_that_delivers(entry, workspace, limit_s, faults, notify)
        store(home, entry, files, workspace)
    return _fetched(entry, home, winner)


def _first_that_delivers(
    entry: Dataset, workspace: Path, limit_s: float, faults: Sequence[str], notify: Callable[[str], None]
) -> tuple[str, dict[str, bytes]]:
    reasons = []
    for source in entry.sources:
        notify(f"fetching {entry.name} from {source}")
        try:
            return source, deliver(source, entry, workspace, limit_s)
        except SourceError as error:
            reasons.append(f"{source}: {error}")
            notify(reasons[-1])
    broken = "".join(f"{fault}; " for fault in faults)
    names = ", ".join(file.name for file in entry.files)
    raise UserError(
        f"{broken}{entry.name} could not be fetched ({'; '.join(reasons)}): "
        f"set {SOURCE_VARIABLE} to a folder that holds {names}, plain or .gz, or try again with a network"
    )


def _cached(home: Path, entry: Dataset, files: Sequence[IdxFile]) -> tuple[dict[str, bytes], list[str]]:
    """The cached files that are official, and a line for each that is there and is not; a missing file is in neither."""
    verified: dict[str, bytes] = {}
    faults = []
    for file in files:
        path = raw_folder(home, entry) / file.name
        if not os.path.exists(path):  # unlike Path.exists, an unreadable folder is no error here: writing to it will say so
            continue
        try:
            data = read_file(path, file)
            verify(data, file, str(path))
            verified[file.name] = data
        except UserError as error:
            faults.append(str(error))
    return verified, faults


def _complete(home: Path, entry: Dataset) -> bool:
    return len(_cached(home, entry, entry.files)[0]) == len(entry.files)


def _local(entry: Dataset, source: str | Path | None) -> dict[str, Path]:
    """The files of a local folder; empty when none is set, or when the environment's folder holds another data set."""
    if source is None:
        chosen = os.environ.get(SOURCE_VARIABLE)
        return local_files(Path(chosen).expanduser(), entry) if chosen else {}
    paths = local_files(Path(source).expanduser(), entry)
    if not paths:
        raise UserError(
            f"the data source {source} holds no {entry.files[0].name} (plain or .gz), nor do {entry.folder}/raw and {entry.name} in it"
        )
    return paths


def _cache(cache: str | Path | None) -> Path:
    return cache_folder() if cache is None else Path(cache).expanduser().absolute()


def _fetched(entry: Dataset, home: Path, source: str) -> Fetched:
    return Fetched(entry.name, raw_folder(home, entry), source, {file.name: file.md5 for file in entry.files})


def _digits(entry: Dataset, split: str, files: tuple[IdxFile, IdxFile], data: dict[str, bytes]) -> Digits:
    images, labels = files
    return Digits(
        name=entry.name,
        split=split,
        images=parse_idx(data[images.name], images.name),
        labels=parse_idx(data[labels.name], labels.name),
        hash=f"{images.md5}-{labels.md5}",
    )
