"""Submitted transfers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from . import _dispatch, _straightway
from ._values import Receipt, wrap

if TYPE_CHECKING:
    import asyncio

# How long a blocking call waits before it lets Python handle signals, such as Ctrl-C.
_SLICE_S = 0.05


class Job:
    """A transfer that was submitted; it owns its file and its memory until it is drained.

    Dropping a Job neither cancels it nor waits: the Context finishes the transfer.

    Thread rule: everything may be called from any thread at any time.

    >>> import straightway as sw
    >>> target = bytearray(100)
    >>> with sw.open(path) as file:
    ...     job = file.submit_read(target)
    ...     receipt = job.result()
    >>> job.done(), receipt.moved_bytes
    (True, 100)
    """

    __slots__ = ("_job",)
    _job: _straightway.Job

    def __init__(self) -> None:
        raise TypeError("jobs are made by File.submit_read and File.submit_write")

    def result(self, timeout: float | None = None) -> Receipt:
        """Waits for the receipt, or raises what went wrong; every time the same answer.

        TimeoutError where `timeout` seconds pass first; the transfer goes on.
        concurrent.futures.CancelledError where it was cancelled. Ctrl-C ends the wait alone.

        >>> import straightway as sw
        >>> with sw.open(path) as file:
        ...     file.submit_read(bytearray(8)).result(timeout=10).moved_bytes
        8
        """
        if not _wait(self._job, timeout):
            raise TimeoutError(f"the transfer is not done after {timeout} s; it goes on")
        return wrap(Receipt, self._job.result())

    def done(self) -> bool:
        """Whether nothing is in flight any more; once True, always True.

        >>> import straightway as sw
        >>> with sw.open(path) as file:
        ...     job = file.submit_read(bytearray(8))
        >>> job.done()  # closing the file waited for it
        True
        """
        return self._job.done()

    def cancel(self) -> bool:
        """Stops submitting; what is in flight drains. False where it was done already.

        >>> import straightway as sw
        >>> with sw.open(path) as file:
        ...     job = file.submit_read(bytearray(8))
        >>> job.cancel()
        False
        """
        return self._job.cancel()

    def progress(self) -> tuple[int, int]:
        """(bytes moved so far, bytes wanted).

        >>> import straightway as sw
        >>> with sw.open(path) as file:
        ...     job = file.submit_read(bytearray(8))
        >>> job.progress()
        (8, 8)
        """
        return self._job.progress()

    def add_done_callback(self, callback: Callable[[Job], object]) -> None:
        """Calls callback(job) once when it is done, from a thread of straightway's own.

        Callbacks of one job are called in the order in which they were added. What one raises goes
        to sys.unraisablehook. Those that are still due when the interpreter ends are not made.

        >>> import straightway as sw, threading
        >>> seen = threading.Event()
        >>> with sw.open(path) as file:
        ...     file.submit_read(bytearray(8)).add_done_callback(lambda job: seen.set())
        >>> seen.wait(10)
        True
        """
        if not callable(callback):
            raise TypeError("callback: expected a callable")
        _dispatch.start()
        self._job.on_done(lambda: callback(self))

    def __await__(self) -> Generator[Any, None, Receipt]:
        """In asyncio: the receipt. Cancelling the task that waits cancels the transfer."""
        return self._wait_in_loop().__await__()

    async def _wait_in_loop(self) -> Receipt:
        import asyncio

        loop = asyncio.get_running_loop()
        arrived: asyncio.Future[None] = loop.create_future()

        def tell(_: Job) -> None:
            try:
                loop.call_soon_threadsafe(_settle, arrived)
            except RuntimeError:  # the loop was closed: nobody waits any more
                return

        self.add_done_callback(tell)
        try:
            await arrived
        except asyncio.CancelledError:
            self.cancel()
            raise
        return self.result()

    def __repr__(self) -> str:
        moved, wanted = self._job.progress()
        state = "done" if self._job.done() else "in flight"
        return f"<straightway.Job: {state}, {moved} of {wanted} bytes>"


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _wait(job: _straightway.Job, timeout: float | None) -> bool:
    """Waits in slices, between which Python handles signals."""
    if timeout is None:
        while not job.wait(_SLICE_S):
            pass
        return True
    left = float(timeout)
    while left > _SLICE_S:
        if job.wait(_SLICE_S):
            return True
        left -= _SLICE_S
    return job.wait(left)


def wrap_job(job: _straightway.Job) -> Job:
    """The Job around one of the engine."""
    made = Job.__new__(Job)
    made._job = job
    return made


def _tell(progress: Callable[[int, int], object], job: _straightway.Job) -> None:
    try:
        progress(*job.progress())
    except Exception as raised:
        _straightway.report_raised(raised, progress)


def finish(job: _straightway.Job, progress: Callable[[int, int], object] | None) -> Receipt:
    """Waits for the transfer of a blocking call; whoever interrupts it finds nothing in flight."""
    while not job.wait(_SLICE_S):
        if progress is not None:
            _tell(progress, job)
    receipt = wrap(Receipt, job.result())
    if progress is not None:
        _tell(progress, job)
    return receipt


def abandon(job: _straightway.Job) -> None:
    """Cancels a transfer and waits until nothing of it is in flight."""
    if sys.is_finalizing():
        return
    job.cancel()
    job.wait(None)
