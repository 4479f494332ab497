"""The best response finds what its opponent does wrong, and nothing else."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from debate_rl.agents import make_agent
from debate_rl.errors import UserError
from debate_rl.evaluation.matches import game_seeds, logits_by_ply, play
from debate_rl.games.pixels import HONEST, GameBatch, honest_wins, legal_moves, new_games, step
from debate_rl.search.exact import PROVED_HONEST, solve
from tests.search.test_exact import white_games
from tests.weights import random_weights

GREEDY = {"name": "greedy"}


def winners(weights, games: GameBatch) -> np.ndarray:
    return honest_wins(logits_by_ply(weights, games)[:, -1], games.labels, games.lies)


def any_line_wins(weights, game: GameBatch, responder: int, opponent) -> bool:
    """Does some strategy of the responder beat a deterministic opponent? All its lines are played."""
    if game.over()[0]:
        return bool(winners(weights, game)[0]) == (responder == HONEST)
    if game.movers()[0] != responder:
        step(game, opponent.choose(game, np.zeros(1, np.uint64)))
        return any_line_wins(weights, game, responder, opponent)
    for move in np.flatnonzero(legal_moves(game)[0]):
        child = game.select(np.array([0]))
        step(child, [move])
        if any_line_wins(weights, child, responder, opponent):
            return True
    return False


@pytest.mark.parametrize(("pixels", "responder"), list(product((2, 3, 4), (0, 1))))
def test_no_strategy_wins_more_against_greedy(pixels: int, responder: int) -> None:
    found = []
    for seed in range(12):
        weights = random_weights(seed)
        games = white_games(seed, 9, pixels, 4, 0)
        greedy = make_agent(GREEDY, weights)
        response = make_agent({"name": "best_response", "against": GREEDY}, weights)
        expected = [any_line_wins(weights, games.select(np.array([game])), responder, greedy) for game in range(games.size)]
        agents = (response, greedy) if responder == HONEST else (greedy, response)
        play(games, *agents, game_seeds([(seed, game) for game in range(games.size)], pixels))
        assert (winners(weights, games) == (responder == HONEST)).tolist() == expected
        found += expected
    assert 0 < sum(found) < len(found)


def test_it_wins_what_exact_play_wins_and_more(mnist_test) -> None:
    from debate_rl.judges.pretrained import load_judge

    judge = load_judge("mlp-4")
    label = int(mnist_test.labels[6])
    lies = [lie for lie in range(10) if lie != label] * 2
    first = np.repeat([0, 1], 9)
    values, results = None, {}
    for name in ("exact", "best_response"):
        games = new_games(mnist_test.images[6:7], [label] * 18, lies, pixels=4, first=first, image_of=[0] * 18)
        values = solve(judge.weights, games).outcomes
        liar = make_agent({"name": name, **({"against": GREEDY} if name == "best_response" else {})}, judge)
        play(games, make_agent(GREEDY, judge), liar, game_seeds([(1, game) for game in range(18)], 4))
        results[name] = ~winners(judge.weights, games)
    assert results["best_response"][values != PROVED_HONEST].all()
    assert results["best_response"].sum() >= results["exact"].sum()


def test_moves_do_not_depend_on_the_batch(mnist_test) -> None:
    weights = random_weights(3)
    games = white_games(3, 12, 4, 8, 1)
    agent = make_agent({"name": "best_response", "against": {"name": "mcts", "rollouts": 5}}, weights)
    seeds = np.arange(8, dtype=np.uint64)
    together = agent.choose(games, seeds)
    for game in range(8):
        assert agent.choose(games.select(np.array([game])), seeds[game : game + 1])[0] == together[game]


def test_settings_name_the_opponent() -> None:
    weights = random_weights(0)
    settings = {"name": "best_response", "against": GREEDY, "budget": None}
    assert make_agent(settings, weights).settings() == settings
    for wrong, message in (
        ({"against": None}, "must be the settings of an agent"),
        ({"against": {"name": "best_response", "against": GREEDY}}, "has no end"),
        ({"against": GREEDY, "budget": 0}, "budget is 0"),
        ({"against": GREEDY, "depth": 1}, "no setting 'depth'"),
        ({"against": {"name": "greddy"}}, "did you mean 'greedy'"),
    ):
        with pytest.raises(UserError, match=message):
            make_agent({"name": "best_response", **wrong}, weights)
