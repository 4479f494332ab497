"""PettingZoo environments. Importing this package registers them:

>>> import debate_rl.envs, pettingzoo
>>> env = pettingzoo.make("aec", "debate/pixels-v0")

| id | module | registries |
| --- | --- | --- |
| `debate/pixels-v0` | `debate_rl.envs.pixels` | aec, parallel |

The environments are thin wrappers over `debate_rl.games`; they use the judges' numpy and numba kernels and never import torch.
"""

from __future__ import annotations

from pettingzoo import register

# Entry points are strings: an environment's module is loaded when the first one is made.
register("aec", "debate/pixels-v0", "debate_rl.envs.pixels:env")
register("parallel", "debate/pixels-v0", "debate_rl.envs.pixels:parallel_env")
