"""The same game in OpenSpiel's Python interface, for its own MCTS: something to compare with. Needs the extra `bench`.

The bot is the Python one with its PUCT rule, told the paper's prior; unlike ours it keeps a finished game's value without its exploration
bonus. OpenSpiel's C++ bot takes games that are written in C++ only: release 2.0.2 crashes on one in Python.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyspiel
from numpy.typing import NDArray
from open_spiel.python.algorithms import mcts

from debate_rl.games.pixels import CLASSES, NO_LIE, PIXELS_PER_IMAGE, GameBatch
from debate_rl.judges.kernels import JudgeWeights, image_columns

TYPE: Final = pyspiel.GameType(
    short_name="debate_pixels",
    long_name="Sparse-pixel debate",
    dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
    chance_mode=pyspiel.GameType.ChanceMode.DETERMINISTIC,
    information=pyspiel.GameType.Information.PERFECT_INFORMATION,
    utility=pyspiel.GameType.Utility.ZERO_SUM,
    reward_model=pyspiel.GameType.RewardModel.TERMINAL,
    max_num_players=2,
    min_num_players=2,
    provides_information_state_string=False,
    provides_information_state_tensor=False,
    provides_observation_string=False,
    provides_observation_tensor=False,
    parameter_specification={},
)


class Debate:
    """What all states of one debate share: its image's columns, its claims and its judge."""

    def __init__(self, weights: JudgeWeights, games: GameBatch, game: int) -> None:
        """Take one debate of a batch."""
        image = games.image_of[game]
        legal = np.flatnonzero(games.legal[image])
        self.legal: list[int] = legal.tolist()
        self.length = games.pixels
        self.label, self.lie, self.first = int(games.labels[game]), int(games.lies[game]), int(games.first[game])
        self.revealed: list[int] = games.moves[game, : games.counts[game]].tolist()
        self.columns = np.zeros((PIXELS_PER_IMAGE, len(weights.b1)), np.float32)
        self.columns[legal] = image_columns(weights, games.images[image], legal)
        self.weights = weights
        rivals = [klass for klass in range(CLASSES) if klass != self.label] if self.lie == NO_LIE else [self.lie]
        self.margins = (
            weights.w3[:, [self.label]] - weights.w3[:, rivals]
        )  # (H2, rivals): logits less the label's are all that is asked for
        self.ahead = weights.b3[self.label] - weights.b3[rivals]

    def __deepcopy__(self, memo: dict[int, Any]) -> Debate:
        """States are cloned by a deep copy; this part never changes."""
        return self

    def honest_wins(self, pixels: list[int]) -> bool:
        """The judge's word on a finished debate; a tie is the liar's."""
        first = np.maximum(self.weights.b1 + self.columns[pixels].sum(0), np.float32(0.0))
        second = np.maximum(first @ self.weights.w2 + self.weights.b2, np.float32(0.0))
        return bool((second @ self.margins + self.ahead > 0).all())


class DebateGame(pyspiel.Game):  # type: ignore[misc]
    """One debate as a game of OpenSpiel. An action is a pixel; player 0 is honest."""

    def __init__(self, debate: Debate) -> None:
        """A game about a debate from where it stands."""
        info = pyspiel.GameInfo(
            num_distinct_actions=PIXELS_PER_IMAGE,
            max_chance_outcomes=0,
            num_players=2,
            min_utility=-1.0,
            max_utility=1.0,
            utility_sum=0.0,
            max_game_length=debate.length - len(debate.revealed),
        )
        super().__init__(TYPE, info, {})
        self.debate = debate

    def new_initial_state(self) -> DebateState:
        """The debate as it stands."""
        return DebateState(self, self.debate)


class DebateState(pyspiel.State):  # type: ignore[misc]
    """A position of the debate."""

    def __init__(self, game: DebateGame, debate: Debate) -> None:
        """The first position."""
        super().__init__(game)
        self.debate = debate
        self.revealed = debate.revealed.copy()

    def current_player(self) -> int:
        """The seat to move."""
        return int(pyspiel.PlayerId.TERMINAL) if self.is_terminal() else (self.debate.first + len(self.revealed)) % 2

    def is_terminal(self) -> bool:
        """Whether all pixels are revealed."""
        return len(self.revealed) == self.debate.length

    def returns(self) -> list[float]:
        """+1 for the winner and -1 for the loser of a finished debate."""
        if not self.is_terminal():
            return [0.0, 0.0]
        honest = 1.0 if self.debate.honest_wins(self.revealed) else -1.0
        return [honest, -honest]

    def _legal_actions(self, player: int) -> list[int]:
        return [pixel for pixel in self.debate.legal if pixel not in self.revealed]

    def _apply_action(self, action: int) -> None:
        self.revealed.append(action)

    def _action_to_string(self, player: int, action: int) -> str:
        return str(action)

    def __str__(self) -> str:
        """The revealed pixels."""
        return str(self.revealed)


class Playout(mcts.Evaluator):  # type: ignore[misc]
    """The debate finished at random, without a step of the game for every pixel; and the paper's uniform prior."""

    def __init__(self, seed: int) -> None:
        """Seed the playouts."""
        self.random = np.random.default_rng(seed)

    def evaluate(self, state: DebateState) -> NDArray[np.float64]:
        """What a random end is worth to both seats."""
        debate, pixels = state.debate, state.revealed.copy()
        while len(pixels) < debate.length:
            for place in self.random.integers(len(debate.legal), size=debate.length - len(pixels)).tolist():
                if debate.legal[place] not in pixels:
                    pixels.append(debate.legal[place])
        honest = 1.0 if debate.honest_wins(pixels) else -1.0
        return np.array([honest, -honest])

    def prior(self, state: DebateState) -> list[tuple[int, float]]:
        """Each legal pixel, with 1 over the number of pixels of the image."""
        share = 1.0 / len(state.debate.legal)
        return [(pixel, share) for pixel in state.legal_actions()]


def search(weights: JudgeWeights, games: GameBatch, game: int, rollouts: int, c_puct: float = 1.0, seed: int = 0) -> int:
    """The pixel that OpenSpiel's MCTS plays in one debate of a batch."""
    debate = DebateGame(Debate(weights, games, game))
    bot = mcts.MCTSBot(
        debate,
        c_puct,
        rollouts,
        Playout(seed),
        solve=False,
        random_state=np.random.RandomState(seed),
        child_selection_fn=mcts.SearchNode.puct_value,
    )
    return int(bot.step(debate.new_initial_state()))
