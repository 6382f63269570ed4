"""Straightway moves bytes between files and GPU memory, and says which way every byte went.

>>> import straightway as sw
>>> with sw.open("weights.bin") as file:          # doctest: +SKIP
...     print(file.explain(array))                 # the plan; nothing moves
...     receipt = file.read_into(array)            # CuPy, Torch, Numba, NumPy, ...
>>> print(receipt)                                 # doctest: +SKIP
1.00 GiB into cuda:0 in 20.1 ms, 53.4 GB/s
  staged     1.00 GiB  from cache (observed: 0 bytes read from the disk)

Sizes are in bytes; a size may also be a text such as ``"64M"`` (K, M, G and KiB, MiB, GiB are
powers of 1024). Any offset, size and address is legal, aligned or not.

Memory is anything with ``__cuda_array_interface__``, DLPack (``__dlpack__``) or the buffer
protocol, as long as it is contiguous. The device comes from the memory, never from a "current
device".

Every failure is a native Python exception: FileNotFoundError, IsADirectoryError,
PermissionError, FileExistsError, other OSErrors with ``errno`` and ``filename``, ValueError,
TypeError, TimeoutError, EOFError (``exact=True`` and the file ended first), MemoryError,
``concurrent.futures.CancelledError``, and the three that are exported here. Those that the engine
raises also have the attributes ``kind`` (a word), ``offset`` (in the file, or None) and ``advice``.

Importing starts no thread, opens no file and touches no GPU.
"""

from ._contexts import Context
from ._errors import DeviceError, EvidenceMissing, RouteRefused
from ._files import File, open, read_many
from ._jobs import Job
from ._pins import Pin
from ._straightway import version as _version
from ._values import (
    Evidence,
    Found,
    Plan,
    PlannedRoute,
    RangeTable,
    Reason,
    Receipt,
    RouteShare,
    Setting,
    Times,
)


def version() -> str:
    """The version of the engine, as C++ says it.

    >>> import straightway as sw
    >>> sw.version().count(".")
    2
    """
    return _version()


__version__ = _version()

__all__ = [
    "Context",
    "DeviceError",
    "Evidence",
    "EvidenceMissing",
    "File",
    "Found",
    "Job",
    "Pin",
    "Plan",
    "PlannedRoute",
    "RangeTable",
    "Reason",
    "Receipt",
    "RouteRefused",
    "RouteShare",
    "Setting",
    "Times",
    "__version__",
    "open",
    "read_many",
    "version",
]
