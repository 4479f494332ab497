"""`debate-rl VERB [hydra overrides]`: one module per verb."""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line (the process's own by default) and return its exit code: 0, 2 for bad input, 130 for Ctrl-C."""
    try:
        from debate_rl.cli.app import run

        return run(arguments)
    except KeyboardInterrupt:  # during the imports above, or again while the first one was being dealt with
        return 130
