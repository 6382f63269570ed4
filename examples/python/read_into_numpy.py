"""Loads a file into a NumPy array: the plan before, the receipt after.

Usage: python read_into_numpy.py FILE
"""

import sys

import numpy as np
import straightway as sw

with sw.open(sys.argv[1]) as file:
    array = np.empty(file.size, np.uint8)
    print(file.explain(array))  # nothing moves yet
    receipt = file.read_into(array)

print(receipt)
assert receipt.moved_bytes == array.nbytes
