"""Reads the halves of a file at once in asyncio.

Usage: python read_async.py FILE
"""

import asyncio
import sys

import straightway as sw


async def main():
    with sw.open(sys.argv[1]) as file:
        middle = file.size // 2
        first, second = bytearray(middle), bytearray(file.size - middle)
        # A job owns its file and its memory until it is done, awaited or not.
        jobs = file.submit_read(first), file.submit_read(second, offset=middle)
        for receipt in await asyncio.gather(*jobs):
            print(receipt)


asyncio.run(main())
