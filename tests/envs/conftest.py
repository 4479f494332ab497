"""A small judge with random weights and synthetic digits: what the environment does must not depend on how good its judge is."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

# No window and no sound on a machine without a screen; must be set before pygame starts.
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")

from debate_rl.envs import pixels

from debate_rl.judges.kernels import JudgeWeights
from tests.weights import random_weights


@pytest.fixture(scope="session")
def weights() -> JudgeWeights:
    return random_weights(7)


@pytest.fixture(scope="session")
def digits() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Twenty images `(20, 28, 28)` with 60 nonzero pixels each, two of every class."""
    rng = np.random.default_rng(3)
    images = np.zeros((20, 784), dtype=np.uint8)
    for image in images:
        image[rng.choice(784, size=60, replace=False)] = rng.integers(1, 256, size=60)
    return images.reshape(20, 28, 28), np.repeat(np.arange(10), 2).astype(np.uint8)


@pytest.fixture(scope="session")
def make(weights: JudgeWeights, digits: tuple[NDArray[np.uint8], NDArray[np.uint8]]) -> Callable[..., Any]:
    """Builds an environment of the asked `kind` ("env", "raw_env", "parallel_env") on the small judge and the synthetic digits."""

    def build(kind: str = "env", **settings: Any) -> Any:
        images, labels = digits
        return getattr(pixels, kind)(**{"judge": weights, "images": images, "labels": labels, **settings})

    return build
