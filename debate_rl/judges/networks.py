"""The judge's networks in torch, for training and for judges that the kernels cannot run.

Both take planes `(B, 2, 28, 28)` float32 (plane 0 the mask of revealed pixels, plane 1 their values in [0, 1], zero elsewhere) and give
logits `(B, 10)`. `SparseMLP` also takes the revealed pixels as a list: its first layer is a sum of one column per revealed pixel, so a
batch costs a few gathered rows instead of a product with 1568 mostly empty inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from debate_rl.errors import UserError
from debate_rl.games.pixels import CLASSES, PIXELS_PER_IMAGE
from debate_rl.judges.kernels import JudgeWeights
from debate_rl.judges.sparse import add_columns, scatter_columns

PLANES: Final = 2  # mask and value
DENSE_UNITS: Final = 1024  # of the paper net's dense layer
DROPOUT: Final = 0.4  # on them, in training


class _ColumnSum(torch.autograd.Function):
    """`b1 + Σ_j w_mask[pixel_j] + value_j * w_value[pixel_j]` with gradients for the weights; pixels and values get none."""

    @staticmethod
    def forward(ctx: Any, w_mask: Tensor, w_value: Tensor, b1: Tensor, pixels: NDArray[np.int16], values: NDArray[np.float32]) -> Tensor:
        ctx.pixels, ctx.values, ctx.rows = pixels, values, w_mask.shape[0]
        out = np.empty((len(pixels), b1.shape[0]), dtype=np.float32)
        add_columns(pixels, values, w_mask.detach().numpy(), w_value.detach().numpy(), b1.detach().numpy(), out)
        return torch.from_numpy(out)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        gradient = gradients[0].contiguous().numpy()  # (B, H1)
        mask = np.zeros((ctx.rows, gradient.shape[1]), dtype=np.float32)
        value = np.zeros_like(mask)
        scatter_columns(ctx.pixels, ctx.values, gradient, mask, value)
        return torch.from_numpy(mask), torch.from_numpy(value), gradients[0].sum(0), None, None


_column_sum = cast("Callable[..., Tensor]", _ColumnSum.apply)


class SparseMLP(nn.Module):
    """`W3 · relu(W2 · relu(b1 + Σ_p column_p) + b2) + b3`, `column_p = w_mask[p] + value_p * w_value[p]`; parameters as in `JudgeWeights`.

    Args:
        widths: of the two hidden layers.
        generator: draws the initial weights. The first layer is scaled for `pixels` revealed pixels (He's rule), not for 1568 inputs.
        pixels: how many pixels are revealed in training.
    """

    def __init__(self, widths: tuple[int, int], generator: np.random.Generator, pixels: int = 6) -> None:
        """Draw the initial weights."""
        super().__init__()
        first, second = widths

        def normal(rows: int, columns: int, fan_in: float) -> nn.Parameter:
            scale = np.sqrt(2.0 / fan_in)
            return nn.Parameter(torch.from_numpy((scale * generator.standard_normal((rows, columns))).astype(np.float32)))

        self.w_mask = normal(PIXELS_PER_IMAGE, first, 2.0 * pixels)
        self.w_value = normal(PIXELS_PER_IMAGE, first, 2.0 * pixels)
        self.b1 = nn.Parameter(torch.zeros(first))
        self.w2 = normal(first, second, first)
        self.b2 = nn.Parameter(torch.zeros(second))
        self.w3 = normal(second, CLASSES, second)
        self.b3 = nn.Parameter(torch.zeros(CLASSES))

    def forward(self, planes: Tensor) -> Tensor:
        """Logits `(B, 10)` of planes `(B, 2, 28, 28)`."""
        flat = planes.flatten(2)  # (B, 2, 784)
        return self.head(self.b1 + flat[:, 0] @ self.w_mask + flat[:, 1] @ self.w_value)

    def sparse(self, pixels: NDArray[np.int16], values: NDArray[np.float32]) -> Tensor:
        """Logits `(B, 10)` of revealed pixels `(B, K)` (-1 where none) and their values `(B, K)` in [0, 1]. On the CPU only."""
        return self.head(_column_sum(self.w_mask, self.w_value, self.b1, pixels, values))

    def head(self, hidden: Tensor) -> Tensor:
        """Logits from the first layer's sums `(B, H1)` before their relu."""
        second = torch.addmm(self.b2, functional.relu(hidden), self.w2)
        return torch.addmm(self.b3, functional.relu(second), self.w3)


class PaperConvNet(nn.Module):
    """The judge of Irving et al. 2018, section 3.1: the network of TensorFlow's MNIST layers tutorial with two input planes.

    conv 32@5x5 same, relu, maxpool 2; conv 64@5x5 same, relu, maxpool 2; dense 1024, relu, dropout 0.4; 10 logits. Initial weights are
    TensorFlow's defaults: Glorot-uniform kernels, zero biases.
    """

    def __init__(self, generator: np.random.Generator) -> None:
        """Draw the initial weights."""
        super().__init__()
        self.conv1 = nn.Conv2d(PLANES, 32, 5, padding=2)
        self.conv2 = nn.Conv2d(32, 64, 5, padding=2)
        self.dense = nn.Linear(64 * 7 * 7, DENSE_UNITS)
        self.out = nn.Linear(DENSE_UNITS, CLASSES)
        with torch.no_grad():
            for layer in (self.conv1, self.conv2, self.dense, self.out):
                area = layer.weight[0, 0].numel()  # of the kernel; 1 for a dense layer
                bound = np.sqrt(6.0 / (area * (layer.weight.shape[0] + layer.weight.shape[1])))
                drawn = generator.uniform(-bound, bound, tuple(layer.weight.shape)).astype(np.float32)
                layer.weight.copy_(torch.from_numpy(drawn))
                cast(Tensor, layer.bias).zero_()

    def forward(self, planes: Tensor, dropped: Tensor | None = None) -> Tensor:
        """Logits `(B, 10)` of planes `(B, 2, 28, 28)`; `dropped` `(B, 1024)` bool marks dense units to drop (training only)."""
        # relu after the pool is the same function as before it, on a quarter of the units
        hidden = functional.relu(functional.max_pool2d(self.conv1(planes), 2))
        hidden = functional.relu(functional.max_pool2d(self.conv2(hidden), 2))
        return self.tail(hidden.flatten(1), dropped)

    def tail(self, pooled: Tensor, dropped: Tensor | None = None) -> Tensor:
        """Logits `(B, 10)` from what the second pool gives, `(B, 64 * 7 * 7)`, channels first."""
        hidden = functional.relu(self.dense(pooled))
        if dropped is not None:
            hidden = hidden.masked_fill(dropped, 0.0) * (1.0 / (1.0 - DROPOUT))
        return cast(Tensor, self.out(hidden))


def new_network(architecture: str, widths: tuple[int, int], generator: np.random.Generator, pixels: int) -> SparseMLP | PaperConvNet:
    """A network with fresh weights. `widths` is ignored by `paper`."""
    if architecture == "mlp":
        if any(width < 32 or width % 32 for width in widths):
            raise UserError(f"judge widths are {widths[0]} and {widths[1]}; each must be a multiple of 32")
        return SparseMLP(widths, generator, pixels)
    if architecture == "paper":
        return PaperConvNet(generator)
    raise UserError(f"judge architecture is {architecture!r}; it must be 'mlp' or 'paper'")


def judge_weights(network: SparseMLP) -> JudgeWeights:
    """The network's weights as the arrays that the kernels take (copies)."""
    arrays = {name: np.ascontiguousarray(value.detach().cpu().numpy()).copy() for name, value in network.named_parameters()}
    return JudgeWeights(**{field: arrays[field] for field in JudgeWeights._fields})
