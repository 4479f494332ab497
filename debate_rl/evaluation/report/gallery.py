"""The paper's figure 4: sample debates, each as the debaters see it and as the judge sees it, and the data that the page steps through."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from debate_rl.data import Digits
from debate_rl.evaluation.report.rows import percent
from debate_rl.evaluation.summary import PER_PANEL, Picks, may_show, new_picks, pick
from debate_rl.games.pixels import CLASSES, PIXELS_PER_IMAGE, SEATS, SIDE
from debate_rl.judges.kernels import softmax

PANELS = (
    ("honest", "honest", "Honest first, and wins"),
    ("honest", "liar", "Honest first, and loses"),
    ("liar", "honest", "Honest second, and wins"),
    ("liar", "liar", "Honest second, and loses"),
)

MARK = 1.9  # radius of a move's mark, in image pixels
CLEARANCE = 0.75  # from a mark's edge to the middle of a pixel


@dataclass(frozen=True)
class Game:
    """One debate of the gallery.

    Attributes:
        index: the image in its split.
        label: what honest claims.
        lie: what the liar claims.
        first: the seat that moved first.
        winner: the seat that won.
        moves: flat pixel indices in order.
        belief: `(P, 10)` the judge's probabilities after each move.
        lead: logit of the label less the lie's after each move, `P` of them.
        image: `(28, 28)` uint8.
        marks: `(P, 2)` where each move's mark lies, as column and row in image pixels, so that no two overlap.
    """

    index: int
    label: int
    lie: int
    first: str
    winner: str
    moves: tuple[int, ...]
    belief: NDArray[np.float64]
    lead: tuple[float, ...]
    image: NDArray[np.uint8]
    marks: NDArray[np.float64]

    def seat(self, ply: int) -> str:
        """Who made a move."""
        return SEATS[(SEATS.index(self.first) + ply) % 2]


Gallery = dict[tuple[str, str], list[Game]]


def pick_games(records: Iterable[Mapping[str, Any]], images: Digits, per_panel: int = PER_PANEL) -> tuple[int, Gallery]:
    """Sample games of the largest pixel count: per panel the first images, one precommitted game each, its closest.

    Records that are not whole games of a tree search or policy with a label and a lie, or whose image is not in `images`, are passed over.

    Returns:
        The number of pixels and the games by `(first, winner)`; 0 and empty panels where no record fits.
    """
    kept: dict[int, Picks] = {}
    for record in records:
        if _fits(record, images):
            pick(kept.setdefault(record["pixels"], new_picks()), record, per_panel)
    pixels = max(kept, default=0)
    return pixels, {panel: [_game(record, images) for record in games] for panel, games in kept.get(pixels, new_picks()).items()}


def _fits(record: Mapping[str, Any], images: Digits) -> bool:
    try:
        moves, logits, lie = record["moves"], record["logits"], record["claims"]["liar"]
        return bool(
            may_show(record)
            and (record["dataset"], record["split"]) == (images.name, images.split)
            and all(type(number) is int for number in (record["index"], record["label"], record["pixels"], lie, *moves))
            and 0 <= record["index"] < len(images.labels)
            and record["label"] in range(CLASSES)
            and lie in range(CLASSES)
            and record["first"] in SEATS
            and record["winner"] in SEATS
            and len(moves) == len(logits) == record["pixels"] > 0
            and all(move in range(PIXELS_PER_IMAGE) for move in moves)
            and np.isfinite(np.asarray(logits, dtype=np.float64)).all()
            and np.shape(logits) == (len(moves), CLASSES)
            and all(record["agents"][seat].get("name") != "silent" for seat in SEATS)
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return False


def _game(record: Mapping[str, Any], images: Digits) -> Game:
    logits = np.asarray(record["logits"], dtype=np.float64)
    label, lie = record["label"], record["claims"]["liar"]
    return Game(
        index=record["index"],
        label=label,
        lie=lie,
        first=record["first"],
        winner=record["winner"],
        moves=tuple(record["moves"]),
        belief=softmax(logits),
        lead=tuple((logits[:, label] - logits[:, lie]).tolist()),
        image=np.asarray(images.images[record["index"]], dtype=np.uint8).reshape(SIDE, SIDE),
        marks=place_marks(record["moves"]),
    )


def place_marks(moves: Iterable[int], radius: float = MARK) -> NDArray[np.float64]:
    """Places `(P, 2)` (column, row) for the marks of some moves: beside their pixels, inside the board, apart from each other.

    Marks are placed in the order of the moves, each as near to its pixel as the marks before it and all pixels allow, so that the values
    the judge sees stay visible; of equally near places the one outward of the pixels' middle. Where a board is too crowded for that, marks
    may cover pixels, and at last each other.
    """
    flat = np.asarray(list(moves), dtype=np.float64)
    pixels = np.stack([flat % SIDE + 0.5, flat // SIDE + 0.5], axis=1)  # (P, 2)
    steps = np.linspace(radius, SIDE - radius, 61)
    spots = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)  # (S, 2)
    on_pixels = (_distances(spots, pixels) < radius + CLEARANCE).any(axis=1)
    outward = 0.02 * _distances(spots, pixels.mean(axis=0, keepdims=True))[:, 0]
    taken = np.zeros(len(spots), dtype=np.bool_)
    places = np.empty_like(pixels)
    for move, pixel in enumerate(pixels):
        cost = _distances(spots, pixel[None])[:, 0] - outward + 1e3 * on_pixels + 1e6 * taken
        places[move] = spots[int(cost.argmin())]
        taken |= _distances(spots, places[move][None])[:, 0] < 2 * radius + 0.2
    return places


def _distances(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Distances `(M, N)` between points `(M, 2)` and `(N, 2)`."""
    apart: NDArray[np.float64] = np.sqrt(((a[:, None] - b[None]) ** 2).sum(axis=-1))
    return apart


def png_uri(image: NDArray[np.uint8]) -> str:
    """A grey image `(H, W)` uint8 as a data URI; the same bytes everywhere, unlike an imaging library's."""
    height, width = image.shape
    raw = b"".join(b"\0" + line.tobytes() for line in np.ascontiguousarray(image))

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(raw, 9)) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(data).decode("ascii")


def payload(pixels: int, gallery: Gallery) -> dict[str, Any]:
    """What the page's script needs to step through the games, JSON-ready."""
    games = []
    for first, winner, title in PANELS:
        for game in gallery[first, winner]:
            games.append(
                {
                    "panel": title,
                    "index": game.index,
                    "label": game.label,
                    "lie": game.lie,
                    "winner": game.winner,
                    "seats": [game.seat(ply) for ply in range(len(game.moves))],
                    "moves": list(game.moves),
                    "values": [int(game.image.flat[move]) for move in game.moves],
                    "marks": game.marks.round(2).tolist(),
                    "belief": game.belief.round(4).tolist(),
                    "lead": [round(lead, 3) for lead in game.lead],
                    "image": png_uri(game.image),
                }
            )
    return {"pixels": pixels, "games": games}


def gallery_html(gallery: Gallery) -> str:
    """The four panels; each game is a button that opens it in the viewer."""
    panels = []
    number = 0
    for first, winner, title in PANELS:
        cards = []
        for game in gallery[first, winner]:
            cards.append(_card(game, number))
            number += 1
        inside = f'<div class="games">{"".join(cards)}</div>' if cards else '<p class="missing">No such game among the records.</p>'
        mark = "mark-honest" if winner == "honest" else "mark-liar"
        panels.append(f'<section class="panel"><h3><span class="{mark}" aria-hidden="true"></span>{escape(title)}</h3>{inside}</section>')
    return f'<div class="panels">{"".join(panels)}</div>'


def _card(game: Game, number: int) -> str:
    verdict = game.label if game.winner == "honest" else game.lie
    words = (
        f"Game {number + 1}: image {game.index}, true {game.label}, lie {game.lie}, {game.winner} wins. "
        f"The judge goes from {percent(game.belief[0, verdict], 0)} to {percent(game.belief[-1, verdict], 0)} % for {verdict}."
    )
    return (
        f'<button type="button" class="game" data-game="{number}" aria-label="{escape(words)}">'
        f'<span class="boards">{board_svg(game, full=True)}{board_svg(game, full=False)}</span>'
        f'<span class="claims"><span class="honest">True {game.label}</span> · <span class="liar">Lie {game.lie}</span></span></button>'
    )


def board_svg(game: Game, *, full: bool) -> str:
    """One board: the whole digit (the debaters' view), or the revealed pixels alone (the judge's), with numbered marks."""
    parts = [f'<rect class="board" width="{SIDE}" height="{SIDE}"/>']
    if full:
        parts.append(f'<image href="{png_uri(game.image)}" width="{SIDE}" height="{SIDE}" class="pixels"/>')
    for ply, move in enumerate(game.moves):
        seat = game.seat(ply)
        x, y = game.marks[ply]
        row, column = divmod(move, SIDE)
        value = int(game.image.flat[move])
        parts.append(f'<path class="lead {seat}" d="M{column + 0.5} {row + 0.5}L{x:.2f} {y:.2f}"/>')
        parts.append(f'<rect class="pixel {seat}" x="{column}" y="{row}" width="1" height="1" fill="rgb({value},{value},{value})"/>')
        if seat == "honest":
            parts.append(f'<circle class="mark {seat}" cx="{x:.2f}" cy="{y:.2f}" r="{MARK}"/>')
        else:
            corner = MARK * 0.9
            parts.append(
                f'<rect class="mark {seat}" x="{x - corner:.2f}" y="{y - corner:.2f}" width="{2 * corner:.2f}" height="{2 * corner:.2f}"/>'
            )
        parts.append(f'<text x="{x:.2f}" y="{y + 1.05:.2f}">{ply + 1}</text>')
    return f'<svg viewBox="0 0 {SIDE} {SIDE}" aria-hidden="true" class="boardview">{"".join(parts)}</svg>'
