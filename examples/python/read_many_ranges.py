"""Reads many small ranges of a file in one call, with one receipt.

Usage: python read_many_ranges.py FILE
"""

import sys

import numpy as np
import straightway as sw

with sw.open(sys.argv[1]) as file:
    records = np.empty((100, 512), np.uint8)  # one array; each of its rows takes one range
    rows = np.empty((100, 3), np.int64)  # offset, size, position: no Python object for each range
    rows[:, 0] = np.arange(100) * max(1, file.size // 100)
    rows[:, 1] = 512
    rows[:, 2] = np.arange(100) * 512
    receipt = file.read_ranges(rows, into=records)

print(receipt)
print("bytes of each range:", list(receipt.ranges.moved_bytes[:5]), "...")
