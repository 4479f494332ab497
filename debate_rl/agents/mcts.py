"""The paper's debater: PUCT tree search with the judge at the leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from debate_rl.games.pixels import GameBatch
from debate_rl.judges.kernels import JudgeWeights
from debate_rl.search.puct import Puct, PuctSettings


class MctsAgent:
    """Plays the most visited move of a `Puct` search; see `debate_rl.search.puct`."""

    name = "mcts"

    def __init__(self, weights: JudgeWeights, settings: PuctSettings | None = None) -> None:
        """Build the agent for one judge."""
        self._search = Puct(weights, settings)

    @property
    def puct(self) -> PuctSettings:
        """The search's settings."""
        return self._search.settings

    def settings(self) -> dict[str, Any]:
        """Name and search settings."""
        return {"name": self.name, **self._search.settings.describe()}

    def choose(self, games: GameBatch, seeds: NDArray[np.uint64]) -> NDArray[np.int16]:
        """One move per debate, `(B,)`; see `Agent.choose`."""
        return self._search.search(games, seeds).moves
