"""Loads a file into GPU memory with CuPy or Torch, whichever is here.

Usage: python read_into_gpu.py FILE
"""

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


with sw.open(sys.argv[1]) as file:
    array = empty_on_gpu(file.size)
    if array is None:
        print("No GPU, or neither CuPy nor Torch. This is what would be done with one:")
        print(file.explain(to="cuda:0"))
    else:
        # Ordered after the work that is queued on the array's stream; done when it returns.
        print(file.read_into(array))
