"""Reading a person's answers, and the pictures they answer to."""

from __future__ import annotations

import numpy as np
import pytest
from rich.console import Console

from debate_rl.agents import screen
from debate_rl.agents.human import read_pixel
from debate_rl.errors import UserError
from debate_rl.games import pixels as game


@pytest.fixture
def batch() -> game.GameBatch:
    image = np.zeros((1, 28, 28), dtype=np.uint8)
    image[0, 3, 4:8] = [1, 90, 180, 255]
    image[0, 20, 2] = 60
    batch = game.new_games(image, [4], [6], pixels=3, first=game.LIAR)
    game.step(batch, [3 * 28 + 5])
    game.step(batch, [20 * 28 + 2])
    return batch


@pytest.mark.parametrize("answer", ["3,4", "3 4", " 3 , 4 ", "03;04", "3\t4"])
def test_a_place_may_be_written_in_several_ways(batch: game.GameBatch, answer: str) -> None:
    assert read_pixel(answer, batch, game.legal_moves(batch)[0]) == 3 * 28 + 4


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("", "not a row and a column"),
        ("3", "not a row and a column"),
        ("3,4,5", "not a row and a column"),
        ("3.5,4", "not a row and a column"),
        ("three four", "not a row and a column"),
        ("28,4", "outside the image"),
        ("3,-1", "outside the image"),
        ("99999999999999999999,1", "outside the image"),
        ("3,5", r"is out already \(pixel 1\)"),
        ("20,2", r"is out already \(pixel 2\)"),
        ("3,8", "has value 0 and may not be revealed; the nearest that may: row 3, column 7"),
    ],
)
def test_a_bad_place_says_why(batch: game.GameBatch, answer: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        read_pixel(answer, batch, game.legal_moves(batch)[0])
    assert "\n" not in str(caught.value)


def test_debaters_see_the_image_and_whose_moves_are_whose(batch: game.GameBatch) -> None:
    picture = screen.debaters_view(batch)
    assert tuple(picture.colours[3 * 28 + 7]) == (255, 255, 255)
    assert tuple(picture.colours[3 * 28 + 5]) == screen.SEAT_COLOURS[game.LIAR]
    assert tuple(picture.colours[20 * 28 + 2]) == screen.SEAT_COLOURS[game.HONEST]
    assert picture.marks == {3 * 28 + 5: "l1", 20 * 28 + 2: "h2"}


def test_hints_mark_exactly_the_legal_pixels(batch: game.GameBatch) -> None:
    legal = game.legal_moves(batch)[0]
    picture = screen.debaters_view(batch, legal)
    assert {pixel for pixel, mark in picture.marks.items() if mark == "··"} == set(np.flatnonzero(legal).tolist())
    assert tuple(picture.colours[3 * 28 + 4]) != (1, 1, 1) and tuple(picture.colours[0]) == (0, 0, 0)


def test_the_judge_sees_values_and_no_owner(batch: game.GameBatch) -> None:
    picture = screen.judges_view(batch)
    assert tuple(picture.colours[3 * 28 + 5]) == (90, 90, 90) and tuple(picture.colours[20 * 28 + 2]) == (60, 60, 60)
    others = np.delete(picture.colours, [3 * 28 + 5, 20 * 28 + 2], axis=0)
    assert (others == screen.UNKNOWN).all()
    assert sorted(picture.marks.values()) == [" 1", " 2"]


@pytest.mark.parametrize(("view", "lines", "width"), [("compact", 16, 32), ("large", 29, 59)])
def test_pictures_have_their_size_and_numbers(batch: game.GameBatch, view: screen.View, lines: int, width: int) -> None:
    drawn = screen.draw(screen.debaters_view(batch), view)
    assert len(drawn) == lines and {len(line.plain) for line in drawn} == {width}
    row = next(line for line in drawn if line.plain.split()[:1] == ["20"])
    style = row.get_style_at_offset(_console(), 4 + 2 if view == "compact" else 3 + 2 * 2)
    seen = style.color if view == "compact" else style.bgcolor
    assert seen is not None and seen.triplet == screen.SEAT_COLOURS[game.HONEST]


def test_beliefs_name_the_claims_and_sum_to_one(batch: game.GameBatch) -> None:
    logits = np.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 900], dtype=np.float32)  # huge: must not overflow
    lines = [line.plain for line in screen.belief_lines(logits, batch)]
    assert lines[4].endswith("0 % honest") and lines[6].endswith("0 % liar") and "100 %" in lines[9]
    words = screen.belief_words(logits, batch).plain
    assert "9 100 %" in words and "4 (honest) 0 %" in words and "6 (liar) 0 %" in words


def _console() -> Console:
    return Console()
