"""`debate-rl play`: a person is the honest debater, the liar or the judge at the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from rich.text import Text

from debate_rl.agents import Agent, make_agent
from debate_rl.agents.human import HumanAgent, HumanSettings
from debate_rl.agents.screen import belief_lines, claim_words, debaters_view, judges_view, move_lines, seat_style
from debate_rl.agents.terminal import Quit, Terminal
from debate_rl.cli.choices import fitting_judge, refuse_silent
from debate_rl.cli.context import Context
from debate_rl.cli.data import DatasetSettings
from debate_rl.data import Digits
from debate_rl.errors import UserError
from debate_rl.evaluation.matches import game_seeds, logits_by_ply, play
from debate_rl.evaluation.records import Record, game_records
from debate_rl.games.pixels import CLASSES, NO_LIE, SEATS, Commit, GameBatch, Rules, Seat, honest_wins, legal_pixels, new_games, step
from debate_rl.judges.pretrained import Judge
from debate_rl.runs import RunFolder

_SUBJECT = "games"  # the records of a run folder, one shard per game


@dataclass(frozen=True)
class Settings:
    """The configuration of `debate-rl play`."""

    name: str = "play"
    role: Literal["honest", "liar", "judge"] = "honest"
    honest: Mapping[str, Any] = field(default_factory=lambda: {"name": "mcts"})
    liar: Mapping[str, Any] = field(default_factory=lambda: {"name": "mcts"})
    dataset: DatasetSettings = field(default_factory=DatasetSettings)
    split: Literal["train", "test"] = "test"
    judged_by: str | None = None
    pixels: int = 6
    commit: Commit = "precommit"
    first: Literal["random", "honest", "liar"] = "random"
    index: int | None = None
    lie: int | None = None
    games: int | None = 1
    hints: bool = False
    view: Literal["auto", "compact", "large"] = "auto"
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse settings outside their range."""
        Rules(pixels=self.pixels, commit=self.commit)
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


@dataclass(frozen=True)
class _Table:
    """What all games of a sitting share."""

    settings: Settings
    terminal: Terminal
    digits: Digits
    judge: Judge
    agents: Mapping[str, Agent]


def run(settings: Settings, context: Context) -> None:
    """Play until the asked number of games is done or the person leaves; every finished game is recorded."""
    terminal = Terminal(settings.view)  # first of all: without a terminal there is no game
    digits = settings.dataset.load(settings.split)
    name = settings.judged_by or f"{digits.name}-mlp-{settings.pixels}"
    judge = fitting_judge(name, digits.name, settings.pixels, setting="judged_by", note=context.bar.note)
    agents: dict[str, Agent] = {}
    for seat, chosen in zip(SEATS, (settings.honest, settings.liar), strict=True):
        if seat == settings.role:
            agents[seat] = HumanAgent(judge.weights, HumanSettings(settings.hints, settings.view), terminal)
        elif chosen.get("name") == "human":
            raise UserError(f"{seat} is a person, but role is {settings.role}: one person plays; choose another agent for that seat")
        else:
            agents[seat] = make_agent(chosen, judge)
    context.use_threads()
    table = _Table(settings, terminal, digits, judge, agents)
    # Neither the size of the pictures nor how many games are played changes a game.
    config = {key: value for key, value in context.config.items() if key not in ("view", "games")}
    with context.open_folder(settings.name, config) as folder:
        played = 0
        try:
            while settings.games is None or played < settings.games:
                number = _next_number(folder)
                folder.write_shard(_SUBJECT, number, [_play_one(table, number)])
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


def _play_one(table: _Table, number: int) -> Record:
    """Play game `number` of a run folder and return its record."""
    settings = table.settings
    # Every number has its own draws: sitting down again goes on with other images, and the same seed brings the same ones.
    rng = np.random.default_rng(np.random.SeedSequence([settings.seed, number]))
    game, index = _deal(table, rng)
    swap = bool(rng.integers(2))  # whether the judge reads the lie first
    key = (settings.seed, index, settings.pixels, int(game.first[0]), int(game.lies[0]) + 1, number)
    seeds = game_seeds([key], settings.pixels)
    order = "" if settings.role == "judge" else f", {SEATS[game.first[0]]} moves first"  # the judge must not learn whose pixel is whose
    table.terminal.say("", Text(f"Game {number + 1}: {settings.pixels} pixels{order}.", style="bold"))
    answer: int | None = None
    if settings.role == "judge":
        answer = _judge(table, game, seeds, swap)
    else:
        play(game, table.agents["honest"], table.agents["liar"], seeds)
    logits = logits_by_ply(table.judge.weights, game)
    _reveal(table, game, logits[0, -1], index, answer)
    record = game_records(
        game,
        logits,
        dataset=table.digits.name,
        split=table.digits.split,
        indices=[index],
        agents={seat: agent.settings() for seat, agent in table.agents.items()},
        judge={"name": table.judge.name, "hash": table.judge.hash},
        repetitions=[number],
        seed=settings.seed,
    )[0]
    if answer is not None:
        record["person"] = {"role": "judge", "answer": answer}
    return record


def _deal(table: _Table, rng: np.random.Generator) -> tuple[GameBatch, int]:
    """A new debate and its image's index: as the settings say, drawn where they leave it open."""
    settings, digits = table.settings, table.digits
    where, shift, coin = rng.random(), int(rng.integers(1, CLASSES)), int(rng.integers(2))
    if settings.index is None:
        playable = np.flatnonzero(legal_pixels(digits.images).sum(axis=1) >= settings.pixels)
        if not len(playable):
            raise UserError(f"no image of {digits.name} {digits.split} has {settings.pixels} pixels to reveal; lower pixels")
        index = int(playable[int(where * len(playable))])
    elif 0 <= settings.index < len(digits):
        index = settings.index
    else:
        raise UserError(f"index is {settings.index}; {digits.name} {digits.split} has images 0 to {len(digits) - 1}")
    label = int(digits.labels[index])
    if settings.commit == "none":
        lie = NO_LIE
    else:
        lie = (label + shift) % CLASSES if settings.lie is None else settings.lie
    if lie == label:
        raise UserError(f"lie is {lie}, but image {index} is a {label}: the liar must claim another digit")
    first: Seat = SEATS[coin] if settings.first == "random" else settings.first
    return new_games(digits.images[index : index + 1], [label], lie, pixels=settings.pixels, first=SEATS.index(first)), index


def _judge(table: _Table, game: GameBatch, seeds: np.ndarray, swap: bool) -> int:
    """Show the person each revealed pixel, then ask for the verdict: a digit."""
    terminal = table.terminal
    options = [int(game.labels[0]), int(game.lies[0])] if game.lies[0] != NO_LIE else []
    if swap:
        options.reverse()
    if options:
        terminal.say(f"You are the judge. One debater claims {options[0]}, the other {options[1]}; one of them lies.")
    else:
        terminal.say("You are the judge. The honest debater knows the digit; the liar wins if you answer any other.")

    def help_lines() -> None:
        terminal.say(
            "The debaters take turns to reveal pixels of a digit that you cannot see. Every revealed pixel shows its true value.",
            "Pixels nobody revealed are slate, not black. The newest one is marked '>' in the large view.",
            "q leaves the game.",
        )
        terminal.show(("you see", judges_view(game, newest=True)))

    while not game.over()[0]:
        agent = table.agents[SEATS[game.movers()[0]]]
        chosen = agent.choose(game.select(np.array([0])), seeds[:, game.counts[0]])
        if not step(game, chosen)[0]:
            raise UserError(f"the {SEATS[game.movers()[0]]} agent chose pixel {int(chosen[0])}, which is not legal there")
        terminal.say("", f"Pixel {int(game.counts[0])} of {game.pixels}:")
        terminal.show(("you see", judges_view(game, newest=True)))
        if not game.over()[0]:
            terminal.ask("Enter for the next pixel (? for help):", _anything, help_lines)
    question = f"Your verdict, {options[0]} or {options[1]}:" if options else "Your verdict, a digit from 0 to 9:"
    return terminal.ask(question, lambda answer: _read_verdict(answer, options or list(range(CLASSES))), help_lines)


def _anything(answer: str) -> str:
    if answer:
        raise UserError(f"press Enter alone for the next pixel, q to leave (not {answer!r})")
    return answer


def _read_verdict(answer: str, options: list[int]) -> int:
    if answer.isascii() and answer.isdigit() and len(answer) == 1 and int(answer) in options:
        return int(answer)
    wanted = f"{options[0]} or {options[1]}" if len(options) == 2 else "one digit from 0 to 9"
    raise UserError(f"{answer!r} is no verdict here: type {wanted}")


def _reveal(table: _Table, game: GameBatch, logits: np.ndarray, index: int, answer: int | None) -> None:
    """Show everything once the game is over."""
    terminal, label = table.terminal, int(game.labels[0])
    honest, lie = claim_words(game)
    terminal.say("", Text(f"The game is over. Image {index} of {table.digits.name} {table.digits.split} is a {label}.", style="bold"))
    terminal.say(*move_lines(game))
    terminal.show(("debaters see", debaters_view(game)), ("the judge sees", judges_view(game)))
    terminal.say(f"the judge {table.judge.name} believes", *belief_lines(logits, game))
    if answer is not None:
        who = "The honest debater" if answer == label else "The liar"
        terminal.say(Text(f"You answered {answer}: {'right' if answer == label else 'wrong'}. {who} convinced you.", style="bold"))
    won = 0 if honest_wins(logits[None], game.labels, game.lies)[0] else 1
    words = f"By the judge {table.judge.name}, {SEATS[won]} wins (honest claimed {honest}, liar {lie})."
    if table.settings.role in SEATS:
        words += " You win!" if SEATS[won] == table.settings.role else " You lose."
    terminal.say(Text(words, seat_style(won)))
