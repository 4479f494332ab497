"""What the pictures show."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from debate_rl.envs import rendering, text
from numpy.typing import NDArray

from debate_rl.judges.kernels import softmax

Make = Callable[..., Any]


def finished(make: Make, mode: str, **settings: Any) -> Any:
    env = make(render_mode=mode, **settings)
    env.reset(seed=3)
    rng = np.random.default_rng(0)
    while not any(env.terminations.values()):
        env.step(int(rng.choice(np.flatnonzero(env.observe(env.agent_selection)["action_mask"]))))
    return env


def cell(frame: NDArray[np.uint8], panel: int, pixel: int) -> NDArray[np.uint8]:
    """The part of the picture that shows a pixel in the debaters' (0) or the judge's (1) view."""
    size = rendering._CELL
    x = rendering._MARGIN + panel * (rendering._PANEL + rendering._MARGIN) + pixel % 28 * size
    y = rendering._TOP + pixel // 28 * size
    return frame[y : y + size, x : x + size]


def test_both_views_show_the_moves_in_the_players_colours(make: Make) -> None:
    env = finished(make, "rgb_array")
    frame = env.render()
    assert frame.shape == (rendering.SIZE[1], rendering.SIZE[0], 3) == (580, 1188, 3)
    game = env.unwrapped.game
    scene = rendering.Scene(game, env.unwrapped.logits())
    moves = game.moves[0].tolist()
    for ply, pixel in enumerate(moves):
        colour = scene.colour(ply)
        assert colour == (rendering.HONEST_COLOUR if (game.first[0] + ply) % 2 == 0 else rendering.LIAR_COLOUR)
        assert tuple(cell(frame, 0, pixel)[1, 1]) == colour
        x_outside = cell(frame, 1, pixel)
        value = int(game.images[0, pixel])
        assert (x_outside == value).all(axis=2).any()  # the true grey value
    for pixel in np.flatnonzero(game.images[0])[:10].tolist():
        if pixel not in moves:
            assert (cell(frame, 0, pixel)[5, 5] == game.images[0, pixel]).all()


def test_the_judges_view_hides_what_was_not_revealed(make: Make) -> None:
    env = make(render_mode="rgb_array")
    env.reset(seed=3)
    frame = env.render()
    for pixel in range(784):
        assert (cell(frame, 1, pixel) == rendering.UNKNOWN_COLOUR).all()


def test_frames_are_deterministic_and_independent(make: Make) -> None:
    env = finished(make, "rgb_array")
    first = env.render()
    kept = first.copy()
    second = env.render()
    assert np.array_equal(first, second)
    env.reset(seed=8)
    assert not np.array_equal(env.render(), kept) and np.array_equal(first, kept)


@pytest.mark.parametrize("commit", ["precommit", "none"])
def test_text_names_claims_moves_and_beliefs(make: Make, commit: str) -> None:
    env = finished(make, "ansi", commit=commit)
    drawn = re.sub(r"\x1b\[[0-9;]*m", "", env.render())
    info = env.infos["honest"]
    assert f"honest: {info['label']}   liar: {'any other' if info['lie'] is None else info['lie']}   {info['winner']} wins" in drawn
    for pixel in env.unwrapped.game.moves[0].tolist():
        assert f"reveals row {pixel // 28}, column {pixel % 28} (value {env.unwrapped.game.images[0, pixel]})" in drawn
    percents = [int(share) for share in re.findall(r"(\d+) %", drawn)]
    assert len(percents) == 10 and 95 <= sum(percents) <= 105
    assert max(len(line) for line in drawn.splitlines()) <= 80


def test_half_blocks_carry_every_pixels_colour() -> None:
    colours = np.random.default_rng(0).integers(0, 256, size=(784, 3)).astype(np.uint8)
    colours[28:56] = colours[:28]  # equal neighbours above and below
    colours[100:120] = 7  # a run of one colour
    upper: list[tuple[int, ...]] = []
    lower: list[tuple[int, ...]] = []
    for line in text.half_blocks(colours):
        fore = back = (-1, -1, -1)
        row = []
        for code, character in re.findall(r"\x1b\[([0-9;]*)m|(▀)", line):
            if character:
                row.append((fore, back))
            elif code.startswith("38;2;"):
                fore = tuple(map(int, code.split(";")[2:]))  # type: ignore[assignment]
            elif code.startswith("48;2;"):
                back = tuple(map(int, code.split(";")[2:]))  # type: ignore[assignment]
        upper, lower = upper + [a for a, _ in row], lower + [b for _, b in row]
        assert line.endswith("\x1b[0m")
    picture = np.stack([np.array(upper).reshape(14, 28, 3), np.array(lower).reshape(14, 28, 3)], axis=1).reshape(784, 3)
    assert np.array_equal(picture, colours)


def test_render_without_a_mode_says_so(make: Make) -> None:
    env = make()
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="without a render_mode"):
        assert env.render() is None


def test_a_window_can_be_closed_and_opened_again(make: Make) -> None:
    env = make(render_mode="human")
    for _ in range(2):
        env.reset(seed=0)
        assert env.render() is None
        env.close()
        env.close()


def test_beliefs_are_probabilities() -> None:
    shares = softmax(np.array([1000.0, 999.0, *[-1000.0] * 8], dtype=np.float32))
    assert shares.sum() == pytest.approx(1.0) and shares[0] == pytest.approx(1 / (1 + np.exp(-1.0)))
