"""Files: open, read into memory, write from memory."""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, SupportsIndex, cast

from . import _dispatch, _straightway
from ._contexts import Context
from ._devices import device_index
from ._jobs import Job, abandon, finish, wrap_job
from ._pins import Pin
from ._values import Plan, Receipt, wrap

Size = SupportsIndex | str
Progress = Callable[[int, int], object]
Range = tuple[Size, "Size | None", Any]
# (offset, size, position) or (offset, size) tuples, or an array of int64 or uint64 with such rows.
PlacedRanges = Iterable[tuple[Size, Size, Size]] | Iterable[tuple[Size, Size]] | memoryview
# policy, cache, evidence, exact, sync, stream, deadline
_Call = tuple[Any, Any, Any, Any, Any, Any, Any]
FilePath = str | bytes | os.PathLike[str] | os.PathLike[bytes]

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_MODES = ("r", "r+", "w", "w+", "x", "x+")


def _check_mode(mode: str) -> str:
    if not isinstance(mode, str):
        raise TypeError(f"mode: expected a str, got {type(mode).__name__}")
    plain = mode.replace("b", "", 1)
    if plain not in _MODES or mode.startswith("b"):
        raise ValueError(f"mode: {mode!r} is not 'r', 'r+', 'w', 'w+', 'x' or 'x+' (with 'b')")
    return plain


def _encode(path: FilePath, accepted: str = "a str, bytes or path-like") -> bytes:
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(f"path: expected {accepted}, got {type(path).__name__}")
    name = os.fspath(path)
    text = name if isinstance(name, str) else os.fsdecode(name)
    if _URL.match(text):
        raise ValueError(
            f"path: {text!r} is a URL, and only local files can be opened; give the path of a "
            "file, without a scheme"
        )
    if "\0" in text:
        raise ValueError("path: has a null character")
    return os.fsencode(name)


def open(
    path: FilePath | int,
    mode: str = "r",
    *,
    policy: str | None = None,
    cache: str | None = None,
    context: Context | None = None,
) -> File:
    """Opens a file, by path or by descriptor.

    mode: "r" (read), "r+" (read and write), "w" (create or truncate, then write), "x" (create,
    fail where it exists, then write), "w+" and "x+" (and read); a "b" may stand behind. A
    descriptor is duplicated, and the caller keeps its own; it keeps the access that it was opened
    with, so only "r" and "r+" are accepted with it. policy and cache are the defaults of this
    file's calls; see Context.

    >>> import straightway as sw
    >>> with sw.open(path) as file:
    ...     file.size >= 100
    True
    """
    plain = _check_mode(mode)
    inner = None if context is None else context._context
    if isinstance(path, bool):
        raise TypeError("path: expected a str, bytes, path-like or descriptor, got bool")
    if hasattr(path, "__index__"):
        descriptor = operator.index(cast("SupportsIndex", path))
        if not 0 <= descriptor < 1 << 31:
            raise ValueError(f"path: {descriptor} is not a descriptor")
        if plain[0] in "wx":
            raise ValueError(
                f"mode: {mode!r} creates or truncates, and a descriptor is open already"
            )
        return File._wrap(_straightway.open_descriptor(descriptor, policy, cache, inner))
    name = _encode(path, "a str, bytes, path-like or descriptor")
    return File._wrap(_straightway.open_path(name, plain, policy, cache, inner))


def _is_buffer(ranges: object) -> bool:
    try:
        memoryview(ranges)  # type: ignore[arg-type]
    except TypeError:
        return False
    return True


def _check_progress(progress: Progress | None) -> None:
    if progress is not None and not callable(progress):
        raise TypeError(f"progress: expected a callable, got {type(progress).__name__}")


class File:
    """An open file. Made by open(); closes at the end of a with block.

    Reading past the end gives what exists, and the receipt says so; with exact=True it is an
    EOFError. A call of zero bytes succeeds and issues nothing.

    The keyword arguments of the transfers:
    policy: "auto", "direct", "staged". cache: "auto", "keep", "drop", "bypass". evidence: "any",
    or "observed" to fail where nothing independent saw the bytes move. stream: a CuPy, Torch or
    Numba stream, or a handle: the transfer is ordered after the work queued on it; by default after
    the stream that the array names, else after the legacy default stream. deadline: seconds, after
    which the transfer stops, drains and raises TimeoutError. progress: called as
    progress(moved_bytes, wanted_bytes) now and then and once at the end; what it raises goes to
    sys.unraisablehook.

    Blocking calls release the GIL. Ctrl-C stops a large one, drains it and raises
    KeyboardInterrupt.

    Thread rule: everything may be called from any thread at any time.

    >>> import straightway as sw
    >>> target = bytearray(100)
    >>> with sw.open(path) as file:
    ...     receipt = file.read_into(target, offset=10, size=50)
    >>> receipt.moved_bytes
    50
    """

    __slots__ = ("_file",)
    _file: _straightway.File

    def __init__(self) -> None:
        raise TypeError("files are made by straightway.open")

    @classmethod
    def _wrap(cls, inner: _straightway.File) -> File:
        made = cls.__new__(cls)
        made._file = inner
        return made

    def _transfer(
        self,
        direction: str,
        array: Any,
        offset: Size,
        size: Size | None,
        call: _Call,
        progress: Progress | None,
    ) -> Receipt:
        _check_progress(progress)
        # The engine fills a job that is in our hands before a signal can come between.
        job = _straightway.Job()
        try:
            value = self._file.transfer(job, direction, (array, offset, size), call)
            if value is None:
                return finish(job, progress)
        except BaseException:
            abandon(job)
            raise
        receipt = wrap(Receipt, value)
        if progress is not None:
            try:
                progress(receipt.moved_bytes, receipt.wanted_bytes)
            except Exception as raised:
                _straightway.report_raised(raised, progress)
        return receipt

    def read_into(
        self,
        array: Any,
        offset: Size = 0,
        size: Size | None = None,
        *,
        policy: str | None = None,
        cache: str | None = None,
        exact: bool = False,
        stream: Any = None,
        deadline: float | None = None,
        progress: Progress | None = None,
        evidence: str | None = None,
    ) -> Receipt:
        """Reads from the file's offset into the array's memory; all of it, or the first size bytes.

        >>> import straightway as sw
        >>> target = bytearray(16)
        >>> with sw.open(path) as file:
        ...     print(file.read_into(target, offset=4, exact=True).moved_bytes)
        16
        """
        call = (policy, cache, evidence, exact, None, stream, deadline)
        return self._transfer("read", array, offset, size, call, progress)

    def write_from(
        self,
        array: Any,
        offset: Size = 0,
        size: Size | None = None,
        *,
        policy: str | None = None,
        cache: str | None = None,
        sync: str = "none",
        stream: Any = None,
        deadline: float | None = None,
        progress: Progress | None = None,
        evidence: str | None = None,
    ) -> Receipt:
        """Writes the array's memory, or its first size bytes, at the file's offset.

        sync: how durable it is on return: "none", "data" (fdatasync) or "full" (fsync).

        >>> import straightway as sw
        >>> with sw.open(new_path, "w") as file:
        ...     print(file.write_from(b"some bytes", sync="data").moved_bytes)
        10
        """
        call = (policy, cache, evidence, False, sync, stream, deadline)
        return self._transfer("write", array, offset, size, call, progress)

    def submit_read(
        self,
        array: Any,
        offset: Size = 0,
        size: Size | None = None,
        *,
        policy: str | None = None,
        cache: str | None = None,
        exact: bool = False,
        stream: Any = None,
        deadline: float | None = None,
        progress: Progress | None = None,
        evidence: str | None = None,
    ) -> Job:
        """As read_into, but returns at once; the job owns file and array until it is drained.

        >>> import straightway as sw
        >>> with sw.open(path) as file:
        ...     job = file.submit_read(bytearray(16))
        ...     print(job.result().moved_bytes)
        16
        """
        call = (policy, cache, evidence, exact, None, stream, deadline)
        return self._submit("read", array, offset, size, call, progress)

    def submit_write(
        self,
        array: Any,
        offset: Size = 0,
        size: Size | None = None,
        *,
        policy: str | None = None,
        cache: str | None = None,
        sync: str = "none",
        stream: Any = None,
        deadline: float | None = None,
        progress: Progress | None = None,
        evidence: str | None = None,
    ) -> Job:
        """As write_from, but returns at once; the job owns file and array until it is drained.

        >>> import straightway as sw
        >>> with sw.open(new_path, "w") as file:
        ...     print(file.submit_write(b"some bytes").result().moved_bytes)
        10
        """
        call = (policy, cache, evidence, False, sync, stream, deadline)
        return self._submit("write", array, offset, size, call, progress)

    def _submit(
        self,
        direction: str,
        array: Any,
        offset: Size,
        size: Size | None,
        call: _Call,
        progress: Progress | None,
    ) -> Job:
        _check_progress(progress)
        if progress is not None:
            _dispatch.start()
        job = _straightway.Job()
        self._file.submit(job, direction, (array, offset, size), call, progress)
        return wrap_job(job)

    def _transfer_ranges(
        self, direction: str, ranges: Any, array: Any, name: str, call: _Call
    ) -> Receipt:
        if array is None and _is_buffer(ranges):
            raise TypeError(
                f"ranges: an array of numbers needs {name}=, the one array for all ranges"
            )
        job = _straightway.Job()
        try:
            if array is None:
                self._file.submit_ranges(job, direction, iter(ranges), call)
            else:
                self._file.submit_placed(job, direction, ranges, array, call)
            return finish(job, None)
        except BaseException:
            abandon(job)
            raise

    def read_ranges(
        self,
        ranges: Iterable[Range] | PlacedRanges,
        *,
        into: Any = None,
        policy: str | None = None,
        cache: str | None = None,
        exact: bool = False,
        stream: Any = None,
        deadline: float | None = None,
        evidence: str | None = None,
    ) -> Receipt:
        """Reads many ranges in one call, with one receipt.

        ranges: (offset, size, array) tuples; size may be None: the array's. All arrays lie in host
        memory, or all on one device.

        With into, one array for all: (offset, size, position) tuples, position in bytes from the
        array's begin, or an N x 3 array of int64 or uint64 with such rows, which costs no Python
        object for each range. Without positions (tuples of two, an N x 2 array) the ranges lie one
        after another. Before anything moves, all are checked: what lies outside the array is a
        ValueError, and so are two ranges that would fill the same bytes of it.

        >>> import straightway as sw
        >>> head, tail = bytearray(8), bytearray(4)
        >>> with sw.open(path) as file:
        ...     receipt = file.read_ranges([(0, 8, head), (50, None, tail)])
        >>> list(receipt.ranges.moved_bytes)
        [8, 4]
        >>> with sw.open(path) as file:
        ...     receipt = file.read_ranges([(0, 8, 4), (50, 4, 0)], into=bytearray(12))
        >>> receipt.moved_bytes
        12
        """
        call = (policy, cache, evidence, exact, None, stream, deadline)
        return self._transfer_ranges("read", ranges, into, "into", call)

    def write_ranges(
        self,
        ranges: Iterable[Range] | PlacedRanges,
        *,
        source: Any = None,
        policy: str | None = None,
        cache: str | None = None,
        sync: str = "none",
        stream: Any = None,
        deadline: float | None = None,
        evidence: str | None = None,
    ) -> Receipt:
        """Writes many ranges in one call, with one receipt.

        As read_ranges: (offset, size, array) tuples, or with source, one array for all, (offset,
        size, position) tuples or an array of such rows. With source, two ranges that would write
        the same bytes of the file are a ValueError; they may share bytes of the array.

        >>> import straightway as sw
        >>> with sw.open(new_path, "w") as file:
        ...     receipt = file.write_ranges([(0, 2, b"ab"), (2, None, b"cde")])
        ...     again = file.write_ranges([(5, 2, 0), (7, 2, 0)], source=b"fg")
        >>> receipt.moved_bytes + again.moved_bytes
        9
        """
        call = (policy, cache, evidence, False, sync, stream, deadline)
        return self._transfer_ranges("write", ranges, source, "source", call)

    def explain(
        self,
        array: Any = None,
        *,
        offset: Size = 0,
        size: Size | None = None,
        to: str | None = None,
        direction: str = "read",
        policy: str | None = None,
        cache: str | None = None,
    ) -> Plan:
        """The plan of a transfer: each layer, each route, each refusal with its reason.

        Without an array it is for memory that does not exist yet: size bytes (for a read, by
        default what the file has) of "host", the default, or "cuda:N".

        >>> import straightway as sw
        >>> with sw.open(path) as file:
        ...     plan = file.explain(to="host", size=100)
        >>> list(plan.routes)
        ['buffered']
        """
        call = (policy, cache, None, False, None, None, None)
        if array is not None:
            if to is not None:
                raise ValueError("to: the array says itself where its memory is; give one of them")
            place = (array, offset, size)
            return wrap(Plan, self._file.explain_array(direction, place, call))
        if size is None and direction == "write":
            raise ValueError("size: needed to plan a write without an array")
        device = -1 if to is None else device_index(to)
        inner = self._file.explain_space(direction, device, offset, size, call)
        return wrap(Plan, inner)

    def pin(
        self,
        ranges: Iterable[tuple[Size, Size]] | None = None,
        *,
        device: int | str | None = None,
    ) -> Pin:
        """Keeps page-cache pages of the file registered with the GPU's driver; see Pin.

        ranges: (offset, size) tuples, as far as the file goes; by default all of it. device: whose
        context registers the pages, which every GPU of this process can then read; by default that
        of the thread's current context, else the first.

        >>> with sw.open("weights.bin") as file:  # doctest: +SKIP
        ...     with file.pin([(0, "1GiB")]) as pin:
        ...         receipt = file.read_into(array[:1 << 30])
        >>> receipt.routes["pinned-cache"].bytes  # doctest: +SKIP
        1073741824
        """
        given = None if ranges is None else [tuple(entry) for entry in ranges]
        return Pin._wrap(self._file.pin(given, -1 if device is None else device_index(device)))

    @property
    def size(self) -> int:
        """The file's size in bytes, now.

        >>> import straightway as sw, os
        >>> with sw.open(path) as file:
        ...     file.size == os.path.getsize(path)
        True
        """
        return self._file.size()

    @property
    def path(self) -> str:
        """The path as it was given; "fd 7" where only a descriptor was.

        >>> import straightway as sw
        >>> with sw.open(path) as file:
        ...     file.path == str(path)
        True
        """
        return self._file.path()

    @property
    def closed(self) -> bool:
        """Whether close() was called.

        >>> import straightway as sw
        >>> file = sw.open(path)
        >>> file.close()
        >>> file.closed
        True
        """
        return self._file.closed()

    def fileno(self) -> int:
        """The descriptor that buffered transfers use; it belongs to the File.

        >>> import straightway as sw
        >>> with sw.open(path) as file:
        ...     file.fileno() > 2
        True
        """
        if self._file.closed():
            raise ValueError("the file is closed; open it again")
        return self._file.fileno()

    def close(self) -> None:
        """Waits for this file's jobs, then closes it. Closing twice is no error.

        >>> import straightway as sw
        >>> file = sw.open(path)
        >>> file.close()
        >>> file.close()
        """
        self._file.close()

    def __enter__(self) -> File:
        if self._file.closed():
            raise ValueError("the file is closed; open it again")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()

    def __repr__(self) -> str:
        state = "closed" if self._file.closed() else "open"
        return f"<straightway.File: {self._file.path()!r}, {state}>"


def read_many(
    requests: Iterable[tuple[FilePath, Size, Size | None, Any]],
    *,
    policy: str | None = None,
    cache: str | None = None,
    exact: bool = False,
    stream: Any = None,
    deadline: float | None = None,
    evidence: str | None = None,
    context: Context | None = None,
) -> Receipt:
    """Reads (path, offset, size, array) from many files in one call, with one receipt.

    The first error stops the rest, and is raised once nothing is in flight.

    >>> import straightway as sw
    >>> first, second = bytearray(8), bytearray(8)
    >>> sw.read_many([(path, 0, 8, first), (path, 8, None, second)]).moved_bytes
    16
    """
    entries = [(_encode(name), offset, size, array) for name, offset, size, array in requests]
    inner = None if context is None else context._context
    call = (policy, cache, evidence, exact, None, stream, deadline)
    return wrap(Receipt, _straightway.read_many(entries, inner, call))
