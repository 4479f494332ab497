"""Everything that can sit in a seat of a debate: random, greedy, tree search, a person. `make_agent` builds one from settings."""

from __future__ import annotations

from debate_rl.agents.base import Agent
from debate_rl.agents.factory import make_agent

__all__ = ["Agent", "make_agent"]
