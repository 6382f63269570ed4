"""Errors of the engine as Python exceptions."""

from __future__ import annotations

import concurrent.futures
import errno as errnos
import io
from collections.abc import Callable


class DeviceError(RuntimeError):
    """The GPU or its driver reported an error; ``code`` is the driver's (a CUresult).

    >>> import straightway as sw
    >>> issubclass(sw.DeviceError, RuntimeError)
    True
    """

    code: int = 0


class RouteRefused(OSError):
    """The policy allows only routes that are not available here; ``errno`` is EOPNOTSUPP.

    >>> import straightway as sw
    >>> issubclass(sw.RouteRefused, OSError)
    True
    """


class EvidenceMissing(RuntimeError):
    """``evidence="observed"`` was demanded, and nothing independent saw the bytes move.

    >>> import straightway as sw
    >>> issubclass(sw.EvidenceMissing, RuntimeError)
    True
    """


# The errno of a kind where the engine itself, not the system, found the fault.
_DEFAULT_ERRNO = {
    "not-found": errnos.ENOENT,
    "wrong-file-type": errnos.EINVAL,
    "permission": errnos.EACCES,
    "no-space": errnos.ENOSPC,
    "too-many-files": errnos.EMFILE,
    "io": errnos.EIO,
}

_PLAIN: dict[str, Callable[[str], BaseException]] = {
    "invalid-argument": ValueError,
    "closed": ValueError,
    "out-of-memory": MemoryError,
    "short-transfer": EOFError,
    "evidence-missing": EvidenceMissing,
    "device": DeviceError,
    "unsupported": io.UnsupportedOperation,
    "cancelled": concurrent.futures.CancelledError,
    "deadline-exceeded": TimeoutError,
    "forked": RuntimeError,
}

# Wrong arguments that the system finds: values, not files, are at fault.
_OF_VALUES = (0, errnos.EINVAL, errnos.EFAULT)


def _sentence(attempted: str, offset: int | None, why: str, advice: str) -> str:
    attempted = attempted.removesuffix(" of").removesuffix(" to")  # OSError names the file last
    at = "" if offset is None else f" at offset {offset}"
    return f"cannot {attempted}{at}: {why}" + (f"; {advice}" if advice else "")


def from_error(
    kind: str,
    origin: str,
    code: int,
    attempted: str,
    path: str,
    offset: int | None,
    why: str,
    advice: str,
    message: str,
) -> BaseException:
    """The exception for one error of the engine, with ``kind``, ``offset`` and ``advice``."""
    kind = kind.replace("_", "-")
    system_code = code if origin == "system" else 0
    text = _sentence(attempted, offset, why, advice)
    made: BaseException
    if kind == "route-refused":
        made = RouteRefused(errnos.EOPNOTSUPP, text, path or None)
    elif kind in _DEFAULT_ERRNO or (kind == "invalid-argument" and system_code not in _OF_VALUES):
        # OSError chooses its own subclass by errno: FileNotFoundError and friends.
        made = OSError(system_code or _DEFAULT_ERRNO[kind], text, path or None)
    else:
        made = _PLAIN.get(kind, RuntimeError)(message)
    if isinstance(made, DeviceError):
        made.code = code
    made.kind, made.offset, made.advice = kind, offset, advice  # type: ignore[attr-defined]
    return made
