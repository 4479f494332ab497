"""An agent of one's own, for the option `own`."""

from __future__ import annotations

from debate_rl.agents.random import RandomAgent
from debate_rl.judges.pretrained import Judge


class Own(RandomAgent):
    def __init__(self, judge: Judge) -> None:
        super().__init__()
        self.judge = judge
