"""The environment plays today as it did when its version was published."""

from __future__ import annotations

import json

import numpy as np
import pytest

from debate_rl.games.pixels import VERSION
from tests.golden import games


@pytest.fixture(scope="module")
def golden() -> dict[str, games.Game]:
    loaded: dict[str, games.Game] = json.loads(games.FILE.read_text())
    return loaded


def test_the_file_belongs_to_the_games_version() -> None:
    assert games.FILE.name == f"pixels_v{VERSION}.json"


@pytest.mark.parametrize("name", games.SCRIPTS)
def test_game(golden: dict[str, games.Game], name: str) -> None:
    played = json.loads(json.dumps(games.play(*games.SCRIPTS[name])))
    assert played == golden[name], "if the change is meant: bump the game's version, run scripts/update_golden.py, say why in the commit"


def test_the_games_differ_and_both_seats_win(golden: dict[str, games.Game]) -> None:
    assert golden.keys() == games.SCRIPTS.keys()
    assert {game["winner"] for game in golden.values()} == {"honest", "liar", None}
    logits = np.array([game["logits"] for game in golden.values() if game["logits"]])
    assert np.array_equal(logits, logits.round()) and np.abs(logits).max() < 2**24
