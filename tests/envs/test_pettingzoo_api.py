"""PettingZoo's own tests, in every variant of the environment, and the registry."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import debate_rl.envs  # noqa: F401 (registers)
import numpy as np
import pettingzoo
import pytest
from numpy.typing import NDArray
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, render_test, seed_test

from debate_rl.judges.kernels import JudgeWeights

Make = Callable[..., Any]
Digits = tuple[NDArray[np.uint8], NDArray[np.uint8]]

VARIANTS = [
    {},
    {"observation": "flat"},
    {"commit": "none"},
    {"first": "liar", "pixels": 4},
    {"pixels": 1},
    {"pixels": 5, "reward": "log_odds", "black": True, "first": "honest"},
]
# What api_test grumbles about and we mean: names without numbers, a Dict of arrays, our own warning about unknown options.
EXPECTED_WARNINGS = (
    "We recommend agents to be named",
    "Observation space for each agent probably should be",
    "Observation is not a NumPy array",
    "reset ignores unknown options",
)


@pytest.mark.parametrize("kind", ["env", "raw_env"])
@pytest.mark.parametrize("settings", VARIANTS, ids=str)
def test_api(make: Make, kind: str, settings: dict[str, Any]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        api_test(make(kind, **settings), num_cycles=50)
    surprises = [str(warning.message) for warning in caught if not any(words in str(warning.message) for words in EXPECTED_WARNINGS)]
    assert not surprises


@pytest.mark.parametrize("settings", VARIANTS, ids=str)
def test_seed(make: Make, settings: dict[str, Any]) -> None:
    seed_test(lambda: make(**settings), num_cycles=50)


@pytest.mark.parametrize("settings", VARIANTS[:3], ids=str)
@pytest.mark.filterwarnings("ignore:.*reset ignores unknown options")
def test_parallel_api(make: Make, settings: dict[str, Any]) -> None:
    parallel_api_test(make("parallel_env", **settings), num_cycles=50)


@pytest.mark.filterwarnings("ignore")  # random actions: illegal moves are warned about
def test_parallel_seed(make: Make) -> None:
    parallel_seed_test(lambda: make("parallel_env"), num_cycles=20)


def legal_episodes(env: Any, seed: int, count: int = 3) -> list[Any]:
    """Everything an agent sees in `count` episodes of legal moves, of which the first is seeded; the moves are drawn alike every time."""
    rng = np.random.default_rng(0)
    seen: list[Any] = []
    for episode in range(count):
        observations, infos = env.reset(seed=seed if episode == 0 else None)
        seen.append((observations, infos))
        plies = 0
        while env.agents:
            masks = {agent: np.flatnonzero(observations[agent]["action_mask"]) for agent in env.agents}
            assert sum(len(mask) > 0 for mask in masks.values()) == 1  # one agent moves at a time
            actions = {agent: int(rng.choice(mask)) if len(mask) else 0 for agent, mask in masks.items()}
            observations, rewards, terminations, truncations, infos = env.step(actions)
            seen.append((actions, observations, rewards, terminations, truncations, infos))
            plies += 1
        assert plies == env.unwrapped.rules.pixels and any(rewards.values())  # played to its end: no illegal move
    return seen


@pytest.mark.parametrize("settings", VARIANTS, ids=str)
def test_legal_parallel_play_is_decided_by_the_seed(make: Make, settings: dict[str, Any]) -> None:
    env = make("parallel_env", **settings)
    once = legal_episodes(env, seed=1)
    assert same(once, legal_episodes(make("parallel_env", **settings), seed=1))
    other = legal_episodes(env, seed=2)
    assert not same(once, other)
    assert same(once, legal_episodes(env, seed=1))  # whatever was played before


def same(one: Any, two: Any) -> bool:
    """Whether two nests of mappings, sequences and arrays are equal to the bit."""
    if isinstance(one, dict):
        return isinstance(two, dict) and one.keys() == two.keys() and all(same(one[key], two[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(two) and all(same(*pair) for pair in zip(one, two, strict=True))
    return bool(np.array_equal(one, two))


def test_render(make: Make) -> None:
    render_test(lambda render_mode: make(render_mode=render_mode))  # every mode of the metadata


def test_registry_makes_both_kinds(weights: JudgeWeights, digits: Digits) -> None:
    images, labels = digits
    settings = {"judge": weights, "images": images, "labels": labels, "pixels": 4}
    turn_based = pettingzoo.make("aec", "debate/pixels-v0", **settings)
    parallel = pettingzoo.make("parallel", "debate/pixels", **settings)  # without a version: the newest
    turn_based.reset(seed=1)
    observations, _ = parallel.reset(seed=1)
    for agent in ("honest", "liar"):
        seen = turn_based.observe(agent)
        assert np.array_equal(seen["action_mask"], observations[agent]["action_mask"])
    assert turn_based.unwrapped.rules.pixels == 4


def test_parallel_ignores_the_waiting_agent(make: Make) -> None:
    env = make("parallel_env", first="liar")
    observations, _ = env.reset(seed=5)
    assert not observations["honest"]["action_mask"].any()
    pixel = int(np.flatnonzero(observations["liar"]["action_mask"])[0])
    env.step({"honest": 0, "liar": pixel})  # 0 is black in all likelihood; it must not matter
    assert env.unwrapped.game.moves[0, :2].tolist() == [pixel, -1]


def test_import_loads_no_torch_and_no_pygame_display_and_is_quick() -> None:
    code = (
        "import time, numpy, numba, gymnasium, pettingzoo, pettingzoo.utils.wrappers, pettingzoo.utils.conversions\n"
        "start = time.process_time()\n"
        "import debate_rl.envs, debate_rl.envs.pixels\n"
        "seconds = time.process_time() - start\n"
        "import sys\n"
        "print(seconds, 'torch' in sys.modules, 'pygame' in sys.modules)\n"
    )
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split() for _ in range(3)]
    assert {(torch, pygame) for _, torch, pygame in runs} == {("False", "False")}
    assert min(float(seconds) for seconds, _, _ in runs) < 0.3  # processor time, the best of three: the machine may be busy
