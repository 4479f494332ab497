"""The paper's network on pixels against the same network on planes."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from debate_rl.judges.networks import PaperConvNet
from debate_rl.judges.sparse import mask_planes
from debate_rl.judges.sparse_conv import sparse_logits, touched_cells


@pytest.fixture(scope="module")
def network() -> PaperConvNet:
    generator = np.random.default_rng(0)
    network = PaperConvNet(generator)
    with torch.no_grad():  # biases away from zero, where the background would be silent
        for layer in (network.conv1, network.conv2, network.dense):
            layer.bias.copy_(torch.from_numpy(generator.normal(0.02, 0.1, len(layer.bias))))
    return network


def draw(seed: int, pixels: int, batch: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    at = np.stack([rng.choice(784, pixels, replace=False) for _ in range(batch)]).astype(np.int16)
    at[rng.random(at.shape) < 0.1] = -1
    values = rng.random(at.shape, dtype=np.float32)
    values[at < 0] = 0.0
    return at, values


@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
@settings(max_examples=15, deadline=None)
def test_logits_equal_those_of_planes(network: PaperConvNet, seed: int, pixels: int) -> None:
    at, values = draw(seed, pixels)
    with torch.no_grad():
        wanted = network(torch.from_numpy(mask_planes(at, values)))
        torch.testing.assert_close(sparse_logits(network, at, values), wanted, rtol=1e-4, atol=1e-5)


def test_corners_and_no_pixel_at_all(network: PaperConvNet) -> None:
    at = np.array([[0, 27, 756, 783], [-1, -1, -1, -1], [0, 1, 28, 29]], dtype=np.int16)
    values = np.where(at >= 0, np.float32(0.7), np.float32(0.0)).astype(np.float32)
    with torch.no_grad():
        wanted = network(torch.from_numpy(mask_planes(at, values)))
        torch.testing.assert_close(sparse_logits(network, at, values), wanted, rtol=1e-4, atol=1e-5)


# Fixed draws: in others, rounding decides which of two nearly equal cells is the largest of its pool and gets the gradient.
@pytest.mark.parametrize(("seed", "pixels"), [(0, 1), (1, 4), (2, 6), (3, 8), (4, 2)])
def test_gradients_equal_those_of_planes(network: PaperConvNet, seed: int, pixels: int) -> None:
    at, values = draw(seed, pixels, batch=8)
    labels = torch.arange(8)
    dropped = torch.from_numpy(np.random.default_rng(seed).random((8, 1024)) < 0.4)
    found = []
    for logits in (network(torch.from_numpy(mask_planes(at, values)), dropped), sparse_logits(network, at, values, dropped)):
        network.zero_grad()
        torch.nn.functional.cross_entropy(logits, labels).backward()
        found.append({name: value.grad.clone() for name, value in network.named_parameters()})
    for name, wanted in found[0].items():
        assert float(wanted.abs().max()) > 0, name
        torch.testing.assert_close(found[1][name], wanted, rtol=1e-3, atol=1e-5 * float(wanted.abs().max()) + 1e-7, msg=name)


@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
@settings(max_examples=15, deadline=None)
def test_touched_cells_equal_the_plain_twin(seed: int, pixels: int) -> None:
    at, _ = draw(seed, pixels)
    starts, cells = touched_cells(at)
    for image, row in enumerate(at.tolist()):
        wanted = set()
        for pixel in (pixel for pixel in row if pixel >= 0):
            for r in range(28):
                for c in range(28):
                    if abs(r - pixel // 28) <= 2 and abs(c - pixel % 28) <= 2:
                        wanted.add((r // 2) * 14 + c // 2)
        assert cells[starts[image] : starts[image + 1]].tolist() == sorted(wanted)
