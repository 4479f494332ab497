from __future__ import annotations

import numpy as np
import pytest

from debate_rl.evaluation.speed.leaves import PRODUCT, SECOND_LAYER, WHOLE_LEAF, judge_sets, leaf_rates, random_judge_weights
from debate_rl.games.pixels import NO_LIE, margins
from debate_rl.judges.kernels import image_columns, leaf_weights, set_logits


@pytest.mark.parametrize("lie", [3, NO_LIE])
def test_the_leaves_that_are_timed_are_judged_right(mnist_test, lie):
    """An odd number of sets, so that the last pass is cut short."""
    weights = random_judge_weights(24, 12)
    image = mnist_test.images[0].reshape(-1)
    legal = np.flatnonzero(image)
    sets = np.random.default_rng(0).random((21, len(legal))).argsort(axis=1)[:, :6]
    leads = np.empty(21, np.float32)
    columns = image_columns(weights, image, legal)
    judge_sets(columns, sets, leaf_weights(weights), 7, lie, np.empty((8, 24), np.float32), np.empty((8, 12), np.float32), leads)
    logits = set_logits(weights, image[None], np.zeros(21, np.int64), legal[sets])
    np.testing.assert_allclose(leads, margins(logits, np.full(21, 7), np.full(21, lie)), rtol=1e-4, atol=1e-4)
    assert len(np.unique(leads)) == 21


def test_a_judge_of_random_weights_has_the_layers_asked_for():
    weights = random_judge_weights(256, 64)
    assert [array.shape for array in weights] == [(784, 256), (784, 256), (256,), (256, 64), (64,), (64, 10), (10,)]
    assert all(array.dtype == np.float32 and array.std() > 0 for array in weights)


def test_each_leaf_rate_says_what_it_is_of(mnist_test):
    rates = leaf_rates(random_judge_weights(16, 8), mnist_test.images[0], 6, seconds=0.02)
    assert [rate.of for rate in rates] == [PRODUCT, SECOND_LAYER, WHOLE_LEAF]
    for rate in rates:
        assert rate.per_second > 0 and rate.layer == (16, 8) and rate.rows >= 8
        assert rate.gflops == pytest.approx(2e-9 * 16 * 8 * rate.per_second)
