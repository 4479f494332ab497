"""Pure rules of the games as batched numba kernels: no torch, no gymnasium, no I/O."""
