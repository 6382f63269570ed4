"""Names of devices."""

from __future__ import annotations

import operator


def device_index(device: int | str) -> int:
    """The CUDA ordinal of 0, "cuda" or "cuda:0"; -1 for "host"."""
    if isinstance(device, str):
        if device == "host":
            return -1
        name, _, index = device.partition(":")
        if name == "cuda" and (index.isdecimal() or device == "cuda"):
            device = int(index or 0)
        else:
            raise ValueError(f"device: {device!r} is not 'host', 'cuda' or 'cuda:N'")
    index_number = operator.index(device)
    if not 0 <= index_number < 1 << 16:
        raise ValueError(f"device: {device} is not a device number")
    return index_number
