"""The one error type whose message is meant for the user."""

from __future__ import annotations


class UserError(ValueError):
    """Bad input or a missing resource: one line that says what was wrong and what would be right.

    The command line prints the message alone and exits with code 2. Any other exception is a bug of ours and keeps its traceback.
    """
