"""Reads many small ranges of a file in one call, with one receipt.

Usage: python read_many_ranges.py FILE
"""

import sys

import numpy as np
import straightway as sw

with sw.open(sys.argv[1]) as file:
    records = np.empty((100, 512), np.uint8)  # one buffer; each row takes one range
    step = max(1, file.size // 100)
    ranges = [(i * step, None, records[i]) for i in range(100)]
    receipt = file.read_ranges(ranges)

print(receipt)
print("bytes of each range:", list(receipt.ranges.moved_bytes[:5]), "...")
