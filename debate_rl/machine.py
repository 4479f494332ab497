"""The machine a figure was measured on, and how many of its cores we use."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import os
import platform
import resource
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from debate_rl.errors import UserError


@functools.cache
def describe() -> dict[str, Any]:
    """CPU model, cores this process may use, memory in GiB, operating system, and versions of Python, numpy, numba and torch.

    None of these packages is imported for it.
    """
    return {
        "cpu": _cpu(),
        "cores": available_cores(),
        "memory_gib": _memory_gib(),
        "os": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        **{package: _version(package) for package in ("numpy", "numba", "torch")},
    }


def summary(machine: Mapping[str, Any]) -> str:
    """A row's `machine` as one line for people."""
    parts = [f"{machine.get('cores', '?')} cores of {machine.get('cpu', 'an unknown CPU')}"]
    if machine.get("memory_gib"):
        parts.append(f"{machine['memory_gib']:g} GiB")
    parts += [str(machine["os"])] if machine.get("os") else []
    parts += [f"{package} {machine[package]}" for package in ("python", "numpy", "numba", "torch") if machine.get(package)]
    return ", ".join(parts)


def available_cores() -> int:
    """How many cores this process may use: its CPU affinity, limited further by a container's quota."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with contextlib.suppress(OSError, ValueError):
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        if quota != "max":
            cores = min(cores, max(1, int(quota) // int(period)))
    return cores


def set_threads(threads: int | None) -> int:
    """Use this many threads from now on (None: all available cores) and return the number.

    numba and torch get all of them. BLAS gets one: our kernels are parallel on the outside, and a parallel BLAS inside them would fight
    for the same cores. A torch that is imported later reads the number from its environment variable.

    Raises UserError when the number is below 1 or above what this process can have.
    """
    import numba

    limit = int(numba.config.NUMBA_NUM_THREADS)
    if threads is None:
        threads = min(available_cores(), limit)
    if not 1 <= threads <= limit:
        raise UserError(f"threads is {threads}; it must lie between 1 and {limit} on this machine, or be null for all available cores")
    numba.set_num_threads(threads)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(threads)
    else:
        os.environ["OMP_NUM_THREADS"] = str(threads)
    import threadpoolctl

    threadpoolctl.threadpool_limits(1, user_api="blas")
    return threads


def peak_memory() -> int:
    """The largest resident memory this process has had, or any one of its finished children if that was more, in bytes."""
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return int(peak) * (1 if sys.platform == "darwin" else 1024)  # Linux counts KiB, macOS bytes


def _cpu() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() in ("model name", "Hardware", "Processor") and value.strip():
                return " ".join(value.split())
    return platform.processor() or platform.machine() or "unknown"


def _memory_gib() -> float:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError, ValueError):
        total = min(total, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return round(total / 2**30, 1)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
