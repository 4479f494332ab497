"""Positions shared by the tests of speeds: thin images, all modes and orders, so that every position can be solved by hand."""

from __future__ import annotations

import numpy as np

from debate_rl.games.pixels import NO_LIE, GameBatch, honest_wins, legal_moves, new_games, step
from debate_rl.judges.kernels import JudgeWeights, set_logits
from tests.weights import random_weights


def exact_weights(seed: int) -> JudgeWeights:
    """Weights in eighths: with white pixels every sum over them is exact in float32, in whatever order it is added."""
    return JudgeWeights(*(np.round(array * 8) / np.float32(8) for array in random_weights(seed)))


def white_games(seed: int, size: int, legal: int, pixels: int, plies: int = 0) -> GameBatch:
    """Debates about four images of so many white pixels, advanced at random by so many plies."""
    rng = np.random.default_rng(seed)
    images = np.zeros((4, 784), np.uint8)
    for image in images:
        image[rng.choice(784, legal, replace=False)] = 255
    labels = rng.integers(0, 10, size)
    lies = np.where(np.arange(size) % 3 == 0, NO_LIE, (labels + rng.integers(1, 10, size)) % 10)
    games = new_games(images, labels, lies, pixels=pixels, first=np.arange(size) % 2, image_of=rng.integers(0, 4, size))
    for _ in range(plies):
        step(games, [rng.choice(np.flatnonzero(row)) for row in legal_moves(games)])
    return games


def honest_wins_after(weights: JudgeWeights, games: GameBatch, game: int, more: list[int]) -> bool:
    """The judge's word on one debate after `more` pixels."""
    moves = np.array([[*games.moves[game, : games.counts[game]], *more]])
    logits = set_logits(weights, games.images, games.image_of[[game]], moves)
    return bool(honest_wins(logits, games.labels[[game]], games.lies[[game]])[0])


def mover_wins(weights: JudgeWeights, games: GameBatch, game: int, more: tuple[int, ...] = ()) -> bool:
    """Whether the seat to move after `more` pixels wins with best play of both."""
    mover = (int(games.first[game]) + int(games.counts[game]) + len(more)) % 2
    for pixel in np.flatnonzero(legal_moves(games)[game]):
        if pixel in more:
            continue
        then = (*more, int(pixel))
        if games.counts[game] + len(then) == games.pixels:
            won = honest_wins_after(weights, games, game, list(then)) == (mover == 0)
        else:
            won = not mover_wins(weights, games, game, then)
        if won:
            return True
    return False
