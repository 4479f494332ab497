"""Ctrl-C that cannot get lost.

Python drops a KeyboardInterrupt that is raised inside a callback of compiled code (numba compiles through many). The key press is therefore
remembered, and every step of long work asks for it.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType

_pressed = False


def listen() -> None:
    """Remember Ctrl-C from now on. Only the main thread may set handlers; elsewhere this does nothing."""
    global _pressed
    _pressed = False
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _remember)


def check() -> None:
    """Raise KeyboardInterrupt if Ctrl-C was pressed and dropped."""
    if _pressed:
        raise KeyboardInterrupt


def _remember(number: int, frame: FrameType | None) -> None:
    global _pressed
    _pressed = True
    raise KeyboardInterrupt
