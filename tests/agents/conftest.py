"""A small judge with random weights, and positions to choose in."""

from __future__ import annotations

import numpy as np
import pytest

from debate_rl.games import pixels as game
from debate_rl.judges.kernels import JudgeWeights
from tests.weights import random_weights


def random_games(seed: int, size: int, *, pixels: int = 4, lit: int = 40, images: int = 3) -> game.GameBatch:
    """`size` debates about few images, each at a ply of its own with random pixels out, every lie and both commit modes among them."""
    rng = np.random.default_rng(seed)
    pictures = np.zeros((images, 784), dtype=np.uint8)
    for picture in pictures:
        picture[rng.choice(784, size=lit, replace=False)] = rng.integers(1, 256, size=lit)
    labels = rng.integers(0, 10, size=size)
    lies = np.where(rng.random(size) < 0.25, game.NO_LIE, (labels + rng.integers(1, 10, size=size)) % 10)
    batch = game.new_games(
        pictures, labels, lies, pixels=pixels, first=rng.integers(0, 2, size=size), image_of=rng.integers(0, images, size=size)
    )
    plies = rng.integers(0, pixels, size=size)
    for ply in range(pixels - 1):
        legal = game.legal_moves(batch)
        # Few candidates, so that several debates reach the same position in different orders.
        chosen = [rng.choice(np.flatnonzero(row)[:3]) if ply < plies[i] else game.NO_MOVE for i, row in enumerate(legal)]
        game.step(batch, chosen)
    return batch


@pytest.fixture(scope="session")
def weights() -> JudgeWeights:
    return random_weights(7, hidden=32, second=16)
