from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from debate_rl import machine
from debate_rl.errors import UserError


def test_the_description_is_json_and_imports_nothing_heavy() -> None:
    code = (
        "import sys, json\nfrom debate_rl import machine\nprint(json.dumps(machine.describe()))\n"
        "assert not {'torch', 'numba', 'numpy'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    assert found["numpy"] == np.__version__
    assert found["cores"] >= 1 and found["memory_gib"] > 0 and found["cpu"]
    assert f"{found['cores']} cores of {found['cpu']}" in machine.summary(found)


def test_the_summary_of_an_empty_description_is_still_a_line() -> None:
    assert machine.summary({}) == "? cores of an unknown CPU"


def test_threads_are_set_everywhere() -> None:
    code = (
        "import os\nos.environ.pop('OMP_NUM_THREADS', None)\nos.environ['NUMBA_NUM_THREADS'] = '2'\n"
        "import numba, numpy, threadpoolctl\nfrom debate_rl import machine\n"
        "assert machine.set_threads(2) == 2 and numba.get_num_threads() == 2\n"
        "assert machine.set_threads(1) == 1 and numba.get_num_threads() == 1\n"
        "assert {pool['num_threads'] for pool in threadpoolctl.threadpool_info() if pool['user_api'] == 'blas'} <= {1}\n"
        "import torch\nassert torch.get_num_threads() == 1\n"
        "assert machine.set_threads(2) == 2 and torch.get_num_threads() == 2\n"
        "assert machine.set_threads(None) == min(2, machine.available_cores())"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("threads", [0, -1, 100_000])
def test_impossible_thread_counts_are_refused(threads: int) -> None:
    with pytest.raises(UserError, match=f"threads is {threads}; it must lie between 1 and"):
        machine.set_threads(threads)


def test_peak_memory_is_in_bytes_and_grows() -> None:
    before = machine.peak_memory()
    block = np.ones(int(before * 1.2) // 8)
    assert block.nbytes < machine.peak_memory() < 100 * before
