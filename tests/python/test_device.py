"""Device memory, on the simulated GPU: each case of device_cases.py in a process of its own."""

from __future__ import annotations

import contextlib
import ctypes
from pathlib import Path

import device_cases
import pytest
from conftest import HERE, run_child


@pytest.mark.parametrize("case", device_cases.CASES)
def test_device(path: Path, fakes: Path, case: str) -> None:
    delay_us = "1000000" if case in device_cases.SLOW else "100"
    child = run_child(
        "-W",
        "ignore::DeprecationWarning",  # of fork beside threads
        str(HERE / "device_cases.py"),
        case,
        str(path),
        env={"LD_LIBRARY_PATH": str(fakes / "cuda"), "FAKE_CUDA_DELAY_US": delay_us},
    )
    assert (child.returncode, child.stderr) == (0, "")


def test_without_a_driver_a_pin_is_a_clear_error(path: Path) -> None:
    with contextlib.suppress(OSError):
        ctypes.CDLL("libcuda.so.1")
        pytest.skip("there is a CUDA driver here")
    code = """
import io, sys
import straightway as sw
try:
    sw.open(sys.argv[1]).pin()
except io.UnsupportedOperation as error:
    assert "pin" in str(error) and sys.argv[1] in str(error), error
    sys.exit(0)
sys.exit(1)
"""
    child = run_child("-c", code, str(path))
    assert (child.returncode, child.stderr) == (0, "")


def test_without_a_driver_the_gpu_is_a_clear_error(path: Path, tmp_path: Path) -> None:
    code = """
import sys
import straightway as sw
class Device:
    __cuda_array_interface__ = {"shape": (8,), "typestr": "|u1", "data": (4096, False)}
file = sw.open(sys.argv[1])
try:
    file.read_into(Device())
except (sw.DeviceError, OSError, ValueError) as error:
    assert "4096" not in type(error).__name__
    sys.exit(0)
sys.exit(1)
"""
    child = run_child("-c", code, str(path))
    assert (child.returncode, child.stderr) == (0, "")
