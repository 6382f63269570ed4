"""Submitted transfers: results, callbacks, asyncio, lifetime."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import straightway as sw


def wait_until(condition: object, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.005)


def test_a_job_gives_the_receipt(path: Path, content: bytes) -> None:
    target = bytearray(len(content))
    with sw.open(path) as file:
        receipt = file.submit_read(target).result(timeout=30)
    assert target == content
    assert receipt.moved_bytes == len(content)


def test_submit_write_writes(tmp_path: Path, content: bytes) -> None:
    with sw.open(tmp_path / "out", "w") as file:
        job = file.submit_write(content, sync="data")
        assert job.result().direction == "write"
    assert (tmp_path / "out").read_bytes() == content


def test_C8_done_is_monotone_and_results_repeat(path: Path) -> None:
    with sw.open(path) as file:
        job = file.submit_read(bytearray(2 << 20))
        states = []
        while not states or not states[-1]:
            states.append(job.done())
        assert job.result() == job.result(timeout=0)
        assert job.done()
        assert job.cancel() is False
        assert job.result().moved_bytes == 2 << 20
        assert job.progress() == (2 << 20, 2 << 20)
        assert "done" in repr(job)


def test_C8_a_failed_job_fails_every_time(path: Path) -> None:
    with sw.open(path) as file:
        job = file.submit_read(bytearray(8 << 20), exact=True)
        for _ in range(2):
            with pytest.raises(EOFError):
                job.result()
        assert job.done()


def test_a_timeout_leaves_the_transfer_alone(path: Path) -> None:
    with sw.open(path) as file:
        job = file.submit_read(bytearray(3 << 20))
        try:
            job.result(timeout=0)
        except TimeoutError as error:
            assert "goes on" in str(error)
        assert job.result().moved_bytes == 3 << 20
        with pytest.raises(ValueError, match="timeout"):
            job.result(timeout=-1)


def test_close_drains_the_jobs(path: Path) -> None:
    file = sw.open(path)
    jobs = [file.submit_read(bytearray(3 << 20)) for _ in range(8)]
    file.close()
    assert [job.done() for job in jobs] == [True] * 8
    assert [job.result().moved_bytes for job in jobs] == [3 << 20] * 8


def test_C11_a_dropped_job_still_runs(tmp_path: Path, content: bytes) -> None:
    file = sw.open(tmp_path / "out", "w")
    file.submit_write(content)
    del file
    gc.collect()
    wait_until(lambda: (tmp_path / "out").read_bytes() == content)


def test_callbacks_get_the_job(path: Path) -> None:
    seen: list[object] = []
    with sw.open(path) as file:
        job = file.submit_read(bytearray(2 << 20))
        job.add_done_callback(seen.append)
        job.result()
        job.add_done_callback(lambda done: seen.append(done.result().moved_bytes))
        wait_until(lambda: len(seen) == 2)
        with pytest.raises(TypeError, match="callable"):
            job.add_done_callback(3)  # type: ignore[arg-type]
    assert seen == [job, 2 << 20]


def test_what_a_callback_raises_is_reported(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda info: raised.append(info.exc_value))

    def fail(*_: object) -> None:
        raise KeyError("from a callback")

    with sw.open(path) as file:
        job = file.submit_read(bytearray(2 << 20), progress=fail)
        job.add_done_callback(fail)
        job.result()
        wait_until(lambda: len(raised) >= 2)
        file.read_into(bytearray(8), progress=fail)
        assert file.read_into(bytearray(2 << 20), progress=fail).moved_bytes == 2 << 20
    assert {str(error) for error in raised} == {"'from a callback'"}


def test_warnings_and_progress_come_from_a_thread_of_python(path: Path) -> None:
    names: set[str] = set()
    seen: list[tuple[int, int]] = []

    def tell(moved: int, wanted: int) -> None:
        names.add(threading.current_thread().name)
        seen.append((moved, wanted))

    with sw.open(path) as file:
        file.submit_read(bytearray(3 << 20), progress=tell).result()
        wait_until(lambda: seen and seen[-1] == (3 << 20, 3 << 20))
    assert names == {"straightway-callbacks"}


def test_await_gives_the_receipt(path: Path, content: bytes) -> None:
    async def main() -> list[sw.Receipt]:
        with sw.open(path) as file:
            jobs = [file.submit_read(target, offset=i) for i, target in enumerate(targets)]
            return list(await asyncio.gather(*jobs))

    targets = [bytearray(2 << 20) for _ in range(5)]
    receipts = asyncio.run(main())
    assert [receipt.offset for receipt in receipts] == list(range(5))
    assert [target == content[i : i + (2 << 20)] for i, target in enumerate(targets)] == [True] * 5


def test_await_raises_what_went_wrong(path: Path) -> None:
    async def main() -> None:
        with sw.open(path) as file:
            await file.submit_read(bytearray(8 << 20), exact=True)

    with pytest.raises(EOFError):
        asyncio.run(main())


def test_a_cancelled_await_leaves_nothing_dangling(path: Path) -> None:
    async def main() -> sw.Job:
        with sw.open(path) as file:
            job = file.submit_read(np.zeros(3 << 20, np.uint8))
            task = asyncio.ensure_future(job)
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return job

    job = asyncio.run(main())
    assert job.done()  # closing the file drained it
    try:
        job.result()
    except concurrent.futures.CancelledError as error:
        assert error.kind == "cancelled"  # type: ignore[attr-defined]


def test_await_with_a_timeout(path: Path) -> None:
    async def main() -> int:
        with sw.open(path) as file:
            async with asyncio.timeout(30):
                return (await file.submit_read(bytearray(2 << 20))).moved_bytes

    assert asyncio.run(main()) == 2 << 20


def test_a_loop_that_ended_is_no_harm(path: Path) -> None:
    async def main(file: sw.File) -> None:
        task = asyncio.ensure_future(file.submit_read(bytearray(3 << 20)))
        await asyncio.sleep(0)
        del task

    with sw.open(path) as file:
        asyncio.run(main(file))  # cancels what is left
        assert file.read_into(bytearray(8)).moved_bytes == 8


def test_jobs_files_and_values_are_not_made_by_hand() -> None:
    with pytest.raises(TypeError, match="submit_read"):
        sw.Job()
    with pytest.raises(TypeError, match="open"):
        sw.File()
    for value in (sw.Plan, sw.Receipt):
        with pytest.raises(TypeError, match="explain"):
            value()


def test_many_jobs_at_once(path: Path, content: bytes) -> None:
    targets = [bytearray(1 << 16) for _ in range(200)]
    with sw.open(path) as file:
        jobs = [file.submit_read(target, offset=i * 999) for i, target in enumerate(targets)]
        for job in jobs:
            job.result()
    for i, target in enumerate(targets):
        assert target == content[i * 999 : i * 999 + (1 << 16)]
