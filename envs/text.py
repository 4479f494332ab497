"""A debate as coloured text, for `render_mode="ansi"`."""

from __future__ import annotations

from typing import Final

import numpy as np
from debate_rl.envs.rendering import HONEST_COLOUR, LIAR_COLOUR, UNKNOWN_COLOUR, Scene
from numpy.typing import NDArray

from debate_rl.games.pixels import HONEST, PIXELS_PER_IMAGE, SIDE
from debate_rl.judges.kernels import softmax

_RESET: Final = "\x1b[0m"
_BAR: Final = 24  # characters of a full belief bar
_GAP: Final = "    "


def draw(scene: Scene) -> str:
    """Debaters' view, judge's view, claims, moves and belief, 64 columns wide, in 24-bit colour."""
    game = scene.game
    image = game.images[game.image_of[0]]
    full = np.repeat(image[:, None], 3, axis=1).astype(np.uint8)  # (784, 3)
    judge = np.tile(np.array(UNKNOWN_COLOUR, dtype=np.uint8), (PIXELS_PER_IMAGE, 1))
    moves = [int(pixel) for pixel in game.moves[0, : game.counts[0]]]
    for ply, pixel in enumerate(moves):
        full[pixel] = scene.colour(ply)
        judge[pixel] = image[pixel]
    lines = [scene.headline(), f"{'debaters see':<{SIDE}}{_GAP}judge sees"]
    lines += [left + _GAP + right for left, right in zip(half_blocks(full), half_blocks(judge), strict=True)]
    for ply, pixel in enumerate(moves):
        who = _paint("honest" if scene.mover(ply) == HONEST else "liar", scene.colour(ply))
        lines.append(f"{ply + 1}. {who} reveals row {pixel // SIDE}, column {pixel % SIDE} (value {image[pixel]})")
    for klass, belief in enumerate(softmax(scene.logits)):
        colour = {int(game.labels[0]): HONEST_COLOUR, int(game.lies[0]): LIAR_COLOUR}.get(klass, (150, 150, 150))
        lines.append(f"{klass} {_paint('█' * round(_BAR * belief), colour)} {100 * belief:.0f} %")
    return "\n".join(lines) + "\n"


def half_blocks(colours: NDArray[np.uint8]) -> list[str]:
    """A 28 x 28 picture `(784, 3)` as 14 lines of 28 characters: each character is a pixel above a pixel."""
    rows = colours.reshape(SIDE, SIDE, 3).tolist()
    lines = []
    for row in range(0, SIDE, 2):
        line, ink, paper = "", None, None
        for upper, lower in zip(rows[row], rows[row + 1], strict=True):
            if upper != ink:
                line += f"\x1b[38;2;{upper[0]};{upper[1]};{upper[2]}m"
            if lower != paper:
                line += f"\x1b[48;2;{lower[0]};{lower[1]};{lower[2]}m"
            line += "▀"
            ink, paper = upper, lower
        lines.append(line + _RESET)
    return lines


def _paint(words: str, colour: tuple[int, int, int]) -> str:
    return f"\x1b[38;2;{colour[0]};{colour[1]};{colour[2]}m{words}{_RESET}"
