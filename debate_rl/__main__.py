"""`python -m debate_rl`: the same as `debate-rl`."""

from __future__ import annotations

import sys

from debate_rl.cli import main

sys.exit(main())
