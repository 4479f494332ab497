"""The wheel is data: its pickle may build arrays and nothing else."""

from __future__ import annotations

import builtins
import functools
import gzip
import io
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate_rl.data.wheel import read_wheel, unpickle_arrays
from debate_rl.errors import UserError

ARRAYS = ((np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(2)), "text", [1, 2.5, None])


class Call:
    """Pickled as a call of `function`."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.function, self.arguments = function, arguments

    def __reduce__(self) -> tuple[Any, ...]:
        return self.function, self.arguments


def wheel(path: Path, content: bytes, member: str = "mnist/data/mnist.pkl.gz") -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, content)
    return path


@pytest.mark.parametrize("protocol", [3, 4])
def test_arrays_and_containers_are_read(protocol: int) -> None:
    (x, y), text, rest = unpickle_arrays(pickle.dumps(ARRAYS, protocol))
    np.testing.assert_array_equal(x.array, ARRAYS[0][0])
    np.testing.assert_array_equal(y.array, ARRAYS[0][1])
    assert text == "text" and rest == [1, 2.5, None]


@pytest.mark.parametrize("protocol", [0, 2, 4])
@pytest.mark.parametrize(
    ("function", "named"),
    [(os.system, "posix.system"), (builtins.eval, "eval"), (functools.partial, "partial"), (np.load, "load"), (io.open_code, "open_code")],
)
def test_any_other_call_is_refused_and_not_made(tmp_path: Path, function: Any, named: str, protocol: int) -> None:
    trap = tmp_path / "trap"
    content = pickle.dumps([1, Call(function, f"touch {trap}")], protocol)
    with pytest.raises(UserError, match=f"{named}.*nothing was run"):
        unpickle_arrays(content)
    with pytest.raises(UserError, match=named):
        read_wheel(wheel(tmp_path / "bad.whl", gzip.compress(content)))
    assert not trap.exists()
    if function is os.system:  # the trap is a real one
        pickle.loads(content)
        assert trap.exists()


@given(st.data())
def test_damaged_streams_are_read_or_refused(data: st.DataObject) -> None:
    content = bytearray(pickle.dumps(ARRAYS, 3))
    cut = data.draw(st.integers(0, len(content)))
    content = content[:cut]
    if content:
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        unpickle_arrays(bytes(content))
    except UserError as error:  # and no segmentation fault, which numpy's own unpickling ends in
        assert "pickle" in str(error)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (pickle.dumps(ARRAYS), "not the three pairs"),
        (pickle.dumps(((np.zeros((50_000, 9), np.float32), np.zeros(50_000, int)),) * 3), r"arrays \(50000, 9\)"),
        (pickle.dumps(3), "not the three pairs"),
        (b"", "malformed"),
    ],
)
def test_other_contents_are_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        read_wheel(wheel(tmp_path / "bad.whl", gzip.compress(content)))


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"(" * 10_000 + b"t" * 10_000 + b".", id="the whole"),
        pytest.param(b"cnumpy\ndtype\n" + b"(" * 10_000 + b"t" * 10_000 + b"\x85R.", id="a type's name"),
        pytest.param(b"cnumpy\ndtype\n(Vf8\ntR(K\x03" + b"(" * 10_000 + b"t" * 10_000 + b"tb.", id="a byte order"),
    ],
)
def test_a_pickle_nested_too_deep_is_one_line(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(UserError, match=r"malformed \(it is nested too deep\)|not the three pairs") as caught:
        read_wheel(wheel(tmp_path / "deep.whl", gzip.compress(content)))
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


def test_a_malformed_pickle_is_one_short_line() -> None:
    with pytest.raises(UserError, match="malformed") as caught:
        unpickle_arrays(b"I" + b"x" * 5000 + b"\n.")
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


def test_a_wheel_without_the_data_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cut.whl").write_bytes(b"PK\x03\x04")
    for path in (
        tmp_path / "cut.whl",
        wheel(tmp_path / "else.whl", b"", "else"),
        wheel(tmp_path / "raw.whl", b"not gzip"),
        tmp_path / "absent.whl",
    ):
        with pytest.raises(UserError, match=r"no readable mnist/data/mnist\.pkl\.gz"):
            read_wheel(path)
