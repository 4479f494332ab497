"""The images that an environment draws its debates from."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from debate_rl import data
from debate_rl.errors import UserError
from debate_rl.games.pixels import CLASSES, PIXELS_PER_IMAGE, SIDE, legal_pixels

_CHUNK = 4096  # images whose legal pixels are counted at a time: the mask of a whole training set would take 47 MB


class ImagePool:
    """`N` labelled images and how many pixels of each may be revealed. Immutable, so copies of an environment share it.

    Attributes:
        images: `(N, 784)` uint8, read-only.
        labels: `(N,)` uint8, read-only.
        counts: `(N,)` int16, pixels that a game may reveal.
    """

    def __init__(self, images: ArrayLike, labels: ArrayLike, *, threshold: float = 0.0, black: bool = False) -> None:
        """Check and flatten images `(N, 28, 28)` or `(N, 784)` uint8 and labels `(N,)`.

        Raises:
            UserError: another shape or type, no image at all, a label outside 0-9.
        """
        raw = np.asarray(images)
        classes = np.asarray(labels)
        if raw.dtype != np.uint8 or raw.shape[1:] not in ((SIDE, SIDE), (PIXELS_PER_IMAGE,)):
            raise UserError(f"images must be uint8 of shape (N, 28, 28) or (N, 784), not {raw.dtype} of shape {raw.shape}")
        if classes.shape != (len(raw),) or not np.issubdtype(classes.dtype, np.integer):
            raise UserError(f"labels must be integers of shape ({len(raw)},), not {classes.dtype} of shape {classes.shape}")
        if len(raw) == 0:
            raise UserError("there are no images to debate: give at least one")
        if classes.min() < 0 or classes.max() >= CLASSES:
            raise UserError("a label must lie in 0-9")
        flat = np.ascontiguousarray(raw.reshape(len(raw), PIXELS_PER_IMAGE)).view()
        flat.setflags(write=False)
        self.images: NDArray[np.uint8] = flat  # (N, 784)
        self.labels: NDArray[np.uint8] = classes.astype(np.uint8)  # (N,)
        self.labels.setflags(write=False)
        counts = [
            legal_pixels(flat[start : start + _CHUNK], threshold=threshold, black=black).sum(axis=1)
            for start in range(0, len(flat), _CHUNK)
        ]
        self.counts: NDArray[np.int16] = np.concatenate(counts).astype(np.int16)  # (N,)
        self._source: tuple[str, str, float, bool] | None = None

    def draw(self, fraction: float, *, pixels: int, label: int | None = None) -> int:
        """The index of the image at `fraction` in [0, 1) of those that have `pixels` pixels to reveal (and the label, if one is asked for).

        Raises:
            UserError: no image fits.
        """
        fits = self.counts >= pixels
        if label is not None:
            fits &= self.labels == label
        candidates = np.flatnonzero(fits)
        if len(candidates) == 0:
            wanted = "" if label is None else f" of class {label}"
            raise UserError(f"no image{wanted} has {pixels} pixels to reveal; play with fewer pixels or other images")
        return int(candidates[int(fraction * len(candidates))])

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Share the arrays: they cannot change."""
        return self

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Send a named pool to another process by its name, not by its 47 MB."""
        return super().__reduce__() if self._source is None else (named_pool, self._source)


@lru_cache(maxsize=8)
def named_pool(dataset: str, split: str, threshold: float, black: bool) -> ImagePool:
    """One split of a data set as a pool, loaded once per process however many environments use it.

    Raises:
        UserError: an unknown data set or split, or data that cannot be had.
    """
    digits = data.load(dataset, split)
    pool = ImagePool(digits.images, digits.labels, threshold=threshold, black=black)
    pool._source = (dataset, split, threshold, black)
    return pool
