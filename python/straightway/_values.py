"""What calls give back: values that can be compared, pickled, printed and kept."""

from __future__ import annotations

import json
from array import array
from typing import Any, NamedTuple, TypeVar, cast

from . import _straightway


class Reason(NamedTuple):
    """Why a route was taken or refused: ``code`` for programs, ``text`` for people.

    >>> import straightway as sw
    >>> print(sw.Reason("nvfs-not-loaded", "nvidia-fs is not loaded"))
    nvidia-fs is not loaded
    """

    code: str
    text: str

    def __str__(self) -> str:
        return self.text


class Evidence(NamedTuple):
    """Why a receipt may be believed: ``observed`` or ``claimed``, by which witness, in which scope.

    >>> import straightway as sw
    >>> sw.Evidence("observed", "own-copy", "request").kind
    'observed'
    """

    kind: str
    witness: str
    scope: str


class RouteShare(NamedTuple):
    """What one route moved.

    >>> import straightway as sw
    >>> reason = sw.Reason("host-memory", "host memory")
    >>> sw.RouteShare(4096, 1, reason, sw.Evidence("observed", "own-copy", "request")).bytes
    4096
    """

    bytes: int
    segments: int
    reason: Reason
    evidence: Evidence


class Found(NamedTuple):
    """What of a read was in the page cache when it was looked up, just ahead of the bytes.

    >>> import straightway as sw
    >>> sw.Found(4096, 0, 0).hot_bytes
    4096
    """

    hot_bytes: int
    cold_bytes: int
    unknown_bytes: int


class PlannedRoute(NamedTuple):
    """What one route is to move.

    >>> import straightway as sw
    >>> sw.PlannedRoute(4096, 1, sw.Reason("host-memory", "host memory")).segments
    1
    """

    bytes: int
    segments: int
    reason: Reason


class Setting(NamedTuple):
    """A setting and where it came from: call, api, environment, file or default.

    >>> import straightway as sw
    >>> sw.Setting("auto", "default").source
    'default'
    """

    value: str | int | bool
    source: str


class Times(NamedTuple):
    """Nanoseconds of CLOCK_MONOTONIC (time.monotonic_ns); 0: it did not come to that.

    >>> import straightway as sw
    >>> sw.Times(10, 20, 30, 40).done_ns
    40
    """

    queued_ns: int
    started_ns: int
    first_byte_ns: int
    done_ns: int


class RangeTable(NamedTuple):
    """The parts of a many-range receipt, as arrays in the order of the call.

    >>> import straightway as sw
    >>> from array import array
    >>> table = sw.RangeTable(array("Q", [0]), array("Q", [8]), array("Q", [8]))
    >>> table.moved_bytes[0]
    8
    """

    offset: array[int]
    wanted_bytes: array[int]
    moved_bytes: array[int]


_Reasons = dict[str, tuple[str, str]]
_Self = TypeVar("_Self", bound="_Value")


def _reasons(raw: _Reasons) -> dict[str, Reason]:
    return {route: Reason(*pair) for route, pair in raw.items()}


class _Value:
    """What Plan and Receipt have in common."""

    __slots__ = ("_value",)
    _value: _straightway.Plan | _straightway.Receipt

    def __init__(self) -> None:
        raise TypeError("plans are made by File.explain, receipts by transfers")

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return bool(self._value == other._value)

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return self._value.to_text().rstrip("\n")

    def __reduce__(self: _Self) -> tuple[Any, tuple[Any, ...]]:
        return (_restore, (type(self), type(self._value), self._value.__getstate__()))

    def to_json(self) -> str:
        """All of it as JSON text; for keeping and for other programs."""
        return self._value.to_json()

    def to_dict(self) -> dict[str, Any]:
        """The content of to_json() as a dict."""
        return cast("dict[str, Any]", json.loads(self._value.to_json()))

    @property
    def path(self) -> str:
        """The file, as it was given; "fd 7" where only a descriptor was."""
        return self._value.path()

    @property
    def direction(self) -> str:
        """``"read"`` or ``"write"``."""
        return self._value.direction

    @property
    def device(self) -> str:
        """Where the memory lies: ``"host"``, ``"cuda:0"``, ..."""
        return self._value.device

    @property
    def offset(self) -> int:
        """The file offset in bytes, of the first range."""
        return self._value.offset

    @property
    def wanted_bytes(self) -> int:
        """The bytes asked for."""
        return self._value.wanted_bytes

    @property
    def refused(self) -> dict[str, Reason]:
        """The routes that could not be taken or were not preferred, each with its reason."""
        return _reasons(self._value.refused())

    @property
    def settings(self) -> dict[str, Setting]:
        """The settings that decided, each with its source."""
        return {name: Setting(*pair) for name, pair in self._value.settings().items()}


def _restore(
    outer: type[_Value], inner: type[_straightway.Plan | _straightway.Receipt], state: bytes
) -> _Value:
    value = inner.__new__(inner)
    value.__setstate__(state)
    return wrap(outer, value)


class Plan(_Value):
    """What will be done with a request, by both layers, and why. Nothing moved to make it.

    Plans are made by File.explain(). A pickle belongs to one version of straightway.

    >>> import straightway as sw
    >>> with sw.open(path) as file:
    ...     plan = file.explain(bytearray(100))
    >>> sum(route.bytes for route in plan.routes.values())
    100
    """

    __slots__ = ()
    _value: _straightway.Plan

    @property
    def routes(self) -> dict[str, PlannedRoute]:
        """The routes to be taken: ``plan.routes["staged"].bytes``."""
        raw = self._value.routes()
        return {
            route: PlannedRoute(size, segments, Reason(*reason))
            for route, (size, segments, reason) in raw.items()
        }

    @property
    def failure(self) -> Reason | None:
        """Why the request cannot be served as asked, or None; there are no routes then."""
        raw = self._value.failure()
        return None if raw is None else Reason(*raw)

    def __repr__(self) -> str:
        routes = ", ".join(self.routes) or "nothing"
        return f"<straightway.Plan: {self.direction} {self.wanted_bytes} bytes, {routes}>"


class Receipt(_Value):
    """What really happened. It exists once nothing of the request is in flight any more.

    A pickle belongs to one version of straightway; to_json() is for keeping.

    >>> import straightway as sw
    >>> with sw.open(path) as file:
    ...     receipt = file.read_into(bytearray(100))
    >>> receipt.moved_bytes, sum(share.bytes for share in receipt.routes.values())
    (100, 100)
    """

    __slots__ = ()
    _value: _straightway.Receipt

    @property
    def moved_bytes(self) -> int:
        """The bytes that arrived; fewer than wanted_bytes where the file ended first."""
        return self._value.moved_bytes

    @property
    def ended_early(self) -> bool:
        """Whether the file ended before the range did."""
        return self._value.ended_early

    @property
    def end_of_file(self) -> int | None:
        """Where the file ended, if it ended early."""
        return self._value.end_of_file if self._value.ended_early else None

    @property
    def routes(self) -> dict[str, RouteShare]:
        """The routes really taken: ``receipt.routes["staged"].bytes``."""
        return {
            route: RouteShare(size, segments, Reason(*reason), Evidence(*evidence))
            for route, (size, segments, reason, evidence) in self._value.routes().items()
        }

    @property
    def retries(self) -> int:
        """Pieces submitted again after an interruption or a short transfer."""
        return self._value.retries

    @property
    def fallbacks(self) -> int:
        """Segments that took another route after an error that allows it."""
        return self._value.fallbacks

    @property
    def fallback_code(self) -> int:
        """The errno of the first fallback; 0: none."""
        return self._value.fallback_code

    @property
    def disk_bytes(self) -> int | None:
        """Bytes read from storage on behalf of this request; None: not measured."""
        return self._value.disk_bytes if self._value.disk_measured else None

    @property
    def found(self) -> Found | None:
        """What was in the page cache when it was looked up; None: nothing was looked up."""
        found = Found(*self._value.found())
        return found if any(found) else None

    @property
    def threads(self) -> int:
        """The threads that worked for the request."""
        return self._value.threads

    @property
    def pinned_bytes(self) -> int:
        """The pinned host memory that served it."""
        return self._value.pinned_bytes

    @property
    def pin_bytes(self) -> int:
        """How much of the file's page cache pins held.

        >>> import straightway as sw
        >>> with sw.open(path) as file:
        ...     file.read_into(bytearray(1)).pin_bytes
        0
        """
        return self._value.pin_bytes

    @property
    def times(self) -> Times:
        """When it was queued, started, saw its first byte, and was done."""
        return Times(*self._value.times())

    @property
    def seconds(self) -> float:
        """From the call to the last byte."""
        times = self.times
        return max(0, times.done_ns - times.queued_ns) / 1e9

    @property
    def gbs(self) -> float:
        """Gigabytes (10^9 bytes) per second; 0.0 where no time passed."""
        seconds = self.seconds
        return self.moved_bytes / seconds / 1e9 if seconds > 0 else 0.0

    @property
    def ranges(self) -> RangeTable | None:
        """The parts of a many-range call; None for others."""
        raw = self._value.ranges()
        return None if raw is None else RangeTable(*(array("Q", part) for part in raw))

    def __repr__(self) -> str:
        return (
            f"<straightway.Receipt: {self.direction} {self.moved_bytes} of {self.wanted_bytes} "
            f"bytes, {', '.join(self.routes) or 'nothing'}>"
        )


def wrap(outer: type[_Self], value: Any) -> _Self:
    """The Plan or Receipt around a value of the engine."""
    made = outer.__new__(outer)
    made._value = value
    return made
