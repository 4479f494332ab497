"""Game records: one debate, one JSON-ready mapping. See `docs/architecture.md` for the fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from debate_rl.games.pixels import NO_LIE, NO_MOVE, SEATS, VERSION, GameBatch, honest_wins, new_games, special_rules
from debate_rl.judges.kernels import JudgeWeights, set_logits

Record = dict[str, Any]


def game_records(
    games: GameBatch,
    logits: NDArray[np.float32],
    *,
    dataset: str,
    split: str,
    indices: Sequence[int],
    agents: Mapping[str, Mapping[str, Any]],
    judge: Mapping[str, str],
    repetitions: Sequence[int],
    seed: int,
    threshold: float = 0.0,
    black: bool = False,
) -> list[Record]:
    """Records of `B` finished debates.

    Args:
        games: the debates.
        logits: `(B, P, 10)` the judge's logits after each move.
        dataset: e.g. `mnist`.
        split: `train` or `test`.
        indices: `(B,)` each debate's image in that split.
        agents: `{"honest": settings, "liar": settings}`; a silent seat is `{"name": "silent"}`.
        judge: `{"name", "hash"}`.
        repetitions: `(B,)` number of each debate among its repetitions.
        seed: the run's seed.
        threshold: which pixels were legal, see `games.pixels.Rules`.
        black: likewise.
    """
    won = honest_wins(logits[:, -1], games.labels, games.lies)
    records = []
    for game in range(games.size):
        lie = int(games.lies[game])
        label = int(games.labels[game])
        records.append(
            {
                "game": "pixels",
                "version": VERSION,
                "dataset": dataset,
                "split": split,
                "index": int(indices[game]),
                "label": label,
                "claims": {"honest": label, "liar": None if lie == NO_LIE else lie},
                "pixels": games.pixels,
                **special_rules(threshold, black),
                "commit": "none" if lie == NO_LIE else "precommit",
                "first": SEATS[int(games.first[game])],
                "moves": games.moves[game].tolist(),
                # The shortest decimal that reads back as the same float32.
                "logits": [[float(str(x)) for x in row] for row in logits[game]],
                "winner": "honest" if won[game] else "liar",
                "agents": {seat: dict(agents[seat]) for seat in SEATS},
                "judge": dict(judge),
                "repetition": int(repetitions[game]),
                "seed": seed,
            }
        )
    return records


def replay(record: Mapping[str, Any], image: NDArray[np.uint8], weights: JudgeWeights) -> NDArray[np.float32]:
    """Judge a recorded debate again: the logits after each move, `(P, 10)`; `image` is `(28, 28)` or `(784,)` uint8."""
    lie = record["claims"]["liar"]
    games = new_games(
        image.reshape(1, -1),
        [record["label"]],
        NO_LIE if lie is None else lie,
        pixels=record["pixels"],
        first=SEATS.index(record["first"]),
        threshold=record.get("threshold", 0.0),
        black=record.get("black", False),
    )
    moves = np.full((record["pixels"], record["pixels"]), NO_MOVE, np.int16)
    for ply in range(record["pixels"]):
        moves[ply, : ply + 1] = record["moves"][: ply + 1]
    return set_logits(weights, games.images, np.zeros(len(moves), np.int64), moves)
