"""Talking to a person at a terminal: lines out, checked answers in."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Literal, TypeVar

from rich.console import Console, RenderableType
from rich.text import Text

from debate_rl.agents.screen import Picture, View, beside, draw
from debate_rl.errors import UserError

Answer = TypeVar("Answer")

_LARGE_HEIGHT = 42  # lines that the large view, the words around it and the prompt need
_LARGE_WIDTH = 60
_PAIR_WIDTH = 68  # columns of two compact pictures side by side


class Quit(UserError):  # noqa: N818 (nothing went wrong)
    """The person left the game."""


class Terminal:
    """Asks and shows. Answers are lines on standard input; `q` leaves, `?` shows help, anything wrong is asked again."""

    def __init__(self, view: Literal["auto", "compact", "large"] = "auto") -> None:
        """Use standard input and output.

        Raises:
            UserError: standard input is not a terminal.
        """
        if not sys.stdin.isatty():
            raise UserError("a person needs a terminal to play at, but standard input is not one; run the command in a terminal")
        self.console = Console(highlight=False)
        self._view = view

    @property
    def coloured(self) -> bool:
        """Whether the terminal shows colours (it may be told not to with NO_COLOR)."""
        return self.console.color_system is not None and not self.console.no_color

    def view(self) -> View:
        """The size of pictures: the asked one, or what fits the window. Without colours only `large` can be read."""
        if not self.coloured:
            return "large"
        if self._view != "auto":
            return self._view
        return "large" if self.console.height >= _LARGE_HEIGHT and self.console.width >= _LARGE_WIDTH else "compact"

    def say(self, *lines: RenderableType) -> None:
        """Print lines."""
        for line in lines:
            self.console.print(line)

    def show(self, *pictures: tuple[str, Picture]) -> None:
        """Draw one or two titled pictures: side by side when compact, one after the other when large."""
        view = self.view()
        drawings = [(title, draw(picture, view, coloured=self.coloured)) for title, picture in pictures]
        if view == "compact" and len(drawings) == 2 and self.console.width >= _PAIR_WIDTH:
            (left, a), (right, b) = drawings
            drawings = [("", beside([Text(f"    {left:<28}"), *a], [Text(f"    {right:<28}"), *b]))]
        for title, lines in drawings:
            self.say(*([Text(title)] if title else []), *lines)

    def ask(self, question: str, read: Callable[[str], Answer], help_lines: Callable[[], None]) -> Answer:
        """Ask until `read` accepts the answer. `read` raises UserError with a line that says what is wrong.

        Raises:
            Quit: the person typed `q` or closed the input.
        """
        while True:
            try:
                answer = self.console.input(Text(f"{question} ", style="bold")).strip()
            except EOFError:
                self.say("")
                raise Quit("you left the game") from None
            if answer.lower() in ("q", "quit"):
                raise Quit("you left the game")
            if answer in ("?", "h", "help"):
                help_lines()
                continue
            try:
                return read(answer)
            except UserError as error:
                self.say(Text(str(error), style="yellow"))
