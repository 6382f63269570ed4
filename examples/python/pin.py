"""Reads a file into GPU memory again and again, from pages that stay registered with the GPU.

Usage: python pin.py FILE
"""

import contextlib
import importlib.util
import sys

import straightway as sw


def empty_on_gpu(size_bytes):
    """A GPU array of this many bytes, or None without a GPU."""
    if importlib.util.find_spec("torch"):
        import torch

        if torch.cuda.is_available():
            return torch.empty(size_bytes, dtype=torch.uint8, device="cuda")
    if importlib.util.find_spec("cupy"):
        import cupy

        if cupy.cuda.is_available():
            return cupy.empty(size_bytes, cupy.uint8)
    return None


with sw.open(sys.argv[1]) as file, contextlib.ExitStack() as stack:
    try:
        # Opt-in: pinned pages cannot be reclaimed. Released at the end of the block.
        print(stack.enter_context(file.pin()))
    except OSError as refused:
        print(f"Not pinned, and read all the same: {refused}")
    array = empty_on_gpu(file.size)
    if array is None:
        array = bytearray(file.size)  # host memory: the pin is of no use
    for _ in range(3):
        print(file.read_into(array))  # never stale, whatever becomes of the file
