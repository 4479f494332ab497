"""The debater that plays perfectly."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from debate_rl.agents.greedy import GreedyAgent
from debate_rl.errors import UserError
from debate_rl.games.pixels import NO_MOVE, GameBatch
from debate_rl.judges.kernels import JudgeWeights
from debate_rl.search.exact import winning_moves


@dataclass(frozen=True)
class ExactSettings:
    """Settings of exact play.

    Attributes:
        budget: sets of pixels that may be judged for each move tried before it counts as not winning; None for no limit.
    """

    budget: int | None = None

    def __post_init__(self) -> None:
        """Refuse settings outside their range."""
        if self.budget is not None and self.budget < 1:
            raise UserError(f"budget is {self.budget}; it must be at least 1, or null for no limit")


class ExactAgent:
    """Plays a winning move wherever there is one; see `debate_rl.search.exact`.

    In a lost position it plays as `greedy` does and waits for a mistake. Nothing is random.
    """

    name = "exact"

    def __init__(self, weights: JudgeWeights, settings: ExactSettings | None = None) -> None:
        """Build the agent for one judge."""
        self._weights = weights
        self._greedy = GreedyAgent(weights)
        self.exact = settings or ExactSettings()

    def settings(self) -> dict[str, Any]:
        """Name and budget."""
        return {"name": self.name, **asdict(self.exact)}

    def choose(self, games: GameBatch, seeds: NDArray[np.uint64]) -> NDArray[np.int16]:
        """One move per debate, `(B,)`; see `Agent.choose`. The seeds are not used."""
        if games.size == 0:
            return np.empty(0, np.int16)
        found = winning_moves(self._weights, games, budget=self.exact.budget, threads=numba.get_num_threads()).moves
        return np.where(found == NO_MOVE, self._greedy.choose(games, seeds), found).astype(np.int16)
