"""The rules of the pixel debate against a plain-Python twin, and their edges one by one."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from debate_rl.errors import UserError
from debate_rl.games import pixels as game

pytestmark = pytest.mark.filterwarnings("error")


@dataclass
class PlainGame:
    """One debate, written the slow and obvious way."""

    image: list[int]
    label: int
    lie: int
    first: int
    pixels: int
    threshold: float
    black: bool
    moves: list[int] = field(default_factory=list)

    def may_reveal(self, pixel: int) -> bool:
        return self.black or self.image[pixel] / 255 > self.threshold

    def legal(self) -> set[int]:
        if len(self.moves) >= self.pixels:
            return set()
        return {pixel for pixel in range(784) if self.may_reveal(pixel) and pixel not in self.moves}

    def step(self, pixel: int) -> bool:
        if pixel not in self.legal():
            return False
        self.moves.append(pixel)
        return True

    def mover(self) -> int:
        return self.first if len(self.moves) % 2 == 0 else 1 - self.first

    def honest_wins(self, logits: list[float]) -> bool:
        if self.lie >= 0:
            return logits[self.label] > logits[self.lie]
        return all(logits[self.label] > logit for klass, logit in enumerate(logits) if klass != self.label)


def sparse_image(rng: np.random.Generator, nonzero: int) -> NDArray[np.uint8]:
    image = np.zeros(784, dtype=np.uint8)
    image[rng.choice(784, size=nonzero, replace=False)] = rng.integers(1, 256, size=nonzero)
    return image  # (784,)


def digit(nonzero: int = 30, seed: int = 0) -> NDArray[np.uint8]:
    return sparse_image(np.random.default_rng(seed), nonzero)


def assert_same(batch: game.GameBatch, twins: list[PlainGame]) -> None:
    legal = game.legal_moves(batch)
    movers = batch.movers()
    over = batch.over()
    for row, twin in enumerate(twins):
        assert batch.moves[row, : batch.counts[row]].tolist() == twin.moves
        assert (batch.moves[row, batch.counts[row] :] == game.NO_MOVE).all()
        assert set(np.flatnonzero(legal[row]).tolist()) == twin.legal()
        assert over[row] == (len(twin.moves) == twin.pixels)
        if not over[row]:
            assert movers[row] == twin.mover()


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(1, 6),
    pixels=st.integers(1, 9),
    threshold=st.sampled_from([0.0, 0.1, 0.5]),
    black=st.booleans(),
)
def test_kernels_agree_with_the_plain_twin(seed: int, size: int, pixels: int, threshold: float, black: bool) -> None:
    rng = np.random.default_rng(seed)
    images = np.stack([sparse_image(rng, 60) for _ in range(3)])  # (3, 784)
    image_of = rng.integers(0, 3, size=size)
    labels = rng.integers(0, 10, size=size)
    lies = np.where(rng.random(size) < 0.3, game.NO_LIE, (labels + rng.integers(1, 10, size=size)) % 10)
    first = rng.integers(0, 2, size=size)
    batch = game.new_games(images, labels, lies, pixels=pixels, first=first, image_of=image_of, threshold=threshold, black=black)
    twins = [
        PlainGame(
            images[image_of[i]].tolist(), int(labels[i]), int(lies[i]), int(first[i]), pixels=pixels, threshold=threshold, black=black
        )
        for i in range(size)
    ]
    assert_same(batch, twins)
    for _ in range(pixels + 3):
        legal = game.legal_moves(batch)
        chosen = rng.integers(-3, 790, size=size)  # mostly illegal: out of range or black
        for row in range(size):
            kind = rng.random()
            options = np.flatnonzero(legal[row])
            if kind < 0.7 and len(options):
                chosen[row] = rng.choice(options)
            elif kind < 0.85 and batch.counts[row]:
                chosen[row] = batch.moves[row, 0]  # a repeat
        made = game.step(batch, chosen)
        assert made.tolist() == [twin.step(int(pixel)) for twin, pixel in zip(twins, chosen, strict=True)]
        assert_same(batch, twins)
    logits = rng.normal(size=(size, 10)).round(0).astype(np.float32)  # rounded, so that ties happen
    expected = [twin.honest_wins(row) for twin, row in zip(twins, logits.tolist(), strict=True)]
    assert game.honest_wins(logits, labels, lies).tolist() == expected


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), label=st.integers(0, 9), shift=st.integers(0, 9))
def test_margin_is_the_lead_over_the_rival(seed: int, label: int, shift: int) -> None:
    logits = np.random.default_rng(seed).normal(size=10).astype(np.float32)
    lie = (label + shift) % 10 if shift else game.NO_LIE
    rivals = [lie] if shift else [klass for klass in range(10) if klass != label]
    margin = game.margins(logits[None], [label], [lie])
    assert margin.dtype == np.float32
    assert margin[0] == logits[label] - max(logits[rivals])


@pytest.mark.parametrize("first", [game.HONEST, game.LIAR])
@pytest.mark.parametrize("pixels", [1, 4, 5])
def test_seats_alternate_from_the_first_mover(first: int, pixels: int) -> None:
    batch = game.new_games(digit()[None], [3], [5], pixels=pixels, first=first)
    movers = []
    while not batch.over()[0]:
        movers.append(int(batch.movers()[0]))
        assert game.step(batch, np.flatnonzero(game.legal_moves(batch)[0])[:1])[0]
    assert movers == [(first + ply) % 2 for ply in range(pixels)]


@pytest.mark.parametrize("kind", ["negative", "no move", "beyond the image", "far beyond", "black", "repeated", "game over"])
def test_an_illegal_move_is_refused_and_changes_nothing(kind: str) -> None:
    image = digit()
    batch = game.new_games(image[None], [3], [5], pixels=3)
    lit = np.flatnonzero(image)
    assert game.step(batch, lit[:1])[0]
    if kind == "game over":
        assert game.step(batch, lit[1:2])[0] and game.step(batch, lit[2:3])[0]
    pixel = {
        "negative": -7,
        "no move": game.NO_MOVE,
        "beyond the image": 784,
        "far beyond": 2**40,
        "black": int(np.flatnonzero(image == 0)[0]),
        "repeated": int(lit[0]),
        "game over": int(lit[5]),
    }[kind]
    moves, counts = batch.moves.copy(), batch.counts.copy()
    assert not game.step(batch, [pixel])[0]
    assert np.array_equal(batch.moves, moves) and np.array_equal(batch.counts, counts)


def test_no_move_skips_only_its_own_debate() -> None:
    image = digit()
    batch = game.new_games(image[None], [3, 4], [5, 6], pixels=2, image_of=[0, 0])
    pixel = int(np.flatnonzero(image)[4])
    assert game.step(batch, [game.NO_MOVE, pixel]).tolist() == [False, True]
    assert batch.counts.tolist() == [0, 1]


def test_threshold_is_strict_and_zero_means_nonzero() -> None:
    image = np.zeros((28, 28), dtype=np.uint8)
    image.flat[:4] = [0, 1, 51, 52]  # 51 / 255 is exactly 0.2
    assert game.legal_pixels(image[None])[0, :5].tolist() == [False, True, True, True, False]
    assert game.legal_pixels(image[None], threshold=0.2)[0, :5].tolist() == [False, False, False, True, False]


def test_black_allows_every_pixel_and_ignores_the_threshold() -> None:
    image = np.zeros((1, 784), dtype=np.uint8)
    assert game.legal_pixels(image, threshold=0.9, black=True).all()
    batch = game.new_games(image, [1], [2], pixels=784, black=True)
    for pixel in range(784):
        assert game.step(batch, [pixel])[0]
    assert batch.over()[0] and not game.legal_moves(batch).any()


@pytest.mark.parametrize("lie", [4, game.NO_LIE])
def test_a_tie_goes_to_the_liar(lie: int) -> None:
    logits = np.full((1, 10), -1.0, dtype=np.float32)
    logits[0, [3, 4]] = 2.0
    assert not game.honest_wins(logits, [3], [lie])[0]
    logits[0, 3] = np.nextafter(np.float32(2.0), np.float32(3.0))
    assert game.honest_wins(logits, [3], [lie])[0]


def test_without_precommitment_any_wrong_answer_is_the_liars() -> None:
    logits = np.zeros((1, 10), dtype=np.float32)
    logits[0, [3, 8]] = [2.0, 5.0]
    assert game.honest_wins(logits, [3], [4])[0]  # 3 beats the claimed 4
    assert not game.honest_wins(logits, [3], [game.NO_LIE])[0]  # but the judge answers 8


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_debate_does_not_depend_on_its_batch(seed: int) -> None:
    rng = np.random.default_rng(seed)
    images = np.stack([sparse_image(rng, 40) for _ in range(5)])
    labels = rng.integers(0, 10, size=5)
    lies = (labels + 1) % 10
    batch = game.new_games(images, labels, lies, pixels=4, first=rng.integers(0, 2, size=5))
    chosen = rng.integers(0, 784, size=(4, 5))
    alone = [batch.select(np.array([i])) for i in range(5)]
    for row in chosen:
        made = game.step(batch, row)
        for i, single in enumerate(alone):
            assert game.step(single, row[i : i + 1])[0] == made[i]
    for i, single in enumerate(alone):
        assert np.array_equal(single.moves[0], batch.moves[i])
        assert np.array_equal(game.legal_moves(single)[0], game.legal_moves(batch)[i])


def test_select_copies_the_state() -> None:
    image = digit()
    batch = game.new_games(image[None], [3], [5], pixels=2)
    copy = batch.select(np.array([True]))
    game.step(copy, np.flatnonzero(image)[:1])
    assert batch.counts[0] == 0 and batch.moves[0, 0] == game.NO_MOVE


def test_planes_show_the_revealed_pixels_and_nothing_else() -> None:
    image = digit()
    lit = np.flatnonzero(image)
    batch = game.new_games(image[None], [3, 3], [5, 5], pixels=3, image_of=[0, 0])
    game.step(batch, [lit[0], lit[1]])
    game.step(batch, [lit[1], lit[0]])
    planes = game.planes(batch)
    assert planes.shape == (2, 2, 28, 28) and planes.dtype == np.float32
    assert np.array_equal(planes[0], planes[1])  # the order of reveals does not show
    flat = planes[0].reshape(2, 784)
    assert set(np.flatnonzero(flat[0]).tolist()) == {int(lit[0]), int(lit[1])}
    assert flat[1].tolist() == [float(np.float32(image[p]) / np.float32(255)) if p in lit[:2] else 0.0 for p in range(784)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": [10]}, "label must lie in 0-9"),
        ({"labels": [-1]}, "label must lie in 0-9"),
        ({"lies": [10]}, "lie must lie in 0-9"),
        ({"lies": [-2]}, "lie must lie in 0-9"),
        ({"lies": [3]}, "must differ"),
        ({"first": 2}, "first must be"),
        ({"pixels": 0}, "pixels is 0"),
        ({"pixels": 785}, "pixels is 785"),
        ({"pixels": 31}, "image 0 has 30 pixels"),
        ({"image_of": [1]}, "image index"),
        ({"image_of": [-1]}, "image index"),
        ({"image_of": [0, 0]}, "image index"),
        ({"images": np.zeros((1, 784))}, "uint8"),
        ({"images": np.zeros((1, 27, 28), dtype=np.uint8)}, "shape"),
        ({"images": np.zeros((1, 14, 56), dtype=np.uint8)}, "shape"),
        ({"images": np.zeros(784, dtype=np.uint8)}, "shape"),
    ],
)
def test_new_games_refuses_bad_input_in_one_line(change: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"images": digit()[None], "labels": [3], "lies": [5], "pixels": 4}
    arguments.update(change)
    images, labels, lies = arguments.pop("images"), arguments.pop("labels"), arguments.pop("lies")
    with pytest.raises(UserError, match=message) as caught:
        game.new_games(images, labels, lies, **arguments)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "bad",
    [
        *({"pixels": pixels} for pixels in (0, 785, True, 2.5, 6.0, "6", None)),
        *({"black": black} for black in (1, 0, "yes", None)),
        *({"threshold": threshold} for threshold in (1.0, -0.1, True, False, "0.1", None, float("nan"))),
        *({"first": "judge"}, {"first": []}, {"commit": "maybe"}, {"commit": []}),
    ],
    ids=str,
)
def test_rules_refuse_bad_settings(bad: dict[str, object]) -> None:
    ((name, value),) = bad.items()
    with pytest.raises(UserError) as caught:
        game.Rules(**bad)  # type: ignore[arg-type]
    assert str(caught.value).startswith(f"{name} is {value!r}; it must ")


def test_rules_take_numpys_numbers() -> None:
    rules = game.Rules(pixels=np.int64(4), threshold=np.float32(0.5))  # type: ignore[arg-type]
    assert (rules.pixels, rules.threshold) == (4, 0.5)


def test_rules_default_to_the_papers_game() -> None:
    rules = game.Rules()
    assert (rules.pixels, rules.first, rules.commit, rules.threshold, rules.black) == (6, "honest", "precommit", 0.0, False)
