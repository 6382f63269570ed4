"""Many ranges of one array: read_ranges(into=...) and write_ranges(source=...)."""

import array
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import straightway as sw
from hypothesis import given, settings
from hypothesis import strategies as st

ROOM = 4096


def rows(*wanted: tuple[int, ...], dtype: Any = np.int64) -> np.ndarray[Any, Any]:
    return np.array(wanted, dtype)


@pytest.mark.parametrize(
    "form", [list, rows, lambda *r: memoryview(rows(*r)), lambda *r: rows(*r, dtype=np.uint64)]
)
def test_each_form_reads_the_same(path: Path, content: bytes, form: Callable[..., Any]) -> None:
    ranges = [(5, 100, 300), (len(content) - 2, 50, 0), (4096, 1, 4095), (7, 0, 9)]
    target = bytearray(ROOM)
    with sw.open(path) as file:
        receipt = file.read_ranges(form(*ranges) if form is not list else ranges, into=target)
    expected = bytearray(ROOM)
    expected[300:400] = content[5:105]
    expected[0:2] = content[-2:]
    expected[4095:] = content[4096:4097]
    assert target == expected
    assert receipt.ranges is not None
    assert list(receipt.ranges.offset) == [5, len(content) - 2, 4096, 7]
    assert list(receipt.ranges.wanted_bytes) == [100, 50, 1, 0]
    assert list(receipt.ranges.moved_bytes) == [100, 2, 1, 0]
    assert receipt.ended_early


@pytest.mark.parametrize("form", [list, rows])
def test_without_positions_they_lie_one_after_another(
    path: Path, content: bytes, form: Any
) -> None:
    ranges = [(1000, 10), (0, 5), (7, 0), (50, 20)]
    target = np.zeros(35, np.uint8)
    with sw.open(path) as file:
        file.read_ranges(form(ranges) if form is list else rows(*ranges), into=target)
        assert target.tobytes() == content[1000:1010] + content[:5] + content[50:70]
        with pytest.raises(ValueError, match=r"range 3 of .*20 bytes at position 15"):
            file.read_ranges(rows(*ranges), into=target[:34])


def test_an_array_that_is_no_bytes(path: Path, content: bytes) -> None:
    target = np.zeros((4, 8), np.float64)
    with sw.open(path) as file:
        file.read_ranges([(16, "64", 64)], into=target)  # sizes may be texts, as everywhere
    assert target.tobytes() == bytes(64) + content[16:80] + bytes(128)


def test_nothing_is_a_success(path: Path) -> None:
    with sw.open(path) as file:
        for nothing in ([], np.empty((0, 3), np.int64), np.empty((0, 2), np.uint64)):
            receipt = file.read_ranges(nothing, into=bytearray(4))
            assert receipt.moved_bytes == 0
            assert receipt.ranges is not None
            assert len(receipt.ranges.offset) == 0
        assert file.read_ranges([(0, 0, 0)], into=bytearray()).moved_bytes == 0


def test_writes_come_from_one_array(tmp_path: Path) -> None:
    source = np.arange(256, dtype=np.uint8)
    source.setflags(write=False)
    with sw.open(tmp_path / "out", "w") as file:
        receipt = file.write_ranges(rows((10, 3, 7), (0, 10, 100), (13, 2, 7)), source=source)
        file.write_ranges([(15, 1), (16, 1)], source=b"xy")
    assert receipt.moved_bytes == 15
    expected = bytes(range(100, 110)) + bytes([7, 8, 9, 7, 8]) + b"xy"
    assert (tmp_path / "out").read_bytes() == expected


WRONG_VALUES = {
    "negative offset": rows((-1, 1, 0)),
    "negative size": rows((0, -1, 0)),
    "negative position": rows((0, 1, -1)),
    "offset beyond": rows((1 << 63, 1, 0), dtype=np.uint64),
    "end beyond": rows(((1 << 63) - 1, 1, 0)),
    "position beyond": rows((0, 0, ROOM + 1)),
    "end behind the array": rows((0, 2, ROOM - 1)),
    "sum overflows": rows((0, 1 << 62), (0, 1 << 62), (0, 1 << 62), (0, 1 << 62), (0, 1)),
    "the same bytes": rows((0, 10, 0), (10, 10, 9)),
    "the same bytes, in another order": rows((0, 10, 30), (10, 10, 0), (20, 1, 39)),
    "one column": rows((1,), (2,)),
    "four columns": rows((1, 2, 3, 4)),
    "one dimension": np.arange(3),
    "three dimensions": np.zeros((1, 1, 3), np.int64),
    "every other row": np.zeros((8, 3), np.int64)[::2],
    "columns first": np.asfortranarray(np.zeros((4, 3), np.int64)),
    "tuples of one": [(1,)],
    "tuples of four": [(1, 2, 3, 4)],
    "tuples that differ": [(0, 1), (1, 1, 1)],
    "a tuple's negative": [(0, 1, -1)],
}
WRONG_TYPES = {
    "floats": np.zeros((2, 3)),
    "small integers": np.zeros((2, 3), np.int32),
    "the other order of bytes": np.zeros((2, 3), ">i8"),
    "complex": np.zeros((2, 3), np.complex64),
    "bytes": bytes(48),
    "an array of an array": array.array("d", [1, 2, 3]),
    "no numbers": [("a", b"b", None)],
    "None": None,
    "an int": 3,
}


@pytest.mark.parametrize("wrong", WRONG_VALUES.values(), ids=WRONG_VALUES.keys())
def test_wrong_values_are_refused_before_anything_moves(path: Path, wrong: Any) -> None:
    refuse(path, ValueError, wrong)


@pytest.mark.parametrize("wrong", WRONG_TYPES.values(), ids=WRONG_TYPES.keys())
def test_wrong_types_are_refused_before_anything_moves(path: Path, wrong: Any) -> None:
    refuse(path, (TypeError, ValueError) if isinstance(wrong, list) else TypeError, wrong)


def refuse(path: Path, kind: Any, wrong: Any) -> None:
    target = bytearray(b"x" * ROOM)
    with sw.open(path) as file, pytest.raises(kind):
        file.read_ranges(wrong, into=target)
    assert target == b"x" * ROOM


def test_two_writes_of_the_same_bytes_are_refused(tmp_path: Path) -> None:
    with sw.open(tmp_path / "out", "w") as file:
        with pytest.raises(ValueError, match="of the file that range 0 fills too"):
            file.write_ranges([(0, 10, 0), (9, 1, 0)], source=bytes(10))
        assert file.size == 0


def test_an_array_of_numbers_needs_its_target(path: Path) -> None:
    with sw.open(path, "r+") as file:
        with pytest.raises(TypeError, match="needs into="):
            file.read_ranges(rows((0, 1, 0)))
        with pytest.raises(TypeError, match="needs source="):
            file.write_ranges(rows((0, 1, 0)))


def test_targets_are_checked_as_everywhere(path: Path) -> None:
    with sw.open(path) as file:
        with pytest.raises(ValueError, match="read-only"):
            file.read_ranges([(0, 1, 0)], into=b"x")
        with pytest.raises(ValueError, match="not contiguous"):
            file.read_ranges([(0, 1, 0)], into=np.zeros(8, np.uint8)[::2])
        with pytest.raises(EOFError):
            file.read_ranges([(file.size, 1, 0), (0, 1, 1)], into=bytearray(2), exact=True)
    with pytest.raises(ValueError, match="closed"):
        file.read_ranges([(0, 1, 0)], into=bytearray(1))


def test_many_ranges_cost_no_object_each(path: Path, content: bytes) -> None:
    count = 20_000
    wanted = np.empty((count, 3), np.int64)
    wanted[:, 0] = np.random.default_rng(3).integers(0, len(content) - 16, count)
    wanted[:, 1] = 16
    wanted[:, 2] = np.random.default_rng(4).permutation(count) * 16
    target = np.zeros(count * 16, np.uint8)
    with sw.open(path) as file:
        receipt = file.read_ranges(wanted, into=target)
    assert receipt.moved_bytes == count * 16
    assert receipt.ranges is not None
    assert np.array_equal(receipt.ranges.offset, wanted[:, 0].astype(np.uint64))
    source = np.frombuffer(content, np.uint8)
    places = np.arange(16)
    expected = np.zeros_like(target)
    expected[wanted[:, 2:] + places] = source[wanted[:, :1] + places]
    assert np.array_equal(target, expected)


# Against a loop of slices: the same bytes, or both refuse.
@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(-2, 5000), st.integers(-1, 60), st.integers(-1, 300)), max_size=6
    )
)
def test_ranges_equal_slices(ranges: list[tuple[int, int, int]]) -> None:
    descriptor = os.memfd_create("ranges")
    try:
        content = bytes(i * 7 % 251 for i in range(4000))
        os.write(descriptor, content)
        target = np.zeros(256, np.uint8)
        model = bytearray(256)
        owner = [0] * 256
        right = all(o >= 0 and s >= 0 and p >= 0 and p + s <= 256 for o, s, p in ranges)
        for offset, size, position in ranges if right else []:
            part = content[offset : offset + size]
            model[position : position + len(part)] = part
            for i in range(position, position + size):
                owner[i] += 1
        right = right and max(owner) < 2
        with sw.open(descriptor) as file:
            wanted = np.array(ranges, np.int64).reshape(-1, 3)
            if right:
                file.read_ranges(wanted, into=target)
                assert target.tobytes() == model
            else:
                with pytest.raises(ValueError, match="range"):
                    file.read_ranges(wanted, into=target)
                assert not target.any()
    finally:
        os.close(descriptor)
