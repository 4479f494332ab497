"""The official files, folders made of them, and a machine without network."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from debate_rl import data


@pytest.fixture(scope="session")
def official() -> Path:
    """The cache folder of MNIST's four verified IDX files: read only."""
    return data.fetch("mnist").folder


@pytest.fixture(autouse=True)
def _no_local_source(official: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(data.SOURCE_VARIABLE, raising=False)


@pytest.fixture
def folder(official: Path, tmp_path: Path) -> Path:
    """A folder of its own with links to the official files."""
    return linked(official, tmp_path / "idx")


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No npm, apt-get or dpkg-deb on the PATH, and every connection refused: pip and torchvision go through a proxy that is not there."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
        monkeypatch.setenv(name.upper(), "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)


def linked(official: Path, target: Path) -> Path:
    target.mkdir(parents=True)
    for path in official.iterdir():
        os.symlink(path, target / path.name)
    return target


def replace(path: Path, content: bytes) -> None:
    """Put other bytes in the place of a link, leaving what it pointed to alone."""
    path.unlink()
    path.write_bytes(content)


def flipped(content: bytes) -> bytes:
    """The same bytes with one bit of the last one turned."""
    return content[:-1] + bytes([content[-1] ^ 1])
