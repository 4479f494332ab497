"""One pass over a study's records: outcomes, calibration after debate, and the games that a gallery shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from debate_rl.evaluation.calibration import Reliability
from debate_rl.evaluation.protocol import Average, Outcomes, add_image
from debate_rl.evaluation.records import Record
from debate_rl.games.pixels import SEATS
from debate_rl.judges.kernels import softmax

PER_PANEL = 6  # games in each of the gallery's four panels, as in the paper's figure 4


@dataclass
class Summary:
    """What a report needs of a study. Feed it one image's records at a time with `add`."""

    average: Average = "logits"
    outcomes: Outcomes = field(default_factory=Outcomes)
    # After debate: the judge's answer among ten (no precommitment), and between the two claims (precommitted).
    answer: Reliability = field(default_factory=Reliability)
    claims: Reliability = field(default_factory=Reliability)
    gallery: dict[tuple[str, str], list[Record]] = field(
        default_factory=lambda: {(first, winner): [] for first in SEATS for winner in SEATS}
    )

    def add(self, records: Sequence[Record]) -> None:
        """Take in all records of one image."""
        add_image(self.outcomes, records, self.average)
        probabilities = softmax(np.array([record["logits"][-1] for record in records]))
        image = np.array([len(self.outcomes.indices) - 1])
        for record, row in zip(records, probabilities, strict=True):
            label, lie = record["label"], record["claims"]["liar"]
            if lie is None:
                self.answer.add(row.max(keepdims=True), np.array([int(row.argmax()) == label]), image)
            else:
                pair = row[[label, lie]]
                self.claims.add(pair.max(keepdims=True) / pair.sum(), np.array([bool(pair[0] > pair[1])]), image)
        self._pick(records)

    def _pick(self, records: Sequence[Record]) -> None:
        """Keep at most one precommitted game per panel from an image, of its first repetition, until the panels are full."""
        for (first, winner), panel in self.gallery.items():
            if len(panel) >= PER_PANEL:
                continue
            fitting = [
                record
                for record in records
                if (record["first"], record["winner"]) == (first, winner) and record["commit"] == "precommit" and record["repetition"] == 0
            ]
            if fitting:
                # The closest game: the one whose ending the judge found hardest.
                panel.append(min(fitting, key=_final_gap))

    def picks(self) -> list[Record]:
        """The gallery's games, panel by panel."""
        return [record for panel in self.gallery.values() for record in panel]

    def tables(self) -> dict[str, Any]:
        """JSON-ready: `lies` (the matrix of `Outcomes.lie_matrix`), `answer` and `claims` (reliability tables)."""
        return {"lies": self.outcomes.lie_matrix().tolist(), "answer": self.answer.table(), "claims": self.claims.table()}


def _final_gap(record: Record) -> float:
    logits = record["logits"][-1]
    return abs(float(logits[record["label"]]) - float(logits[record["claims"]["liar"]]))
