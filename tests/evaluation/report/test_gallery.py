from __future__ import annotations

import base64
import io
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from PIL import Image

from debate_rl.evaluation.report.gallery import CLEARANCE, MARK, PANELS, board_svg, gallery_html, pick_games, place_marks, png_uri
from debate_rl.games.pixels import SIDE
from tests.evaluation.report.conftest import Run


@given(arrays(np.uint8, st.tuples(st.integers(1, 30), st.integers(1, 30))))
def test_images_are_embedded_to_the_last_bit(image: NDArray[np.uint8]) -> None:
    head, _, data = png_uri(image).partition(",")
    assert head == "data:image/png;base64"
    with Image.open(io.BytesIO(base64.b64decode(data))) as opened:
        assert opened.mode == "L"
        np.testing.assert_array_equal(np.asarray(opened), image)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, SIDE * SIDE - 1), min_size=1, max_size=12, unique=True))
def test_marks_lie_inside_the_board_apart_and_beside_the_pixels(moves: list[int]) -> None:
    marks = place_marks(moves)
    pixels = np.array([[move % SIDE + 0.5, move // SIDE + 0.5] for move in moves])
    assert marks.shape == (len(moves), 2)
    assert marks.min() >= MARK - 1e-9 and marks.max() <= SIDE - MARK + 1e-9
    for i in range(len(marks)):
        assert all(np.hypot(*(marks[i] - marks[j])) >= 2 * MARK for j in range(i))
        assert np.hypot(*(pixels - marks[i]).T).min() >= MARK + CLEARANCE - 1e-9
    np.testing.assert_array_equal(marks, place_marks(moves))


def test_a_lone_mark_lies_next_to_its_pixel() -> None:
    for move in (0, 27, 14 * SIDE + 14, 27 * SIDE, 783):
        pixel = np.array([move % SIDE + 0.5, move // SIDE + 0.5])
        assert np.hypot(*(place_marks([move])[0] - pixel)) <= MARK + CLEARANCE + 0.5


def test_a_crowded_board_still_has_a_place_for_every_mark() -> None:
    marks = place_marks(range(0, SIDE * SIDE, 3))
    assert np.isfinite(marks).all() and marks.min() >= MARK - 1e-9 and marks.max() <= SIDE - MARK + 1e-9


def test_panels_hold_the_first_images_and_each_ones_closest_game(run: Run) -> None:
    games = [record for record in run.records if record["commit"] == "precommit"]
    pixels, gallery = pick_games(games, run.digits, per_panel=3)
    assert pixels == 6
    assert set(gallery) == {(first, winner) for first, winner, _ in PANELS}
    for (first, winner), panel in gallery.items():
        fitting = [r for r in games if (r["pixels"], r["first"], r["winner"]) == (6, first, winner)]
        images = list(dict.fromkeys(record["index"] for record in fitting))[:3]
        assert [game.index for game in panel] == images
        for game in panel:
            gaps = [abs(r["logits"][-1][r["label"]] - r["logits"][-1][r["claims"]["liar"]]) for r in fitting if r["index"] == game.index]
            assert abs(game.lead[-1]) == pytest.approx(min(gaps))


def test_games_of_lone_advocates_other_sets_and_open_games_are_passed_over(run: Run) -> None:
    record = next(r for r in run.records if r["commit"] == "precommit")
    assert pick_games([record], run.digits)[0] == record["pixels"]
    silent = {**record, "agents": {**record["agents"], "liar": {"name": "silent"}}}
    for other in (silent, {**record, "dataset": "fashion_mnist"}, {**record, "split": "train"}, {**record, "commit": "none"}, {}):
        assert pick_games([other], run.digits)[0] == 0


@pytest.mark.parametrize(
    "lie",
    [
        {"index": 0.0},
        {"index": True},
        {"index": -1},
        {"label": True},
        {"label": 1.0},
        {"label": 10},
        {"claims": {"honest": 1, "liar": 3.0}},
        {"claims": {"honest": 1, "liar": False}},
        {"moves": [float(move) for move in range(100, 106)]},
        {"moves": [True, *range(100, 105)]},
        {"moves": [784, *range(100, 105)]},
        {"pixels": 6.0},
        {"logits": [[10**400] * 10] * 6},  # too large for a float
        {"logits": [[float("nan")] * 10] * 6},
        {"logits": [[[]] * 10] * 6},
        {"agents": {"honest": "mcts", "liar": "mcts"}},
    ],
)
def test_records_that_lie_are_not_shown(run: Run, lie: dict[str, Any]) -> None:
    record = next(r for r in run.records if r["commit"] == "precommit" and r["pixels"] == 6)
    record = {**record, "index": 1, "label": 1, "claims": {"honest": 1, "liar": 3}}
    assert pick_games([record], run.digits)[0] == 6
    pixels, gallery = pick_games([{**record, **lie}], run.digits)
    assert pixels == 0 and not any(gallery.values())


def test_boards_show_the_digit_or_only_what_was_revealed(run: Run) -> None:
    _, gallery = pick_games(run.records, run.digits)
    game = next(game for panel in gallery.values() for game in panel)
    full, judge = board_svg(game, full=True), board_svg(game, full=False)
    assert png_uri(game.image) in full and "<image" not in judge
    for board in (full, judge):
        pixels = re.findall(r'class="pixel (\w+)" x="(\d+)" y="(\d+)" width="1" height="1" fill="rgb\((\d+),', board)
        assert [(seat, int(y) * SIDE + int(x)) for seat, x, y, _ in pixels] == [(game.seat(i), move) for i, move in enumerate(game.moves)]
        assert [int(value) for *_, value in pixels] == [game.image.flat[move] for move in game.moves]
        # Told apart without colour: honest marks are round, the liar's square.
        assert len(re.findall(r'<circle class="mark honest"', board)) == sum(game.seat(i) == "honest" for i in range(len(game.moves)))
        assert len(re.findall(r'<rect class="mark liar"', board)) == sum(game.seat(i) == "liar" for i in range(len(game.moves)))
        assert re.findall(r"<text[^>]*>(\d)</text>", board) == [str(i + 1) for i in range(len(game.moves))]


def test_empty_panels_say_so() -> None:
    empty = gallery_html({(first, winner): [] for first, winner, _ in PANELS})
    assert empty.count("No such game among the records.") == 4
