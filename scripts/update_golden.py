"""Write the golden games anew: `python scripts/update_golden.py`. Only when a rule of the game changed on purpose."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.golden import games

if __name__ == "__main__":
    games.write()
    print(f"wrote {games.FILE}")
