"""Play whole debates between two agents, or with one advocate alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from debate_rl.agents.base import Agent
from debate_rl.errors import UserError
from debate_rl.games.pixels import NO_MOVE, SEATS, GameBatch, step
from debate_rl.judges.kernels import JudgeWeights, set_logits


def game_seeds(keys: Sequence[Sequence[int]], plies: int) -> NDArray[np.uint64]:
    """Independent seeds for each game and ply, `(B, plies)`, each game's from `SeedSequence` over its own key (integers >= 0)."""
    if not len(keys):
        return np.empty((0, plies), np.uint64)
    return np.stack([np.random.SeedSequence(list(key)).generate_state(plies, np.uint64) for key in keys])


def play(games: GameBatch, honest: Agent | None, liar: Agent | None, seeds: NDArray[np.uint64]) -> None:
    """Play debates to their end, in place.

    Args:
        games: `B` debates at the same ply.
        honest: the honest seat's agent, or None if that seat is silent and the other reveals every pixel.
        liar: likewise.
        seeds: `(B, P)`, see `game_seeds`.

    Raises:
        UserError: both seats are silent, or an agent made an illegal move.
    """
    if honest is None and liar is None:
        raise UserError("both seats are silent: at least one agent must speak")
    for ply in range(games.pixels):
        if np.any(games.counts != ply):
            raise UserError("debates that are played together must be at the same ply")
        play_ply(games, (honest, liar), seeds[:, ply])


def play_ply(games: GameBatch, agents: tuple[Agent | None, Agent | None], seeds: NDArray[np.uint64]) -> None:
    """One move of each debate, in place. `agents` by seat, one of them at least; `seeds` `(B,)`. Errors are those of `play`."""
    movers = games.movers()
    chosen = np.full(games.size, NO_MOVE, np.int16)
    for seat, agent in enumerate(agents):
        if agent is None:
            continue
        other_silent = agents[1 - seat] is None
        mine = np.arange(games.size) if other_silent else np.flatnonzero(movers == seat)
        if not len(mine):
            continue
        part = games.select(mine)
        if other_silent:
            # A lone advocate is to move at every ply: turn the order so that the batch says so.
            part = replace(part, first=((part.counts + seat) % 2).astype(np.int8))
        chosen[mine] = agent.choose(part, seeds[mine])
    made = step(games, chosen)
    if not made.all():
        game = int(np.flatnonzero(~made)[0])
        seat_name = SEATS[int(movers[game])]
        raise UserError(f"the {seat_name} agent chose pixel {int(chosen[game])}, which is not legal there")


def logits_by_ply(weights: JudgeWeights, games: GameBatch) -> NDArray[np.float32]:
    """The judge's logits after each move of finished debates, `(B, P, 10)`."""
    plies = games.pixels
    # Row (b, i) holds the first i + 1 moves of debate b.
    prefixes = np.where(np.tri(plies, dtype=bool)[None], games.moves[:, None, :], NO_MOVE)  # (B, P, P)
    flat = prefixes.reshape(-1, plies)
    logits = set_logits(weights, games.images, np.repeat(games.image_of, plies), flat)
    return logits.reshape(games.size, plies, -1)
