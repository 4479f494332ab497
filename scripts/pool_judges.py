"""Pool the rows of runs that differ only in their judge, and print the pooled rows: `python scripts/pool_judges.py RUN_FOLDER ...`."""

from __future__ import annotations

import sys
from pathlib import Path

from debate_rl import results
from debate_rl.errors import UserError
from debate_rl.evaluation.pooling import pool_judges


def main(folders: list[str]) -> int:
    """Read each folder's `results.jsonl`."""
    try:
        if len(folders) < 2:
            raise UserError("give at least two run folders, one per judge")
        for row in pool_judges(row for folder in folders for row in results.read(Path(folder) / "results.jsonl")):
            print(row.line())
    except UserError as error:
        print(f"pool_judges: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
