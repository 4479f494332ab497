"""A person in a debater's seat, at the terminal."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from rich.text import Text

from debate_rl.agents.screen import belief_words, claim_words, debaters_view, judges_view, move_lines, revealed, seat_style, where
from debate_rl.agents.terminal import Terminal
from debate_rl.errors import UserError
from debate_rl.games.pixels import SEATS, SIDE, GameBatch, legal_moves
from debate_rl.judges.kernels import JudgeWeights, set_logits

_PLACE = re.compile(r"\s*(-?\d+)\s*[,;\s]\s*(-?\d+)\s*")


@dataclass(frozen=True)
class HumanSettings:
    """How a person plays.

    Attributes:
        hints: mark the legal pixels and show the judge's belief before every move.
        view: size of the pictures, see `debate_rl.agents.screen`; `auto` takes what fits the window.
    """

    hints: bool = False
    view: Literal["auto", "compact", "large"] = "auto"


class HumanAgent:
    """Shows the debate and asks for a pixel."""

    name = "human"

    def __init__(self, weights: JudgeWeights, settings: HumanSettings | None = None, terminal: Terminal | None = None) -> None:
        """Seat a person. Without a `terminal` standard input and output are used.

        Raises:
            UserError: standard input is not a terminal.
        """
        self._weights = weights
        self._settings = settings or HumanSettings()
        self._terminal = terminal or Terminal(self._settings.view)

    def settings(self) -> dict[str, Any]:
        """Name and whether hints were shown; the size of the pictures changes nobody's play."""
        return {"name": self.name, "hints": self._settings.hints}

    def choose(self, games: GameBatch, seeds: NDArray[np.uint64]) -> NDArray[np.int16]:
        """Ask for one move per debate, `(B,)`, one after the other; the seeds are not used.

        Raises:
            Quit: the person left.
        """
        chosen = [self._ask(games.select(np.array([game]))) for game in range(games.size)]
        return np.array(chosen, dtype=np.int16)

    def _ask(self, game: GameBatch) -> int:
        terminal, seat = self._terminal, int(game.movers()[0])
        legal = legal_moves(game)[0]
        hints = legal if self._settings.hints else None
        honest, lie = claim_words(game)
        terminal.say("", *move_lines(game)[-1:])
        terminal.show(("debaters see", debaters_view(game, hints)), ("the judge sees", judges_view(game)))
        if self._settings.hints:
            terminal.say(belief_words(set_logits(self._weights, game.images, game.image_of, game.moves)[0], game))
        ply = len(revealed(game)) + 1
        terminal.say(
            Text.assemble(
                (f"You are {SEATS[seat]}", seat_style(seat)), f" (honest claims {honest}, liar claims {lie}). Pixel {ply} of {game.pixels}."
            )
        )

        def help_lines() -> None:
            terminal.say(
                "Type a row and a column, like 14,9 or 14 9: rows count from the top, columns from the left, both from 0.",
                "You may reveal any pixel that is marked '··' or tinted green below. The judge sees its value, not who revealed it.",
                "A line of the compact picture holds two rows: the numbered one above, the next one below it.",
                "q leaves the game.",
            )
            terminal.show(("legal pixels", debaters_view(game, legal)))

        return terminal.ask("row,column (? for help):", lambda answer: read_pixel(answer, game, legal), help_lines)


def read_pixel(answer: str, game: GameBatch, legal: NDArray[np.bool_]) -> int:
    """The pixel that `row,column` names in a batch of one debate.

    Raises:
        UserError: not two numbers, outside the image, already revealed, or not a pixel that may be revealed.
    """
    match = _PLACE.fullmatch(answer)
    if match is None:
        raise UserError(f"{answer!r} is not a row and a column: type two numbers from 0 to {SIDE - 1}, like 14,9")
    row, column = int(match[1]), int(match[2])
    if not (0 <= row < SIDE and 0 <= column < SIDE):
        raise UserError(f"row {row}, column {column} is outside the image: both must lie between 0 and {SIDE - 1}")
    pixel = row * SIDE + column
    if pixel in revealed(game):
        raise UserError(f"{where(pixel)} is out already (pixel {revealed(game).index(pixel) + 1}): choose another")
    if not legal[pixel]:
        near = _nearest(pixel, legal)
        raise UserError(
            f"{where(pixel)} has value {game.images[game.image_of[0], pixel]} and may not be revealed; the nearest that may: {where(near)}"
        )
    return pixel


def _nearest(pixel: int, legal: NDArray[np.bool_]) -> int:
    options = np.flatnonzero(legal)
    distance = np.hypot(options // SIDE - pixel // SIDE, options % SIDE - pixel % SIDE)
    return int(options[np.argmin(distance)])
