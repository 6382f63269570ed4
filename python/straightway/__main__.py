"""`straightway` and `python -m straightway`: the command line that is packaged beside this file."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn


def main() -> NoReturn:
    """Becomes the command line."""
    binary = Path(__file__).with_name("bin") / "straightway"
    if not binary.is_file():
        sys.exit(f"straightway: the command line is not packaged here (no {binary})")
    os.execv(binary, [str(binary), *sys.argv[1:]])


if __name__ == "__main__":
    main()
