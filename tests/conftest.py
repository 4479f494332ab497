"""Shared by all tests: one thread per worker, and the real digits."""

from __future__ import annotations

import os
import signal

# A shell starts background jobs with SIGINT ignored, and every program that a test starts and interrupts would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# before numpy, numba or torch is imported: pytest-xdist gives every core its own worker already
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"
os.environ["WANDB_MODE"] = "disabled"
os.environ["SDL_VIDEODRIVER"] = "dummy"
os.environ["MPLBACKEND"] = "agg"

import hypothesis  # noqa: E402
import pytest  # noqa: E402

from debate_rl import data  # noqa: E402

# how long an example takes says something about the machine's other work, not about the code
hypothesis.settings.register_profile("debate-rl", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("debate-rl")


@pytest.fixture(scope="session")
def mnist_test() -> data.Digits:
    """The 10,000 test images, fetched like a user's. Shared: copy before you change them."""
    return data.load("mnist", "test")


@pytest.fixture(scope="session")
def mnist_train() -> data.Digits:
    """The 60,000 training images, fetched like a user's. Shared: copy before you change them."""
    return data.load("mnist", "train")
