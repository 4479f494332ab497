"""The searches that ours is compared with play the same game, by the same judge, and play it well."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from debate_rl.evaluation.matches import game_seeds
from debate_rl.evaluation.speed import contenders
from debate_rl.evaluation.speed.contenders import OPEN_SPIEL, PYTORCH, SEARCH, contend
from debate_rl.evaluation.speed.torch_search import TorchSearch
from debate_rl.games.pixels import GameBatch, honest_wins, legal_moves, step
from debate_rl.judges.kernels import JudgeWeights, set_logits
from debate_rl.search.puct import Puct, PuctSettings
from tests.evaluation.speed.positions import exact_weights, honest_wins_after, mover_wins, white_games

Choose = Callable[[JudgeWeights, GameBatch, int], np.ndarray]

with_open_spiel = pytest.mark.skipif(not contenders.has_open_spiel(), reason="OpenSpiel is not installed")


def by_search(weights: JudgeWeights, games: GameBatch, rollouts: int) -> np.ndarray:
    return Puct(weights, PuctSettings(rollouts=rollouts)).search(games, np.arange(games.size, dtype=np.uint64)).moves


def by_pytorch(weights: JudgeWeights, games: GameBatch, rollouts: int) -> np.ndarray:
    return TorchSearch(weights, games, seed=1).search(rollouts)[0]


def by_open_spiel(weights: JudgeWeights, games: GameBatch, rollouts: int) -> np.ndarray:
    from debate_rl.evaluation.speed.open_spiel_search import search

    return np.array([search(weights, games, game, rollouts, seed=game) for game in range(games.size)])


EVERY = pytest.mark.parametrize(
    "choose", [by_search, by_pytorch, pytest.param(by_open_spiel, marks=with_open_spiel)], ids=[SEARCH, PYTORCH, OPEN_SPIEL]
)


@EVERY
@pytest.mark.parametrize("plies", [2, 1], ids=["one move left", "two moves left"])
def test_a_won_position_is_not_given_away(choose: Choose, plies: int) -> None:
    weights = exact_weights(3)
    games = white_games(5, 30, 12, 3, plies)
    won = np.flatnonzero([mover_wins(weights, games, game) for game in range(games.size)])
    games = games.select(won[:10])
    assert games.size == 10 and len(won) < 30
    moves = choose(weights, games, 400)
    for game, move in enumerate(moves.tolist()):
        if plies == 2:
            assert honest_wins_after(weights, games, game, [move]) == (games.movers()[game] == 0)
        else:
            assert not mover_wins(weights, games, game, (move,))


@pytest.mark.parametrize("tied", [False, True])
def test_pytorchs_rollouts_follow_the_rules_and_end_with_the_judges_word(tied: bool) -> None:
    weights = JudgeWeights(*(array * 0 for array in exact_weights(4))) if tied else exact_weights(4)
    games = white_games(6, 12, 9, 6, 2)
    seen: list[tuple[np.ndarray, np.ndarray]] = []

    class Watched(TorchSearch):
        def judge(self, sets: torch.Tensor) -> torch.Tensor:
            values = super().judge(sets)
            seen.append((self.pixels.gather(1, sets).numpy(), values.numpy()))
            return values

    _, visits = Watched(weights, games).search(60)
    assert (visits.sum(1) == 60).all() and not visits[~legal_moves(games)].any()
    assert len(seen) == 60
    for sets, values in seen:
        ends = games.select(np.arange(games.size))
        for place in range(4):
            assert step(ends, sets[:, place]).all()  # each pixel legal and new
        logits = set_logits(weights, games.images, games.image_of, ends.moves)
        assert ((values > 0) == honest_wins(logits, games.labels, games.lies)).all()
    assert {float(value) for _, values in seen for value in values} == ({-1.0} if tied else {-1.0, 1.0})


def test_pytorchs_tree_is_the_papers() -> None:
    """Equal positions, many seeds: the mean of the visits is that of the search's own."""
    weights = exact_weights(8)
    one = white_games(9, 1, 8, 4)
    games = one.select(np.zeros(400, np.int64))
    _, found = TorchSearch(weights, games, seed=3).search(60)
    ours = Puct(weights, PuctSettings(rollouts=60)).search(games, np.arange(400, dtype=np.uint64)).visits
    legal = legal_moves(one)[0]
    difference = found[:, legal].mean(0) - ours[:, legal].mean(0)
    error = np.sqrt((found[:, legal].var(0) + ours[:, legal].var(0)) / 400)
    assert (np.abs(difference) < 4 * error + 0.05).all() and np.ptp(ours[:, legal].mean(0)) > 1


@with_open_spiel
@pytest.mark.parametrize("tied", [False, True])
def test_open_spiels_game_and_playouts_are_ours(tied: bool) -> None:
    from debate_rl.evaluation.speed.open_spiel_search import Debate, DebateGame, Playout

    weights = JudgeWeights(*(array * 0 for array in exact_weights(4))) if tied else exact_weights(4)
    games = white_games(7, 24, 8, 5, 1)
    rng = np.random.default_rng(0)
    winners = []
    for game in range(games.size):
        debate = Debate(weights, games, game)
        state = DebateGame(debate).new_initial_state()
        one = games.select(np.array([game]))
        playout = Playout(game)
        while not state.is_terminal():
            assert state.current_player() == one.movers()[0] and state.returns() == [0.0, 0.0]
            assert state.legal_actions() == np.flatnonzero(legal_moves(one)[0]).tolist()
            assert playout.prior(state) == [(pixel, 1 / 8) for pixel in state.legal_actions()]
            before = list(state.revealed)
            ends: list[list[int]] = []
            judge = debate.honest_wins
            debate.honest_wins = lambda pixels, judge=judge, ends=ends: (ends.append(pixels), judge(pixels))[1]  # type: ignore[method-assign]
            value = playout.evaluate(state)
            debate.honest_wins = judge  # type: ignore[method-assign]
            (end,) = ends
            assert end[: len(before)] == before == state.revealed and len(set(end)) == 5 and set(end) <= set(debate.legal)
            honest = 1.0 if honest_wins_after(weights, one, 0, end[len(before) :]) else -1.0
            assert value.tolist() == [honest, -honest]
            action = int(rng.choice(state.legal_actions()))
            clone = state.clone()
            clone.apply_action(action)
            assert state.revealed == before and clone.revealed == [*before, action]
            state.apply_action(action)
            assert step(one, [action]).all()
        honest = 1.0 if honest_wins_after(weights, one, 0, []) else -1.0
        assert state.returns() == [honest, -honest]
        winners.append(honest)
    assert set(winners) == ({-1.0} if tied else {-1.0, 1.0})


def test_all_are_timed_on_the_same_games(monkeypatch: pytest.MonkeyPatch) -> None:
    weights, games = exact_weights(1), white_games(2, 3, 9, 4)
    rates = dict(contend(weights, games, game_seeds([(0, game) for game in range(3)], 4), 30, 1.0))
    assert set(rates) == {SEARCH, PYTORCH} | ({OPEN_SPIEL} if contenders.has_open_spiel() else set())
    for rate in rates.values():
        assert (rate.ply, rate.games, rate.rollouts, rate.threads) == (1, 3, 30, 1) and rate.per_core > 0
    monkeypatch.setattr(contenders, "has_open_spiel", lambda: False)
    assert set(dict(contend(weights, games, np.zeros((3, 4), np.uint64), 3, 1.0))) == {SEARCH, PYTORCH}


def test_a_search_that_breaks_the_rules_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    games = white_games(2, 3, 9, 4)
    monkeypatch.setattr(TorchSearch, "search", lambda self, rollouts, c_puct: (np.zeros(3, np.int16), None))
    assert not legal_moves(games)[:, 0].all()
    with pytest.raises(AssertionError, match="illegal move"):
        dict(contend(exact_weights(1), games, np.zeros((3, 4), np.uint64), 3, 1.0))
