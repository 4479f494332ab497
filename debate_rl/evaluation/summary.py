"""One pass over a study's records: outcomes, calibration after debate, and the games that a gallery shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from debate_rl.evaluation.protocol import Average, Outcomes, add_image
from debate_rl.evaluation.records import Record
from debate_rl.games.pixels import SEATS
from debate_rl.judges.calibration import Reliability
from debate_rl.judges.kernels import softmax

PER_PANEL = 6  # games in each of the gallery's four panels, as in the paper's figure 4

Picks = dict[tuple[str, str], list[Mapping[str, Any]]]
"""The gallery's panels: records by who moved first and who won."""


def new_picks() -> Picks:
    """Four empty panels."""
    return {(first, winner): [] for first in SEATS for winner in SEATS}


def may_show(record: Mapping[str, Any]) -> bool:
    """Whether a game may stand in the gallery: it is precommitted, and the first of its repetitions."""
    return bool(record["commit"] == "precommit" and record.get("repetition", 0) == 0)


def pick(picks: Picks, record: Mapping[str, Any], per_panel: int = PER_PANEL) -> None:
    """Offer the panels a record that `may_show` lets through. Each keeps one game of each of the first images that have any: the closest,
    the one whose ending the judge found hardest."""
    panel = picks[record["first"], record["winner"]]
    for place, kept in enumerate(panel):
        if kept["index"] == record["index"]:
            if _gap(record) < _gap(kept):
                panel[place] = record
            return
    if len(panel) < per_panel:
        panel.append(record)


def _gap(record: Mapping[str, Any]) -> float:
    final = record["logits"][-1]
    return abs(float(final[record["label"]]) - float(final[record["claims"]["liar"]]))


@dataclass
class Summary:
    """What a report needs of a study. Feed it one image's records at a time with `add`."""

    average: Average = "logits"
    outcomes: Outcomes = field(default_factory=Outcomes)
    # After debate: the judge's answer among ten (no precommitment), and between the two claims (precommitted).
    answer: Reliability = field(default_factory=Reliability)
    claims: Reliability = field(default_factory=Reliability)
    gallery: Picks = field(default_factory=new_picks)

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
            if may_show(record):
                pick(self.gallery, record)

    def picks(self) -> list[Record]:
        """The gallery's games, panel by panel."""
        return [dict(record) for panel in self.gallery.values() for record in panel]

    def tables(self) -> dict[str, Any]:
        """JSON-ready: `lies` (the matrix of `Outcomes.lie_matrix`), `answer` and `claims` (reliability tables)."""
        return {"lies": self.outcomes.lie_matrix().tolist(), "answer": self.answer.table(), "claims": self.claims.table()}
