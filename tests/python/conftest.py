"""What the tests share: a file, and child processes."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FILE_BYTES = (3 << 20) + 1234  # not a multiple of a block, and large enough to be a job


@pytest.fixture(scope="session")
def content() -> bytes:
    return random.Random(1).randbytes(FILE_BYTES)


@pytest.fixture
def path(tmp_path: Path, content: bytes) -> Path:
    """A file with known content."""
    made = tmp_path / "data.bin"
    made.write_bytes(content)
    return made


@pytest.fixture(scope="session")
def fakes() -> Path:
    """The folder of the stand-in libraries that the C++ build makes."""
    build = os.environ.get("STRAIGHTWAY_BUILD", HERE.parents[1] / "build" / "dev")
    found = Path(os.environ.get("STRAIGHTWAY_FAKES", Path(build) / "tests" / "fakes"))
    if not (found / "cuda" / "libcuda.so.1").exists():
        pytest.skip(f"the simulated GPU is not built ({found}/cuda/libcuda.so.1)")
    return found


def run_child(
    *arguments: str, env: dict[str, str] | None = None, timeout: float = 60
) -> subprocess.CompletedProcess[str]:
    """Runs Python on a script of ours or on -c CODE; as it is, with what it printed."""
    return subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | (env or {}),
        capture_output=True,
        text=True,
        timeout=timeout,
        stdin=subprocess.DEVNULL,
    )
