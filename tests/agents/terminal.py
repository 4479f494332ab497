"""Drives a command at a real pseudo-terminal: waits for a prompt, types the next answer."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
PROMPT = re.compile(r"(\(\? for help\):|from 0 to 9:|\d or \d:) $")

Answer = str | Callable[[str], str]  # what to type, or what to make of the text since the last prompt


@dataclass
class Sitting:
    """What came of it: the exit code, all output, and how many answers were typed."""

    code: int
    raw: str
    answered: int

    @property
    def text(self) -> str:
        return ESCAPES.sub("", self.raw).replace("\r", "")


def sit(
    command: Sequence[str],
    answers: Sequence[Answer],
    *,
    cwd: Path,
    rows: int = 24,
    columns: int = 80,
    environment: Mapping[str, str] | None = None,
    timeout_s: float = 500,
) -> Sitting:
    """Run a command at a terminal of its own and answer its prompts in order; once the answers run out it is left waiting until it ends."""
    child, terminal = pty.fork()
    if child == 0:
        try:
            # Here, not in the parent: on a busy machine the command could ask for the size first.
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.chdir(cwd)
            names = {"TERM": "xterm-256color", "COLORTERM": "truecolor", **(environment or {})}
            os.execve(
                command[0], list(command), {**{k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS", "LINES")}, **names}
            )
        finally:
            os._exit(127)
    output, read_up_to, answered = b"", 0, 0
    end = time.monotonic() + timeout_s
    try:
        while time.monotonic() < end:
            if select.select([terminal], [], [], 0.1)[0]:
                try:
                    chunk = os.read(terminal, 65536)
                except OSError:  # the command has gone
                    break
                if not chunk:
                    break
                output += chunk
                continue
            fresh = ESCAPES.sub("", output[read_up_to:].decode(errors="replace")).replace("\r", "")
            if answered < len(answers) and PROMPT.search(fresh):
                answer = answers[answered]
                typed = answer if isinstance(answer, str) else answer(fresh)
                read_up_to, answered = len(output), answered + 1
                os.write(terminal, typed.encode() + (b"" if typed in ("\x03", "\x04") else b"\n"))
        else:
            os.kill(child, signal.SIGKILL)
    except BaseException:  # an answer could not be made of what is on the screen
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        _, status = os.waitpid(child, 0)
        os.close(terminal)
    return Sitting(os.waitstatus_to_exitcode(status), output.decode(errors="replace"), answered)
