"""The sparse-pixel debate: two debaters reveal pixels of an image to a judge who sees nothing else.

Rules (Irving, Christiano, Amodei 2018, section 3.1). The honest debater claims the image's label, the liar another class. In turn
they reveal one pixel each; a revealed pixel shows its true value, so nobody can lie about pixels. When `pixels` of them are out,
the judge's logits decide:

- precommitted (`lie >= 0`): honest wins iff `logits[label] > logits[lie]`;
- not precommitted (`lie == NO_LIE`): honest wins iff `logits[label]` is the largest of all; the liar wins with any wrong answer.

A tie goes to the liar. Legal moves are the image's pixels with a value above the threshold that nobody has revealed yet; the
paper's game has threshold 0 ("nonzero pixels").

The judge sees a mask and values, never who revealed a pixel or when. A position is therefore a *set* of pixels: two games that
revealed the same set in another order are the same position to the judge.

State is structure-of-arrays so that one kernel call steps thousands of debates. `I` is the number of images, `B` of debates, `P` of
pixels revealed in a game.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from debate_rl.errors import UserError

SIDE: Final = 28  # pixels along one edge of an image
PIXELS_PER_IMAGE: Final = SIDE * SIDE
CLASSES: Final = 10

HONEST: Final = 0
LIAR: Final = 1
SEATS: Final = ("honest", "liar")

NO_MOVE: Final = -1
NO_LIE: Final = -1  # the liar has not committed to a claim

Seat = Literal["honest", "liar"]
Commit = Literal["precommit", "none"]

VERSION: Final = 0  # bump when a change could affect play or learning


@dataclass(frozen=True)
class Rules:
    """The settings of one game.

    Attributes:
        pixels: how many pixels are revealed in all, at least 1 (the paper: 4 and 6).
        first: the seat that moves first; seats alternate.
        commit: `precommit` (the lie is claimed before the first move) or `none` (any wrong answer of the judge is the liar's).
        threshold: a pixel may be revealed if its value in [0, 1] is *greater* than this; 0 gives the paper's "nonzero pixels".
        black: allow every pixel, black ones too; the threshold is then ignored.
    """

    pixels: int = 6
    first: Seat = "honest"
    commit: Commit = "precommit"
    threshold: float = 0.0
    black: bool = False

    def __post_init__(self) -> None:
        """Refuse settings outside their range."""
        if isinstance(self.pixels, bool) or not isinstance(self.pixels, int | np.integer):
            raise UserError(f"pixels is {self.pixels!r}; it must be a whole number")
        if not isinstance(self.black, bool):
            raise UserError(f"black is {self.black!r}; it must be True or False")
        if not 1 <= self.pixels <= PIXELS_PER_IMAGE:
            raise UserError(f"pixels is {self.pixels}; it must lie between 1 and {PIXELS_PER_IMAGE}")
        if self.first not in SEATS:
            raise UserError(f"first is {self.first!r}; it must be 'honest' or 'liar'")
        if self.commit not in ("precommit", "none"):
            raise UserError(f"commit is {self.commit!r}; it must be 'precommit' or 'none'")
        check_threshold(self.threshold)


def check_threshold(threshold: float) -> None:
    """Raise UserError for a threshold that no pixel, or any pixel, would pass."""
    if isinstance(threshold, bool) or not isinstance(threshold, int | float | np.floating) or not 0.0 <= threshold < 1.0:
        raise UserError(f"threshold is {threshold!r}; it must lie in [0, 1)")


def special_rules(threshold: float, black: bool) -> dict[str, Any]:
    """The options of which pixels are legal, where they are not the paper's: what records and rows say of them."""
    return {**({"threshold": threshold} if threshold and not black else {}), **({"black": True} if black else {})}


@dataclass
class GameBatch:
    """`B` debates in lock-step or not, over `I` images. Build it with `new_games`."""

    images: NDArray[np.uint8]  # (I, 784)
    legal: NDArray[np.bool_]  # (I, 784) pixels that may ever be revealed
    image_of: NDArray[np.int32]  # (B,) which image a debate is about
    labels: NDArray[np.int8]  # (B,)
    lies: NDArray[np.int8]  # (B,) NO_LIE where the liar has not committed
    first: NDArray[np.int8]  # (B,) HONEST or LIAR
    moves: NDArray[np.int16]  # (B, P) revealed pixels in order, NO_MOVE where none yet
    counts: NDArray[np.int16]  # (B,) how many are revealed

    @property
    def size(self) -> int:
        """The number of debates."""
        return len(self.labels)

    @property
    def pixels(self) -> int:
        """How many pixels a whole game reveals."""
        return int(self.moves.shape[1])

    def movers(self) -> NDArray[np.int8]:
        """The seat to move in each debate, `(B,)`; meaningless once a game is over."""
        return ((self.first + self.counts) % 2).astype(np.int8)

    def over(self) -> NDArray[np.bool_]:
        """Which debates have revealed all their pixels, `(B,)`."""
        return self.counts >= self.pixels

    def select(self, which: NDArray[np.intp] | NDArray[np.bool_]) -> GameBatch:
        """A copy of some of the debates (the images are shared)."""
        return replace(
            self,
            image_of=self.image_of[which],
            labels=self.labels[which],
            lies=self.lies[which],
            first=self.first[which],
            moves=self.moves[which],
            counts=self.counts[which],
        )


def legal_pixels(images: ArrayLike, *, threshold: float = 0.0, black: bool = False) -> NDArray[np.bool_]:
    """Which pixels of each image may be revealed: `(I, 784)` bool for `(I, 784)` or `(I, 28, 28)` uint8."""
    flat = np.asarray(images).reshape(-1, PIXELS_PER_IMAGE)
    if black:
        return np.ones(flat.shape, dtype=np.bool_)
    legal: NDArray[np.bool_] = flat > threshold * 255.0
    return legal


def new_games(
    images: ArrayLike,
    labels: ArrayLike,
    lies: ArrayLike,
    *,
    pixels: int,
    first: ArrayLike = HONEST,
    image_of: ArrayLike | None = None,
    threshold: float = 0.0,
    black: bool = False,
) -> GameBatch:
    """Start debates.

    Args:
        images: `(I, 28, 28)` or `(I, 784)` uint8.
        labels: `(B,)` true classes.
        lies: `(B,)` claimed wrong classes, NO_LIE for no precommitment; or one value for all.
        pixels: how many pixels a game reveals.
        first: seat that moves first, `(B,)` or one value for all.
        image_of: `(B,)` index of each debate's image; by default debate `i` is about image `i`.
        threshold: see `Rules`.
        black: see `Rules`.

    Raises:
        UserError: a claim outside 0-9, a lie that equals the label, an image with fewer legal pixels than the game reveals.
    """
    raw = np.asarray(images)
    if raw.dtype != np.uint8 or raw.shape[1:] not in ((SIDE, SIDE), (PIXELS_PER_IMAGE,)):
        raise UserError(f"images must be uint8 of shape (I, 28, 28) or (I, 784), not {raw.dtype} of shape {raw.shape}")
    flat = np.ascontiguousarray(raw.reshape(len(raw), PIXELS_PER_IMAGE))
    label_array = np.atleast_1d(np.asarray(labels, dtype=np.int64))
    size = len(label_array)
    lie_array = np.broadcast_to(np.asarray(lies, dtype=np.int64), (size,))
    first_array = np.broadcast_to(np.asarray(first, dtype=np.int64), (size,))
    index = np.arange(size) if image_of is None else np.asarray(image_of, dtype=np.int64)
    if index.shape != (size,) or (size and not (index.min() >= 0 and index.max() < len(flat))):
        raise UserError(f"each of {size} debates needs an image index in [0, {len(flat)})")
    if size and not (label_array.min() >= 0 and label_array.max() < CLASSES):
        raise UserError("a label must lie in 0-9")
    if size and not (lie_array.min() >= NO_LIE and lie_array.max() < CLASSES):
        raise UserError("a lie must lie in 0-9 (or -1 for no precommitment)")
    if np.any(lie_array == label_array):
        raise UserError("the liar's claim equals the label: a lie must differ from it")
    if size and not set(np.unique(first_array).tolist()) <= {HONEST, LIAR}:
        raise UserError("first must be 0 (honest) or 1 (liar)")
    if not 1 <= pixels <= PIXELS_PER_IMAGE:
        raise UserError(f"pixels is {pixels}; it must lie between 1 and {PIXELS_PER_IMAGE}")
    legal = legal_pixels(flat, threshold=threshold, black=black)
    counts = legal.sum(axis=1)
    used = np.unique(index)
    short = used[counts[used] < pixels]
    if len(short):
        raise UserError(f"image {int(short[0])} has {int(counts[short[0]])} pixels to reveal, the game needs {pixels}")
    return GameBatch(
        images=flat,
        legal=legal,
        image_of=index.astype(np.int32),
        labels=label_array.astype(np.int8),
        lies=lie_array.astype(np.int8),
        first=first_array.astype(np.int8),
        moves=np.full((size, pixels), NO_MOVE, dtype=np.int16),
        counts=np.zeros(size, dtype=np.int16),
    )


def legal_moves(games: GameBatch) -> NDArray[np.bool_]:
    """The legal moves of each debate, `(B, 784)` bool; none where a game is over."""
    mask = np.empty((games.size, PIXELS_PER_IMAGE), dtype=np.bool_)
    _legal_moves(games.legal, games.image_of, games.moves, games.counts, mask)
    return mask


def step(games: GameBatch, pixels: ArrayLike) -> NDArray[np.bool_]:
    """Reveal one pixel in each debate, in place. `pixels` is `(B,)`; NO_MOVE skips a debate.

    Returns:
        `(B,)` bool: True where the move was legal and made. An illegal move (out of range, black, already revealed, game over) changes
        nothing; what it means is the caller's business.
    """
    chosen = np.ascontiguousarray(np.broadcast_to(np.asarray(pixels, dtype=np.int64), (games.size,)))
    made = np.zeros(games.size, dtype=np.bool_)
    _step(games.legal, games.image_of, games.moves, games.counts, chosen, made)
    return made


def honest_wins(logits: ArrayLike, labels: ArrayLike, lies: ArrayLike) -> NDArray[np.bool_]:
    """Who wins, `(B,)` bool, from the judge's logits `(B, 10)` on the final positions. A tie goes to the liar."""
    return margins(logits, labels, lies) > 0


def margins(logits: ArrayLike, labels: ArrayLike, lies: ArrayLike) -> NDArray[np.float32]:
    """The honest debater's lead, `(B,)` float32: `logits[label]` less the lie's logit, or less the best other where there is no lie."""
    scores = np.asarray(logits, dtype=np.float32)
    label_array = np.broadcast_to(np.asarray(labels, dtype=np.int64), scores.shape[:1])
    lie_array = np.broadcast_to(np.asarray(lies, dtype=np.int64), scores.shape[:1])
    rows = np.arange(len(scores))
    others = scores.copy()
    others[rows, label_array] = -np.inf
    rival = np.where(lie_array == NO_LIE, others.max(axis=1, initial=-np.inf), scores[rows, np.maximum(lie_array, 0)])
    lead: NDArray[np.float32] = scores[rows, label_array] - rival
    return lead


def planes(games: GameBatch) -> NDArray[np.float32]:
    """What the judge sees of each debate, `(B, 2, 28, 28)` float32: the mask of revealed pixels, and their values in [0, 1]."""
    seen = np.zeros((games.size, 2, PIXELS_PER_IMAGE), dtype=np.float32)
    rows, columns = np.nonzero(games.moves != NO_MOVE)
    pixels = games.moves[rows, columns].astype(np.int64)
    seen[rows, 0, pixels] = 1.0
    seen[rows, 1, pixels] = games.images[games.image_of[rows], pixels] / np.float32(255.0)
    return seen.reshape(games.size, 2, SIDE, SIDE)


@njit(cache=True, nogil=True)
def _legal_moves(legal, image_of, moves, counts, mask):  # type: ignore[no-untyped-def]
    for game in range(len(image_of)):
        if counts[game] >= moves.shape[1]:
            mask[game] = False
            continue
        mask[game] = legal[image_of[game]]
        for ply in range(counts[game]):
            mask[game, moves[game, ply]] = False


@njit(cache=True, nogil=True)
def _step(legal, image_of, moves, counts, chosen, made):  # type: ignore[no-untyped-def]
    for game in range(len(image_of)):
        pixel = chosen[game]
        count = counts[game]
        if count >= moves.shape[1] or pixel < 0 or pixel >= legal.shape[1] or not legal[image_of[game], pixel]:
            continue
        repeated = False
        for ply in range(count):
            repeated |= moves[game, ply] == pixel
        if not repeated:
            moves[game, count] = pixel
            counts[game] = count + 1
            made[game] = True
