"""Whole games of the environment, move by move, in a form that is compared exactly.

The judge has small integer weights and the images are black or white, so every logit is an integer that single precision holds exactly: the
games are the same on every processor.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from debate_rl.envs import pixels
from numpy.typing import NDArray

from debate_rl.judges.kernels import JudgeWeights
from tests.weights import weights_of

FILE = Path(__file__).with_name("pixels_v0.json")

Game = dict[str, Any]

# name -> settings of the environment, seed, options of reset, and after how many moves an illegal one follows
SCRIPTS: dict[str, tuple[dict[str, Any], int, dict[str, Any], int | None]] = {
    "precommit, six pixels": ({}, 1, {}, None),
    "liar first": ({"first": "liar"}, 2, {}, None),
    "no precommitment": ({"commit": "none"}, 3, {}, None),
    "four pixels, log-odds": ({"pixels": 4, "reward": "log_odds"}, 4, {}, None),
    "odd number of pixels, chosen debate": ({"pixels": 5}, 5, {"index": 2, "lie": 9, "first": "liar"}, None),
    "black pixels, flat observation": ({"black": True, "observation": "flat"}, 6, {}, None),
    "ended by an illegal move": ({}, 7, {}, 3),
}


def integer_judge() -> JudgeWeights:
    """Weights from -4 to 4: no sum comes near 2 ** 24."""
    rng = np.random.default_rng(2018)
    return weights_of(lambda shape: rng.integers(-4, 5, size=shape))


def binary_images() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Ten images `(10, 28, 28)` of 0 and 255, one per class."""
    rng = np.random.default_rng(2019)
    return (rng.random((10, 28, 28)) < 0.15).astype(np.uint8) * np.uint8(255), np.arange(10, dtype=np.uint8)


def play(settings: dict[str, Any], seed: int, options: dict[str, Any], illegal_after: int | None) -> Game:
    """One game with seeded random moves: every step's mover, state and rewards."""
    images, labels = binary_images()
    env = pixels.env(judge=integer_judge(), images=images, labels=labels, **settings)
    env.reset(seed=seed, options=options)
    start = dict(env.infos["honest"])
    rng = np.random.default_rng(seed)
    steps = []
    while not any(env.terminations.values()):
        agent = env.agent_selection
        seen = env.observe(agent)
        legal = np.flatnonzero(seen["action_mask"])
        action = int(rng.choice(legal))
        if len(steps) == illegal_after:
            action = int(np.flatnonzero(seen["action_mask"] == 0)[0])
        env.step(action)
        steps.append({"agent": agent, "legal": len(legal), "saw": _digest(seen), "action": action, "rewards": dict(env.rewards)})
    return {
        "start": start,
        "steps": steps,
        "state": hashlib.sha256(env.state().tobytes()).hexdigest()[:16],
        "truncated": any(env.truncations.values()),
        "winner": env.infos["honest"].get("winner"),
        "logits": env.infos["honest"].get("logits"),
    }


def play_all() -> dict[str, Game]:
    """All games, as they would be read back from the file."""
    games: dict[str, Game] = json.loads(json.dumps({name: play(*script) for name, script in SCRIPTS.items()}))
    return games


def write() -> None:
    """Write the file; a difference belongs in a commit that says why the game changed and bumps its version."""
    FILE.write_text(json.dumps(play_all(), indent=1) + "\n")


def _digest(seen: dict[str, Any]) -> str:
    inner = seen["observation"]
    parts = [inner[key] for key in sorted(inner)] if isinstance(inner, dict) else [inner]
    return hashlib.sha256(b"".join(part.tobytes() for part in [*parts, seen["action_mask"]])).hexdigest()[:16]
