"""Pins: page-cache pages that a GPU reads itself."""

from __future__ import annotations

from types import TracebackType

from . import _straightway


class Pin:
    """Keeps pages of a file registered with the GPU's driver until it is released.

    Made by File.pin(); releases at the end of a with block. While it holds, reads into GPU memory
    that lie within it go out by the copy engine straight from the page cache (route
    "pinned-cache"): at the link's speed, and without the CPU.

    Reads never give stale bytes. Each is checked before and after; where the file was changed in
    any way, all its pins are given up, with one warning, and the read is repeated through the
    ring. Then holds is False until somebody pins it again.

    An OSError where the file cannot be pinned safely says why; a MemoryError, that pin_bytes (see
    Context) would be exceeded.

    >>> with sw.open("weights.bin") as file, file.pin() as pin:  # doctest: +SKIP
    ...     for array in arrays:
    ...         file.read_into(array)
    ...     assert pin.holds  # nobody changed the file meanwhile
    """

    __slots__ = ("_pin",)
    _pin: _straightway.Pin

    def __init__(self) -> None:
        raise TypeError("pins are made by File.pin")

    @classmethod
    def _wrap(cls, inner: _straightway.Pin) -> Pin:
        made = cls.__new__(cls)
        made._pin = inner
        return made

    @property
    def holds(self) -> bool:
        """False once it was released or given up, or the file was closed."""
        return self._pin.holds()

    @property
    def size(self) -> int:
        """How many bytes of the file it held when it was made."""
        return self._pin.size()

    def release(self) -> None:
        """Waits for the copies that use the pages, then lets them go. Twice is no error."""
        self._pin.release()

    def __enter__(self) -> Pin:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._pin.release()

    def __repr__(self) -> str:
        state = "holds" if self._pin.holds() else "holds nothing"
        return f"<straightway.Pin: {self._pin.size()} bytes, {state}>"
