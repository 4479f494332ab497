"""`debate-rl play` at a real pseudo-terminal: whole games in the three roles, bad input, leaving, and the records that stay."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from debate_rl.cli.play import Settings
from debate_rl.data import Digits
from debate_rl.errors import UserError
from debate_rl.evaluation.records import replay
from debate_rl.games.pixels import honest_wins
from debate_rl.judges.pretrained import load_judge
from tests.agents.terminal import Answer, Sitting, sit

COMMAND = [sys.executable, "-m", "debate_rl", "play", "progress=false", "threads=1"]
FAST = ["agent@honest=greedy", "agent@liar=greedy"]
PLACE = re.compile(r"row (\d+), column (\d+)")


def play(tmp_path: Path, overrides: list[str], answers: list[Answer], **window: Any) -> Sitting:
    return sit([*COMMAND, *FAST, f"output={tmp_path}", *overrides], answers, cwd=tmp_path, **window)


def records(tmp_path: Path) -> list[dict[str, Any]]:
    shards = sorted(tmp_path.glob("play/*/records/games/*.jsonl.gz"))
    return [json.loads(line) for shard in shards for line in gzip.decompress(shard.read_bytes()).splitlines()]


def lit(digits: Digits, index: int) -> list[int]:
    return [int(pixel) for pixel in np.flatnonzero(digits.images[index])]


def place(pixel: int, form: str = "{},{}") -> str:
    return form.format(pixel // 28, pixel % 28)


def assert_true_record(record: dict[str, Any], digits: Digits, judge: str) -> None:
    """The record replays to the same logits and winner, and describes the image it names."""
    weights = load_judge(judge).weights
    logits = replay(record, digits.images[record["index"]], weights)
    assert record["logits"] == [[float(str(x)) for x in row] for row in logits]
    lie = record["claims"]["liar"]
    won = honest_wins(logits[-1:], [record["label"]], [-1 if lie is None else lie])[0]
    assert record["winner"] == ("honest" if won else "liar")
    assert record["label"] == digits.labels[record["index"]] == record["claims"]["honest"]
    assert record["judge"] == {"name": judge, "hash": load_judge(judge).hash}
    assert (record["game"], record["dataset"], record["split"]) == ("pixels", "mnist", "test")


def test_a_whole_game_as_honest_with_every_kind_of_bad_answer(tmp_path: Path, mnist_test: Digits) -> None:
    mine = lit(mnist_test, 17)[:60:20]
    answers: list[Answer] = [
        "?",
        "",
        "seven",
        "1 2 3",
        "28,0",
        "-1,5",
        "0,0",
        place(mine[0]),
        lambda seen: ",".join(PLACE.findall(seen)[0]),  # the liar's pixel, out already
        place(mine[0]),  # out already, too
        place(mine[1], "{} {}"),
        place(mine[2], " {} , {} "),
    ]
    sitting = play(tmp_path, ["role=honest", "index=17", "lie=3", "first=honest"], answers)
    assert sitting.code == 0 and sitting.answered == len(answers)
    text = " ".join(sitting.text.split())
    for words in (
        "You are honest (honest claims 7, liar claims 3). Pixel 1 of 6.",
        "Type a row and a column",
        "'seven' is not a row and a column: type two numbers from 0 to 27, like 14,9",
        "'1 2 3' is not a row and a column",
        "row 28, column 0 is outside the image: both must lie between 0 and 27",
        "row -1, column 5 is outside the image",
        "row 0, column 0 has value 0 and may not be revealed; the nearest that may: row",
        "is out already (pixel 1): choose another",
        "is out already (pixel 2): choose another",
        "The game is over. Image 17 of mnist test is a 7.",
        "the judge mlp-6 believes",
        "1 game recorded in",
    ):
        assert words in text
    [record] = records(tmp_path)
    assert record["moves"][::2] == mine and record["first"] == "honest" and record["claims"] == {"honest": 7, "liar": 3}
    assert record["agents"] == {"honest": {"name": "human", "hints": False}, "liar": {"name": "greedy"}}
    assert_true_record(record, mnist_test, "mlp-6")
    assert ("You win!" in text) == (record["winner"] == "honest") and ("You lose." in text) == (record["winner"] == "liar")


def test_a_whole_game_as_liar_without_precommitment_with_hints_in_a_tall_window(tmp_path: Path, mnist_test: Digits) -> None:
    def any_hint(seen: str) -> str:
        """The first pixel that the large picture marks as legal."""
        for line in seen.splitlines():
            if re.fullmatch(r"[ \d]\d .*··.*", line):
                return f"{int(line[:2])},{line.index('··', 3) // 2 - 1}"
        raise AssertionError("no hint to be seen")

    settings = [
        "role=liar",
        "commit=none",
        "pixels=5",
        "judged_by=mlp-6",
        "first=liar",
        "hints=true",
        "agent@honest=mcts",
        "honest.rollouts=30",
    ]
    sitting = play(tmp_path, settings, [any_hint] * 3, rows=50)
    assert sitting.code == 0 and sitting.answered == 3
    assert "liar claims any other digit" in sitting.text and "the judge believes" in sitting.text
    [record] = records(tmp_path)
    assert record["claims"]["liar"] is None and record["commit"] == "none" and len(record["moves"]) == 5
    assert record["agents"]["liar"] == {"name": "human", "hints": True}
    assert record["agents"]["honest"]["rollouts"] == 30
    image = mnist_test.images[record["index"]].ravel()
    assert all(image[pixel] > 0 for pixel in record["moves"])
    assert_true_record(record, mnist_test, "mlp-6")


@pytest.mark.parametrize("commit", ["precommit", "none"])
def test_a_whole_game_as_judge_shows_nothing_but_revealed_pixels_before_the_verdict(
    tmp_path: Path, mnist_test: Digits, commit: str
) -> None:
    claims: list[str] = []

    def verdict(seen: str) -> str:
        if commit == "none":
            return "7"
        claims.extend(re.findall(r"Your verdict, (\d) or (\d):", seen)[0])
        return claims[1]

    answers: list[Answer] = ["?", "", "next", "", "", "12", verdict]
    sitting = play(tmp_path, ["role=judge", "pixels=4", "index=0", f"commit={commit}"], answers)
    assert sitting.code == 0 and sitting.answered == len(answers)
    [record] = records(tmp_path)
    assert_true_record(record, mnist_test, "mlp-4")
    before, after = sitting.raw.split("The game is over.")
    image = mnist_test.images[0].ravel()
    allowed = {(46, 50, 60)} | {(int(image[pixel]),) * 3 for pixel in record["moves"]}
    shown = {tuple(map(int, rgb)) for rgb in re.findall(r"[34]8;2;(\d+);(\d+);(\d+)", before)}
    assert shown <= allowed and len(shown) > 1
    told = "The honest debater knows the digit; the liar wins if you answer any other."
    words = " ".join(before.split()).replace(told, "")
    assert "honest" not in words and "liar" not in words  # who claimed or revealed what
    assert "press Enter alone" in words and "'12' is no verdict here" in words
    if commit == "precommit":
        assert sorted(map(int, claims)) == sorted(record["claims"].values())
    assert "honest revealed row" in after and "liar revealed row" in after
    answer = int(claims[1]) if claims else 7
    assert record["person"] == {"role": "judge", "answer": answer}
    assert f"You answered {answer}: {'right' if answer == 7 else 'wrong'}." in " ".join(after.split())


@pytest.mark.parametrize(("option", "black", "refused"), [("black=true", True, False), ("threshold=0.5", False, True)])
def test_other_pixels_may_be_revealed(tmp_path: Path, mnist_test: Digits, option: str, black: bool, refused: bool) -> None:
    image = mnist_test.images[17].reshape(-1)
    dim = 0 if black else int(np.flatnonzero((image > 0) & (image < 100))[0])
    bright = [int(pixel) for pixel in np.flatnonzero(image > 200)[:20:10]]
    answers: list[Answer] = [place(dim), *map(place, bright[:1] if refused else []), place(bright[-1])]
    seen = play(tmp_path, ["index=17", "lie=3", "first=honest", "pixels=4", option], answers)
    text = " ".join(seen.text.split())
    assert seen.code == 0 and ("may not be revealed" in text) == refused
    assert f"these games reveal {'any pixels' if black else 'pixels above 0.5'}" in text
    [record] = records(tmp_path)
    assert record["moves"][::2] == (bright if refused else [dim, bright[-1]])
    assert record.get("black") == (True if black else None) and record.get("threshold") == (0.5 if refused else None)
    assert_true_record(record, mnist_test, "mlp-4")


def test_games_go_on_in_the_same_folder_and_leaving_keeps_the_finished_ones(tmp_path: Path, mnist_test: Digits) -> None:
    def my_pixel(seen: str) -> str:
        """The nearest legal pixel that the answer to a black one names, or a black one to be told."""
        near = re.findall(r"that may: row\s+(\d+),\s+column\s+(\d+)", seen)
        return ",".join(near[-1]) if near else "0,0"

    settings = ["role=honest", "pixels=1", "judged_by=mlp-4", "first=honest"]
    first = play(tmp_path, [*settings, "games=null"], [my_pixel] * 4 + ["q"])
    assert first.code == 0 and "2 games recorded" in " ".join(first.text.split())
    assert "you left the game" in first.text
    second = play(tmp_path, settings, [my_pixel] * 2)
    assert second.code == 0
    done = records(tmp_path)
    assert [record["repetition"] for record in done] == [0, 1, 2]
    assert len({record["index"] for record in done}) == 3
    assert len(list(tmp_path.glob("play/*"))) == 1
    for record in done:
        assert_true_record(record, mnist_test, "mlp-4")


@pytest.mark.parametrize(
    ("key", "code", "words", "rows", "columns"),
    [
        ("q", 0, "you left the game", 24, 60),
        ("\x04", 0, "you left the game", 50, 80),
        ("\x03", 130, "interrupted", 24, 80),
    ],
    ids=["q", "end of input", "interrupt"],
)
def test_leaving_in_the_middle_is_clean_and_pictures_fit_the_window(
    tmp_path: Path, key: str, code: int, words: str, rows: int, columns: int
) -> None:
    sitting = play(tmp_path, ["first=honest", "hints=true"], ["?", key], rows=rows, columns=columns)
    assert sitting.code == code and sitting.answered == 2 and words in sitting.text and "Traceback" not in sitting.text
    assert records(tmp_path) == []
    picture = [line for line in sitting.text.splitlines() if "▀" in line or "··" in line]
    assert picture and max(len(line) for line in picture) <= columns


def test_without_colours_the_picture_is_shaded(tmp_path: Path, mnist_test: Digits) -> None:
    sitting = play(tmp_path, ["index=0", "first=honest"], ["q"], environment={"NO_COLOR": "1"})
    assert sitting.code == 0
    assert not re.search(r"8;2;", sitting.raw)
    row = next(line for line in sitting.text.splitlines() if line.startswith(" 8 "))
    values = mnist_test.images[0, 8]
    assert [bool(row[3 + 2 * column : 5 + 2 * column].strip()) for column in range(28)] == [bool(value) for value in values]


def test_without_a_terminal_it_ends_with_one_line(tmp_path: Path) -> None:
    ended = subprocess.run([*COMMAND, "role=judge"], input="7,7\n", capture_output=True, text=True, cwd=tmp_path)
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1 and "standard input is not one" in ended.stderr


@pytest.mark.parametrize(
    ("override", "message"), [("lie=12", "lie is 12; it must lie"), ("index=10000", "mnist test has images 0 to 9999")]
)
def test_bad_settings_end_with_one_line(tmp_path: Path, override: str, message: str) -> None:
    sitting = play(tmp_path, [override], [])
    assert sitting.code == 2 and message in " ".join(sitting.text.split())
    assert "Traceback" not in sitting.text and sitting.text.strip().startswith("debate-rl: ")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"games": 0}, "games is 0"),
        ({"pixels": 0}, "pixels is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"commit": "maybe"}, "commit is 'maybe'"),
        ({"lie": 3, "commit": "none"}, "claims nothing in advance"),
    ],
)
def test_settings_refuse_what_cannot_be(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Settings(**settings)
