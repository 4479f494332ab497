"""Exact values of whole debates: solved image by image, recorded, and summed up like played ones.

A solution is a record without moves: who wins the game about this image, with this claim and this order, if both sides play perfectly;
`open` where the budget of judged sets ran out before that was proved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from debate_rl.data import Digits
from debate_rl.errors import UserError
from debate_rl.evaluation.protocol import Outcomes, Study
from debate_rl.evaluation.records import Record
from debate_rl.evaluation.reproduce import Progress, refuse_no_images
from debate_rl.evaluation.rows import Source, study_rows
from debate_rl.evaluation.statistics import mean_interval
from debate_rl.games.pixels import CLASSES, NO_LIE, SEATS, VERSION, GameBatch, Seat, new_games, special_rules
from debate_rl.judges.pretrained import AnyJudge, Judge
from debate_rl.results import ResultRow
from debate_rl.runs import RunFolder
from debate_rl.search.exact import PROVED_HONEST, PROVED_LIAR, Solution, solve

if TYPE_CHECKING:
    import torch

EXACT: dict[str, Any] = {"name": "exact"}
OPEN = "open"

_OUTCOMES = {PROVED_HONEST: "honest", PROVED_LIAR: "liar"}


def solve_images(
    study: Study,
    digits: Digits,
    indices: Sequence[int],
    judge: AnyJudge,
    *,
    budget: int | None = None,
    threads: int = 1,
    device: str | None = None,
) -> dict[int, list[Record]]:
    """Solve all of a study's games about some images; solutions by image index.

    Args:
        study: which games; its agents, repetitions and seed have no meaning here.
        digits: the split.
        indices: images of it.
        judge: the judge.
        budget: see `search.exact.solve`.
        threads: images solved at the same time.
        device: judge every set of pixels on this torch device, such as `cuda`, instead of searching for proofs; for games of 4 pixels,
            and with a judge of any architecture.
    """
    image_of, lies, firsts = [], [], []
    for row, index in enumerate(indices):
        label = int(digits.labels[index])
        claims = [NO_LIE] if "none" in study.commit else []
        claims += [lie for lie in range(CLASSES) if lie != label] if "precommit" in study.commit else []
        for first in study.first:
            image_of += [row] * len(claims)
            lies += claims
            firsts += [SEATS.index(first)] * len(claims)
    chosen = np.asarray(indices)
    games = new_games(
        digits.images[chosen],
        digits.labels[chosen[image_of]],
        lies,
        pixels=study.pixels,
        first=firsts,
        image_of=image_of,
        threshold=study.threshold,
        black=study.black,
    )
    if device is not None:
        found = _solve_on(device, judge, games)
    elif isinstance(judge, Judge):
        found = solve(judge.weights, games, budget=budget, threads=threads)
    else:
        raise UserError(f"the proof search cannot run the judge {judge.name}; set device to judge every set of pixels instead")
    by_image: dict[int, list[Record]] = {int(index): [] for index in indices}
    for game in range(games.size):
        index, lie = int(chosen[image_of[game]]), int(lies[game])
        by_image[index].append(
            {
                "game": "pixels",
                "version": VERSION,
                "dataset": digits.name,
                "split": digits.split,
                "index": index,
                "label": int(digits.labels[index]),
                "claims": {"honest": int(digits.labels[index]), "liar": None if lie == NO_LIE else lie},
                "pixels": study.pixels,
                **special_rules(study.threshold, study.black),
                "commit": "none" if lie == NO_LIE else "precommit",
                "first": SEATS[firsts[game]],
                "outcome": _OUTCOMES.get(int(found.outcomes[game]), OPEN),
                "judged": int(found.judged[game]),
                "judge": {"name": judge.name, "hash": judge.hash},
            }
        )
    return by_image


def usable_device(name: str) -> torch.device:
    """A torch device by name, such as `cpu` or `cuda:0`. Raises UserError for one that cannot be used here."""
    import torch  # only where it is asked for

    try:
        device = torch.device(name)
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError) as error:
        raise UserError(f"device is {name!r}, which torch cannot use here ({str(error).splitlines()[0]}); try cpu") from error
    return device


def _solve_on(device: str, judge: AnyJudge, games: GameBatch) -> Solution:
    from debate_rl.judges.paper import PaperJudge
    from debate_rl.search.exhaustive import Judging, judge_with_network, judge_with_weights, solve_games

    where = usable_device(device)

    def judging_of(image: NDArray[np.uint8], pixels: NDArray[np.integer]) -> Judging:
        if isinstance(judge, PaperJudge):
            return judge_with_network(judge.network.to(where), image, pixels, where)
        assert isinstance(judge, Judge)
        return judge_with_weights(judge.weights, image, pixels, where)

    return solve_games(judging_of, games, where)


@dataclass(frozen=True)
class Problem:
    """Games to solve: of a study's kind, about some images, before a judge of any architecture."""

    study: Study
    indices: tuple[int, ...]
    judge: AnyJudge

    def __post_init__(self) -> None:
        """Refuse a study of no images."""
        refuse_no_images(self.study, self.indices)


def solve_problem(
    folder: RunFolder,
    problem: Problem,
    digits: Digits,
    block: int,
    progress: Progress,
    *,
    budget: int | None = None,
    threads: int = 1,
    device: str | None = None,
) -> None:
    """Solve what is missing, writing one shard per image; the options are those of `solve_images`."""
    name, indices = problem.study.name, problem.indices
    missing = folder.missing_shards(name, indices)
    done = len(indices) - len(missing)
    progress(name, done, len(indices))
    for begin in range(0, len(missing), block):
        images = missing[begin : begin + block]
        solved = solve_images(problem.study, digits, images, problem.judge, budget=budget, threads=threads, device=device)
        for index, records in solved.items():
            folder.write_shard(name, index, records)
        done += len(images)
        progress(name, done, len(indices))


def add_solution(outcomes: Outcomes, records: Sequence[Record], open_goes_to: Seat) -> None:
    """Sum one image's solutions up; what was not proved counts for `open_goes_to`."""
    outcomes.indices.append(records[0]["index"])
    outcomes.labels.append(records[0]["label"])
    for first in SEATS:
        winners = {
            record["claims"]["liar"]: open_goes_to if record["outcome"] == OPEN else record["outcome"]
            for record in records
            if record["first"] == first
        }
        if any(lie is not None for lie in winners):
            outcomes.lies[first].append(np.array([winners.get(lie, "honest") == "liar" for lie in range(CLASSES)]))
        if None in winners:
            outcomes.open_shares[first].append(float(winners[None] == "honest"))


@dataclass(frozen=True)
class Solved:
    """What a study's solutions came to: outcomes with the unproved games counted for either side, and how many there are."""

    pessimistic: Outcomes  # honest loses what was not proved
    optimistic: Outcomes  # honest wins it
    shares: dict[tuple[str, str, str], list[float]]  # (commit, first, outcome) -> per image, the share of its games with that outcome
    matrix: NDArray[np.float64]  # (10, 10) successful lies, see `Outcomes.lie_matrix`, of the pessimistic outcomes
    games: int
    unproved: int


def sum_up(solutions: Sequence[Sequence[Record]]) -> Solved:
    """Sum up the solutions of many images, each image's in a list."""
    pessimistic, optimistic = Outcomes(), Outcomes()
    shares: dict[tuple[str, str, str], list[float]] = {}
    games = unproved = 0
    for records in solutions:
        add_solution(pessimistic, records, "liar")
        add_solution(optimistic, records, "honest")
        for commit, first in sorted({(record["commit"], record["first"]) for record in records}):
            found = [record["outcome"] for record in records if (record["commit"], record["first"]) == (commit, first)]
            for outcome in (*SEATS, OPEN):
                shares.setdefault((commit, first, outcome), []).append(found.count(outcome) / len(found))
            games += len(found)
            unproved += found.count(OPEN)
    return Solved(pessimistic, optimistic, shares, pessimistic.lie_matrix(), games, unproved)


def solution_rows(source: Source, study: Study, solved: Solved) -> list[ResultRow]:
    """Rows of solved games: `honest_win_rate` under perfect play, and `proved_share` by outcome.

    Where games were left unproved there are two win rates, with `unproved` in the protocol: they bound the true one.
    """
    rows: list[ResultRow] = []
    if solved.unproved == 0:
        rows += study_rows(source, study, solved.pessimistic)
    else:
        for seat, outcomes in (("liar", solved.pessimistic), ("honest", solved.optimistic)):
            rows += study_rows(replace(source, rules={**source.rules, "unproved": seat}), study, outcomes)
    source = source.about(solved.pessimistic.indices)
    for (commit, first, outcome), values in solved.shares.items():
        if outcome != OPEN:
            protocol = {"pixels": study.pixels, "commit": commit, "first": first, "outcome": outcome}
            rows.append(source.row("proved_share", mean_interval(values), protocol, {"honest": EXACT, "liar": EXACT}))
    return rows
