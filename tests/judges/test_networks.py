"""The torch networks against each other, numpy and the kernels."""

import numpy as np
import pytest
import torch

from debate_rl.errors import UserError
from debate_rl.judges.kernels import set_logits
from debate_rl.judges.networks import PaperConvNet, SparseMLP, judge_weights, new_network
from debate_rl.judges.pretrained import logits_dense
from debate_rl.judges.sparse import draw_masks, mask_planes, pixel_pool, pixel_values


def sample(count: int = 40, pixels: int = 6) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    images = (rng.integers(1, 256, (count, 784)) * (rng.random((count, 784)) < 0.2)).astype(np.uint8)
    masks = draw_masks(pixel_pool(images), np.arange(count), pixels, rng)
    masks[0, 2:] = -1
    return images, masks, pixel_values(images, np.arange(count), masks)


def test_dense_sparse_numpy_and_kernel_agree() -> None:
    images, masks, values = sample()
    network = SparseMLP((64, 32), np.random.default_rng(0))
    planes = mask_planes(masks, values)
    with torch.no_grad():
        dense = network(torch.from_numpy(planes)).numpy()
        sparse = network.sparse(masks, values).numpy()
    weights = judge_weights(network)
    np.testing.assert_allclose(sparse, dense, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(logits_dense(weights, planes), dense, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(set_logits(weights, images, np.arange(len(masks)), masks), dense, rtol=1e-4, atol=1e-4)


def test_sparse_gradients_equal_dense_ones() -> None:
    _, masks, values = sample()
    network = SparseMLP((64, 32), np.random.default_rng(0))
    labels = torch.arange(len(masks)) % 10
    found = []
    for logits in (network(torch.from_numpy(mask_planes(masks, values))), network.sparse(masks, values)):
        network.zero_grad()
        torch.nn.functional.cross_entropy(logits, labels).backward()
        found.append({name: value.grad.numpy().copy() for name, value in network.named_parameters()})
    for name in found[0]:
        assert np.abs(found[0][name]).max() > 0, name
        np.testing.assert_allclose(found[1][name], found[0][name], rtol=1e-3, atol=1e-6)


def test_paper_net_is_the_tutorials() -> None:
    network = PaperConvNet(np.random.default_rng(0))
    assert sum(value.numel() for value in network.parameters()) == 3_275_434
    planes = torch.rand(3, 2, 28, 28)
    assert network(planes).shape == (3, 10)
    # every relu before its pool, as in the tutorial
    hidden = planes
    for layer in (network.conv1, network.conv2):
        hidden = torch.max_pool2d(torch.relu(layer(hidden)), 2)
    wanted = network.out(torch.relu(network.dense(hidden.flatten(1))))
    torch.testing.assert_close(network(planes), wanted)


def test_dropout_keeps_the_mean_and_drops_what_it_is_told() -> None:
    network = PaperConvNet(np.random.default_rng(0))
    planes = torch.rand(1, 2, 28, 28)
    everything = torch.ones(1, 1024, dtype=torch.bool)
    torch.testing.assert_close(network(planes, everything), network.out.bias.expand(1, 10))
    nothing = network(planes, ~everything) - network.out.bias
    torch.testing.assert_close(nothing, (network(planes) - network.out.bias) / 0.6)


def test_unknown_architecture_and_widths() -> None:
    with pytest.raises(UserError, match="architecture"):
        new_network("transformer", (64, 32), np.random.default_rng(0), 6)
    with pytest.raises(UserError, match="multiple of 32"):
        new_network("mlp", (100, 32), np.random.default_rng(0), 6)
