from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from debate_rl.data import Digits
from debate_rl.evaluation.speed.games import WHOLE_GAME, SearchRate, games_about, thin_and_fat, thread_counts, time_games, whole_game
from debate_rl.search.puct import PuctSettings
from tests.weights import random_weights


def test_the_rate_of_a_whole_game_weighs_plies_by_their_time():
    rates = [SearchRate(1, 9, 100, 900, 9.0, 2), SearchRate(2, 9, 100, 90, 1.0, 2)]
    whole = whole_game(rates)
    assert (whole.ply, whole.games, whole.rollouts, whole.judged, whole.seconds, whole.threads) == (WHOLE_GAME, 9, 200, 990, 10.0, 2)
    assert whole.per_core == pytest.approx(90.0)  # 1,800 rollouts in 10 seconds on 2 cores, not the mean of the plies' rates
    assert whole.leaves_per_core == pytest.approx(49.5)


def test_every_ply_is_timed_and_the_games_stay_as_they_are(mnist_test):
    games, seeds = games_about(mnist_test, [3, 5], 3)
    assert games.size == 18 and seeds.shape == (18, 3)
    assert (games.lies != games.labels).all() and set(games.lies[:9].tolist()) == set(range(10)) - {int(mnist_test.labels[3])}
    rates = time_games(random_weights(0), PuctSettings(rollouts=5), games, seeds)
    assert [(rate.ply, rate.games, rate.rollouts, rate.threads) for rate in rates] == [(ply, 18, 5, 1) for ply in (1, 2, 3)]
    assert rates[0].judged == 90 and all(rate.seconds > 0 for rate in rates)  # no rollout meets a finished game again so soon
    assert (games.counts == 0).all()
    assert [rate.ply for rate in time_games(random_weights(0), PuctSettings(rollouts=5), games, seeds, plies=1)] == [1]


def test_rollouts_that_end_in_known_games_need_no_judge(mnist_test):
    games, seeds = games_about(mnist_test, [3], 1, lies=4)
    (rate,) = time_games(random_weights(0), PuctSettings(rollouts=2000), games, seeds)
    assert games.size == 4 and rate.judged <= 4 * np.count_nonzero(mnist_test.images[3])


def test_the_fastest_repeat_counts(mnist_test, monkeypatch):
    from debate_rl.evaluation.speed import games as module

    runs = [[SearchRate(1, 1, 1, 1, seconds)] for seconds in (0.5, 0.2, 0.7)]
    monkeypatch.setattr(module, "_time_once", lambda *given: runs.pop(0))
    games, seeds = games_about(mnist_test, [3], 1)
    (rate,) = time_games(random_weights(0), PuctSettings(rollouts=1), games, seeds, repeats=3)
    assert rate.seconds == 0.2 and runs == []


def test_the_thinnest_and_fattest_images_are_found():
    images = np.zeros((5, 28, 28), np.uint8)
    for image, count in zip(images, (30, 10, 50, 20, 60), strict=True):
        image.reshape(-1)[:count] = 1
    digits = Digits("mnist", "test", images, np.zeros(5, np.uint8), "")
    assert thin_and_fat(digits) == [(1, 10), (0, 30), (4, 60)]
    assert thin_and_fat(digits, among=4) == [(1, 10), (0, 30), (2, 50)]


@pytest.mark.parametrize(("most", "counts"), [(1, [1]), (2, [1, 2]), (6, [1, 2, 4, 6]), (8, [1, 2, 4, 8])])
def test_thread_counts_double_up_to_all(most, counts):
    assert thread_counts(most) == counts


THREADS = """
import numba, numpy as np, torch
from debate_rl.errors import UserError
from debate_rl.evaluation.speed.games import on_threads

numba.set_num_threads(3)
torch.set_num_threads(3)
counts = lambda: (numba.get_num_threads(), torch.get_num_threads())
with on_threads(2):
    assert counts() == (2, 2)
assert counts() == (3, 3)
for threads, error in ((2, RuntimeError), (5, UserError)):
    try:
        with on_threads(threads):
            raise RuntimeError("stop")
    except error:
        assert counts() == (3, 3)
    else:
        raise AssertionError(threads)
print("restored")
"""


def test_the_number_of_threads_is_restored():
    ran = subprocess.run(
        [sys.executable, "-c", THREADS],
        env={**os.environ, "NUMBA_NUM_THREADS": "4"},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, "restored\n"), ran.stderr
