"""Run folders: where a run keeps its configuration, log, records and rows so that a kill at any instant loses nothing.

    <output root>/<verb>/<name>-<config hash>/
        config.yaml     the resolved configuration
        log.txt         what happened, with times
        records/        shards of game records: gzip JSON lines
        results.jsonl   the rows; it appears last, whole, and its presence means that the run is finished

Every file but the log appears by one rename of a synced temporary file, so it is there whole or not at all. Work is cut into shards;
the same command run again computes the missing ones. One process at a time holds a folder's lock.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import gzip
import hashlib
import json
import logging
import os
import re
import tempfile
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import yaml  # type: ignore[import-untyped]

from debate_rl.errors import UserError

NOT_HASHED: Final = frozenset({"name", "output", "progress", "threads", "block", "dataset.source", "dataset.cache"})
"""Settings, by dotted name, that cannot change a result; they are left out of the configuration's hash."""

HASH_DIGITS: Final = 12  # hexadecimal digits of a configuration's hash

_TEMPORARY: Final = ".tmp-"
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.=+-]*")

_NAME_RULE: Final = "must consist of letters, digits, '_', '-', '.', '=' and '+', and begin with a letter, a digit or '_'"


def canonical(config: Mapping[str, Any]) -> str:
    """A configuration as JSON with sorted keys and without `NOT_HASHED`: equal texts mean equal results."""

    def kept(node: Mapping[str, Any], where: str) -> dict[str, Any]:
        return {
            key: kept(value, f"{where}{key}.") if isinstance(value, Mapping) else value
            for key, value in node.items()
            if f"{where}{key}" not in NOT_HASHED
        }

    return json.dumps(kept(config, ""), sort_keys=True, separators=(",", ":"), allow_nan=False, default=str)


def config_hash(config: Mapping[str, Any]) -> str:
    """The first `HASH_DIGITS` hexadecimal digits of the sha256 of `canonical(config)`."""
    return hashlib.sha256(canonical(config).encode()).hexdigest()[:HASH_DIGITS]


def write_whole(path: str | Path, data: bytes) -> None:
    """Write a file whole or not at all, see `replace_synced`, and its folder if need be.

    Raises UserError when the disk is full or the folder cannot be written.
    """
    path = Path(path)
    with _writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_synced(path, data)


def replace_synced(path: Path, data: bytes, drafts: Path | None = None) -> None:
    """Put a file in its place whole or not at all: a temporary file, synced, renamed over `path`, the folder synced. Raises OSError.

    The temporary file lies in the folder `drafts`, of the same file system; by default beside `path`.
    """
    descriptor, draft = tempfile.mkstemp(prefix=f"{_TEMPORARY}{path.name}-", dir=drafts or path.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fchmod(stream.fileno(), 0o666 & ~_umask())  # mkstemp's own mode is private
            os.fsync(stream.fileno())
        os.replace(draft, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise
    sync(path.parent)


def sync(path: Path) -> None:
    """Have what was written of a file, or the names in a folder, on the disk before going on. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def pack(records: Iterable[Mapping[str, Any]]) -> bytes:
    """Records as gzip JSON lines; equal records give equal bytes."""
    lines = [json.dumps(record, separators=(",", ":"), allow_nan=False, ensure_ascii=False) + "\n" for record in records]
    return gzip.compress("".join(lines).encode(), compresslevel=6, mtime=0)


def unpack(data: bytes) -> list[dict[str, Any]]:
    """The records in gzip JSON lines. Raises ValueError when the bytes are cut short, their checksum is wrong or a line is no JSON."""
    try:
        return [json.loads(line) for line in _decompress(data).splitlines()]
    except RecursionError:
        raise ValueError("it is nested too deep") from None


class RunFolder:
    """One run's folder, locked while it is open. Use it as a context manager.

    Attributes:
        path: the folder.
        config: the resolved configuration.
        config_hash: its hash.
    """

    def __init__(self, path: Path, config: Mapping[str, Any], provenance: Mapping[str, Any] | None = None) -> None:
        """Lock the folder, creating it if need be; `open` and `reopen` are the usual ways in."""
        self.path = path
        self.config = dict(config)
        self.config_hash = config_hash(config)
        self._provenance = dict(provenance or {})
        self._lock = self._acquire()
        try:
            self._clean()
            text = yaml.safe_dump(json.loads(json.dumps(self.config, default=str)), sort_keys=False, allow_unicode=True)
            if _read_if_there(self.path / "config.yaml") != text.encode():
                write_whole(self.path / "config.yaml", text.encode())
            self._handler = _LogHandler(self.path / "log.txt")
            logging.getLogger("debate_rl").addHandler(self._handler)
        except BaseException:
            os.close(self._lock)
            raise

    @classmethod
    def open(
        cls, output: str | Path, verb: str, name: str, config: Mapping[str, Any], *, provenance: Mapping[str, Any] | None = None
    ) -> RunFolder:
        """The folder of a configuration, new or begun before.

        Args:
            output: the root of all run folders.
            verb: e.g. `reproduce`.
            name: the readable part of the folder's name.
            config: the resolved configuration, JSON-ready.
            provenance: what every row of the run says besides its figure, see `provenance`.

        Raises:
            UserError: a bad name, a folder that another process holds, a full disk, a folder that cannot be written.
        """
        if not _NAME.fullmatch(name):
            raise UserError(f"name is {name!r}; it {_NAME_RULE}")
        path = Path(output).expanduser() / verb / f"{name}-{config_hash(config)}"
        folder = cls(path, config, provenance)
        if "command" in folder._provenance:
            folder.log(f"command: {folder._provenance['command']}")
        return folder

    @classmethod
    def reopen(cls, path: str | Path) -> RunFolder:
        """An existing run folder by its path. Raises UserError when it is none."""
        path = Path(path).expanduser()
        return cls(path, read_config(path))

    @property
    def provenance(self) -> dict[str, Any]:
        """`config_hash`, `code`, `command` and `machine`: keyword arguments for `ResultRow`."""
        return {"config_hash": self.config_hash, **self._provenance}

    @property
    def results(self) -> Path:
        """The file of rows."""
        return self.path / "results.jsonl"

    @property
    def finished(self) -> bool:
        """Whether the run has written its rows."""
        return self.results.is_file()

    def finish(self, rows: Iterable[str]) -> None:
        """Write the rows, one JSON line each (`ResultRow.line`); the run is then finished."""
        write_whole(self.results, "".join(row + "\n" for row in rows).encode())
        self.log("finished")

    def log(self, message: str) -> None:
        """Add a line to `log.txt`."""
        self._handler.write(message)

    def write(self, name: str, data: bytes | str) -> Path:
        """Write a file of the run whole or not at all; `name` is relative to the folder. Returns its path."""
        write_whole(self.path / name, data.encode() if isinstance(data, str) else data)
        return self.path / name

    def append(self, name: str, text: str) -> None:
        """Add to a file of the run that is no result; a kill may cut its end short."""
        path = self.path / name
        with _writing(path), path.open("a", encoding="utf-8") as stream:
            stream.write(text)

    def shard_path(self, subject: str, index: int) -> Path:
        """Where the records of one item (image) of a subject (study) lie."""
        if not _NAME.fullmatch(subject):
            raise UserError(f"shard subject is {subject!r}; it {_NAME_RULE}")
        return self.path / "records" / subject / f"{index:05d}.jsonl.gz"

    def missing_shards(self, subject: str, indices: Iterable[int]) -> list[int]:
        """Those of the items whose shards have to be computed, in the given order: absent ones, and broken ones, which are removed."""
        return [index for index in indices if not self._intact(subject, index)]

    def write_shard(self, subject: str, index: int, records: Iterable[Mapping[str, Any]]) -> None:
        """Write an item's records whole or not at all."""
        write_whole(self.shard_path(subject, index), pack(records))

    def read_shard(self, subject: str, index: int) -> list[dict[str, Any]]:
        """An item's records. Raises UserError when they are absent or broken; `missing_shards` tells beforehand."""
        return _read_shard(self.shard_path(subject, index))

    def close(self) -> None:
        """Give the lock back."""
        logging.getLogger("debate_rl").removeHandler(self._handler)
        self._handler.close()
        os.close(self._lock)

    def __enter__(self) -> Self:
        """The folder itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close the folder and, if the run failed, say so in its log."""
        if error is not None:
            with contextlib.suppress(UserError):
                self.log(f"stopped: {kind.__name__ if kind else ''} {error}".rstrip())
        self.close()

    def _intact(self, subject: str, index: int) -> bool:
        path = self.shard_path(subject, index)
        data = _read_if_there(path)
        if data is None:
            return False
        try:
            _decompress(data)
        except ValueError as error:
            self.log(f"the shard {subject}/{index} is broken ({error}) and will be computed again")
            with _writing(path):
                path.unlink()
            return False
        return True

    def _acquire(self) -> int:
        with _writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                # The lock belongs to the open file: the kernel frees it when its holder dies, however it dies.
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
                os.close(descriptor)
                raise UserError(
                    f"the run folder {self.path} is in use by process {holder or '(unknown)'}: wait for it or end it, then run this again"
                ) from None
            except BaseException:
                os.close(descriptor)
                raise
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
            return descriptor

    def _clean(self) -> None:
        """Remove what a killed process left half-written."""
        with _writing(self.path):
            for draft in self.path.rglob(f"{_TEMPORARY}*"):
                if draft.is_file():
                    draft.unlink()


def read_config(path: str | Path) -> dict[str, Any]:
    """The configuration of an existing run folder. Raises UserError when the path is none."""
    path = Path(path).expanduser()
    data = _read_if_there(path / "config.yaml")
    if data is None:
        raise UserError(f"{path} is not a run folder: it has no config.yaml")
    try:
        config = yaml.safe_load(data)
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: a date that cannot be
        raise UserError(f"{path / 'config.yaml'} is not valid YAML ({' '.join(str(error).split())})") from error
    if not isinstance(config, dict):
        raise UserError(f"{path / 'config.yaml'} does not hold a configuration")
    return config


def read_records(path: str | Path, subject: str = "") -> Iterator[dict[str, Any]]:
    """The records of a run folder, or of one subject in it, in the order of the shards' names. Raises UserError for a broken shard."""
    root = Path(path).expanduser() / "records" / subject
    for shard in sorted(root.rglob("*.jsonl.gz")):
        yield from _read_shard(shard)


def read_shard(folder: Path, index: int) -> list[dict[str, Any]]:
    """The records of one item in a subject's folder of shards. Raises UserError when they are absent or broken."""
    return _read_shard(folder / f"{index:05d}.jsonl.gz")


def _read_shard(path: Path) -> list[dict[str, Any]]:
    data = _read_if_there(path)
    if data is None:
        raise UserError(f"the shard {path} is missing: run the same command again to compute it")
    try:
        return unpack(data)
    except ValueError as error:
        raise UserError(f"the shard {path} is broken ({error}): run the same command again to compute it anew") from error


class _LogHandler(logging.Handler):
    """Writes the library's log records, and the run's own lines, to `log.txt`."""

    def __init__(self, path: Path) -> None:
        super().__init__(logging.INFO)
        self.path = path

    def emit(self, record: logging.LogRecord) -> None:
        self.write(f"{record.levelname.lower()}: {record.getMessage()}")

    def write(self, message: str) -> None:
        line = f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} {' '.join(message.split())}\n"
        with _writing(self.path), self.path.open("a", encoding="utf-8") as stream:
            stream.write(line)


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except UserError:
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            message = f"no room to write {path} ({error.strerror}): free some space or set output to a folder on another disk"
        else:
            message = f"cannot write {path} ({error.strerror or error}): set output to a folder that you can write to"
        raise UserError(message) from error


def _read_if_there(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror or error})") from error


def _decompress(data: bytes) -> bytes:
    if not data:
        raise ValueError("it is empty")
    try:
        return gzip.decompress(data)
    except EOFError:
        raise ValueError("it is cut short") from None
    except (OSError, zlib.error) as error:
        raise ValueError(str(error)) from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
