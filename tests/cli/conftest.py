from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from debate_rl.cli import main


class Result(NamedTuple):
    """What a command line came to."""

    code: int
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command line in an empty working folder."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> Result:
        code = main(words)
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return run
