"""Judges on disk: load a shipped one by name or any by path, save your own. No torch here: the environments import this module.

A judge is two files, `NAME.safetensors` (weights, float32 or float16) and `NAME.json` (its card: architecture, data, settings, figures).
Its identity is the SHA-256 of the weight file; the card repeats it, so a weight file that was damaged or swapped is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from debate_rl.errors import UserError
from debate_rl.games.pixels import CLASSES, PIXELS_PER_IMAGE, SIDE
from debate_rl.judges.kernels import Float32, JudgeWeights, set_logits
from debate_rl.runs import replace_synced

FOLDER: Final = Path(__file__).parent / "pretrained"
DEFAULT_DATASET: Final = "mnist"
HASH_DIGITS: Final = 16  # hexadecimal digits of the weight file's SHA-256 that name a judge

Card = dict[str, Any]


class AnyJudge(Protocol):
    """What every loaded judge can do, whatever its architecture."""

    @property
    def name(self) -> str:
        """As in records and rows, e.g. `mlp-6`."""

    @property
    def hash(self) -> str:
        """First 16 hexadecimal digits of the weight file's SHA-256."""

    @property
    def pixels(self) -> int:
        """How many revealed pixels it was trained on."""

    @property
    def dataset(self) -> str:
        """The data set it was trained on."""

    @property
    def card(self) -> Card:
        """Everything recorded about it."""

    def logits(self, planes: NDArray[np.float32]) -> Float32:
        """Logits `(B, 10)` of planes `(B, 2, 28, 28)`: mask, and value in [0, 1] of the revealed pixels."""

    def set_logits(self, images: NDArray[np.uint8], image_of: NDArray[np.integer], moves: NDArray[np.integer]) -> Float32:
        """Logits `(B, 10)` of sets of pixels `(B, P)` (-1 where none) of images `(I, 784)`, set `i` of image `image_of[i]`."""


@dataclass(frozen=True, eq=False)
class Judge:
    """A trained `mlp` judge, ready for the kernels."""

    name: str
    hash: str
    pixels: int
    dataset: str
    weights: JudgeWeights
    card: Card

    def logits(self, planes: NDArray[np.float32]) -> Float32:
        """Logits `(B, 10)` of planes `(B, 2, 28, 28)`."""
        return logits_dense(self.weights, planes)

    def set_logits(self, images: NDArray[np.uint8], image_of: NDArray[np.integer], moves: NDArray[np.integer]) -> Float32:
        """Logits `(B, 10)` of sets of pixels `(B, P)` (-1 where none) of images `(I, 784)`."""
        return set_logits(self.weights, images, image_of, moves)


@dataclass(frozen=True)
class JudgeFile:
    """The checked contents of a judge's two files."""

    tensors: dict[str, NDArray[np.float32]]
    card: Card
    hash: str

    @property
    def name(self) -> str:
        """From the card."""
        return str(self.card["name"])


def logits_dense(weights: JudgeWeights, planes: NDArray[np.float32]) -> Float32:
    """The `mlp` judge in plain numpy: logits `(B, 10)` of planes `(B, 2, 28, 28)`. The reference for the kernels and for torch."""
    flat = planes.reshape(len(planes), 2, PIXELS_PER_IMAGE)
    first = np.maximum(flat[:, 0] @ weights.w_mask + flat[:, 1] @ weights.w_value + weights.b1, np.float32(0.0))
    second = np.maximum(first @ weights.w2 + weights.b2, np.float32(0.0))
    out: Float32 = (second @ weights.w3 + weights.b3).astype(np.float32, copy=False)
    return out


def shipped_judges() -> list[str]:
    """Names of the judges that come with the package, e.g. `mlp-6`; a data set other than MNIST is part of the name."""
    return sorted(path.stem.removeprefix(f"{DEFAULT_DATASET}-") for path in FOLDER.glob("*.safetensors"))


def find_judge(name_or_path: str | os.PathLike[str]) -> Path:
    """The weight file that a shipped judge's name (`mlp-6`, `fashion_mnist-mlp-4`) or a path ending in `.safetensors` stands for."""
    text = os.fspath(name_or_path)
    if text.endswith(".safetensors") or os.sep in text:
        path = Path(text)
        if not path.is_file():
            raise UserError(f"there is no judge file {path}; give a .safetensors file or one of {', '.join(shipped_judges())}")
        return path
    for stem in (text, f"{DEFAULT_DATASET}-{text}"):
        path = FOLDER / f"{stem}.safetensors"
        if path.is_file():
            return path
    raise UserError(f"unknown judge {text!r}; give one of {', '.join(shipped_judges())} or the path of a .safetensors file")


def load_judge(name_or_path: str | os.PathLike[str]) -> Judge:
    """Load an `mlp` judge by name or path. Raises `UserError` for a missing, damaged or unfit file."""
    path = find_judge(name_or_path)
    file = read_judge(path)
    if file.card["architecture"] != "mlp":
        raise UserError(f"{path} is a judge of architecture {file.card['architecture']!r}; this needs an 'mlp' judge")
    weights = _weights(path, file.tensors)
    return Judge(file.name, file.hash, int(file.card["pixels"]), str(file.card["dataset"]), weights, file.card)


def read_judge(path: Path) -> JudgeFile:
    """Read and check a judge's weight file and card, any architecture. Weights come back as finite float32 arrays."""
    card = _read_card(path.with_suffix(".json"))
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"the judge file {path} cannot be read ({error.strerror})") from error
    digest = hashlib.sha256(content).hexdigest()
    if card["sha256"] != digest:
        raise UserError(
            f"the judge file {path} is damaged or not the one on its card: its SHA-256 is {digest}, the card says {card['sha256']}"
        )
    try:
        tensors = load(content)
    except (SafetensorError, KeyError, ValueError) as error:
        raise UserError(f"the judge file {path} is not a readable safetensors file ({' '.join(str(error).split())[:120]})") from error
    for name, value in tensors.items():
        if value.dtype not in (np.float16, np.float32):
            raise UserError(f"the judge file {path}: {name} is {value.dtype}; weights must be float16 or float32")
        if not np.isfinite(value).all():
            raise UserError(f"the judge file {path}: {name} holds values that are not finite numbers")
    return JudgeFile({name: np.ascontiguousarray(value, dtype=np.float32) for name, value in tensors.items()}, card, digest[:HASH_DIGITS])


def save_judge(
    path: str | os.PathLike[str], tensors: Mapping[str, NDArray[np.floating]], card: Mapping[str, Any], half: bool = False
) -> str:
    """Write a judge: weights to `path` (`.safetensors`), the card beside it. Returns the judge's hash.

    Args:
        path: of the weight file.
        tensors: weights by name; for an `mlp` judge `JudgeWeights._asdict()`.
        card: must name `name`, `architecture`, `dataset` and `pixels`; `sha256` and `hash` are added.
        half: store float16, half the size. Load the file again for the weights as they now are.
    """
    target = Path(path)
    if target.suffix != ".safetensors":
        raise UserError(f"a judge is saved to a .safetensors file, not {target}")
    kind = np.float16 if half else np.float32
    content = save({name: np.ascontiguousarray(value, dtype=kind) for name, value in tensors.items()})
    digest = hashlib.sha256(content).hexdigest()
    whole = {**card, "sha256": digest, "hash": digest[:HASH_DIGITS]}
    _check_card(whole, "the new card")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_synced(target, content)
        replace_synced(target.with_suffix(".json"), (json.dumps(whole, indent=2) + "\n").encode())
    except OSError as error:
        raise UserError(f"the judge cannot be written to {target} ({error.strerror})") from error
    return digest[:HASH_DIGITS]


def _weights(path: Path, tensors: Mapping[str, NDArray[np.float32]]) -> JudgeWeights:
    missing = [field for field in JudgeWeights._fields if field not in tensors]
    if missing or len(tensors) != len(JudgeWeights._fields):
        raise UserError(f"the judge file {path} must hold exactly {', '.join(JudgeWeights._fields)}; it holds {', '.join(sorted(tensors))}")
    weights = JudgeWeights(**{field: tensors[field] for field in JudgeWeights._fields})
    first, second = (*weights.w2.shape, 0, 0)[:2]
    shapes = {
        "w_mask": (PIXELS_PER_IMAGE, first),
        "w_value": (PIXELS_PER_IMAGE, first),
        "b1": (first,),
        "w2": (first, second),
        "b2": (second,),
        "w3": (second, CLASSES),
        "b3": (CLASSES,),
    }
    for name, shape in shapes.items():
        if tensors[name].shape != shape:
            raise UserError(f"the judge file {path}: {name} has shape {tensors[name].shape}; it must be {shape}")
    if first < 32 or second < 32 or first % 32 or second % 32:
        raise UserError(f"the judge file {path}: hidden layers of width {first} and {second}; each must be a multiple of 32")
    if _largest_logit(weights) > float(np.finfo(np.float32).max) / 1e3:
        raise UserError(f"the judge file {path}: its weights are so large that logits could overflow")
    return weights


def _largest_logit(weights: JudgeWeights) -> float:
    """A bound on the size of any logit, whatever pixels are revealed."""
    w_mask, w_value, b1, w2, b2, w3, b3 = (np.abs(array).astype(np.float64) for array in weights)
    first = b1 + w_mask.sum(axis=0) + w_value.sum(axis=0)
    return float((b3 + (b2 + first @ w2) @ w3).max())


def _read_card(path: Path) -> Card:
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UserError(f"the judge has no card: {path} is missing") from error
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"the judge's card {path} is not readable JSON ({' '.join(str(error).split())[:120]})") from error
    if not isinstance(card, dict):
        raise UserError(f"the judge's card {path} must be a JSON object")
    _check_card(card, f"the judge's card {path}")
    return card


def _check_card(card: Card, what: str) -> None:
    for key, kind in (("name", str), ("architecture", str), ("dataset", str), ("pixels", int), ("sha256", str)):
        if type(card.get(key)) is not kind:  # no bool for a number
            raise UserError(f"{what}: {key} is {card.get(key)!r}; it must be a {'whole number' if kind is int else 'text'}")
    training = card.get("training", {})
    if not isinstance(training, dict):
        raise UserError(f"{what}: training must be a JSON object")
    threshold, black = training.get("threshold", 0.0), training.get("black", False)
    number = isinstance(threshold, int | float) and not isinstance(threshold, bool)
    if not number or not 0.0 <= threshold < 1.0 or not isinstance(black, bool):
        raise UserError(f"{what}: training has threshold {threshold!r}, black {black!r}; they must be a number in [0, 1) and true or false")
    if not 1 <= card["pixels"] <= SIDE * SIDE:
        raise UserError(f"{what}: pixels is {card['pixels']}; it must lie between 1 and {SIDE * SIDE}")
