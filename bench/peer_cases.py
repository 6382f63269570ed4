"""The work that all are given, in turns, and what it took them."""

from __future__ import annotations

import argparse
import ctypes
import json
import mmap
import os
import random
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from peer_ways import MIB, TENSORS, ManyRanges, Sample, Way

CASES = ("hot", "cold", "ranges", "small")
SHARES = {"hot": 0.4, "cold": 0.3, "ranges": 0.2, "small": 0.1}  # of the time
RANGE_BYTES = 16 << 10
SMALL = {"4 KiB": (4 << 10, 300), "64 KiB": (64 << 10, 300), "1 MiB": (MIB, 150)}
HEADER_BYTES = 8192


def make_sample(path: Path, size_bytes: int, numpy: Any) -> Sample:
    """A safetensors file of TENSORS tensors; every eight bytes of the content are different."""
    each = size_bytes // TENSORS
    header: dict[str, Any] = {
        f"t{i}": {"dtype": "U8", "shape": [each], "data_offsets": [i * each, (i + 1) * each]}
        for i in range(TENSORS)
    }
    text = json.dumps(header).encode().ljust(HEADER_BYTES - 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        left = each * TENSORS
        word = 0
        while left > 0:
            size = min(left, 64 * MIB)
            if numpy is None:
                file.write(os.urandom(size))
            else:
                words = numpy.arange(word, word + (size + 7) // 8, dtype=numpy.uint64)
                file.write((words * numpy.uint64(0x9E3779B97F4A7C15)).tobytes()[:size])
            word += size // 8
            left -= size
        file.flush()
        os.fsync(file.fileno())
    return Sample(str(path), HEADER_BYTES, each * TENSORS)


def read_all(path: str) -> None:
    with open(path, "rb", buffering=0) as file:
        buffer = bytearray(16 * MIB)
        while file.readinto(buffer):
            pass


def drop(path: str) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)


def cached_part(path: str) -> float | None:
    """How much of it is in the page cache, 0 to 1, by cachestat; None where that is not known."""
    fd = os.open(path, os.O_RDONLY)
    try:
        wanted = (ctypes.c_uint64 * 2)(0, 0)
        found = (ctypes.c_uint64 * 5)()
        if ctypes.CDLL(None).syscall(451, fd, wanted, found, 0) != 0:
            return None
        return float(found[0] * mmap.PAGESIZE / os.fstat(fd).st_size)
    finally:
        os.close(fd)


def cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


@dataclass
class Took:
    """What one way took in one case."""

    way: Way
    seconds: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    spent_s: float = 0  # with preparing and verifying
    latencies_us: list[float] = field(default_factory=list)
    p50_us: list[float] = field(default_factory=list)
    verified: bool = True
    failed: str = ""


class Run:
    """The files, the memory and the clock that all share."""

    def __init__(self, options: argparse.Namespace, gpu: Any) -> None:
        self.options = options
        self.gpu = gpu
        self.link_gbs: float | None = None
        self.size_bytes: int = options.size if gpu else min(options.size, 64 * MIB)
        self.cold_bytes: int = min(options.cold_size, self.size_bytes)
        self.keep = tempfile.TemporaryDirectory(prefix="straightway-peers-", dir=options.dir)
        self.folder = Path(self.keep.name)

    def __enter__(self) -> Run:
        numpy = sys.modules.get("numpy")
        say("making the files")
        self.hot = make_sample(self.folder / "hot.safetensors", self.size_bytes, numpy)
        self.cold = make_sample(self.folder / "cold.safetensors", self.cold_bytes, numpy)
        self.size_bytes, self.cold_bytes = self.hot.size_bytes, self.cold.size_bytes
        self.buffer = self.empty(self.size_bytes)
        self.expected = self.reference(self.hot)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.keep.cleanup()

    def empty(self, size: int) -> Any:
        return self.gpu.empty(size, self.gpu.uint8) if self.gpu else memoryview(bytearray(size))

    def reference(self, sample: Sample) -> Any:
        """The content by a plain read, where the results lie."""
        with open(sample.path, "rb") as file:
            file.seek(sample.offset)
            if self.gpu is None:
                return memoryview(file.read(sample.size_bytes))
            import numpy

            return self.gpu.asarray(numpy.fromfile(file, numpy.uint8, sample.size_bytes))

    def poison(self) -> None:
        if self.gpu:
            self.buffer.fill(0xDB)
            self.synchronize()
        else:
            self.buffer[:] = b"\xdb" * len(self.buffer)

    def synchronize(self) -> None:
        if self.gpu:
            self.gpu.cuda.runtime.deviceSynchronize()

    def same(self, found: Any, expected: Any) -> bool:
        if self.gpu:
            return bool((found.reshape(-1).view(self.gpu.uint8) == expected).all())
        return bool(found == expected)

    def right(self, result: Any, size_bytes: int) -> bool:
        """Whether an array, or arrays one after the other, are the content."""
        arrays = [a for a in result if hasattr(a, "nbytes")] if type(result) is list else [result]
        at = 0
        for array in arrays:
            part = self.expected[at : at + array.nbytes]
            if not self.same(array, part):
                return False
            at += array.nbytes
        return at == size_bytes


def say(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def in_turns(
    run: Run, case: str, ways: list[Way], once: Callable[[Took], None], share: float
) -> list[Took]:
    """Each way once, then each again. Who used up twice its part of the time sits out."""
    budget_s = run.options.seconds * share
    until = time.monotonic() + budget_s
    runs = [Took(way) for way in ways]
    for round_ in range(run.options.rounds):
        for took in runs:
            part_s = 2 * budget_s / len(runs)
            late = time.monotonic() > until
            if late and round_ == 0:
                took.failed = "not run: the time was over (--seconds)"
            if late or took.failed or not took.verified or (round_ > 0 and took.spent_s > part_s):
                continue
            say(f"{case}  round {round_ + 1}: {took.way.name}")
            began = time.monotonic()
            try:
                took.way.prepare()
                once(took)
            except Exception as error:  # a peer may raise anything
                took.failed = f"{type(error).__name__}: {error}".split("\n")[0][:200]
            took.spent_s += time.monotonic() - began
    say("")
    return runs


def timed(run: Run, took: Took, work: Callable[[], Any]) -> Any:
    run.synchronize()
    cpu_before = cpu_s()
    before = time.perf_counter()
    result = work()
    run.synchronize()
    took.seconds.append(time.perf_counter() - before)
    took.cpu_s.append(cpu_s() - cpu_before)
    return result


def row(
    run: Run, case: str, took: Took, bytes_: int, link_gbs: float | None, **more: Any
) -> dict[str, Any]:
    """The result in the form of `straightway bench --json`."""
    shown = bool(took.seconds) and took.verified and not took.failed
    seconds = took.seconds if not took.p50_us else [us / 1e6 for us in took.p50_us]
    median = statistics.median(seconds) if shown else 0.0
    moved = bytes_ if not took.p50_us else len(took.latencies_us) * bytes_ / len(took.p50_us)
    gbs = bytes_ / median / 1e9 if shown else None
    result: dict[str, Any] = {
        "case": case,
        "bytes": bytes_,
        "median_gbs": gbs,
        "spread": (max(seconds) - min(seconds)) / median if shown else None,
        "share_of_ceiling": gbs / link_gbs if gbs and link_gbs else None,
        "cpu_s_per_gb": statistics.median(took.cpu_s) / (moved / 1e9) if shown else None,
        "pinned_bytes": took.way.pinned_bytes if shown else None,
        "first_call_gbs": bytes_ / seconds[0] / 1e9 if shown else None,
        "verified": shown,
        "peer": took.way.name,
        "settings": took.way.settings,
        "rounds": len(took.seconds),
        **more,
    }
    if took.failed:
        result["failed"] = took.failed
    if shown and took.latencies_us:
        ordered = sorted(took.latencies_us)
        result["p50_us"] = statistics.median(took.p50_us)
        result["p99_us"] = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    return result


class PinnedCopies(Way):
    """The ceiling: pinned copies of up to 1 GiB."""

    peer = name = "ceiling: pinned copies"

    def __init__(self, gpu: Any, size_bytes: int) -> None:
        self.gpu = gpu
        self.step = min(size_bytes, 1 << 30)
        self.memory = gpu.cuda.alloc_pinned_memory(self.step)
        self.settings = {"bytes": self.step}

    def copy(self, buffer: Any) -> None:
        for at in range(0, buffer.nbytes, self.step):
            size = min(self.step, buffer.nbytes - at)
            self.gpu.cuda.runtime.memcpyAsync(buffer.data.ptr + at, self.memory.ptr, size, 1, 0)


def measure_hot(run: Run, ways: list[Way]) -> list[dict[str, Any]]:
    def once(took: Took) -> None:
        if isinstance(took.way, PinnedCopies):
            way = took.way
            timed(run, took, lambda: way.copy(run.buffer))
            return
        run.poison()
        result = timed(run, took, lambda: took.way.read(run.hot, run.buffer))
        took.verified = run.right(result, run.hot.size_bytes)

    read_all(run.hot.path)
    ceiling = [PinnedCopies(run.gpu, run.size_bytes)] if run.gpu else []
    runs = in_turns(run, "hot", [*ceiling, *ways], once, SHARES["hot"])
    if ceiling:
        copies = runs.pop(0).seconds
        run.link_gbs = run.size_bytes / statistics.median(copies) / 1e9 if copies else None
    return [row(run, "hot", took, run.size_bytes, run.link_gbs) for took in runs]


def measure_cold(run: Run, ways: list[Way]) -> list[dict[str, Any]]:
    before: list[float | None] = []

    def once(took: Took) -> None:
        drop(run.cold.path)
        before.append(cached_part(run.cold.path))
        run.poison()
        buffer = run.buffer[: run.cold.size_bytes]
        result = timed(run, took, lambda: took.way.read(run.cold, buffer))
        # The cold file's content is the beginning of the hot one's, where both come from numpy.
        expected, run.expected = run.expected, cold_expected
        took.verified = run.right(result, run.cold.size_bytes)
        run.expected = expected

    cold_expected = run.reference(run.cold)
    runs = in_turns(run, "cold", ways, once, SHARES["cold"])
    known = [part for part in before if part is not None]
    # A file system without a disk (tmpfs) cannot be made cold: the rows say so.
    return [
        row(run, "cold", took, run.cold_bytes, None, cached_before=max(known, default=None))
        for took in runs
    ]


def measure_ranges(run: Run, ways: list[Way]) -> list[dict[str, Any]]:
    count = min(run.options.ranges, run.size_bytes // RANGE_BYTES)
    slots = random.Random(1).sample(range(run.size_bytes // RANGE_BYTES), count)
    offsets = [run.hot.offset + slot * RANGE_BYTES for slot in slots]
    ranges = ManyRanges(offsets, RANGE_BYTES, run.buffer)

    def right() -> bool:
        if run.gpu:
            source = run.expected[: run.size_bytes // RANGE_BYTES * RANGE_BYTES]
            wanted = source.reshape(-1, RANGE_BYTES)[run.gpu.asarray(slots)]
            return run.same(run.buffer[: count * RANGE_BYTES], wanted.reshape(-1))
        return all(
            array == run.expected[offset - run.hot.offset : offset - run.hot.offset + size]
            for offset, size, array in ranges.parts
        )

    def once(took: Took) -> None:
        run.poison()
        file = took.way.open(run.hot)
        timed(run, took, lambda: took.way.ranges(file, ranges))
        file.close()
        took.verified = right()

    if not count:
        return []
    runs = in_turns(run, "ranges", ways, once, SHARES["ranges"])
    moved = count * RANGE_BYTES
    return [row(run, "ranges", took, moved, run.link_gbs, ranges=count) for took in runs]


def measure_small(run: Run, ways: list[Way]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for name, (size, wanted) in SMALL.items():
        rows += measure_small_size(run, ways, name, size, min(wanted, run.size_bytes // size))
    return rows


def measure_small_size(
    run: Run, ways: list[Way], name: str, size: int, count: int
) -> list[dict[str, Any]]:
    draw = random.Random(size)
    offsets = [draw.randrange(0, run.size_bytes - size + 1) & ~4095 for _ in range(count)]
    arrays = [run.buffer[i * size : (i + 1) * size] for i in range(count)]

    def requests(took: Took, file: Any) -> None:
        latencies = []
        for offset, array in zip(offsets, arrays, strict=True):
            before = time.perf_counter()
            took.way.small(file, run.hot.offset + offset, size, array)
            latencies.append((time.perf_counter() - before) * 1e6)
        took.latencies_us += latencies
        took.p50_us.append(statistics.median(latencies))

    def once(took: Took) -> None:
        run.poison()
        file = took.way.open(run.hot)
        timed(run, took, lambda: requests(took, file))
        file.close()
        took.verified = all(
            run.same(array, run.expected[offset : offset + size])
            for offset, array in zip(offsets, arrays, strict=True)
        )

    if not count:
        return []
    runs = in_turns(run, f"small {name}", ways, once, SHARES["small"] / len(SMALL))
    return [row(run, f"small {name}", took, size, None) for took in runs]


MEASURES = {
    "hot": measure_hot,
    "cold": measure_cold,
    "ranges": measure_ranges,
    "small": measure_small,
}


def measure(run: Run, ways: list[Way]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for case in run.options.cases:
        rows += MEASURES[case](run, [way for way in ways if case in way.cases])
    return rows
