"""A person's games at the terminal: as one of the debaters, or as the judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from rich.text import Text

from debate_rl.agents import Agent
from debate_rl.agents.screen import belief_lines, claim_words, debaters_view, judges_view, move_lines, seat_style
from debate_rl.agents.terminal import Terminal
from debate_rl.data import Digits
from debate_rl.errors import UserError
from debate_rl.evaluation.matches import game_seeds, logits_by_ply, play, play_ply
from debate_rl.evaluation.records import Record, game_records
from debate_rl.games.pixels import CLASSES, NO_LIE, SEATS, Commit, GameBatch, Seat, honest_wins, legal_pixels, new_games
from debate_rl.judges.pretrained import Judge

Role = Literal["honest", "liar", "judge"]
First = Literal["random", "honest", "liar"]


@dataclass(frozen=True)
class Sitting:
    """What all games of a sitting share.

    Attributes:
        terminal: where the person is.
        digits: the images.
        judge: decides who wins; a person who judges only says what convinced them.
        agents: by seat; the person's own is a `HumanAgent`.
        role: the person's.
        pixels: revealed in a game.
        commit: the commit mode.
        first: who moves first, or a coin's choice in every game.
        index: the image; None for another in every game.
        lie: what the liar claims; None for another in every game.
        seed: of all draws.
        threshold: which pixels may be revealed, see `games.pixels.Rules`.
        black: likewise.
    """

    terminal: Terminal
    digits: Digits
    judge: Judge
    agents: Mapping[str, Agent]
    role: Role
    pixels: int
    commit: Commit = "precommit"
    first: First = "random"
    index: int | None = None
    lie: int | None = None
    seed: int = 0
    threshold: float = 0.0
    black: bool = False

    def play(self, number: int) -> Record:
        """Play game `number` of a run folder and return its record."""
        # Every number has its own draws: sitting down again goes on with other images, and the same seed brings the same ones.
        rng = np.random.default_rng(np.random.SeedSequence([self.seed, number]))
        game, index = self._deal(rng)
        swap = bool(rng.integers(2))  # whether the judge reads the lie first
        key = (self.seed, index, self.pixels, int(game.first[0]), int(game.lies[0]) + 1, number)
        seeds = game_seeds([key], self.pixels)
        order = "" if self.role == "judge" else f", {SEATS[game.first[0]]} moves first"  # the judge must not learn whose pixel is whose
        self.terminal.say("", Text(f"Game {number + 1}: {self.pixels} pixels{order}.", style="bold"))
        answer: int | None = None
        if self.role == "judge":
            answer = self._judge(game, seeds, swap)
        else:
            play(game, self.agents["honest"], self.agents["liar"], seeds)
        logits = logits_by_ply(self.judge.weights, game)
        self._reveal(game, logits[0, -1], index, answer)
        record = game_records(
            game,
            logits,
            dataset=self.digits.name,
            split=self.digits.split,
            indices=[index],
            agents={seat: agent.settings() for seat, agent in self.agents.items()},
            judge={"name": self.judge.name, "hash": self.judge.hash},
            repetitions=[number],
            seed=self.seed,
            threshold=self.threshold,
            black=self.black,
        )[0]
        if answer is not None:
            record["person"] = {"role": "judge", "answer": answer}
        return record

    def _deal(self, rng: np.random.Generator) -> tuple[GameBatch, int]:
        """A new debate and its image's index: as the settings say, drawn where they leave it open."""
        digits = self.digits
        where, shift, coin = rng.random(), int(rng.integers(1, CLASSES)), int(rng.integers(2))
        if self.index is None:
            playable = np.flatnonzero(legal_pixels(digits.images, threshold=self.threshold, black=self.black).sum(axis=1) >= self.pixels)
            if not len(playable):
                raise UserError(f"no image of {digits.name} {digits.split} has {self.pixels} pixels to reveal; lower pixels")
            index = int(playable[int(where * len(playable))])
        elif 0 <= self.index < len(digits):
            index = self.index
        else:
            raise UserError(f"index is {self.index}; {digits.name} {digits.split} has images 0 to {len(digits) - 1}")
        label = int(digits.labels[index])
        if self.commit == "none":
            lie = NO_LIE
        else:
            lie = (label + shift) % CLASSES if self.lie is None else self.lie
        if lie == label:
            raise UserError(f"lie is {lie}, but image {index} is a {label}: the liar must claim another digit")
        first: Seat = SEATS[coin] if self.first == "random" else self.first
        return (
            new_games(
                digits.images[index : index + 1],
                [label],
                lie,
                pixels=self.pixels,
                first=SEATS.index(first),
                threshold=self.threshold,
                black=self.black,
            ),
            index,
        )

    def _judge(self, game: GameBatch, seeds: np.ndarray, swap: bool) -> int:
        """Show the person each revealed pixel, then ask for the verdict: a digit."""
        terminal = self.terminal
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
            play_ply(game, (self.agents["honest"], self.agents["liar"]), seeds[:, game.counts[0]])
            terminal.say("", f"Pixel {int(game.counts[0])} of {game.pixels}:")
            terminal.show(("you see", judges_view(game, newest=True)))
            if not game.over()[0]:
                terminal.ask("Enter for the next pixel (? for help):", _anything, help_lines)
        question = f"Your verdict, {options[0]} or {options[1]}:" if options else "Your verdict, a digit from 0 to 9:"
        return terminal.ask(question, lambda answer: _read_verdict(answer, options or list(range(CLASSES))), help_lines)

    def _reveal(self, game: GameBatch, logits: np.ndarray, index: int, answer: int | None) -> None:
        """Show everything once the game is over."""
        terminal, label = self.terminal, int(game.labels[0])
        honest, lie = claim_words(game)
        terminal.say("", Text(f"The game is over. Image {index} of {self.digits.name} {self.digits.split} is a {label}.", style="bold"))
        terminal.say(*move_lines(game))
        terminal.show(("debaters see", debaters_view(game)), ("the judge sees", judges_view(game)))
        terminal.say(f"the judge {self.judge.name} believes", *belief_lines(logits, game))
        if answer is not None:
            who = "The honest debater" if answer == label else "The liar"
            terminal.say(Text(f"You answered {answer}: {'right' if answer == label else 'wrong'}. {who} convinced you.", style="bold"))
        won = 0 if honest_wins(logits[None], game.labels, game.lies)[0] else 1
        words = f"By the judge {self.judge.name}, {SEATS[won]} wins (honest claimed {honest}, liar {lie})."
        if self.role in SEATS:
            words += " You win!" if SEATS[won] == self.role else " You lose."
        terminal.say(Text(words, seat_style(won)))


def _anything(answer: str) -> str:
    if answer:
        raise UserError(f"press Enter alone for the next pixel, q to leave (not {answer!r})")
    return answer


def _read_verdict(answer: str, options: list[int]) -> int:
    if answer.isascii() and answer.isdigit() and len(answer) == 1 and int(answer) in options:
        return int(answer)
    wanted = f"{options[0]} or {options[1]}" if len(options) == 2 else "one digit from 0 to 9"
    raise UserError(f"{answer!r} is no verdict here: type {wanted}")
