"""The protocol on real digits and the shipped judge, against a second, slower reading of the rules."""

from __future__ import annotations

import json

import numpy as np
import pytest

from debate_rl.agents import make_agent
from debate_rl.errors import UserError
from debate_rl.evaluation.controls import judge_random_pixels
from debate_rl.evaluation.matches import game_seeds, logits_by_ply, play
from debate_rl.evaluation.protocol import SILENT, Outcomes, Study, add_image, lie_fails, play_images
from debate_rl.evaluation.records import replay
from debate_rl.evaluation.summary import PER_PANEL, Summary
from debate_rl.games.pixels import HONEST, LIAR, NO_LIE, legal_pixels, margins, new_games
from debate_rl.judges.pretrained import load_judge

RANDOM = {"name": "random"}


@pytest.fixture(scope="module")
def judge():
    return load_judge("mlp-4")


def study(**more):
    return Study(**{"name": "s", "pixels": 4, "honest": RANDOM, "liar": RANDOM, "repetitions": 2, **more})


def played(mnist_test, judge, chosen, indices):
    agents = [None if seat == SILENT else make_agent(seat, judge) for seat in (chosen.honest, chosen.liar)]
    return play_images(chosen, mnist_test, indices, judge, *agents)


def test_every_game_of_an_image_is_played_and_recorded_by_the_rules(mnist_test, judge):
    found = played(mnist_test, judge, study(), [3, 7])
    assert sorted(found) == [3, 7]
    for index, records in found.items():
        label = int(mnist_test.labels[index])
        image = mnist_test.images[index].reshape(-1)
        games = {(r["first"], r["commit"], r["claims"]["liar"], r["repetition"]) for r in records}
        wanted = {
            (first, "precommit", lie, repetition)
            for first in ("honest", "liar")
            for lie in range(10)
            if lie != label
            for repetition in range(2)
        } | {(first, "none", None, repetition) for first in ("honest", "liar") for repetition in range(2)}
        assert games == wanted and len(records) == len(wanted) == study().games_per_image()
        for record in records:
            assert json.loads(json.dumps(record)) == record
            assert len(set(record["moves"])) == 4 and all(image[pixel] > 0 for pixel in record["moves"])
            logits = np.array(record["logits"], np.float32)
            assert np.array_equal(replay(record, image, judge.weights), logits)  # bit for bit
            lie = record["claims"]["liar"]
            if lie is None:
                honest = all(logits[-1, label] > logits[-1, other] for other in range(10) if other != label)
            else:
                honest = logits[-1, label] > logits[-1, lie]
            assert record["winner"] == ("honest" if honest else "liar")
            assert record["judge"] == {"name": "mlp-4", "hash": judge.hash}


@pytest.mark.parametrize(
    ("rules", "legal"), [({"threshold": 0.5}, lambda image: image > 127.5), ({"black": True}, lambda image: image >= 0)]
)
def test_other_rules_of_what_may_be_revealed_are_played_recorded_and_replayed(mnist_test, judge, rules, legal):
    image = mnist_test.images[3].reshape(-1)
    revealed = set()
    for record in played(mnist_test, judge, study(repetitions=8, **rules), [3])[3]:
        assert {key: record[key] for key in ("threshold", "black") if key in record} == rules
        assert np.array_equal(replay(record, image, judge.weights), np.array(record["logits"], np.float32))
        revealed.update(record["moves"])
    allowed = set(np.flatnonzero(legal(image)).tolist())
    assert revealed <= allowed and len(revealed) > 0.4 * len(allowed)


def test_the_judge_alone_sees_what_may_be_revealed(mnist_test, judge):
    bright = judge_random_pixels(judge, mnist_test, np.arange(300), 4, masks=4, seed=0, threshold=0.9)
    black = judge_random_pixels(judge, mnist_test, np.arange(300), 4, masks=4, seed=0, black=True)
    usual = judge_random_pixels(judge, mnist_test, np.arange(300), 4, masks=4, seed=0)
    assert len({found.correct.tobytes() for found in (bright, black, usual)}) == 3
    assert black.correct.mean() < usual.correct.mean()  # the judge was not trained on black pixels


def test_games_do_not_depend_on_what_is_played_together(mnist_test, judge):
    agent = {"name": "mcts", "rollouts": 15}
    chosen = study(honest=agent, liar=agent)
    together = played(mnist_test, judge, chosen, [1, 2, 3])
    assert played(mnist_test, judge, chosen, [2])[2] == together[2]
    assert played(mnist_test, judge, study(honest=agent, liar=agent, first=("liar",)), [2])[2] == [
        record for record in together[2] if record["first"] == "liar"
    ]
    other = played(mnist_test, judge, study(honest=agent, liar=agent, seed=1), [2])[2]
    assert [record["moves"] for record in other] != [record["moves"] for record in together[2]]


def test_repetitions_orders_and_lies_are_different_games(mnist_test, judge):
    records = played(mnist_test, judge, study(repetitions=3), [0])[0]
    assert len({tuple(record["moves"]) for record in records}) > 0.95 * len(records)


def test_a_lone_advocate_makes_every_move(mnist_test, judge):
    indices = list(range(12))
    alone = played(mnist_test, judge, study(honest={"name": "greedy"}, liar=SILENT, first=("honest",), commit=("none",)), indices)
    summary = Outcomes()
    for records in alone.values():
        assert records[0]["agents"]["liar"] == SILENT
        add_image(summary, records)
    assert summary.open_wins("honest").mean() > 0.9  # the judge can be shown almost any digit
    lying = played(mnist_test, judge, study(honest=SILENT, liar={"name": "greedy"}, first=("liar",)), indices)
    summary = Outcomes()
    for records in lying.values():
        add_image(summary, records)
    assert summary.no_lie_succeeds("liar").mean() < 0.1 and summary.open_wins("liar").mean() < 0.1
    with pytest.raises(UserError, match="silent"):
        played(mnist_test, judge, study(honest=SILENT, liar=SILENT), [0])


def test_the_greedy_debaters_take_turns(mnist_test, judge):
    """The last mover's reply is the best of all replies for its own seat, whichever seat moves first."""
    for first, last in ((HONEST, LIAR), (LIAR, HONEST)):
        games = new_games(mnist_test.images[:6], mnist_test.labels[:6], (mnist_test.labels[:6] + 3) % 10, pixels=4, first=first)
        agent = make_agent({"name": "greedy"}, judge)
        play(games, agent, agent, game_seeds([(0, i) for i in range(6)], 4))
        leads = margins(logits_by_ply(judge.weights, games)[:, -1], games.labels, games.lies)
        for game in range(6):
            for pixel in np.flatnonzero(legal_pixels(mnist_test.images[game : game + 1])[0]):
                if pixel in games.moves[game]:
                    continue
                other = games.select(np.array([game]))
                other.moves[0, -1] = pixel
                lead = margins(logits_by_ply(judge.weights, other)[:, -1], other.labels, other.lies)[0]
                assert lead <= leads[game] + 1e-5 if last == HONEST else lead >= leads[game] - 1e-5


def test_averaging_and_ties():
    logits = [[0.0] * 10 for _ in range(3)]
    for row, (label, lie) in zip(logits, ((3.0, 0.0), (0.0, 1.0), (0.0, 1.0)), strict=True):
        row[2], row[5] = label, lie
    assert lie_fails(logits, 2, 5, "logits")  # 1.0 against 0.67
    assert not lie_fails(logits, 2, 5, "majority")  # one of three
    assert not lie_fails([[0.0] * 10], 2, 5, "logits")  # a tie is the liar's
    assert not lie_fails([[0.0] * 10] * 3, 2, 5, "majority")


def test_games_without_a_lie_count_one_by_one():
    """Three wrong answers that would average to the right one are three games lost."""
    records = []
    for wrong in (1, 2, 3):
        final = [0.0] * 10
        final[0], final[wrong] = 2.0, 3.0
        records.append({"label": 0, "index": 5, "first": "liar", "claims": {"liar": None}, "logits": [final]})
    final = [0.0] * 10
    final[0] = 1.0
    won = {"label": 0, "index": 5, "first": "honest", "claims": {"liar": None}, "logits": [final]}
    outcomes = Outcomes()
    add_image(outcomes, [*records, won, {**won, "logits": [[0.0] * 10]}])
    assert outcomes.open_wins("liar").tolist() == [0.0]
    assert outcomes.open_wins("honest").tolist() == [0.5]  # the second is a tie


def test_one_successful_lie_loses_the_image():
    def record(first, lie, honest, repetition=0):
        final = [0.0] * 10
        final[4] = 1.0
        if not honest:
            final[3 if lie is None else lie] = 2.0
        return {"label": 4, "index": 9, "first": first, "claims": {"liar": lie}, "logits": [final], "repetition": repetition}

    outcomes = Outcomes()
    lies = [lie for lie in range(10) if lie != 4]
    add_image(outcomes, [record("honest", lie, lie != 7) for lie in lies] + [record("liar", lie, True) for lie in lies])
    assert outcomes.no_lie_succeeds("honest").tolist() == [0.0] and outcomes.no_lie_succeeds("liar").tolist() == [1.0]
    assert outcomes.random_lie_fails("honest").tolist() == [pytest.approx(8 / 9)]
    matrix = outcomes.lie_matrix()
    assert matrix[4, 7] == 50.0 and matrix.sum() == 50.0  # one order of two, percent of all images
    with pytest.raises(UserError, match="without records"):
        add_image(outcomes, [])


def test_random_pixels_give_the_judges_card(mnist_test):
    """The no-debate control measures what the card says, and the two-way controls lie where they must."""
    judge = load_judge("mlp-6")
    found = judge_random_pixels(judge, mnist_test, np.arange(10_000), 6, masks=6, seed=3)
    assert found.correct.mean() == pytest.approx(judge.card["test"]["accuracy"], abs=0.006)
    assert found.confusion.sum() == pytest.approx(100.0)
    assert np.trace(found.confusion) == pytest.approx(100 * found.correct.mean())
    assert found.correct.mean() < found.best_lie.mean() < found.random_lie.mean() < 1
    assert 0 < found.reliability.error() < 0.05
    other = judge_random_pixels(judge, mnist_test, np.arange(500), 6, masks=6, seed=4)
    same = judge_random_pixels(judge, mnist_test, np.arange(500), 6, masks=6, seed=4)
    assert np.array_equal(other.correct, same.correct) and not np.array_equal(other.correct, found.correct[:500])


def test_random_debaters_leave_the_judge_at_its_random_accuracy(mnist_test):
    judge = load_judge("mlp-6")
    chosen = study(pixels=6, repetitions=1, commit=("none",))
    outcomes = Outcomes()
    for records in played(mnist_test, judge, chosen, list(range(1500))).values():
        add_image(outcomes, records)
    alone = judge_random_pixels(judge, mnist_test, np.arange(1500), 6, masks=10, seed=0).correct.mean()
    both = np.concatenate([outcomes.open_wins("honest"), outcomes.open_wins("liar")])
    assert both.mean() == pytest.approx(alone, abs=0.035)  # about three standard errors


def test_the_gallery_takes_one_close_game_per_image_and_panel(mnist_test, judge):
    summary = Summary()
    for records in played(mnist_test, judge, study(), list(range(30))).values():
        summary.add(records)
    for (first, winner), panel in summary.gallery.items():
        assert len(panel) == PER_PANEL
        assert all((r["first"], r["winner"], r["repetition"], r["commit"]) == (first, winner, 0, "precommit") for r in panel)
        assert len({r["index"] for r in panel}) == PER_PANEL
    assert summary.answer.table()["n"] == 30 * 2 * 2 and summary.claims.table()["n"] == 30 * 2 * 18
    assert len(summary.picks()) == 4 * PER_PANEL


@pytest.mark.parametrize(
    "wrong",
    [
        {"repetitions": 0},
        {"seed": -1},
        {"threshold": 1.0},
        {"threshold": float("nan")},
        {"first": ()},
        {"first": ("judge",)},
        {"commit": ("maybe",)},
    ],
)
def test_bad_studies_are_refused(wrong):
    with pytest.raises(UserError, match=next(iter(wrong))):
        study(**wrong)


def test_lies_and_no_lie_have_seeds_of_their_own():
    assert NO_LIE + 1 == 0  # the key of a game without a lie
    seeds = game_seeds([(0, 1), (1, 0)], 3)
    assert seeds.shape == (2, 3) and len(set(seeds.ravel().tolist())) == 6
