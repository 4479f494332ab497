"""What an agent is: anything that can sit in a seat of a debate."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from debate_rl.games.pixels import GameBatch


class Agent(Protocol):
    """Chooses pixels for a batch of debates in which its seat is to move.

    An agent sees the whole image and both claims. It must not change the batch.
    """

    @property
    def name(self) -> str:
        """A short name: `random`, `greedy`, `mcts`, `human`, …"""
        ...

    def settings(self) -> dict[str, Any]:
        """What a record or a result row says of the agent: its name and every setting that changes its play, JSON-ready."""
        ...

    def choose(self, games: GameBatch, seeds: NDArray[np.uint64]) -> NDArray[np.int16]:
        """Pick one legal pixel per debate.

        Args:
            games: `B` debates, none of them over; the seat to move (`games.movers()`) may differ between debates.
            seeds: `(B,)` one fresh seed per debate and ply. All of an agent's randomness comes from it, so a debate's moves depend neither
                on the batch it is played in nor on the number of threads.

        Returns:
            `(B,)` flat pixel indices.
        """
        ...
