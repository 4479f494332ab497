"""The debater that knows whom it plays against."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from debate_rl.agents.base import Agent
from debate_rl.agents.greedy import GreedyAgent
from debate_rl.errors import UserError
from debate_rl.games.pixels import HONEST, NO_MOVE, GameBatch, honest_wins, legal_moves, step
from debate_rl.judges.kernels import JudgeWeights, set_logits
from debate_rl.search.exact import PROVED_HONEST, PROVED_LIAR, solve, winning_moves


class BestResponseAgent:
    """Plays perfectly where it can win, and elsewhere looks for the mistakes of one opponent: it tries every move, asks the opponent for
    its reply, and solves the position after it.

    Where no reply leaves a won position it plays as `greedy` does. The opponent is asked with seeds of our own, never with those it will
    be given in the game: a best response knows the player, not its luck.

    How exact it is: in games of 4 pixels against an opponent that plays its last move perfectly and without chance (`greedy`, `exact`),
    no strategy wins more. Otherwise it finds the mistakes of the opponent's next move only, and what it wins is a lower bound of what a
    best response would win.
    """

    name = "best_response"

    def __init__(self, weights: JudgeWeights, opponent: Agent, budget: int | None = None) -> None:
        """Build the agent for one judge and one opponent; `budget` as in `search.exact.solve`, per position."""
        if budget is not None and budget < 1:
            raise UserError(f"budget is {budget}; it must be at least 1, or null for no limit")
        self._weights = weights
        self._opponent = opponent
        self._budget = budget
        self._greedy = GreedyAgent(weights)

    def settings(self) -> dict[str, Any]:
        """Name, the opponent's settings, budget."""
        return {"name": self.name, "against": self._opponent.settings(), "budget": self._budget}

    def choose(self, games: GameBatch, seeds: NDArray[np.uint64]) -> NDArray[np.int16]:
        """One move per debate, `(B,)`; see `Agent.choose`."""
        if games.size == 0:
            return np.empty(0, np.int16)
        # A won position stays won whatever the opponent replies; its mistakes are looked for in lost ones.
        chosen = winning_moves(self._weights, games, budget=self._budget, threads=numba.get_num_threads()).moves
        for game in np.flatnonzero((chosen == NO_MOVE) & (games.counts < games.pixels - 1)):
            chosen[game] = self._answer(games.select(np.array([game])), int(seeds[game]))
        lost = np.flatnonzero(chosen == NO_MOVE)
        if len(lost):
            chosen[lost] = self._greedy.choose(games.select(lost), seeds[lost])
        return chosen

    def _answer(self, game: GameBatch, seed: int) -> int:
        """A move of one debate after whose reply the position is won, or NO_MOVE."""
        own = PROVED_HONEST if game.movers()[0] == HONEST else PROVED_LIAR
        moves = np.flatnonzero(legal_moves(game)[0])
        tried = game.select(np.zeros(len(moves), np.int64))
        step(tried, moves)
        # One seed per reply asked for, from the game's own: moves do not depend on the batch.
        asked = np.random.SeedSequence([seed, int(game.counts[0])]).generate_state(len(moves), np.uint64)
        replies = self._opponent.choose(tried, asked.astype(np.uint64))
        made = step(tried, replies)
        if not made.all():
            raise UserError(f"the opponent {self._opponent.name} chose a pixel that is not legal")
        if tried.over().all():
            wins = honest_wins(set_logits(self._weights, tried.images, tried.image_of, tried.moves), tried.labels, tried.lies)
            outcomes = np.where(wins, PROVED_HONEST, PROVED_LIAR)
        else:
            outcomes = solve(self._weights, tried, budget=self._budget, threads=numba.get_num_threads()).outcomes
        won = np.flatnonzero(outcomes == own)
        return int(moves[won[0]]) if len(won) else NO_MOVE
