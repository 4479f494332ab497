"""The compiled search against a plain-Python twin, against exact play, and against itself under other threads and batches."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate_rl.agents.mcts import MctsAgent
from debate_rl.errors import UserError
from debate_rl.evaluation.matches import game_seeds, play
from debate_rl.games.pixels import HONEST, LIAR, NO_LIE, GameBatch, legal_moves, margins, new_games, step
from debate_rl.judges.kernels import JudgeWeights, reply_logits
from debate_rl.search.arena import TERMINAL, entries_needed, new_arena, rebase_tree
from debate_rl.search.puct import Puct, PuctSettings, make_positions
from tests.search.twin import Twin, minimax
from tests.weights import random_weights

ROOT = Path(__file__).parents[2]


def exact_weights(seed: int) -> JudgeWeights:
    """Weights in eighths: every sum over them is exact in float32, so the order of additions cannot turn a near-tie."""
    return JudgeWeights(*(np.round(array * 8) / np.float32(8) for array in random_weights(seed)))


def thin_games(seed: int, size: int, nonzero: int, pixels: int, *, images: int = 2) -> GameBatch:
    """Debates about images with few nonzero pixels, in all modes and orders."""
    rng = np.random.default_rng(seed)
    stack = np.zeros((images, 784), np.uint8)
    for image in stack:
        image[rng.choice(784, nonzero, replace=False)] = rng.integers(1, 256, nonzero)
    labels = rng.integers(0, 10, size)
    lies = np.where(rng.random(size) < 0.3, NO_LIE, (labels + rng.integers(1, 10, size)) % 10)
    return new_games(stack, labels, lies, pixels=pixels, first=rng.integers(0, 2, size), image_of=rng.integers(0, images, size))


def advance(games: GameBatch, plies: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(plies):
        mask = legal_moves(games)
        step(games, [rng.choice(np.flatnonzero(row)) for row in mask])


def seeds_for(games: GameBatch, seed: int = 0) -> np.ndarray:
    return np.random.SeedSequence(seed).generate_state(games.size, np.uint64)


# How the processor may round a score, fused multiply-add or not; a run of the tests has to do with one of them.
ROUNDINGS = [True, False]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    nonzero=st.integers(6, 40),
    pixels=st.integers(1, 6),
    rollouts=st.integers(1, 300),
    c_puct=st.sampled_from([0.0, 0.3, 1.0, 5.0]),
    leaf=st.sampled_from(["playout", "partial"]),
    value=st.sampled_from(["win", "margin"]),
    exact=st.integers(0, 3),
)
def test_the_kernel_builds_the_same_tree_as_its_twin(seed, nonzero, pixels, rollouts, c_puct, leaf, value, exact):
    if exact > 1:  # the twin tries everything
        nonzero, rollouts, value = min(nonzero, 10), min(rollouts, 40), "win"
    games = thin_games(seed, 3, nonzero, pixels)
    weights = random_weights(seed)
    if value == "margin":  # every bit of a leaf's value matters
        weights = exact_weights(seed)
        games.images[games.images > 0] = 255
    plies = int(np.random.default_rng(seed).integers(0, pixels))
    plies = min(plies, pixels - exact - 1) if exact else plies
    if plies < 0:
        return  # solved at the root: no tree
    advance(games, plies, seed)
    chosen = PuctSettings(rollouts=rollouts, c_puct=c_puct, leaf=leaf, value=value, exact_plies=exact)
    seeds = seeds_for(games, seed)

    def counted(judged: int) -> int | None:
        return int(judged) if exact < 2 else None  # a proof stops early

    found = Puct(weights, chosen).search(games, seeds)
    got = [
        (
            int(found.moves[game]),
            {int(p): int(found.visits[game, p]) for p in np.flatnonzero(found.visits[game])},
            counted(found.judged[game]),
        )
        for game in range(games.size)
    ]

    def twins(fused: bool) -> list[tuple[int, dict[int, int], int]]:
        made = [Twin(weights, games, game, chosen, int(seeds[game]), fused=fused) for game in range(games.size)]
        return [(*twin.search(), counted(twin.judged)) for twin in made]

    if got != twins(ROUNDINGS[0]):
        assert len(ROUNDINGS) == 2 and got == twins(ROUNDINGS[1])
        del ROUNDINGS[0]  # this processor has no fused multiply-add: from here on nothing else will do


@pytest.mark.parametrize("exact", [0, 1, 2, 3])
def test_enough_rollouts_play_a_small_game_perfectly(exact):
    """2,000 rollouts on games of three pixels out of nine: whoever wins with best play wins against best play."""
    weights = random_weights(5)
    games = thin_games(11, 60, 9, 3, images=6)
    truth = np.array([minimax(Twin(weights, games, g, PuctSettings(), 0)) for g in range(games.size)])
    assert 0.2 < truth.mean() < 0.8  # both outcomes occur
    search = Puct(weights, PuctSettings(rollouts=2000, exact_plies=exact))
    while not games.over().all():
        found = search.search(games, seeds_for(games, int(games.counts[0])))
        step(games, found.moves)
        after = np.array([minimax(Twin(weights, games, g, PuctSettings(), 0)) for g in range(games.size)])
        assert (after == truth).mean() > 0.96
        truth = after


# Run in a process of its own: the tests' has one thread (see conftest).
THREADS = """
import numba, numpy as np
from debate_rl.search.puct import Puct, PuctSettings
from debate_rl.search.rollout import GROUP
from tests.search.test_puct import seeds_for, thin_games
from tests.weights import random_weights

assert numba.config.NUMBA_NUM_THREADS == 4
weights, games = random_weights(1), thin_games(2, 203, 30, 6, images=5)
found = {}
for threads in (1, 2, 4, 4):
    numba.set_num_threads(threads)
    search = Puct(weights, PuctSettings(rollouts=200))
    result = search.search(games, seeds_for(games))
    used = set((np.flatnonzero(search._arena.used) // GROUP).tolist())
    assert len(used) == 1 if threads == 1 else len(used) > 1, (threads, used)
    first = found.setdefault("first", result)
    assert np.array_equal(result.visits, first.visits) and np.array_equal(result.moves, first.moves), threads
    assert np.array_equal(result.values, first.values), threads
print("same")
"""


def test_moves_do_not_depend_on_the_number_of_threads():
    ran = subprocess.run(
        [sys.executable, "-c", THREADS], env={**os.environ, "NUMBA_NUM_THREADS": "4"}, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, "same\n"), ran.stderr


def test_moves_do_not_depend_on_batch_or_order():
    weights = random_weights(1)
    games = thin_games(2, 37, 30, 6, images=5)
    seeds = seeds_for(games)
    one = Puct(weights, PuctSettings(rollouts=200)).search(games, seeds)
    shuffled = np.random.default_rng(0).permutation(games.size)
    again = Puct(weights, PuctSettings(rollouts=200)).search(games.select(shuffled), seeds[shuffled])
    assert np.array_equal(again.visits, one.visits[shuffled]) and np.array_equal(again.moves, one.moves[shuffled])
    alone = Puct(weights, PuctSettings(rollouts=200)).search(games.select(np.array([5])), seeds[[5]])
    assert np.array_equal(alone.visits[0], one.visits[5])
    other = Puct(weights, PuctSettings(rollouts=200)).search(games, seeds + np.uint64(1))
    assert not np.array_equal(other.visits, one.visits)


def test_the_search_leaves_the_games_alone_and_moves_legally():
    games = thin_games(3, 20, 12, 4)
    copies = [games.moves.copy(), games.counts.copy(), games.images.copy()]
    found = Puct(random_weights(0), PuctSettings(rollouts=50)).search(games, seeds_for(games))
    assert all(np.array_equal(a, b) for a, b in zip(copies, [games.moves, games.counts, games.images], strict=True))
    assert legal_moves(games)[np.arange(games.size), found.moves].all()
    assert (found.visits.sum(axis=1) == 50).all()
    assert not (found.visits.astype(bool) & ~legal_moves(games)).any()
    assert (np.abs(found.values) <= 1).all()


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), nonzero=st.integers(3, 60), pixels=st.integers(1, 3))
def test_the_last_ply_is_solved_exactly(seed, nonzero, pixels):
    weights = random_weights(seed)
    games = thin_games(seed, 5, nonzero, pixels)
    advance(games, pixels - 1, seed)
    found = Puct(weights, PuctSettings(rollouts=1, exact_plies=1)).search(games, seeds_for(games))
    for game in range(games.size):
        image = games.images[games.image_of[game]]
        replies = np.flatnonzero(legal_moves(games)[game])
        leads = margins(
            reply_logits(weights, image, games.moves[game, : pixels - 1], replies),
            np.full(len(replies), games.labels[game]),
            games.lies[game],
        )
        best = leads.max() if games.movers()[game] == HONEST else leads.min()
        chosen = leads[list(replies).index(found.moves[game])]
        assert chosen == pytest.approx(best, abs=1e-5)
        sign = 1 if (best > 0) == (games.movers()[game] == HONEST) else -1
        if abs(best) > 1e-5:
            assert found.values[game] == sign


@pytest.mark.parametrize("left", [2, 3])
def test_the_last_plies_are_played_exactly(left):
    """A game won with two or three pixels to go stays won against any reply; a lost one is searched for the other side's mistakes."""
    weights = random_weights(5)
    games = thin_games(11, 60, 9, 5, images=6)
    advance(games, 5 - left, 3)
    truth = np.array([minimax(Twin(weights, games, g, PuctSettings(), 0)) for g in range(games.size)])
    won = truth == (games.movers() == HONEST)
    assert 5 < won.sum() < 55
    settings_ = PuctSettings(rollouts=30, exact_plies=left)
    found = Puct(weights, settings_).search(games, seeds_for(games))
    assert np.array_equal(found.values, np.where(won, 1.0, -1.0))
    assert (found.visits.sum(axis=1) == np.where(won, 0, 30)).all() and (found.judged > 0).all()
    plain = Puct(weights, PuctSettings(rollouts=30)).search(games.select(np.flatnonzero(~won)), seeds_for(games)[~won])
    assert np.array_equal(found.moves[~won], plain.moves)
    step(games, found.moves)
    assert np.array_equal(truth, [minimax(Twin(weights, games, g, PuctSettings(), 0)) for g in range(games.size)])


def test_games_of_different_lengths_left_are_played_as_if_alone():
    weights = random_weights(5)
    games = thin_games(3, 12, 9, 4)
    for ply in range(4):
        part = np.arange(ply, 12)
        rows = legal_moves(games)
        moves = np.array([np.flatnonzero(row)[0] if game in part[part >= 3 * (ply + 1)] else -1 for game, row in enumerate(rows)])
        games.moves[moves >= 0, ply] = moves[moves >= 0]
        games.counts[moves >= 0] += 1
    assert sorted(set(games.counts.tolist())) == [0, 1, 2, 3]
    search = Puct(weights, PuctSettings(rollouts=20, exact_plies=2))
    seeds = seeds_for(games)
    together = search.search(games, seeds)
    for game in range(games.size):
        alone = Puct(weights, PuctSettings(rollouts=20, exact_plies=2)).search(games.select(np.array([game])), seeds[[game]])
        assert (alone.moves[0], alone.values[0]) == (together.moves[game], together.values[game])
        assert np.array_equal(alone.visits[0], together.visits[game])


def test_a_winning_last_move_is_found_by_plain_rollouts():
    weights = random_weights(8)
    games = thin_games(9, 40, 25, 2, images=4)
    advance(games, 1, 0)
    exact = Puct(weights, PuctSettings(rollouts=1, exact_plies=1)).search(games, seeds_for(games))
    found = Puct(weights, PuctSettings(rollouts=500)).search(games, seeds_for(games))
    wins = exact.values == 1
    assert 5 < wins.sum() < 40
    step(games, found.moves)
    leads = margins(
        np.concatenate(
            [reply_logits(weights, games.images[games.image_of[g]], games.moves[g, :1], games.moves[g, 1:]) for g in range(games.size)]
        ),
        games.labels,
        games.lies,
    )
    winner = np.where(leads > 0, HONEST, LIAR)
    last_mover = 1 - games.first
    assert (winner[wins] == last_mover[wins]).all()


def test_tree_reuse_carries_the_subtree_on():
    weights = random_weights(4)
    rng = np.random.default_rng(0)
    games = thin_games(6, 9, 20, 5, images=2)
    games.first[:] = HONEST
    search = Puct(weights, PuctSettings(rollouts=400, reuse_tree=True))
    first = search.search(games, seeds_for(games, 1))
    plain = Puct(weights, PuctSettings(rollouts=400)).search(games, seeds_for(games, 1))
    assert np.array_equal(first.visits, plain.visits)  # nothing to reuse yet
    step(games, first.moves)
    replies = [int(rng.choice(np.flatnonzero(row))) for row in legal_moves(games)]
    step(games, replies)
    second = search.search(games, seeds_for(games, 2))
    totals = second.visits.sum(axis=1)
    assert (totals >= 400).all() and (totals > 400).any()
    assert not (second.visits.astype(bool) & ~legal_moves(games)).any()
    # Other debates than last time start from nothing.
    fresh = thin_games(60, 9, 20, 5, images=2)
    assert (search.search(fresh, seeds_for(fresh)).visits.sum(axis=1) == 400).all()


class Watched(MctsAgent):
    """Keeps, ply by ply, what its search found and how many visits its tree had for the position before it searched."""

    def __init__(self, weights: JudgeWeights, settings: PuctSettings) -> None:
        super().__init__(weights, settings)
        self.found: list[tuple[GameBatch, np.ndarray, list[int]]] = []

    def choose(self, games: GameBatch, seeds: np.ndarray) -> np.ndarray:
        kept = [self.visits_below(games, game) for game in range(games.size)]
        result = self._search.search(games, seeds)
        self.found.append((games.select(np.arange(games.size)), result.visits, kept))
        return result.moves

    def visits_below(self, games: GameBatch, game: int) -> int:
        """Rollouts that went on below the position that the game has reached since the last search."""
        arena = self._search._arena
        if not self.found or arena is None:
            return 0
        pixels = np.flatnonzero(games.legal[games.image_of[game]])
        node = 0
        for move in games.moves[game, self.found[-1][0].counts[game] : games.counts[game]]:
            start, n = int(arena.children[game, node]), int(arena.n_children[game, node])
            matching = [entry for entry in range(start, start + n) if pixels[arena.action[game, entry]] == move]
            if not matching:
                return 0
            (node,) = matching
        return int(arena.visits[game, node]) - 1


@pytest.mark.parametrize("first", [HONEST, LIAR])
def test_tree_reuse_carries_both_seats_trees_through_whole_games(first):
    weights = random_weights(4)
    games = thin_games(6, 10, 20, 6, images=2)
    games.first[:] = first
    start = games.select(np.arange(games.size))
    seats = [Watched(weights, PuctSettings(rollouts=400, reuse_tree=True)) for _ in range(2)]
    play(games, seats[HONEST], seats[LIAR], game_seeds([(0, game) for game in range(games.size)], 6))
    assert games.over().all()
    for seat in seats:
        assert [positions.counts[0] for positions, _, _ in seat.found] in ([0, 2, 4], [1, 3, 5])
        for turn, (positions, visits, kept) in enumerate(seat.found):
            assert not (visits.astype(bool) & ~legal_moves(positions)).any()
            assert visits.sum(axis=1).tolist() == [400 + below for below in kept]  # the rollouts come on top of the tree that was kept
            assert any(kept) if turn else not any(kept)
    # Played again by the same agents, and without reuse: new debates start from nothing, and the trees made a difference.
    again = start.select(np.arange(start.size))
    play(again, seats[HONEST], seats[LIAR], game_seeds([(0, game) for game in range(games.size)], 6))
    assert np.array_equal(again.moves, games.moves)
    plain = start.select(np.arange(start.size))
    agent = MctsAgent(weights, PuctSettings(rollouts=400))
    play(plain, agent, agent, game_seeds([(0, game) for game in range(games.size)], 6))
    assert np.array_equal(plain.moves[:, :2], games.moves[:, :2]) and not np.array_equal(plain.moves, games.moves)


def test_a_rebased_tree_holds_exactly_the_subtree():
    weights = random_weights(4)
    games = thin_games(6, 1, 12, 4, images=1)
    search = Puct(weights, PuctSettings(rollouts=3000, reuse_tree=True))
    search.search(games, seeds_for(games, 1))
    arena = search._arena
    assert arena is not None

    def walk(node: int) -> dict:
        start, n = int(arena.children[0, node]), int(arena.n_children[0, node])
        below = sorted((int(arena.action[0, e]), str(walk(e))) for e in range(max(start, 0), max(start, 0) + n))
        return {"visits": int(arena.visits[0, node]), "mean": float(arena.mean[0, node]), "end": start == TERMINAL, "below": below}

    root = int(arena.children[0, 0])
    child = max(range(root, root + int(arena.n_children[0, 0])), key=lambda e: int(arena.visits[0, e]))
    before = walk(child)
    action = int(arena.action[0, child])
    spare = new_arena(1, arena.mean.shape[1])
    rebase_tree(arena, 0, np.array([action]), spare, np.empty(arena.mean.shape[1], np.int64))
    assert walk(0) == before
    rebase_tree(arena, 0, np.array([action]), spare, np.empty(arena.mean.shape[1], np.int64))
    assert arena.used[0] == 0  # that pixel cannot follow itself


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), rollouts=st.integers(1, 3000), nonzero=st.integers(4, 784), c_puct=st.sampled_from([0.0, 1.0, 1e6]))
def test_every_tree_fits_its_arena_and_counts_its_visits(seed, rollouts, nonzero, c_puct):
    games = thin_games(seed, 1, nonzero, 4, images=1)
    search = Puct(random_weights(seed), PuctSettings(rollouts=rollouts, c_puct=c_puct))
    search.search(games, seeds_for(games))
    arena = search._arena
    assert arena is not None
    slot = int(np.flatnonzero(arena.used)[0])
    assert arena.used[slot] <= entries_needed(rollouts)

    def check(node: int, depth: int) -> int:
        start, n = int(arena.children[slot, node]), int(arena.n_children[slot, node])
        if start == TERMINAL:
            assert depth == 4
            return 1
        block = range(start, start + n) if n else range(0)
        actions = [int(arena.action[slot, e]) for e in block]
        assert len(set(actions)) == n
        assert int(arena.visits[slot, node]) == 1 + sum(int(arena.visits[slot, e]) for e in block)
        return 1 + sum(check(e, depth + 1) for e in block)

    assert check(0, 0) <= rollouts + 1
    assert arena.visits[slot, 0] == rollouts + 1


def test_positions_list_legal_pixels_only():
    games = thin_games(1, 4, 10, 2)
    advance(games, 1, 0)
    positions = make_positions(random_weights(0), games)
    for game in range(games.size):
        row = positions.image_of[game]
        listed = positions.pixels[row, : positions.n_pixels[row]]
        assert np.array_equal(listed, np.flatnonzero(games.legal[games.image_of[game]]))
        assert listed[positions.revealed[game, 0]] == games.moves[game, 0]


@pytest.mark.parametrize(
    "wrong",
    [{"rollouts": 0}, {"rollouts": 10**9}, {"c_puct": -1.0}, {"c_puct": float("nan")}, {"leaf": "deep"}, {"value": "loss"}],
)
def test_bad_settings_are_refused(wrong):
    with pytest.raises(UserError, match=next(iter(wrong))):
        PuctSettings(**wrong)


def test_a_finished_game_is_refused():
    games = thin_games(1, 2, 10, 1)
    advance(games, 1, 0)
    with pytest.raises(UserError, match="over"):
        Puct(random_weights(0)).search(games, seeds_for(games))


def test_no_games_give_no_moves():
    games = thin_games(1, 2, 10, 1)
    none = games.select(np.zeros(0, np.intp))
    assert Puct(random_weights(0)).search(none, np.empty(0, np.uint64)).moves.shape == (0,)
