"""The IDX format, and what is said of files that are not the official ones."""

from __future__ import annotations

import gzip
import os
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from debate_rl.data.catalog import CATALOG
from debate_rl.data.idx import encode_idx, md5_of, parse_idx, read_file, verify
from debate_rl.errors import UserError
from tests.data.conftest import flipped

TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS = CATALOG["mnist"].files


@given(hnp.arrays(np.uint8, hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5)))
def test_encode_and_parse_are_inverse(array: np.ndarray) -> None:
    back = parse_idx(encode_idx(array), "x")
    assert back.dtype == np.uint8 and back.flags.writeable and back.shape == array.shape
    np.testing.assert_array_equal(back, array)


@given(st.one_of(st.binary(max_size=40), st.binary(max_size=20).map(lambda tail: b"\0\0\x08\x02" + tail)))
def test_any_bytes_are_parsed_or_refused(data: bytes) -> None:
    try:
        assert encode_idx(parse_idx(data, "x")) == data
    except UserError as error:
        assert str(error).startswith("x: ") and "\n" not in str(error)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "0 bytes are too few"),
        (b"\0\0\x0d\x01\0\0\0\0", "00000d01"),
        (b"<html>not found", "3c68746d"),
        (b"\0\0\x08\x03\0\0\0\x01", "cut off inside its header, 8 of 16 bytes"),
        (struct.pack(">HBB2I", 0, 8, 2, 2, 3) + b"12345", "truncated, 17 bytes where its header promises 18"),
        (struct.pack(">HBB2I", 0, 8, 2, 2, 3) + b"1234567", "too long, 19 bytes where its header promises 18"),
        (struct.pack(">HBB3I", 0, 8, 3, *[2**32 - 1] * 3), "truncated"),
        (
            struct.pack(">HBB3I", 0, 8, 3, 0, 2**32 - 1, 2**32 - 1),
            "promises an array of .*, which cannot be",
        ),  # empty, so of the right length
    ],
)
def test_a_malformed_file_is_refused_with_its_reason(data: bytes, reason: str) -> None:
    with pytest.raises(UserError, match=f"^x: .*{reason}") as caught:
        parse_idx(data, "x")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("file", CATALOG["mnist"].files, ids=lambda file: file.name)
def test_official_files_pass_and_have_the_promised_shape(official: Path, file) -> None:
    content = (official / file.name).read_bytes()
    verify(content, file, "here")
    assert parse_idx(content, file.name).shape == file.shape


def test_a_flipped_bit_is_found_and_both_hashes_are_named(official: Path) -> None:
    broken = flipped((official / TEST_IMAGES.name).read_bytes())
    with pytest.raises(UserError) as caught:
        verify(broken, TEST_IMAGES, "some/file")
    message = str(caught.value)
    assert "some/file" in message and md5_of(broken) in message and TEST_IMAGES.md5 in message and "the content is not" in message


def test_a_truncated_file_is_called_truncated(official: Path) -> None:
    with pytest.raises(UserError, match=r"truncated, 5,000 bytes where its header promises 7,840,016"):
        verify((official / TEST_IMAGES.name).read_bytes()[:5000], TEST_IMAGES, "x")


def test_a_subset_is_refused_with_both_counts(official: Path) -> None:
    subset = parse_idx((official / TEST_IMAGES.name).read_bytes(), "x")[:500]
    with pytest.raises(UserError, match=r"array \(500, 28, 28\), \(10000, 28, 28\) expected"):
        verify(encode_idx(subset), TEST_IMAGES, "x")


def test_swapped_files_are_recognised(official: Path) -> None:
    with pytest.raises(UserError, match="these are the labels of mnist's train-labels-idx1-ubyte"):
        verify((official / TRAIN_LABELS.name).read_bytes(), TEST_LABELS, "x")


def test_a_whole_gzip_file_is_read(official: Path, tmp_path: Path) -> None:
    path = tmp_path / "labels.gz"
    path.write_bytes(gzip.compress((official / TEST_LABELS.name).read_bytes()))
    assert read_file(path, TEST_LABELS) == (official / TEST_LABELS.name).read_bytes()


@pytest.mark.parametrize("damage", [lambda gz: gz[:-100], lambda gz: b"not gzip", lambda gz: gz[:50] + b"\xff" * 50 + gz[100:]])
def test_a_broken_gzip_file_is_named(official: Path, tmp_path: Path, damage) -> None:
    path = tmp_path / "labels.gz"
    path.write_bytes(damage(gzip.compress((official / TEST_LABELS.name).read_bytes())))
    with pytest.raises(UserError, match=r"labels\.gz: cannot be decompressed"):
        read_file(path, TEST_LABELS)


def test_a_decompression_bomb_is_cut_short(tmp_path: Path) -> None:
    path = tmp_path / "labels.gz"
    path.write_bytes(gzip.compress(bytes(50 << 20), compresslevel=1))
    assert len(read_file(path, TEST_LABELS)) < 12_000


def test_of_a_huge_plain_file_only_a_little_is_read(tmp_path: Path) -> None:
    path = tmp_path / "labels"
    path.touch()
    os.truncate(path, 50 << 20)  # a hole: it takes no room
    read = read_file(path, TEST_LABELS)
    assert 10_008 < len(read) < 12_000  # more than the official size, so that it is seen to be too long
    with pytest.raises(UserError, match=r"too long|not an IDX"):
        verify(read, TEST_LABELS, "x")


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="absent: cannot be read"):
        read_file(tmp_path / "absent", TEST_LABELS)
    with pytest.raises(UserError, match="Is a directory"):
        read_file(tmp_path, TEST_LABELS)
