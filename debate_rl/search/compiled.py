"""How the search's kernels are compiled."""

from __future__ import annotations

from numba import njit

jit = njit(cache=True, nogil=True, error_model="numpy")
# Passing many arrays to a function costs more than most of these bodies, so what runs in every rollout is inlined.
inlined = njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
inlined_fastmath = njit(cache=True, nogil=True, error_model="numpy", fastmath=True, forceinline=True)
