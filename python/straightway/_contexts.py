"""The Context: what transfers need and share."""

from __future__ import annotations

from collections.abc import Callable

from . import _dispatch, _straightway
from ._devices import device_index
from ._values import Setting


class Context:
    """Owns what transfers need: threads, pinned memory, transports, statistics.

    Programs that do not care never make one: sw.open() uses that of the process, made on first use.
    Options that are not given come from STRAIGHTWAY_* variables, else from defaults.

    threads: 1 to 1024, or 0 to choose from the machine. pinned_bytes: the hard limit of pinned
    host memory. pin_bytes: the hard limit of what File.pin may hold; 0, the default, takes a
    quarter of the memory that is available at the first pin. policy: "auto", "direct" (fail with
    the reason rather than stage) or "staged".
    cache: "auto", "keep", "drop" or "bypass". on_warning: called with each warning's text, from a
    thread of straightway's own; without it there is silence.

    Thread rule: everything may be called from any thread at any time. In a forked child, host
    transfers start afresh and GPU use is refused.

    >>> import straightway as sw
    >>> context = sw.Context(threads=2, pinned_bytes="16M")
    >>> context.settings["pinned_bytes"]
    Setting(value=16777216, source='api')
    """

    __slots__ = ("_context",)

    def __init__(
        self,
        threads: int | None = None,
        pinned_bytes: int | str | None = None,
        policy: str | None = None,
        cache: str | None = None,
        on_warning: Callable[[str], object] | None = None,
        *,
        evidence: str | None = None,
        pin_bytes: int | str | None = None,
    ) -> None:
        if on_warning is not None:
            if not callable(on_warning):
                raise TypeError("on_warning: expected a callable")
            _dispatch.start()
        self._context = _straightway.make_context(
            (threads, pinned_bytes, policy, cache, evidence, on_warning, pin_bytes)
        )

    def warmup(self, device: int | str | None = None) -> None:
        """Pays first-use costs now: threads, pinned memory and, for a device, its GPU context.

        >>> import straightway as sw
        >>> sw.Context(threads=1).warmup()
        """
        self._context.warmup(-1 if device is None else device_index(device))

    @property
    def settings(self) -> dict[str, Setting]:
        """The settings in force, each with where it came from.

        >>> import straightway as sw
        >>> sw.Context(policy="staged").settings["policy"]
        Setting(value='staged', source='api')
        """
        return {name: Setting(*pair) for name, pair in self._context.settings().items()}

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={setting.value}" for name, setting in self.settings.items())
        return f"<straightway.Context: {settings}>"
