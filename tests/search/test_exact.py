"""The proof search against brute force in plain Python, and against itself under budgets, threads and other company."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate_rl.errors import UserError
from debate_rl.games.pixels import CLASSES, HONEST, LIAR, NO_LIE, GameBatch, legal_moves, new_games, step
from debate_rl.judges.kernels import JudgeWeights, set_logits
from debate_rl.judges.pretrained import load_judge
from debate_rl.search import exact
from debate_rl.search.exact import LONGEST, PROVED_HONEST, PROVED_LIAR, UNPROVED, solve
from tests.weights import weights_of


def tied_weights(seed: int) -> JudgeWeights:
    """Small whole numbers: every sum is exact, and many sets of pixels are ties."""
    rng = np.random.default_rng(seed)
    return weights_of(lambda shape: rng.integers(-2, 3, size=shape), 8, 4)


def white_games(seed: int, nonzero: int, pixels: int, size: int, played: int) -> GameBatch:
    """Debates about two images of white pixels (so that every sum is exact), `played` random moves made in each."""
    rng = np.random.default_rng(seed)
    images = np.zeros((2, 784), np.uint8)
    for image in images:
        image[rng.choice(784, nonzero, replace=False)] = 255
    image_of = rng.integers(0, 2, size)
    labels = rng.integers(0, CLASSES, size)  # the label is a debate's, not its image's
    lies = np.where(rng.random(size) < 0.4, NO_LIE, (labels + rng.integers(1, CLASSES, size)) % CLASSES)
    games = new_games(images, labels, lies, pixels=pixels, first=rng.integers(0, 2, size), image_of=image_of)
    for _ in range(played):
        step(games, [rng.choice(np.flatnonzero(row)) for row in legal_moves(games)])
    return games


def brute_force(weights: JudgeWeights, games: GameBatch, game: int) -> bool:
    """Does honest win: every line of play, in plain Python. Written from the rules, without the search's shortcuts."""
    image = games.images[games.image_of[game]]
    pixels = np.flatnonzero(image).tolist()
    label, lie, first = int(games.labels[game]), int(games.lies[game]), int(games.first[game])
    wins: dict[frozenset[int], bool] = {}

    def honest_wins(taken: frozenset[int]) -> bool:
        if taken not in wins:
            if len(taken) == games.pixels:
                logits = set_logits(weights, image[None], np.zeros(1, np.int64), np.array([sorted(taken)]))[0]
                rivals = [k for k in range(CLASSES) if k != label] if lie == NO_LIE else [lie]
                wins[taken] = all(logits[label] > logits[k] for k in rivals)
            else:
                children = (honest_wins(taken | {pixel}) for pixel in pixels if pixel not in taken)
                wins[taken] = any(children) if (first + len(taken)) % 2 == HONEST else all(children)
        return wins[taken]

    return honest_wins(frozenset(games.moves[game, : games.counts[game]].tolist()))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), nonzero=st.integers(5, 14), pixels=st.integers(1, 5), played=st.integers(0, 4), tied=st.booleans())
def test_every_value_is_that_of_brute_force(seed: int, nonzero: int, pixels: int, played: int, tied: bool) -> None:
    weights = tied_weights(seed) if tied else load_judge("mlp-4").weights
    games = white_games(seed, nonzero, pixels, 12, min(played, pixels - 1))
    found = solve(weights, games)
    expected = [brute_force(weights, games, game) for game in range(games.size)]
    assert found.outcomes.tolist() == [PROVED_HONEST if honest else PROVED_LIAR for honest in expected]


def test_brute_force_meets_both_outcomes_and_ties() -> None:
    """What the test above rests on: neither side wins everything, and equal logits do occur."""
    outcomes = []
    ties = 0
    for seed in range(40):
        weights = tied_weights(seed)
        games = white_games(seed, 10, 4, 6, 0)
        outcomes += [brute_force(weights, games, game) for game in range(games.size)]
        sets = np.stack([np.random.default_rng(k).choice(np.flatnonzero(games.images[0]), 4, replace=False) for k in range(50)])
        logits = set_logits(weights, games.images, np.zeros(50, np.int64), sets)
        ties += int((logits[:, [3]] == logits[:, [4]]).sum())
    assert 0.2 < np.mean(outcomes) < 0.8 and ties > 50


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), pixels=st.integers(2, 5), budget=st.integers(1, 400))
def test_a_budget_leaves_positions_open_but_never_wrong(seed: int, pixels: int, budget: int) -> None:
    weights = tied_weights(seed)
    games = white_games(seed, 12, pixels, 10, 0)
    whole, cut = solve(weights, games), solve(weights, games, budget=budget)
    known = cut.outcomes != UNPROVED
    assert np.array_equal(cut.outcomes[known], whole.outcomes[known])
    assert (whole.outcomes != UNPROVED).all()
    assert cut.judged.max() < budget + 12  # the last ply of one position is always finished


def test_a_small_budget_does_leave_some_open() -> None:
    cut = solve(tied_weights(1), white_games(1, 14, 5, 20, 0), budget=3)
    assert (cut.outcomes == UNPROVED).any()


def test_company_order_and_threads_change_no_outcome(mnist_test) -> None:
    judge = load_judge("mlp-4")
    labels = mnist_test.labels[[2, 5]].astype(int)
    image_of = np.repeat([0, 1], 20)
    lies = np.tile(np.arange(-1, 9), 4)
    lies = np.where(lies == labels[image_of], 9, lies)
    games = new_games(
        mnist_test.images[[2, 5]], labels[image_of], lies, pixels=4, first=np.tile(np.repeat([0, 1], 10), 2), image_of=image_of
    )
    together = solve(judge.weights, games, threads=2)
    mixed = np.random.default_rng(0).permutation(games.size)
    assert np.array_equal(solve(judge.weights, games.select(mixed)).outcomes, together.outcomes[mixed])
    alone = [int(solve(judge.weights, games.select(np.array([game]))).outcomes[0]) for game in range(0, games.size, 7)]
    assert alone == together.outcomes[::7].tolist()


def test_a_full_table_forgets_but_is_never_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    weights, games = tied_weights(5), white_games(5, 14, 5, 20, 0)
    expected = solve(weights, games)
    monkeypatch.setattr(exact, "_SMALLEST", 16)
    monkeypatch.setattr(exact, "_LARGEST", 16)
    small = solve(weights, games)
    assert np.array_equal(small.outcomes, expected.outcomes) and small.judged.sum() > expected.judged.sum()


def test_perfect_play_is_what_the_winner_can_hold(mnist_test) -> None:
    """From a won position there is a winning move, and from a lost one there is none."""
    judge = load_judge("mlp-4")
    for first in (HONEST, LIAR):
        games = new_games(mnist_test.images[2:3], [1], [7], pixels=4, first=first)
        rng = np.random.default_rng(first)
        while not games.over().any():
            value = solve(judge.weights, games).outcomes[0]
            moves = np.flatnonzero(legal_moves(games)[0])
            if games.counts[0] < 3:
                children = games.select(np.zeros(len(moves), np.int64))
                step(children, moves)
                values = solve(judge.weights, children).outcomes
                mover_wins = PROVED_HONEST if games.movers()[0] == HONEST else PROVED_LIAR
                assert (value == mover_wins) == (values == mover_wins).any()
            step(games, [rng.choice(moves)])


def test_bad_questions_are_refused(mnist_test) -> None:
    weights = tied_weights(0)
    games = white_games(0, 12, 3, 2, 0)
    with pytest.raises(UserError, match="budget is 0"):
        solve(weights, games, budget=0)
    with pytest.raises(UserError, match=f"at most {LONGEST}"):
        solve(weights, white_games(0, 20, LONGEST + 1, 2, 0))
    with pytest.raises(UserError, match="too many positions"):
        solve(weights, white_games(0, 700, 8, 1, 0))
    for _ in range(3):
        step(games, [np.flatnonzero(row)[0] for row in legal_moves(games)])
    with pytest.raises(UserError, match="over"):
        solve(weights, games)
