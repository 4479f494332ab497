"""The two agents without search: against plain twins, alone and in batches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate_rl.agents.greedy import GreedyAgent
from debate_rl.agents.random import RandomAgent
from debate_rl.games import pixels as game
from debate_rl.judges.kernels import JudgeWeights, reply_logits
from tests.agents.conftest import random_games
from tests.weights import random_weights


def seeds(count: int, start: int = 0) -> np.ndarray:
    return np.random.SeedSequence(start).generate_state(count, np.uint64)


def plain_logits(weights: JudgeWeights, image: list[float], revealed: list[int]) -> list[float]:
    """The judge without a kernel or an array operation."""
    hidden = [float(b) for b in weights.b1]
    for pixel in revealed:
        hidden = [
            h + float(m) + image[pixel] * float(v) for h, m, v in zip(hidden, weights.w_mask[pixel], weights.w_value[pixel], strict=True)
        ]
    hidden = [max(0.0, h) for h in hidden]
    second = [
        max(0.0, float(b) + sum(h * float(w) for h, w in zip(hidden, column, strict=True)))
        for b, column in zip(weights.b2, weights.w2.T, strict=True)
    ]
    return [
        float(b) + sum(h * float(w) for h, w in zip(second, column, strict=True))
        for b, column in zip(weights.b3, weights.w3.T, strict=True)
    ]


def plain_gains(weights: JudgeWeights, batch: game.GameBatch, row: int) -> dict[int, float]:
    """What each legal pixel gains the seat to move, judged at once."""
    image = [float(value) / 255 for value in batch.images[batch.image_of[row]]]
    out = [int(pixel) for pixel in batch.moves[row, : batch.counts[row]]]
    label, lie = int(batch.labels[row]), int(batch.lies[row])
    sign = 1 if batch.movers()[row] == game.HONEST else -1
    gains = {}
    for pixel in range(784):
        if image[pixel] > 0 and pixel not in out:
            logits = plain_logits(weights, image, [*out, pixel])
            rival = logits[lie] if lie >= 0 else max(logit for klass, logit in enumerate(logits) if klass != label)
            gains[pixel] = sign * (logits[label] - rival)
    return gains


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 5))
def test_greedy_agrees_with_the_plain_twin(seed: int, size: int) -> None:
    weights = random_weights(seed % 5)
    batch = random_games(seed, size, lit=35)
    chosen = GreedyAgent(weights).choose(batch, seeds(size))
    for row in range(size):
        gains = plain_gains(weights, batch, row)
        assert int(chosen[row]) in gains
        # The kernel adds in another order and in single precision: it may take a pixel within rounding of the best.
        assert gains[int(chosen[row])] == pytest.approx(max(gains.values()), abs=2e-5)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 40))
def test_greedy_does_not_depend_on_the_batch_or_change_it(weights: JudgeWeights, seed: int, size: int) -> None:
    batch = random_games(seed, size)
    before = (batch.moves.copy(), batch.counts.copy())
    agent = GreedyAgent(weights)
    together = agent.choose(batch, seeds(size))
    assert together.dtype == np.int16 and together.shape == (size,)
    assert np.array_equal(batch.moves, before[0]) and np.array_equal(batch.counts, before[1])
    for row in range(size):
        assert agent.choose(batch.select(np.array([row])), seeds(1))[0] == together[row]


def test_greedy_sees_a_position_as_a_set(weights: JudgeWeights) -> None:
    one = random_games(5, 1, pixels=6)
    lit = np.flatnonzero(one.images[one.image_of[0]])
    other = one.select(np.array([0]))
    one.moves[0, :3], other.moves[0, :3] = lit[[4, 9, 2]], lit[[9, 2, 4]]
    one.counts[0] = other.counts[0] = 3
    agent = GreedyAgent(weights)
    assert agent.choose(one, seeds(1))[0] == agent.choose(other, seeds(1))[0]


def test_greedy_takes_the_lowest_pixel_of_equal_ones() -> None:
    weights = random_weights(1)
    flat = JudgeWeights(*(np.zeros_like(part) for part in weights))
    batch = random_games(2, 8)
    legal = game.legal_moves(batch)
    assert GreedyAgent(flat).choose(batch, seeds(8)).tolist() == legal.argmax(axis=1).tolist()


def test_greedy_without_precommitment_raises_the_best_wrong_class() -> None:
    weights = random_weights(3)
    batch = random_games(11, 30)
    batch.lies[:] = game.NO_LIE
    batch.first[:] = (game.LIAR + batch.counts) % 2  # the liar is to move everywhere
    chosen = GreedyAgent(weights).choose(batch, seeds(30))
    for row in range(30):
        options = np.flatnonzero(game.legal_moves(batch)[row])
        logits = reply_logits(weights, batch.images[batch.image_of[row]], batch.moves[row, : batch.counts[row]], options)
        label = int(batch.labels[row])
        lead = np.delete(logits, label, axis=1).max(axis=1) - logits[:, label]
        assert lead[np.flatnonzero(options == chosen[row])[0]] == pytest.approx(lead.max(), abs=2e-5)


@pytest.mark.parametrize("threshold", [0.0, 0.5])
def test_agents_choose_legal_pixels_to_the_end(weights: JudgeWeights, threshold: float) -> None:
    rng = np.random.default_rng(0)
    images = np.zeros((4, 784), dtype=np.uint8)
    images[:, 100:160] = rng.integers(0, 256, size=(4, 60))
    for agent in (GreedyAgent(weights), RandomAgent()):
        batch = game.new_games(images, [0, 1, 2, 3], [5, 6, 7, -1], pixels=6, threshold=threshold)
        for ply in range(6):
            assert game.step(batch, agent.choose(batch, seeds(4, ply))).all()
        assert batch.over().all()


def test_greedy_reaches_the_last_of_exactly_enough_pixels(weights: JudgeWeights) -> None:
    image = np.zeros((1, 784), dtype=np.uint8)
    image[0, [0, 300, 783]] = 200
    batch = game.new_games(image, [1], [2], pixels=3)
    agent = GreedyAgent(weights)
    for _ in range(3):
        assert game.step(batch, agent.choose(batch, seeds(1)))[0]
    assert sorted(batch.moves[0].tolist()) == [0, 300, 783]


def test_random_is_uniform_and_depends_on_the_seed_alone() -> None:
    batch = random_games(0, 1, lit=10, images=1)
    many = batch.select(np.zeros(4000, dtype=np.intp))
    drawn = seeds(4000)
    chosen = RandomAgent().choose(many, drawn)
    options = np.flatnonzero(game.legal_moves(batch)[0])
    counts = np.array([(chosen == pixel).sum() for pixel in options])
    expected = 4000 / len(options)
    assert counts.sum() == 4000
    assert ((counts - expected) ** 2 / expected).sum() < 35  # chi-square, at most 9 degrees of freedom: p < 1e-4
    again = RandomAgent().choose(many.select(np.arange(3999, -1, -1)), drawn[::-1])
    assert np.array_equal(again[::-1], chosen)


def test_empty_batches_are_fine(weights: JudgeWeights) -> None:
    empty = random_games(0, 3).select(np.zeros(0, dtype=np.intp))
    for agent in (GreedyAgent(weights), RandomAgent()):
        assert agent.choose(empty, seeds(0)).shape == (0,)


def test_settings_name_the_agent(weights: JudgeWeights) -> None:
    assert GreedyAgent(weights).settings() == {"name": "greedy"}
    assert RandomAgent().settings() == {"name": "random"}
