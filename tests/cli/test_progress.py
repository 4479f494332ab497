from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from debate_rl.cli.progress import Bar, short

CODE = """
import time
from debate_rl.cli.progress import Bar
with Bar({enabled}, "rollouts") as bar:
    for step in range(5):
        bar("table-6", 2000.0 + 1000.0 * step, 8000.0)
        time.sleep(0.15)
    bar.note("a note")
    bar("another [part]", 1, 2)
print("done")
"""


def on_a_terminal(enabled: bool) -> str:
    """What the code above draws on a terminal of 100 columns."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", CODE.format(enabled=enabled)],
        stdout=follower,
        stderr=follower,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(follower)
    parts = []
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        parts.append(part)
    os.close(leader)
    assert process.wait() == 0
    return b"".join(parts).decode()


def test_a_terminal_gets_a_bar_with_rate_and_time_left() -> None:
    drawn = on_a_terminal(True)
    for part in ("table-6", "25%", "k rollouts/s", "left", "a note", "another [part]", "done"):
        assert part in drawn, drawn


def test_the_bar_can_be_switched_off() -> None:
    drawn = on_a_terminal(False)
    assert drawn.split() == ["a", "note", "done"]


def test_nothing_is_drawn_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with Bar() as bar:
        bar("work", 1, 2)
        bar.note("a note")
    assert capsys.readouterr() == ("", "a note\n")


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0"), (7.5, "7.5"), (999, "999"), (1234, "1.23 k"), (1_234_567, "1.23 M"), (2.5e9, "2.5 G")]
)
def test_numbers_are_short(number: float, text: str) -> None:
    assert short(number) == text
