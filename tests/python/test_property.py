"""Any range, any misalignment, any policy: the same bytes as a plain pread and pwrite."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import straightway as sw
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

FILE_BYTES = (2 << 20) + 777
BLOCKS = (1, 512, 4096, 65536)

near_block = st.builds(
    lambda block, k, d: max(0, min(FILE_BYTES + 100, block * k + d)),
    st.sampled_from(BLOCKS),
    st.integers(0, 512),
    st.integers(-3, 3),
)
offsets = st.one_of(near_block, st.integers(0, FILE_BYTES + 5000))
sizes = st.one_of(near_block, st.integers(0, 3 << 20))
policies = st.sampled_from(["auto", "direct", "staged"])
caches = st.sampled_from(["auto", "keep", "drop", "bypass"])


@pytest.fixture(scope="module")
def shared() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "data"
        made.write_bytes(np.random.default_rng(3).bytes(FILE_BYTES))
        yield made


def aligned(size: int, shift: int) -> np.ndarray:  # type: ignore[type-arg]
    """size bytes, shift bytes past a page, with guards on both sides, all 0xAA."""
    raw = np.full(size + 3 * 4096, 0xAA, np.uint8)
    start = -raw.ctypes.data % 4096 + 4096 + shift % 4096
    return raw[start - 16 : start + size + 16]


def is_refusal(error: OSError) -> bool:
    return isinstance(error, sw.RouteRefused) and error.errno == errno.EOPNOTSUPP


QUICK = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@QUICK
@given(offsets, sizes, st.integers(0, 4095), policies, caches, st.booleans())
def test_reads_equal_pread(
    shared: Path, offset: int, size: int, shift: int, policy: str, cache: str, submitted: bool
) -> None:
    guarded = aligned(size, shift)
    target = guarded[16 : 16 + size]
    with sw.open(shared) as file:
        expected = os.pread(file.fileno(), size, offset)
        try:
            if submitted:
                receipt = file.submit_read(target, offset, policy=policy, cache=cache).result()
            else:
                receipt = file.read_into(target, offset, policy=policy, cache=cache)
        except OSError as error:
            assert policy == "direct"
            assert is_refusal(error)
            assert (guarded == 0xAA).all()
            return
    assert receipt.moved_bytes == len(expected)
    assert sum(share.bytes for share in receipt.routes.values()) == len(expected)
    assert receipt.ended_early == (len(expected) < size)
    assert target[: len(expected)].tobytes() == expected
    assert (target[len(expected) :] == 0xAA).all()
    assert (guarded[:16] == 0xAA).all()
    assert (guarded[16 + size :] == 0xAA).all()


@QUICK
@given(offsets, st.integers(0, 1 << 20), st.integers(0, 4095), policies, caches)
def test_writes_equal_pwrite(
    shared: Path,
    offset: int,
    size: int,
    shift: int,
    policy: str,
    cache: str,
) -> None:
    copy = shared.with_name("copy")
    before = shared.read_bytes()
    copy.write_bytes(before)
    source = aligned(size, shift)[16 : 16 + size]
    source[:] = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    expected = before
    if size > 0:
        expected = before.ljust(offset, b"\0")
        expected = expected[:offset] + source.tobytes() + expected[offset + size :]
    with sw.open(copy, "r+") as file:
        try:
            receipt = file.write_from(source, offset, policy=policy, cache=cache)
        except OSError as error:
            assert policy == "direct"
            assert is_refusal(error)
            assert copy.read_bytes() == before
            return
    assert receipt.moved_bytes == size
    assert copy.read_bytes() == expected


@QUICK
@given(st.lists(st.tuples(offsets, st.integers(0, 9000)), max_size=40))
def test_ranges_equal_pread(shared: Path, ranges: list[tuple[int, int]]) -> None:
    targets = [bytearray(size) for _, size in ranges]
    with sw.open(shared) as file:
        expected = [os.pread(file.fileno(), size, offset) for offset, size in ranges]
        calls = [(o, s, t) for (o, s), t in zip(ranges, targets, strict=True)]
        receipt = file.read_ranges(calls)
    assert receipt.moved_bytes == sum(map(len, expected))
    for target, wanted in zip(targets, expected, strict=True):
        assert target[: len(wanted)] == wanted
    assert receipt.ranges is not None
    assert list(receipt.ranges.moved_bytes) == [len(part) for part in expected]
