"""The IDX format of the MNIST family: read it, write it, and say exactly what is wrong with a file that is not the official one.

Layout (big-endian): two zero bytes, one byte for the type (8 = unsigned byte), one for the number of axes, a 32-bit length per axis, the
values.
"""

from __future__ import annotations

import gzip
import hashlib
import struct
import zlib
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from debate_rl.data.catalog import CATALOG, IdxFile
from debate_rl.errors import UserError

_UNSIGNED_BYTE: Final = 8


def md5_of(data: bytes) -> str:
    """The md5 of `data` in hexadecimal: the official files are published with md5s, so these are what is compared."""
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def parse_idx(data: bytes, name: str) -> NDArray[np.uint8]:
    """The array in the IDX bytes `data`, writable and C-contiguous; `name` is used in messages.

    Raises UserError for a wrong magic number, a header that is cut off, and too few or too many values.
    """
    if len(data) < 4:
        raise UserError(f"{name}: {len(data)} bytes are too few for an IDX header")
    zero, kind, axes = struct.unpack(">HBB", data[:4])
    if zero != 0 or kind != _UNSIGNED_BYTE or not 1 <= axes <= 3:
        raise UserError(
            f"{name}: starts with {data[:4].hex()}, not an IDX magic number of unsigned bytes (00000801 for labels, 00000803 for images)"
        )
    header = 4 + 4 * axes
    if len(data) < header:
        raise UserError(f"{name}: cut off inside its header, {len(data)} of {header} bytes")
    shape: tuple[int, ...] = struct.unpack(f">{axes}I", data[4:header])
    expected = header + int(np.prod(shape, dtype=object))
    if len(data) != expected:
        fault = "truncated" if len(data) < expected else "too long"
        raise UserError(f"{name}: {fault}, {len(data):,} bytes where its header promises {expected:,}")
    try:
        return np.frombuffer(data, dtype=np.uint8, offset=header).reshape(shape).copy()
    except ValueError as error:  # an empty array of absurd axes
        raise UserError(f"{name}: its header promises an array of {shape}, which cannot be ({error})") from error


def encode_idx(array: NDArray[np.uint8]) -> bytes:
    """The IDX bytes of a uint8 array of one to three axes: the inverse of `parse_idx`."""
    header = struct.pack(f">HBB{array.ndim}I", 0, _UNSIGNED_BYTE, array.ndim, *array.shape)
    return header + np.ascontiguousarray(array).tobytes()


def read_file(path: Path, file: IdxFile) -> bytes:
    """The uncompressed bytes of `path` (gunzipped when it ends in .gz), not yet verified.

    At most a little more than the official size is read. Raises UserError when the file cannot be read or decompressed.
    """
    limit = _official_size(file) + 1024
    try:
        with path.open("rb") if path.suffix != ".gz" else gzip.open(path) as stream:
            return stream.read(limit)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UserError(f"{path}: cannot be decompressed ({error}); replace it with the whole official file") from error
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from error


def verify(data: bytes, file: IdxFile, where: str) -> None:
    """Raise a UserError unless `data` are the official bytes of `file`; it names `where`, both md5s and the reason if one is visible."""
    found = md5_of(data)
    if found != file.md5:
        raise UserError(f"{where} has md5 {found}, the official {file.name} has {file.md5} ({_difference(data, found, file)})")


def _official_size(file: IdxFile) -> int:
    return 4 + 4 * len(file.shape) + int(np.prod(file.shape))


def _difference(data: bytes, found: str, file: IdxFile) -> str:
    """Why the bytes differ, in a few words."""
    for other in CATALOG.values():
        for candidate in other.files:
            if candidate.md5 == found:
                return f"these are the {candidate.kind} of {other.name}'s {candidate.name}"
    try:
        array = parse_idx(data, "it")
    except UserError as error:
        return str(error)
    if array.shape != file.shape:
        return f"it holds an array {array.shape}, {file.shape} expected"
    return "the shape is right, the content is not"
