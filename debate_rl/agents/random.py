"""The debater that reveals any legal pixel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from debate_rl.games.pixels import GameBatch, legal_moves


class RandomAgent:
    """Picks among the legal pixels with equal chances. Two of them show the judge random pixels: the no-debate baseline."""

    name = "random"

    def settings(self) -> dict[str, Any]:
        """Its name: it has no settings."""
        return {"name": self.name}

    def choose(self, games: GameBatch, seeds: NDArray[np.uint64]) -> NDArray[np.int16]:
        """One move per debate, `(B,)`; see `Agent.choose`."""
        legal = legal_moves(games)
        chosen = np.empty(games.size, dtype=np.int16)
        for game in range(games.size):
            options = np.flatnonzero(legal[game])
            chosen[game] = options[np.random.default_rng(int(seeds[game])).integers(len(options))]
        return chosen
