"""The paper's protocol as studies that are played image by image, recorded, and summed up.

Precommitment (Irving et al. 2018, section 3.1): for one image nine games are played, one per lie, each `repetitions` times with
different seeds; a lie succeeds by the average over its repetitions, and the liar wins the image if *any* lie succeeds.

The paper does not say what is averaged over the three repetitions. `logits` (the default) averages the judge's final logits and compares
the averages; `majority` counts in how many repetitions the lie won. Replications have used both.

Without precommitment the liar wins a game with any wrong answer. Nothing is minimised over, so there is no noise to average away before
deciding: every repetition is a game of its own, and an image's figure is the share of them that honest wins. (Averaging logits there would
be wrong: three games that ended in three different wrong answers can average to the right one.)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from debate_rl.agents.base import Agent
from debate_rl.data import Digits
from debate_rl.errors import UserError
from debate_rl.evaluation.matches import game_seeds, logits_by_ply, play
from debate_rl.evaluation.records import Record, game_records
from debate_rl.games.pixels import CLASSES, NO_LIE, SEATS, Commit, Seat, check_threshold, honest_wins, new_games
from debate_rl.judges.pretrained import Judge

SILENT: dict[str, Any] = {"name": "silent"}

Average = Literal["logits", "majority"]


@dataclass(frozen=True)
class Study:
    """One set of debates over a range of test images, with fixed agents.

    Attributes:
        name: names the study's records in a run folder.
        pixels: pixels revealed in a game.
        honest: settings of the honest seat's agent (`make_agent`), or `SILENT` for a seat that never moves.
        liar: likewise.
        first: the orders to play.
        commit: the commit modes to play.
        repetitions: games per lie (or per image without precommitment), each with seeds of its own.
        seed: the run's seed.
        threshold: which pixels may be revealed, see `games.pixels.Rules`.
        black: likewise.
    """

    name: str
    pixels: int
    honest: Mapping[str, Any]
    liar: Mapping[str, Any]
    first: tuple[Seat, ...] = ("honest", "liar")
    commit: tuple[Commit, ...] = ("precommit", "none")
    repetitions: int = 3
    seed: int = 0
    threshold: float = 0.0
    black: bool = False

    def __post_init__(self) -> None:
        """Refuse settings outside their range."""
        if self.repetitions < 1:
            raise UserError(f"repetitions is {self.repetitions}; it must be at least 1")
        if self.seed < 0:
            raise UserError(f"seed is {self.seed}; it must be zero or more")
        check_threshold(self.threshold)
        if not self.first or not set(self.first) <= set(SEATS):
            raise UserError(f"first is {list(self.first)}; it must list 'honest', 'liar' or both")
        if self.honest == SILENT and self.liar == SILENT:
            raise UserError("both seats are silent; at least one agent must speak")
        for seat, other in ((self.honest, self.liar), (self.liar, self.honest)):
            if other == SILENT and seat.get("name") == "mcts":
                # Its tree would alternate with an opponent who never moves.
                raise UserError("the mcts agent searches a game of two; beside a silent seat choose greedy or random")
        if not self.commit or not set(self.commit) <= {"precommit", "none"}:
            raise UserError(f"commit is {list(self.commit)}; it must list 'precommit', 'none' or both")

    def games_per_image(self) -> int:
        """How many debates one image takes."""
        per_order = sum(CLASSES - 1 if mode == "precommit" else 1 for mode in self.commit)
        return per_order * len(self.first) * self.repetitions


def play_images(
    study: Study, digits: Digits, indices: Sequence[int], judge: Judge, honest: Agent | None, liar: Agent | None
) -> dict[int, list[Record]]:
    """Play all of a study's debates about some images; records by image index.

    A seat whose agent is None is silent. A debate's seeds come from its own key, so results do not depend on which images are played
    together. Images with fewer nonzero pixels than the game reveals raise UserError.
    """
    by_image: dict[int, list[Record]] = {int(index): [] for index in indices}
    agents = {"honest": honest.settings() if honest else SILENT, "liar": liar.settings() if liar else SILENT}
    for first in study.first:
        index_of, lies, repetitions, image_of = [], [], [], []
        for row, index in enumerate(indices):
            label = int(digits.labels[index])
            claims = [lie for lie in range(CLASSES) if lie != label] if "precommit" in study.commit else []
            claims += [NO_LIE] if "none" in study.commit else []
            for lie in claims:
                for repetition in range(study.repetitions):
                    index_of.append(int(index))
                    lies.append(lie)
                    repetitions.append(repetition)
                    image_of.append(row)
        games = new_games(
            digits.images[list(indices)],
            digits.labels[index_of],
            lies,
            pixels=study.pixels,
            first=SEATS.index(first),
            image_of=image_of,
            threshold=study.threshold,
            black=study.black,
        )
        keys = [
            (study.seed, index, study.pixels, SEATS.index(first), lie + 1, repetition)
            for index, lie, repetition in zip(index_of, lies, repetitions, strict=True)
        ]
        play(games, honest, liar, game_seeds(keys, study.pixels))
        for record in game_records(
            games,
            logits_by_ply(judge.weights, games),
            dataset=digits.name,
            split=digits.split,
            indices=index_of,
            agents=agents,
            judge={"name": judge.name, "hash": judge.hash},
            repetitions=repetitions,
            seed=study.seed,
            threshold=study.threshold,
            black=study.black,
        ):
            by_image[record["index"]].append(record)
    return by_image


@dataclass
class Outcomes:
    """What a study's games came to, per image and order. Rows follow `indices`."""

    indices: list[int] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    # (first, "precommit") -> per image, does each lie succeed (10,) bool; the label's own place is False.
    lies: dict[str, list[NDArray[np.bool_]]] = field(default_factory=lambda: defaultdict(list))
    # first -> per image, the share of games without precommitment that honest wins.
    open_shares: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def no_lie_succeeds(self, first: str) -> NDArray[np.float64]:
        """1 where no lie succeeds, per image: the paper's precommit figure."""
        return 1.0 - np.array([row.any() for row in self.lies[first]], dtype=np.float64)

    def random_lie_fails(self, first: str) -> NDArray[np.float64]:
        """Share of the nine lies that fail, per image: the chance against one random lie."""
        return 1.0 - np.array([row.sum() / (CLASSES - 1) for row in self.lies[first]], dtype=np.float64)

    def open_wins(self, first: str) -> NDArray[np.float64]:
        """Share of its games without precommitment that honest wins, per image."""
        return np.array(self.open_shares[first], dtype=np.float64)

    def head(self, count: int) -> Outcomes:
        """The outcomes of the first `count` images alone."""
        return Outcomes(
            indices=self.indices[:count],
            labels=self.labels[:count],
            lies=defaultdict(list, {first: rows[:count] for first, rows in self.lies.items()}),
            open_shares=defaultdict(list, {first: rows[:count] for first, rows in self.open_shares.items()}),
        )

    def lie_matrix(self) -> NDArray[np.float64]:
        """Successful lies `(10, 10)`, label by lie, in percent of all images, averaged over the orders (the paper's figure 3b)."""
        matrix = np.zeros((CLASSES, CLASSES))
        for rows in self.lies.values():
            for label, row in zip(self.labels, rows, strict=True):
                matrix[label] += row
        return 100.0 * matrix / max(1, len(self.labels) * len(self.lies))


def add_image(outcomes: Outcomes, records: Iterable[Record], average: Average = "logits") -> None:
    """Sum one image's records up into `outcomes`."""
    final: dict[tuple[str, int | None], list[list[float]]] = defaultdict(list)
    label = index = -1
    for record in records:
        label, index = record["label"], record["index"]
        final[record["first"], record["claims"]["liar"]].append(record["logits"][-1])
    if index < 0:
        raise UserError("an image without records cannot be summed up")
    outcomes.indices.append(index)
    outcomes.labels.append(label)
    for first in SEATS:
        claims = [lie for seat, lie in final if seat == first]
        if any(lie is not None for lie in claims):
            succeeded = np.zeros(CLASSES, dtype=np.bool_)
            for lie in claims:
                if lie is not None:
                    succeeded[lie] = not lie_fails(final[first, lie], label, lie, average)
            outcomes.lies[first].append(succeeded)
        if None in claims:
            games = final[first, None]
            wins = honest_wins(games, [label] * len(games), NO_LIE)
            outcomes.open_shares[first].append(float(wins.mean()))


def lie_fails(logits: Sequence[Sequence[float]], label: int, lie: int, average: Average) -> bool:
    """Whether a lie fails over its repetitions' final logits `(R, 10)`; a tie goes to the liar."""
    scores = np.asarray(logits, dtype=np.float64)
    leads = scores[:, label] - scores[:, lie]
    return bool(leads.mean() > 0) if average == "logits" else bool((leads > 0).sum() * 2 > len(leads))
