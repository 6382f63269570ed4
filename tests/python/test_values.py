"""Plans and receipts as values."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import straightway as sw


@pytest.fixture
def receipt(path: Path) -> sw.Receipt:
    with sw.open(path) as file:
        return file.read_into(np.zeros(2 << 20, np.uint8), offset=100)


@pytest.fixture
def plan(path: Path) -> sw.Plan:
    with sw.open(path) as file:
        return file.explain(np.zeros(2 << 20, np.uint8), offset=100)


def test_a_receipt_accounts_for_every_byte(receipt: sw.Receipt, path: Path) -> None:
    assert receipt.path == str(path)
    assert (receipt.direction, receipt.device, receipt.offset) == ("read", "host", 100)
    assert sum(share.bytes for share in receipt.routes.values()) == 2 << 20
    share = receipt.routes["buffered"]
    assert share.segments >= 1
    assert share.reason.text
    assert share.evidence.kind in ("observed", "claimed")
    assert set(receipt.refused).isdisjoint(receipt.routes)
    assert all(reason.code and str(reason) for reason in receipt.refused.values())
    assert receipt.retries >= 0
    assert (receipt.fallbacks, receipt.fallback_code) == (0, 0)
    assert receipt.found is None or sum(receipt.found) == 2 << 20
    assert receipt.disk_bytes is None or receipt.disk_bytes >= 0
    assert receipt.threads >= 1
    assert receipt.end_of_file is None
    assert receipt.ranges is None
    assert receipt.pinned_bytes >= 0


def test_a_receipt_knows_its_times(receipt: sw.Receipt) -> None:
    times = receipt.times
    assert 0 < times.queued_ns <= times.started_ns <= times.first_byte_ns <= times.done_ns
    assert receipt.seconds == (times.done_ns - times.queued_ns) / 1e9
    assert receipt.gbs == pytest.approx((2 << 20) / receipt.seconds / 1e9)


def test_a_receipt_is_a_text_for_people(receipt: sw.Receipt) -> None:
    lines = str(receipt).splitlines()
    assert lines[0].startswith("2 MiB into host memory in ")
    assert any(line.split()[0] == "buffered" for line in lines[1:])
    assert "2097152 of 2097152 bytes, buffered" in repr(receipt)


def test_a_short_receipt_says_so(path: Path, content: bytes) -> None:
    with sw.open(path) as file:
        receipt = file.read_into(bytearray(100), offset=len(content) - 10)
    assert f"end of file at {len(content)}" in str(receipt)


def test_a_plan_covers_every_byte_and_moves_none(plan: sw.Plan, path: Path) -> None:
    assert plan.path == str(path)
    assert (plan.direction, plan.device, plan.offset) == ("read", "host", 100)
    assert plan.wanted_bytes == 2 << 20
    assert sum(route.bytes for route in plan.routes.values()) == 2 << 20
    assert plan.routes["buffered"].reason.text
    assert plan.failure is None
    assert "nvfs" in plan.refused
    assert plan.settings["policy"] == sw.Setting("auto", "default")
    assert "2097152 bytes, buffered" in repr(plan)
    assert "nvfs" in str(plan)


def test_a_plan_needs_no_memory(path: Path, content: bytes) -> None:
    with sw.open(path, "r+") as file:
        assert file.explain().wanted_bytes == len(content)
        assert file.explain(offset=34).wanted_bytes == len(content) - 34
        assert file.explain(size="1M", policy="staged").settings["policy"].source == "call"
        assert file.explain(size=10, direction="write").direction == "write"
        assert file.explain(b"read-only", direction="write").wanted_bytes == 9
        with pytest.raises(ValueError, match="size"):
            file.explain(direction="write")
        with pytest.raises(ValueError, match="direction"):
            file.explain(size=1, direction="sideways")
        for wrong in ("cpu", "cuda:x", "cuda:-1", "cuda:99999999"):
            with pytest.raises(ValueError, match="device"):
                file.explain(size=1, to=wrong)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_values_can_be_pickled(receipt: sw.Receipt, plan: sw.Plan, protocol: int) -> None:
    for value in (receipt, plan):
        back = pickle.loads(pickle.dumps(value, protocol))
        assert back == value
        assert type(back) is type(value)
        assert back.to_json() == value.to_json()
        assert str(back) == str(value)
        assert copy.deepcopy(value) == value


def test_a_many_range_receipt_can_be_pickled(path: Path) -> None:
    with sw.open(path) as file:
        receipt = file.read_ranges([(i, 10, bytearray(10)) for i in range(1000)])
    back = pickle.loads(pickle.dumps(receipt))
    assert back == receipt
    assert back.ranges == receipt.ranges


def test_a_damaged_pickle_is_refused(receipt: sw.Receipt, plan: sw.Plan) -> None:
    for value in (receipt, plan):
        restore, (outer, inner, state) = value.__reduce__()
        for damaged in (b"", state[:-1], state + b"\0", b"other" + state, state[:40]):
            with pytest.raises(ValueError, match="pickle"):
                restore(outer, inner, damaged)
        for i in range(20, len(state), 7):  # any byte changed: another value, or refused
            changed = state[:i] + bytes([state[i] ^ 0xFF]) + state[i + 1 :]
            try:
                str(restore(outer, inner, changed))
            except ValueError:
                continue


def test_values_compare(path: Path) -> None:
    with sw.open(path) as file:
        plans = [file.explain(size=n) for n in (10, 10, 11)]
        first = file.read_into(bytearray(5))
        second = file.read_into(bytearray(5))
    assert plans[0] == plans[1]
    assert plans[0] != plans[2]
    assert plans[0] != first
    assert first != 3
    assert first != second  # another time
    with pytest.raises(TypeError, match="unhashable"):
        hash(first)


def test_values_become_dicts(receipt: sw.Receipt, plan: sw.Plan) -> None:
    for value in (receipt, plan):
        assert json.loads(value.to_json()) == value.to_dict()
        assert value.to_dict()
