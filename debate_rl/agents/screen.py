"""Pictures of a debate for the terminal, as rich text.

Two sizes: `compact` packs two pixels into one character (half blocks, 16 lines high), `large` gives every pixel two columns and a line
of its own and has room to write a move's number into its pixel. Both fit 80 columns. Without colours, `large` shades with characters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray
from rich.color import Color
from rich.style import Style
from rich.text import Text

from debate_rl.games.pixels import CLASSES, HONEST, NO_LIE, PIXELS_PER_IMAGE, SEATS, SIDE, GameBatch
from debate_rl.judges.kernels import softmax

View = Literal["compact", "large"]
Colour = tuple[int, int, int]

SEAT_COLOURS: Final[tuple[Colour, Colour]] = ((64, 132, 244), (232, 72, 72))  # honest blue, liar red
NEUTRAL: Final[Colour] = (240, 190, 60)  # a move whose maker the judge must not learn
UNKNOWN: Final[Colour] = (46, 50, 60)  # not black: a pixel nobody revealed is not a black pixel
_HINT: Final[Colour] = (32, 96, 60)  # mixed into the colour of a legal pixel
_SHADES: Final = " ░▒▓█"
_BAR: Final = 30  # characters of a full belief bar


@dataclass(frozen=True)
class Picture:
    """What to draw of an image."""

    colours: NDArray[np.uint8]  # (784, 3)
    levels: NDArray[np.uint8]  # (784,) grey levels, for terminals without colours
    marks: Mapping[int, str]  # two characters written into some pixels of the large view


def revealed(game: GameBatch) -> list[int]:
    """The pixels out so far in a batch of one debate, in order."""
    return [int(pixel) for pixel in game.moves[0, : game.counts[0]]]


def seat_at(game: GameBatch, ply: int) -> int:
    """The seat that moves at a ply of a batch of one debate."""
    return int(game.first[0] + ply) % 2


def debaters_view(game: GameBatch, hints: NDArray[np.bool_] | None = None) -> Picture:
    """The whole image with the moves coloured by seat; `hints` `(784,)` tints the legal pixels."""
    levels = game.images[game.image_of[0]]
    colours = np.repeat(levels[:, None], 3, axis=1)  # (784, 3)
    marks: dict[int, str] = {}
    if hints is not None:
        colours[hints] = (0.45 * colours[hints] + np.array(_HINT)).clip(0, 255).astype(np.uint8)
        marks = {int(pixel): "··" for pixel in np.flatnonzero(hints)}
    for ply, pixel in enumerate(revealed(game)):
        colours[pixel] = SEAT_COLOURS[seat_at(game, ply)]
        marks[pixel] = _number(ply, SEATS[seat_at(game, ply)][0])
    return Picture(colours, levels, marks)


def judges_view(game: GameBatch, *, newest: bool = False) -> Picture:
    """Only the revealed pixels, without a trace of who revealed them; `newest` frames the latest one's number."""
    image = game.images[game.image_of[0]]
    colours = np.tile(np.array(UNKNOWN, dtype=np.uint8), (PIXELS_PER_IMAGE, 1))
    levels = np.zeros(PIXELS_PER_IMAGE, dtype=np.uint8)
    marks: dict[int, str] = {}
    pixels = revealed(game)
    for ply, pixel in enumerate(pixels):
        levels[pixel] = image[pixel]
        colours[pixel] = image[pixel]
        marks[pixel] = _number(ply, ">" if newest and ply == len(pixels) - 1 else "")
    return Picture(colours, levels, marks)


def draw(picture: Picture, view: View, *, coloured: bool = True) -> list[Text]:
    """A picture with row and column numbers, as lines: 16 of 32 characters (compact) or 29 of 59 (large)."""
    if view == "compact":
        return _draw_compact(picture)
    lines = [Text("   " + "".join(f"{column:2d}" for column in range(SIDE)), style="dim")]
    for row in range(SIDE):
        line = Text(f"{row:2d} ", style="dim")
        for pixel in range(row * SIDE, (row + 1) * SIDE):
            level = int(picture.levels[pixel])
            mark = picture.marks.get(pixel)
            if coloured:
                red, green, blue = (int(part) for part in picture.colours[pixel])
                ink = (0, 0, 0) if red + green + blue > 384 else (255, 255, 255)
                line.append(mark or "  ", Style(color=_rgb(ink), bgcolor=_rgb((red, green, blue)), bold=mark is not None))
            else:
                line.append(mark or 2 * _SHADES[(level + 50) * (len(_SHADES) - 1) // 305 if level else 0])
        lines.append(line)
    return lines


def _draw_compact(picture: Picture) -> list[Text]:
    lines = [
        Text("    " + "".join(str(column // 10) if column % 10 == 0 else " " for column in range(SIDE)), style="dim"),
        Text("    " + "".join(str(column % 10) for column in range(SIDE)), style="dim"),
    ]
    for row in range(0, SIDE, 2):
        line = Text(f"{row:3d} ", style="dim")
        for column in range(SIDE):
            upper = picture.colours[row * SIDE + column]
            lower = picture.colours[(row + 1) * SIDE + column]
            line.append("▀", Style(color=_rgb(upper), bgcolor=_rgb(lower)))
        lines.append(line)
    return lines


def beside(left: Sequence[Text], right: Sequence[Text], gap: int = 4) -> list[Text]:
    """Two drawings of equal height side by side."""
    return [Text.assemble(a, " " * gap, b) for a, b in zip(left, right, strict=True)]


def belief_lines(logits: NDArray[np.float32], game: GameBatch) -> list[Text]:
    """The judge's probabilities as bars, claims in their seat's colour."""
    shares = softmax(logits)
    lines = []
    for klass in range(CLASSES):
        who = "honest" if klass == game.labels[0] else "liar" if klass == game.lies[0] else ""
        style = Style(color=_rgb(SEAT_COLOURS[SEATS.index(who)])) if who else Style()
        lines.append(
            Text.assemble((f"{klass} {'█' * round(_BAR * shares[klass]):<{_BAR}} {100 * shares[klass]:3.0f} % {who}".rstrip(), style))
        )
    return lines


def belief_words(logits: NDArray[np.float32], game: GameBatch, most: int = 3) -> Text:
    """The judge's probabilities of the `most` likely classes and of the claims, in one line."""
    shares = softmax(logits)
    likely = np.argsort(-shares, kind="stable")
    claimed = {int(game.labels[0]): "honest", int(game.lies[0]): "liar"}
    line = Text("the judge believes ")
    for place, klass in enumerate(int(k) for k in likely):
        who = claimed.get(klass, "")
        if place < most or who:
            style = Style(color=_rgb(SEAT_COLOURS[SEATS.index(who)])) if who else Style()
            line.append(f" {klass}{f' ({who})' if who else ''} {100 * shares[klass]:.0f} %", style)
    return line


def move_lines(game: GameBatch) -> list[Text]:
    """The moves in words, each in its seat's colour."""
    image = game.images[game.image_of[0]]
    return [
        Text(f"{ply + 1}. {SEATS[seat_at(game, ply)]} revealed {where(pixel)} (value {image[pixel]})", seat_style(seat_at(game, ply)))
        for ply, pixel in enumerate(revealed(game))
    ]


def seat_style(seat: int) -> Style:
    """The colour of a seat's words."""
    return Style(color=_rgb(SEAT_COLOURS[HONEST if seat == HONEST else 1]))


def claim_words(game: GameBatch) -> tuple[str, str]:
    """What honest and liar claim."""
    lie = int(game.lies[0])
    return str(int(game.labels[0])), "any other digit" if lie == NO_LIE else str(lie)


def where(pixel: int) -> str:
    """A pixel's place in words."""
    return f"row {pixel // SIDE}, column {pixel % SIDE}"


def _number(ply: int, tag: str) -> str:
    return f"{tag}{ply + 1}" if ply < 9 and tag else f"{ply + 1:2d}"


def _rgb(colour: Sequence[int] | NDArray[np.uint8]) -> Color:
    return Color.from_rgb(*(int(part) for part in colour))
