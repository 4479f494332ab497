"""Draw the tables and pictures of README and docs from docs/results/*.jsonl; `--check` only says which are out of date (exit code 1)."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from debate_rl.errors import UserError
from debate_rl.evaluation.report.docs import draw, stale
from debate_rl.runs import write_whole


def main() -> int:
    """Draw or check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent, help="the repository")
    arguments = parser.parse_args()
    try:
        outdated = stale(arguments.root)
        for path in outdated:
            print(f"{'out of date' if arguments.check else 'drawn'}: {path.relative_to(arguments.root)}")
        if arguments.check:
            return 1 if outdated else 0
        contents = draw(arguments.root)
        for path in outdated:
            write_whole(path, contents[path].encode("utf-8"))
    except UserError as error:
        print(f"draw_docs: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
