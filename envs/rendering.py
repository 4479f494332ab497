"""A debate as a picture, drawn with pygame: debaters' view, judge's view, the judge's belief.

pygame is imported when the first picture is drawn, not before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from debate_rl.games.pixels import CLASSES, HONEST, NO_LIE, SEATS, SIDE, GameBatch
from debate_rl.judges.kernels import softmax

Colour = tuple[int, int, int]

HONEST_COLOUR: Final[Colour] = (64, 132, 244)
LIAR_COLOUR: Final[Colour] = (232, 72, 72)
UNKNOWN_COLOUR: Final[Colour] = (46, 50, 60)  # not black: a pixel nobody revealed is not a black pixel
_BACKGROUND: Final[Colour] = (24, 26, 32)
_TEXT: Final[Colour] = (232, 234, 240)
_FAINT: Final[Colour] = (150, 156, 168)
_GREY_BAR: Final[Colour] = (118, 124, 138)

_CELL: Final = 15  # screen pixels along one edge of an image's pixel
_PANEL: Final = SIDE * _CELL
_MARGIN: Final = 28
_TOP: Final = 104
_BARS: Final = 236  # width of the belief chart
SIZE: Final = (4 * _MARGIN + 2 * _PANEL + _BARS, _TOP + _PANEL + 56)  # width, height


@dataclass(frozen=True)
class Scene:
    """What there is to draw: a batch of one debate, the judge's logits `(10,)` on it, the winner if decided, and a remark."""

    game: GameBatch
    logits: NDArray[np.float32]
    winner: str | None = None
    remark: str | None = None

    def mover(self, ply: int) -> int:
        """The seat that moves at a ply."""
        return int(self.game.first[0] + ply) % 2

    def colour(self, ply: int) -> Colour:
        """The colour of the seat that moves at a ply."""
        return HONEST_COLOUR if self.mover(ply) == HONEST else LIAR_COLOUR

    def claims(self) -> tuple[str, str]:
        """What the honest debater and the liar claim, as text."""
        lie = int(self.game.lies[0])
        return str(int(self.game.labels[0])), "any other" if lie == NO_LIE else str(lie)

    def status(self) -> str:
        """One line on where the game stands."""
        count, pixels = int(self.game.counts[0]), self.game.pixels
        if self.remark is not None:
            return self.remark
        if self.winner is not None:
            return f"{self.winner} wins"
        return f"{SEATS[self.mover(count)]} to reveal pixel {count + 1} of {pixels}"

    def headline(self) -> str:
        """Claims and status in one line."""
        honest, lie = self.claims()
        return f"honest: {honest}   liar: {lie}   {self.status()}"


class Canvas:
    """A surface to draw scenes on, and the window it is shown in if there is one."""

    def __init__(self, *, window: bool, fps: int) -> None:
        """Prepare fonts, and open the window if asked for."""
        import pygame

        self._pygame: Any = pygame
        self._fps = fps
        pygame.font.init()
        self._fonts = {size: pygame.font.Font(None, size) for size in (17, 22, 26, 34)}
        self._surface: Any = pygame.Surface(SIZE)
        self._window: Any = None
        if window:
            pygame.display.init()
            self._window = pygame.display.set_mode(SIZE)
            pygame.display.set_caption("Pixel debate")
            self._clock = pygame.time.Clock()

    def show(self, scene: Scene) -> NDArray[np.uint8] | None:
        """Draw a scene. Without a window, return it as `(H, W, 3)` uint8; with one, show it and return None."""
        self._draw(scene)
        if self._window is None:
            pixels: NDArray[np.uint8] = self._pygame.surfarray.array3d(self._surface).transpose(1, 0, 2)  # (H, W, 3)
            return np.ascontiguousarray(pixels)
        self._window.blit(self._surface, (0, 0))
        self._pygame.event.pump()  # else the system thinks that the window hangs
        self._pygame.display.flip()
        self._clock.tick(self._fps)
        return None

    def close(self) -> None:
        """Close the window; the fonts stay, others may use them."""
        if self._window is not None:
            self._pygame.display.quit()
            self._window = None

    def _write(self, words: str, size: int, colour: Colour, **anchor: Any) -> None:
        glyphs = self._fonts[size].render(words, True, colour)
        self._surface.blit(glyphs, glyphs.get_rect(**anchor))

    def _draw(self, scene: Scene) -> None:
        self._surface.fill(_BACKGROUND)
        left, right, bars = _MARGIN, 2 * _MARGIN + _PANEL, 3 * _MARGIN + 2 * _PANEL
        honest, lie = scene.claims()
        self._write(f"honest claims {honest}", 34, HONEST_COLOUR, topleft=(left, 20))
        self._write(f"liar claims {lie}", 34, LIAR_COLOUR, topleft=(right, 20))
        for x, words in ((left, "debaters see"), (right, "the judge sees"), (bars, "the judge believes")):
            self._write(words, 26, _FAINT, topleft=(x, _TOP - 30))
        status_colour = {"honest": HONEST_COLOUR, "liar": LIAR_COLOUR}.get(scene.winner or "", _TEXT)
        self._write(scene.status(), 34, status_colour, midleft=(left, _TOP + _PANEL + 28))
        self._panels(scene, left, right)
        self._bars(scene, bars)

    def _panels(self, scene: Scene, left: int, right: int) -> None:
        draw, game = self._pygame.draw, scene.game
        image = game.images[game.image_of[0]]
        for pixel, value in enumerate(image.tolist()):
            draw.rect(self._surface, (value, value, value), self._cell(left, pixel))
        draw.rect(self._surface, UNKNOWN_COLOUR, (right, _TOP, _PANEL, _PANEL))
        for ply, pixel in enumerate(game.moves[0, : game.counts[0]].tolist()):
            value, colour = int(image[pixel]), scene.colour(ply)
            cell = self._cell(left, pixel)
            draw.rect(self._surface, colour, cell)
            self._write(str(ply + 1), 17, (255, 255, 255), center=self._pygame.Rect(cell).center)
            cell = self._cell(right, pixel)
            draw.rect(self._surface, (value, value, value), cell)
            draw.rect(self._surface, colour, self._pygame.Rect(cell).inflate(4, 4), width=2)
            self._write(str(ply + 1), 17, (0, 0, 0) if value > 128 else (255, 255, 255), center=self._pygame.Rect(cell).center)
        for x in (left, right):
            draw.rect(self._surface, _FAINT, (x - 1, _TOP - 1, _PANEL + 2, _PANEL + 2), width=1)

    def _cell(self, x: int, pixel: int) -> tuple[int, int, int, int]:
        return (x + pixel % SIDE * _CELL, _TOP + pixel // SIDE * _CELL, _CELL, _CELL)

    def _bars(self, scene: Scene, x: int) -> None:
        claimed = {int(scene.game.lies[0]): LIAR_COLOUR, int(scene.game.labels[0]): HONEST_COLOUR}
        height = _PANEL // CLASSES
        room = _BARS - 74  # left of it the class, right of it the percentage
        for klass, belief in enumerate(softmax(scene.logits)):
            middle = _TOP + klass * height + height // 2
            colour = claimed.get(klass, _GREY_BAR)
            self._write(str(klass), 26, claimed.get(klass, _TEXT), midleft=(x, middle))
            self._pygame.draw.rect(self._surface, UNKNOWN_COLOUR, (x + 22, middle - 11, room, 22), border_radius=4)
            if (width := round(room * belief)) > 0:
                self._pygame.draw.rect(self._surface, colour, (x + 22, middle - 11, width, 22), border_radius=4)
            self._write(f"{100 * belief:.0f} %", 22, _TEXT, midright=(x + _BARS, middle))
