"""Masks and the sparse first layer against plain Python."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate_rl.errors import UserError
from debate_rl.judges.sparse import (
    add_columns,
    draw_masks,
    draw_training_masks,
    mask_planes,
    pixel_pool,
    pixel_values,
    scatter_columns,
    training_pools,
)


def random_images(rng: np.random.Generator, count: int, lit: float = 0.2) -> np.ndarray:
    return (rng.integers(1, 256, (count, 784)) * (rng.random((count, 784)) < lit)).astype(np.uint8)


def floyd(legal: list[int], uniforms: np.ndarray) -> list[int]:
    """Floyd's sampling in plain Python."""
    wanted = len(uniforms)
    if len(legal) <= wanted:
        return legal + [-1] * (wanted - len(legal))
    chosen: list[int] = []
    for k, u in enumerate(uniforms):
        last = len(legal) - wanted + k
        pick = int(u * (last + 1))
        chosen.append(last if pick in chosen else pick)
    return [legal[i] for i in chosen]


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.sampled_from([0.0, 0.005, 0.2, 1.0]))
@settings(max_examples=30, deadline=None)
def test_masks_equal_the_plain_twin(seed: int, pixels: int, lit: float) -> None:
    rng = np.random.default_rng(seed)
    images = random_images(rng, 5, lit)
    image_of = rng.integers(0, 5, 20)
    masks = draw_masks(pixel_pool(images), image_of, pixels, np.random.default_rng(seed))
    uniforms = np.random.default_rng(seed).random((20, pixels))
    for row in range(20):
        legal = np.flatnonzero(images[image_of[row]]).tolist()
        assert masks[row].tolist() == floyd(legal, uniforms[row])


@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
@settings(max_examples=30, deadline=None)
def test_masks_are_legal_and_without_replacement(seed: int, pixels: int) -> None:
    rng = np.random.default_rng(seed)
    images = random_images(rng, 5)
    image_of = np.arange(5).repeat(20)
    masks = draw_masks(pixel_pool(images), image_of, pixels, rng)
    assert all(len(set(row)) == pixels for row in masks.tolist())
    assert (images[image_of[:, None], masks] > 0).all()


def test_every_set_is_equally_likely() -> None:
    image = np.zeros((1, 784), dtype=np.uint8)
    image[0, [3, 50, 100, 500, 700]] = 9
    masks = draw_masks(pixel_pool(image), np.zeros(40_000, dtype=np.int64), 3, np.random.default_rng(0))
    _, counts = np.unique(np.sort(masks, axis=1), axis=0, return_counts=True)
    assert len(counts) == 10
    expected = 4_000
    assert float(((counts - expected) ** 2 / expected).sum()) < 27.9  # chi-squared, 9 degrees of freedom, p = 0.001


def test_an_image_with_too_few_pixels_shows_all_of_them() -> None:
    image = np.zeros((1, 784), dtype=np.uint8)
    image[0, [7, 9]] = 1
    masks = draw_masks(pixel_pool(image), np.zeros(1, dtype=np.int64), 4, np.random.default_rng(0))
    assert masks.tolist() == [[7, 9, -1, -1]]
    values = pixel_values(image, np.zeros(1, dtype=np.int64), masks)
    assert values.tolist() == [[np.float32(1 / 255), np.float32(1 / 255), 0.0, 0.0]]
    planes = mask_planes(masks, values)
    assert planes.shape == (1, 2, 28, 28)
    assert planes[0, 0].sum() == 2
    assert planes[0, 1].ravel()[[7, 9]].tolist() == values[0, :2].tolist()


def test_threshold_and_black() -> None:
    image = np.zeros((1, 28, 28), dtype=np.uint8)
    image[0, 0, :3] = [25, 26, 255]
    assert pixel_pool(image).pixels.tolist() == [0, 1, 2]
    assert pixel_pool(image, threshold=0.1).pixels.tolist() == [1, 2]
    assert len(pixel_pool(image, black=True).pixels) == 784


def test_what_training_shows_of_black_pixels() -> None:
    images = np.zeros((3, 28, 28), dtype=np.uint8)
    images[0, 10, 10] = 200
    images[1, 0, 27] = 1
    images[2, 5:8, 5:8] = 255
    (uniform,) = training_pools(images, 0.0, True, "uniform")
    assert len(uniform.pixels) == 3 * 784
    (near,) = training_pools(images, 0.0, True, "near")
    parts = [set(near.pixels[near.offsets[i] : near.offsets[i + 1]].tolist()) for i in range(3)]
    assert parts[0] == {28 * row + column for row in range(8, 13) for column in range(8, 13)}
    assert parts[1] == {28 * row + column for row in range(3) for column in range(25, 28)}  # cut off at the corner, not wrapped
    assert parts[2] == {28 * row + column for row in range(3, 10) for column in range(3, 10)}
    mixed = training_pools(images, 0.0, True, "mixed")
    drawn = draw_training_masks(mixed, np.full(4000, 2), 5, np.random.default_rng(0))
    lit = (images[2].ravel()[drawn] > 0).all(axis=1)
    assert 0.45 < lit.mean() < 0.55  # all five lit by chance among 784: one in 10^10
    (plain,) = training_pools(images, 0.5, False, "uniform")
    assert plain.pixels.tolist() == pixel_pool(images, 0.5).pixels.tolist()
    same = draw_training_masks((plain,), np.array([2, 2]), 3, np.random.default_rng(1))
    assert same.tolist() == draw_masks(plain, np.array([2, 2]), 3, np.random.default_rng(1)).tolist()


def test_images_of_another_size_are_refused() -> None:
    with pytest.raises(UserError, match="28 x 28"):
        pixel_pool(np.zeros((2, 16, 16), dtype=np.uint8))


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 40))
@settings(max_examples=20, deadline=None)
def test_columns_equal_the_plain_twin(seed: int, pixels: int, width: int) -> None:
    rng = np.random.default_rng(seed)
    batch = 9
    at = rng.integers(-1, 784, (batch, pixels)).astype(np.int16)
    values = rng.random((batch, pixels), dtype=np.float32)
    w_mask, w_value = rng.standard_normal((2, 784, width)).astype(np.float32)
    b1 = rng.standard_normal(width).astype(np.float32)
    out = np.empty((batch, width), dtype=np.float32)
    add_columns(at, values, w_mask, w_value, b1, out)
    gradient = rng.standard_normal((batch, width)).astype(np.float32)
    mask, value = np.zeros((2, 784, width), dtype=np.float32)
    scatter_columns(at, values, gradient, mask, value)
    wanted_mask, wanted_value = np.zeros((2, 784, width))
    for row in range(batch):
        total = b1.astype(np.float64)
        for pixel, v in zip(at[row], values[row], strict=True):
            if pixel >= 0:
                total = total + w_mask[pixel] + v * w_value[pixel]
                wanted_mask[pixel] += gradient[row]
                wanted_value[pixel] += v * gradient[row]
        np.testing.assert_allclose(out[row], total, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(mask, wanted_mask, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(value, wanted_value, rtol=1e-4, atol=1e-4)
