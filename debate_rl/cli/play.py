"""`debate-rl play`: a person is the honest debater, the liar or the judge at the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rich.text import Text

from debate_rl.agents import Agent, make_agent
from debate_rl.agents.human import HumanAgent, HumanSettings
from debate_rl.agents.terminal import Quit, Terminal
from debate_rl.cli.choices import fitting_judge, refuse_silent
from debate_rl.cli.context import Context
from debate_rl.cli.data import DatasetSettings
from debate_rl.errors import UserError
from debate_rl.evaluation.sitting import First, Role, Sitting
from debate_rl.games.pixels import CLASSES, SEATS, Commit, Rules
from debate_rl.runs import RunFolder

_SUBJECT = "games"  # the records of a run folder, one shard per game


@dataclass(frozen=True)
class Settings:
    """The configuration of `debate-rl play`."""

    name: str = "play"
    role: Role = "honest"
    honest: Mapping[str, Any] = field(default_factory=lambda: {"name": "mcts"})
    liar: Mapping[str, Any] = field(default_factory=lambda: {"name": "mcts"})
    dataset: DatasetSettings = field(default_factory=DatasetSettings)
    split: Literal["train", "test"] = "test"
    judged_by: str | None = None
    pixels: int = 6
    commit: Commit = "precommit"
    first: First = "random"
    index: int | None = None
    lie: int | None = None
    games: int | None = 1
    hints: bool = False
    view: Literal["auto", "compact", "large"] = "auto"
    seed: int = 0
    threshold: float = 0.0
    black: bool = False

    def __post_init__(self) -> None:
        """Refuse settings outside their range."""
        Rules(pixels=self.pixels, commit=self.commit, threshold=self.threshold, black=self.black)
        if self.games is not None and self.games < 1:
            raise UserError(f"games is {self.games}; it must be at least 1, or null to play until you leave")
        if self.seed < 0:
            raise UserError(f"seed is {self.seed}; it must be zero or more")
        if self.lie is not None and not 0 <= self.lie < CLASSES:
            raise UserError(f"lie is {self.lie}; it must lie between 0 and {CLASSES - 1}")
        for seat, agent in (("honest", self.honest), ("liar", self.liar)):
            refuse_silent(agent, seat, "mcts, greedy, random or own")
        if self.lie is not None and self.commit == "none":
            raise UserError("lie is set, but with commit=none the liar claims nothing in advance")


def run(settings: Settings, context: Context) -> None:
    """Play until the asked number of games is done or the person leaves; every finished game is recorded."""
    terminal = Terminal(settings.view)  # first of all: without a terminal there is no game
    digits = settings.dataset.load(settings.split)
    name = settings.judged_by or f"{digits.name}-mlp-{settings.pixels}"
    legal: dict[str, Any] = {"threshold": settings.threshold, "black": settings.black}
    judge = fitting_judge(name, digits.name, settings.pixels, setting="judged_by", note=context.bar.note, **legal)
    agents: dict[str, Agent] = {}
    for seat, chosen in zip(SEATS, (settings.honest, settings.liar), strict=True):
        if seat == settings.role:
            agents[seat] = HumanAgent(judge.weights, HumanSettings(settings.hints, settings.view), terminal)
        elif chosen.get("name") == "human":
            raise UserError(f"{seat} is a person, but role is {settings.role}: one person plays; choose another agent for that seat")
        else:
            agents[seat] = make_agent(chosen, judge)
    context.use_threads()
    sitting = Sitting(
        terminal,
        digits,
        judge,
        agents,
        role=settings.role,
        pixels=settings.pixels,
        commit=settings.commit,
        first=settings.first,
        index=settings.index,
        lie=settings.lie,
        seed=settings.seed,
        **legal,
    )
    # Neither the size of the pictures nor how many games are played changes a game.
    config = {key: value for key, value in context.config.items() if key not in ("view", "games")}
    with context.open_folder(settings.name, config) as folder:
        played = 0
        try:
            while settings.games is None or played < settings.games:
                number = _next_number(folder)
                folder.write_shard(_SUBJECT, number, [sitting.play(number)])
                played += 1
        except Quit as leaving:
            terminal.say("", Text(f"{leaving}; a game that is not finished is not recorded", style="dim"))
        if played:
            terminal.say(
                "", Text(f"{played} game{'s' if played > 1 else ''} recorded in {folder.path / 'records' / _SUBJECT}", style="dim")
            )


def _next_number(folder: RunFolder) -> int:
    number = 0
    while folder.shard_path(_SUBJECT, number).exists():
        number += 1
    return number
