"""The greedy agent's parallel kernel gives the same moves on any number of threads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

# Run in a process of its own: the tests' has one thread (see conftest).
CODE = """
import numba, numpy as np
from debate_rl.agents.greedy import GreedyAgent
from tests.agents.conftest import random_games
from tests.weights import random_weights

assert numba.config.NUMBA_NUM_THREADS == 4
agent, games = GreedyAgent(random_weights(7)), random_games(3, 400, images=12)
moves = {}
for threads in (1, 2, 4, 4):
    numba.set_num_threads(threads)
    found = agent.choose(games, np.zeros(games.size, np.uint64))
    assert np.array_equal(found, moves.setdefault("first", found)), threads
alone = [agent.choose(games.select(np.array([row])), np.zeros(1, np.uint64))[0] for row in range(0, 400, 10)]
assert np.array_equal(alone, moves["first"][::10])
print("same", len(set(moves["first"].tolist())) > 20)
"""


def test_greedy_does_not_depend_on_the_number_of_threads() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", CODE],
        env={**os.environ, "NUMBA_NUM_THREADS": "4"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, "same True\n"), ran.stderr
