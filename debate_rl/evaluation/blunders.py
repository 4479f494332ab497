"""How often debaters throw a won position away: recorded games held against exact play.

A move is a *losing move* if its mover would win from the position before it and loses from the one after it, both under perfect play of
both sides. Only a position that is won can be thrown away, so the rate is among those.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from debate_rl.data import Digits
from debate_rl.errors import UserError
from debate_rl.evaluation.protocol import Study
from debate_rl.evaluation.records import Record
from debate_rl.evaluation.reproduce import Progress
from debate_rl.evaluation.rows import Source
from debate_rl.evaluation.statistics import ratio_interval
from debate_rl.games.pixels import NO_LIE, NO_MOVE, SEATS, new_games, special_rules
from debate_rl.judges.pretrained import Judge
from debate_rl.results import ResultRow
from debate_rl.runs import RunFolder, read_config, read_shard
from debate_rl.search.exact import PROVED_HONEST, PROVED_LIAR, UNPROVED, solve

Case = tuple[str, str, str, int]
"""Commit mode, seat first, seat that moves, ply."""


@dataclass
class Blunders:
    """Per image and case, how many won positions there were and how many of them were thrown away. Feed it with `add`."""

    indices: list[int] = field(default_factory=list)
    counts: dict[Case, list[tuple[int, int]]] = field(default_factory=dict)  # per image: losing moves, won positions
    unproved: int = 0  # positions left open; moves from and to them do not count

    def add(self, index: int, records: Sequence[Record], values: NDArray[np.int8]) -> None:
        """Take in one image's games and the values `(games, P + 1)` of their positions, see `position_values`."""
        self.indices.append(index)
        self.unproved += int((values == UNPROVED).sum())
        here: dict[Case, tuple[int, int]] = {}
        for record, line in zip(records, values, strict=True):
            for ply in range(record["pixels"]):
                seat = SEATS[(SEATS.index(record["first"]) + ply) % 2]
                own = PROVED_HONEST if seat == "honest" else PROVED_LIAR
                if line[ply] != own or line[ply + 1] == UNPROVED:
                    continue
                case = (record["commit"], record["first"], seat, ply)
                lost, won = here.get(case, (0, 0))
                here[case] = (lost + int(line[ply + 1] != own), won + 1)
        for case in here.keys() | self.counts.keys():
            line_of = self.counts.setdefault(case, [(0, 0)] * (len(self.indices) - 1))
            line_of.append(here.get(case, (0, 0)))

    def rate(self, commit: str, first: str | None, seat: str, ply: int | None) -> tuple[float, float, float, str] | None:
        """Losing moves among moves from won positions, with its interval; None for all orders or plies. None where there was no such
        position."""
        chosen = [
            np.array(line)
            for case, line in self.counts.items()
            if case[0] == commit and case[2] == seat and first in (None, case[1]) and ply in (None, case[3])
        ]
        if not chosen:
            return None
        lost, won = np.sum(chosen, axis=0).T
        return ratio_interval(lost, won) if won.sum() else None


def position_values(
    records: Sequence[Record], image: NDArray[np.uint8], judge: Judge, *, budget: int | None = None, threads: int = 1
) -> NDArray[np.int8]:
    """Who wins from every position of recorded games about one image, `(games, P + 1)`: before each move, and at the end.

    Raises:
        UserError: the games were played before another judge, or have different lengths.
    """
    if not records:
        return np.zeros((0, 1), np.int8)
    lengths = {record["pixels"] for record in records}
    if len(lengths) != 1:
        raise UserError("recorded games of different lengths cannot be solved together")
    if any(record["judge"]["hash"] != judge.hash for record in records):
        raise UserError(f"the games were played before the judge {records[0]['judge']['hash']}, not {judge.hash}: choose that judge")
    length = lengths.pop()
    values = np.full((len(records), length + 1), UNPROVED, np.int8)
    values[:, length] = [PROVED_HONEST if record["winner"] == "honest" else PROVED_LIAR for record in records]
    # Games of one claim and order share their first positions; each is solved once.
    known: dict[tuple[int, str, frozenset[int]], list[tuple[int, int]]] = {}
    for row, record in enumerate(records):
        lie = record["claims"]["liar"]
        for ply in range(length):
            key = (NO_LIE if lie is None else lie, record["first"], frozenset(record["moves"][:ply]))
            known.setdefault(key, []).append((row, ply))
    keys = list(known)
    games = new_games(
        image.reshape(1, -1),
        [records[0]["label"]] * len(keys),
        [lie for lie, _, _ in keys],
        pixels=length,
        first=[SEATS.index(first) for _, first, _ in keys],
        image_of=[0] * len(keys),
        threshold=records[0].get("threshold", 0.0),
        black=records[0].get("black", False),
    )
    for game, (_, _, taken) in enumerate(keys):
        games.moves[game, : len(taken)] = sorted(taken)
        games.moves[game, len(taken) :] = NO_MOVE
        games.counts[game] = len(taken)
    found = solve(judge.weights, games, budget=budget, threads=threads)
    for key, outcome in zip(keys, found.outcomes, strict=True):
        for row, ply in known[key]:
            values[row, ply] = outcome
    return values


@dataclass(frozen=True)
class Recorded:
    """One study of another run, to be held against perfect play."""

    path: Path  # of the run folder
    study: str
    indices: tuple[int, ...]
    agents: Mapping[str, Any]

    @property
    def subject(self) -> str:
        """Names the shards of its positions' values."""
        return f"against-{self.study}"


def find_recorded(path: Path, study: Study, indices: Sequence[int], names: Sequence[str] | None) -> list[Recorded]:
    """The studies of a run folder whose games are of `study`'s kind and about some of `indices`.

    Args:
        path: the run folder.
        study: its pixels and rules choose the games.
        indices: images.
        names: of studies; None for all in which the same search sits in both seats.

    Raises:
        UserError: no run folder, or a study that it does not have.
    """
    read_config(path)
    root = path.expanduser() / "records"
    there = sorted(child.name for child in root.iterdir()) if root.is_dir() else []
    for name in names or ():
        if name not in there:
            raise UserError(f"{path} has no study {name!r}; it has {', '.join(there) or 'none'}")
    found = []
    for name in there if names is None else names:
        shards = {int(shard.name.split(".")[0]) for shard in (root / name).glob("*.jsonl.gz")}
        here = tuple(index for index in indices if index in shards)
        if not here:
            continue
        sample = read_shard(root / name, here[0])[0]
        rules = special_rules(sample.get("threshold", 0.0), sample.get("black", False))
        if (sample["pixels"], rules) != (study.pixels, special_rules(study.threshold, study.black)):
            continue
        agents = sample["agents"]
        if names is not None or (agents["honest"] == agents["liar"] and "rollouts" in agents["honest"]):
            found.append(Recorded(path.expanduser(), name, here, agents))
    return found


def hold_against(
    folder: RunFolder,
    recorded: Recorded,
    judge: Judge,
    digits: Digits,
    block: int,
    progress: Progress,
    *,
    budget: int | None = None,
    threads: int = 1,
) -> None:
    """Solve the positions of recorded games, as far as that is missing, writing one shard per image; `threads` images at a time."""
    missing = folder.missing_shards(recorded.subject, recorded.indices)
    done = len(recorded.indices) - len(missing)
    progress(recorded.subject, done, len(recorded.indices))

    def work(index: int) -> list[Record]:
        records = read_shard(recorded.path / "records" / recorded.study, index)
        values = position_values(records, digits.images[index], judge, budget=budget)
        kept = ("index", "commit", "first", "claims", "repetition", "pixels")
        return [{**{key: record[key] for key in kept}, "values": line.tolist()} for record, line in zip(records, values, strict=True)]

    with ThreadPoolExecutor(threads) as pool:
        for begin in range(0, len(missing), block):
            images = missing[begin : begin + block]
            for index, lines in zip(images, pool.map(work, images), strict=True):
                folder.write_shard(recorded.subject, index, lines)
            done += len(images)
            progress(recorded.subject, done, len(recorded.indices))


def summed_blunders(folder: RunFolder, recorded: Recorded) -> Blunders:
    """The losing moves of a study whose positions are solved."""
    blunders = Blunders()
    for index in recorded.indices:
        lines = folder.read_shard(recorded.subject, index)
        blunders.add(index, lines, np.array([line["values"] for line in lines], np.int8))
    return blunders


def blunder_rows(source: Source, blunders: Blunders, agents: Mapping[str, Any], pixels: int) -> list[ResultRow]:
    """`losing_move_rate` per commit mode and seat: over all plies and orders, per order, and per ply."""
    source = source.about(blunders.indices)
    rows = []
    for commit in sorted({case[0] for case in blunders.counts}):
        for seat in SEATS:
            cases: list[tuple[str | None, int | None]] = [(None, None)]
            cases += [(first, None) for first in sorted({case[1] for case in blunders.counts})]
            cases += sorted({(case[1], case[3]) for case in blunders.counts if case[2] == seat})
            for first, ply in cases:
                figure = blunders.rate(commit, first, seat, ply)
                if figure is not None:
                    protocol = {"pixels": pixels, "commit": commit, "seat": seat, "first": first or "mean"}
                    rows.append(source.row("losing_move_rate", figure, {**protocol, **({} if ply is None else {"ply": ply})}, agents))
    return rows
