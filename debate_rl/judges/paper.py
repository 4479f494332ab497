"""The paper's convolutional judge, loaded into torch, and a loader for a judge of any architecture."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from debate_rl.errors import UserError
from debate_rl.games.pixels import CLASSES
from debate_rl.judges.kernels import Float32
from debate_rl.judges.networks import PaperConvNet
from debate_rl.judges.pretrained import AnyJudge, Card, JudgeFile, find_judge, load_judge, read_judge
from debate_rl.judges.sparse import pixel_values
from debate_rl.judges.sparse_conv import sparse_logits

BATCH = 500  # planes at a time: what a pass keeps in memory


@dataclass(frozen=True, eq=False)
class PaperJudge:
    """A trained `paper` judge."""

    name: str
    hash: str
    pixels: int
    dataset: str
    network: PaperConvNet
    card: Card

    def logits(self, planes: NDArray[np.float32]) -> Float32:
        """Logits `(B, 10)` of planes `(B, 2, 28, 28)`."""
        with torch.inference_mode():
            parts = [self.network(torch.from_numpy(planes[start : start + BATCH])).numpy() for start in range(0, len(planes), BATCH)]
        return _joined(parts)

    def set_logits(self, images: NDArray[np.uint8], image_of: NDArray[np.integer], moves: NDArray[np.integer]) -> Float32:
        """Logits `(B, 10)` of sets of pixels `(B, P)` (-1 where none) of images `(I, 784)`."""
        pixels = np.asarray(moves, dtype=np.int16)
        values = pixel_values(images, image_of, pixels)
        parts = [slice(start, start + BATCH) for start in range(0, len(pixels), BATCH)]
        with torch.inference_mode():
            return _joined([sparse_logits(self.network, pixels[part], values[part]).numpy() for part in parts])


def load_paper_judge(path: str | os.PathLike[str]) -> PaperJudge:
    """Load a `paper` judge from its weight file. Raises `UserError` for a missing, damaged or unfit file."""
    found = find_judge(path)
    return _paper_judge(found, read_judge(found))


def load_any(name_or_path: str | os.PathLike[str]) -> AnyJudge:
    """Load a judge of any architecture by name or path."""
    path = find_judge(name_or_path)
    file = read_judge(path)
    return load_judge(path) if file.card["architecture"] == "mlp" else _paper_judge(path, file)


def _joined(parts: list[Float32]) -> Float32:
    return np.concatenate(parts) if parts else np.empty((0, CLASSES), dtype=np.float32)


def _paper_judge(path: Path, file: JudgeFile) -> PaperJudge:
    if file.card["architecture"] != "paper":
        raise UserError(f"{path} is a judge of architecture {file.card['architecture']!r}; this needs a 'paper' judge")
    network = PaperConvNet(np.random.default_rng(0))
    wanted = network.state_dict()
    if set(wanted) != set(file.tensors):
        raise UserError(f"the judge file {path} must hold exactly {', '.join(wanted)}; it holds {', '.join(sorted(file.tensors))}")
    for name, value in wanted.items():
        if tuple(value.shape) != file.tensors[name].shape:
            raise UserError(f"the judge file {path}: {name} has shape {file.tensors[name].shape}; it must be {tuple(value.shape)}")
    network.load_state_dict({name: torch.from_numpy(value) for name, value in file.tensors.items()})
    network.eval()
    return PaperJudge(file.name, file.hash, int(file.card["pixels"]), str(file.card["dataset"]), network, file.card)
