"""Perfect play in a seat: it holds every won game, whatever it is played with."""

from __future__ import annotations

import numpy as np
import pytest

from debate_rl.agents import make_agent
from debate_rl.errors import UserError
from debate_rl.evaluation.matches import game_seeds, logits_by_ply, play
from debate_rl.games.pixels import NO_LIE, GameBatch, honest_wins, new_games
from debate_rl.judges.pretrained import load_judge
from debate_rl.search.exact import PROVED_HONEST, PROVED_LIAR, solve

IMAGES = (2, 5, 6)


@pytest.fixture(scope="module")
def judge():
    return load_judge("mlp-4")


def debates(mnist_test) -> GameBatch:
    """About three images, both orders, without precommitment and against three lies each."""
    image_of = np.repeat(np.arange(3), 8)
    labels = mnist_test.labels[list(IMAGES)][image_of].astype(int)
    shift = np.tile([0, 1, 4, 7], 6)
    lies = np.where(shift == 0, NO_LIE, (labels + shift) % 10)
    return new_games(mnist_test.images[list(IMAGES)], labels, lies, pixels=4, first=np.tile(np.repeat([0, 1], 4), 3), image_of=image_of)


@pytest.mark.parametrize("seat", ["honest", "liar"])
@pytest.mark.parametrize("opponent", ["greedy", "random"])
def test_it_wins_every_game_that_can_be_won(mnist_test, judge, seat: str, opponent: str) -> None:
    games = debates(mnist_test)
    values = solve(judge.weights, games).outcomes
    exact, other = make_agent({"name": "exact"}, judge), make_agent({"name": opponent}, judge)
    play(games, *((exact, other) if seat == "honest" else (other, exact)), game_seeds([(3, game) for game in range(games.size)], 4))
    honest = honest_wins(logits_by_ply(judge.weights, games)[:, -1], games.labels, games.lies)
    own = PROVED_HONEST if seat == "honest" else PROVED_LIAR
    assert (values == own).any()
    assert (honest == (seat == "honest"))[values == own].all()


def test_against_itself_every_game_ends_as_solved(mnist_test, judge) -> None:
    games = debates(mnist_test)
    values = solve(judge.weights, games).outcomes
    exact = make_agent({"name": "exact"}, judge)
    play(games, exact, exact, game_seeds([(3, game) for game in range(games.size)], 4))
    honest = honest_wins(logits_by_ply(judge.weights, games)[:, -1], games.labels, games.lies)
    assert honest.tolist() == (values == PROVED_HONEST).tolist() and 0 < honest.sum() < games.size


@pytest.mark.parametrize("budget", [None, 200])
def test_moves_depend_neither_on_the_batch_nor_on_its_order(mnist_test, judge, budget: int | None) -> None:
    games = debates(mnist_test)
    exact = make_agent({"name": "exact", "budget": budget}, judge)
    seeds = np.zeros(games.size, np.uint64)
    together = exact.choose(games, seeds)
    mixed = np.random.default_rng(0).permutation(games.size)
    assert np.array_equal(exact.choose(games.select(mixed), seeds), together[mixed])
    alone = [int(exact.choose(games.select(np.array([game])), seeds[:1])[0]) for game in range(0, games.size, 5)]
    assert alone == together[::5].tolist()


def test_settings_are_checked_and_told(judge) -> None:
    assert make_agent({"name": "exact", "budget": 50}, judge).settings() == {"name": "exact", "budget": 50}
    for wrong in (0, 1.5, True):
        with pytest.raises(UserError, match="budget"):
            make_agent({"name": "exact", "budget": wrong}, judge)
