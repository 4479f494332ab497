"""Solved games: what is recorded of them, what their rows say, and recorded play held against them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from debate_rl.agents import make_agent
from debate_rl.errors import UserError
from debate_rl.evaluation.blunders import Blunders, blunder_rows, position_values
from debate_rl.evaluation.protocol import Study, play_images
from debate_rl.evaluation.rows import Source
from debate_rl.evaluation.solutions import EXACT, OPEN, solution_rows, solve_images, sum_up
from debate_rl.games.pixels import NO_LIE, NO_MOVE, SEATS, new_games
from debate_rl.judges.pretrained import load_judge
from debate_rl.search.exact import PROVED_HONEST, PROVED_LIAR, UNPROVED, solve

STUDY = Study("games-4", 4, EXACT, EXACT, repetitions=1)
IMAGES = (2, 5, 14)  # thin ones: quick


@pytest.fixture(scope="module")
def judge():
    return load_judge("mlp-4")


@pytest.fixture(scope="module")
def solutions(mnist_test, judge):
    return solve_images(STUDY, mnist_test, IMAGES, judge, threads=2)


def source(judge) -> Source:
    return Source("mnist", "test", 0, "logits", {"command": "test"}, judge, IMAGES)


def test_every_game_is_recorded_with_its_value(mnist_test, judge, solutions) -> None:
    assert tuple(solutions) == IMAGES
    for index, records in solutions.items():
        label = int(mnist_test.labels[index])
        keys = {(record["first"], record["claims"]["liar"]) for record in records}
        assert keys == {(first, lie) for first in SEATS for lie in (None, *range(10)) if lie != label} and len(records) == 20
        for record in records:
            lie = record["claims"]["liar"]
            games = new_games(
                mnist_test.images[[index]], [label], NO_LIE if lie is None else lie, pixels=4, first=SEATS.index(record["first"])
            )
            alone = solve(judge.weights, games).outcomes[0]
            assert record["outcome"] == ("honest" if alone == PROVED_HONEST else "liar")


def made_up(index: int, winners: dict[tuple[str, int | None], str]) -> list[dict]:
    return [
        {
            "index": index,
            "label": 3,
            "first": first,
            "claims": {"liar": lie},
            "commit": "none" if lie is None else "precommit",
            "outcome": who,
        }
        for (first, lie), who in winners.items()
    ]


def test_sums_and_bounds_by_hand(judge) -> None:
    """One image that honest wins throughout, one where a lie is open, one where a lie wins."""
    every = {(first, lie): "honest" for first in SEATS for lie in (None, 0, 1, 2, 4, 5, 6, 7, 8, 9)}
    solved = sum_up(
        [
            made_up(0, every),
            made_up(1, {**every, ("honest", 8): OPEN, ("honest", None): OPEN}),
            made_up(2, {**every, ("honest", 8): "liar", ("honest", None): "liar"}),
        ]
    )
    assert (solved.games, solved.unproved) == (60, 2)
    assert solved.pessimistic.no_lie_succeeds("honest").tolist() == [1, 0, 0]
    assert solved.optimistic.no_lie_succeeds("honest").tolist() == [1, 1, 0]
    assert solved.pessimistic.open_wins("liar").tolist() == [1, 1, 1]
    rows = solution_rows(replace(source(judge), indices=(0, 1, 2)), STUDY, solved)

    def value(metric: str, **wanted: object) -> float:
        (row,) = [row for row in rows if row.metric == metric and all(row.protocol.get(key) == wish for key, wish in wanted.items())]
        return row.value

    worst = {"commit": "precommit", "lies": "worst", "first": "honest"}
    assert value("honest_win_rate", unproved="liar", **worst) == pytest.approx(1 / 3)
    assert value("honest_win_rate", unproved="honest", **worst) == pytest.approx(2 / 3)
    assert value("honest_win_rate", unproved="liar", commit="none", first="mean") == pytest.approx(2 / 3)
    assert value("proved_share", commit="precommit", first="honest", outcome="liar") == pytest.approx(1 / 27)
    assert value("proved_share", commit="precommit", first="honest", outcome="honest") == pytest.approx(25 / 27)


def test_solved_rows_are_bounds_only_where_something_is_open(mnist_test, judge, solutions) -> None:
    whole = solution_rows(source(judge), STUDY, sum_up(list(solutions.values())))
    assert all("unproved" not in row.protocol and row.agents == {"honest": EXACT, "liar": EXACT} for row in whole)
    cut = solve_images(STUDY, mnist_test, IMAGES, judge, budget=50)
    solved = sum_up(list(cut.values()))
    assert solved.unproved > 0
    assert {row.protocol["unproved"] for row in solution_rows(source(judge), STUDY, solved) if row.metric == "honest_win_rate"} == set(
        SEATS
    )


def test_recorded_positions_have_the_values_of_exact_play(mnist_test, judge) -> None:
    index = 6  # a digit that either side can lose
    agent = {"name": "random"}
    study = Study("games", 4, agent, agent, repetitions=1)
    player = make_agent(agent, judge)
    records = play_images(study, mnist_test, [index], judge, player, player)[index]
    values = position_values(records, mnist_test.images[index], judge)
    assert values.shape == (20, 5)
    for row in (0, 7, 13, 19):
        record = records[row]
        lie = record["claims"]["liar"]
        games = new_games(
            mnist_test.images[[index]], [record["label"]], NO_LIE if lie is None else lie, pixels=4, first=SEATS.index(record["first"])
        )
        for ply in range(4):
            games.moves[0, :] = NO_MOVE
            games.moves[0, :ply] = record["moves"][:ply]
            games.counts[0] = ply
            assert values[row, ply] == solve(judge.weights, games).outcomes[0]
        assert values[row, 4] == (PROVED_HONEST if record["winner"] == "honest" else PROVED_LIAR)
    blunders = Blunders()
    blunders.add(index, records, values)
    # Whoever is thrown out of a won position made the losing move: outcomes can only change at a move of the side they change against.
    for record, line in zip(records, values, strict=True):
        for ply in range(4):
            mover = SEATS[(SEATS.index(record["first"]) + ply) % 2]
            if line[ply] != line[ply + 1]:
                assert line[ply] == (PROVED_HONEST if mover == "honest" else PROVED_LIAR)
    lost = sum(sum(part[0] for part in line) for line in blunders.counts.values())
    assert lost == int((values[:, 1:] != values[:, :-1]).sum()) > 0
    with pytest.raises(UserError, match="played before the judge"):
        position_values(records, mnist_test.images[index], load_judge("mlp-6"))


def test_losing_moves_by_hand(judge) -> None:
    won, lost = PROVED_HONEST, PROVED_LIAR
    record = {"pixels": 2, "first": "honest", "commit": "precommit"}
    blunders = Blunders()
    blunders.add(0, [record, record, record], np.array([[won, won, won], [won, lost, lost], [lost, lost, won]], np.int8))
    blunders.add(1, [record], np.array([[won, UNPROVED, won]], np.int8))
    blunders.add(2, [{**record, "first": "liar"}], np.array([[lost, won, won]], np.int8))
    # Two won positions of honest's, one thrown away; the open one does not count.
    assert blunders.rate("precommit", "honest", "honest", 0)[0] == 0.5
    # The liar at the second ply: won in games 2 and 3 of image 0, thrown away in game 3; and its one move of image 2.
    assert blunders.rate("precommit", "honest", "liar", 1)[0] == 0.5
    assert blunders.rate("precommit", None, "liar", None)[0] == pytest.approx(2 / 3)
    assert blunders.rate("none", None, "liar", None) is None and blunders.unproved == 1
    rows = blunder_rows(source(judge), blunders, {"honest": {"name": "mcts"}, "liar": {"name": "mcts"}}, 2)
    assert {row.protocol["seat"] for row in rows} == set(SEATS) and all(row.n == 3 for row in rows)


def test_judging_every_set_gives_the_same_solutions(mnist_test, judge, solutions) -> None:
    every = solve_images(STUDY, mnist_test, IMAGES[:1], judge, device="cpu")
    outcomes = [(record["first"], record["claims"]["liar"], record["outcome"]) for record in solutions[IMAGES[0]]]
    assert [(record["first"], record["claims"]["liar"], record["outcome"]) for record in every[IMAGES[0]]] == outcomes
    with pytest.raises(UserError, match="device is 'abacus', which torch cannot use here"):
        solve_images(STUDY, mnist_test, IMAGES[:1], judge, device="abacus")
