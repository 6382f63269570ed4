"""Programs that are not ours on our libcufile.so.0 and the simulated GPU; the vendor's header.

What has to be installed for it is installed into the build tree, once. Where that cannot be done
the tests are skipped, and say so.
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CLIENTS = Path(os.environ["STRAIGHTWAY_CLIENTS"])
CUFILE = Path(os.environ["STRAIGHTWAY_CUFILE"])
FAKE_CUDA = os.environ["STRAIGHTWAY_FAKE_CUDA"]
SOURCE = Path(__file__).resolve().parents[2]
INSTALL_SECONDS = 45  # for all together, so that a machine without a network is not held up
failed: list[str] = []


def install(*packages: str) -> Path:
    """The folder that has these packages, without what they depend on."""
    folder = CLIENTS / packages[0].split("==")[0]
    done = folder / "complete"
    if done.exists():
        return folder
    if failed:
        raise unittest.SkipTest(failed[0])
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
    try:
        pip = subprocess.run(
            [*command, str(folder), *packages],
            capture_output=True,
            text=True,
            check=False,
            timeout=INSTALL_SECONDS,
        )
        if pip.returncode != 0:
            failed.append(f"{packages} do not install: {pip.stderr.strip()[-200:]}")
    except subprocess.TimeoutExpired:
        failed.append(f"{packages} do not install in {INSTALL_SECONDS} s")
    if failed:
        raise unittest.SkipTest(failed[0])
    done.touch()
    return folder


class ExportsTest(unittest.TestCase):
    def test_the_documented_names_and_our_mark_without_versions(self) -> None:
        declared = (SOURCE / "tests/cufile/library.hpp").read_text()
        names = set(re.findall(r"X\((cuFile\w+),", declared))
        self.assertEqual(len(names), 50)
        shown = subprocess.run(
            ["nm", "-D", "--defined-only", str(CUFILE)], capture_output=True, text=True, check=True
        )
        found = {line.split()[-1] for line in shown.stdout.splitlines()}
        self.assertEqual(found, names | {"straightway_cufile"})


class VendorHeaderTest(unittest.TestCase):
    def test_our_declarations_are_the_vendors(self) -> None:
        header = next(install("nvidia-cufile").rglob("cufile.h"))
        with tempfile.TemporaryDirectory() as stubs:
            # Of cuda.h the header needs these two names.
            Path(stubs, "cuda.h").write_text(
                "typedef enum { CUDA_SUCCESS } CUresult;\ntypedef struct CUstream_st* CUstream;\n"
            )
            compiled = subprocess.run(
                [
                    *("c++", "-std=c++20", "-fsyntax-only", "-w"),
                    *(f"-I{stubs}", f"-I{header.parent}", f"-I{SOURCE}/src"),
                    f"{SOURCE}/tests/cufile/vendor_header_check.cpp",
                ],
                capture_output=True,
                text=True,
                check=False,
                timeout=100,
            )
        self.assertEqual(compiled.returncode, 0, compiled.stderr)


KVIKIO = """
import ctypes, os, sys
import kvikio, kvikio.defaults
cuda = ctypes.CDLL("libcuda.so.1")
assert hasattr(cuda, "straightway_fake_cuda")

def must(status):
    assert status == 0, status

class Array:  # memory of the simulated GPU
    def __init__(self, size):
        pointer = ctypes.c_ulonglong()
        must(cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size)))
        self.at, self.size = pointer.value, size
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "version": 3,
                                         "data": (self.at, False), "strides": None}
    def bytes(self):
        out = ctypes.create_string_buffer(self.size)
        must(cuda.fake_cuda_read(ctypes.c_ulonglong(self.at), out, ctypes.c_size_t(self.size)))
        return out.raw
    def fill(self, data):
        must(cuda.fake_cuda_write(ctypes.c_ulonglong(self.at), data, ctypes.c_size_t(len(data))))

context = ctypes.c_void_p()
must(cuda.cuInit(0))
must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
must(cuda.cuCtxPushCurrent_v2(context))
folder = sys.argv[1]
data = os.urandom(9 * (1 << 20) + 123)
with kvikio.CuFile(folder + "/data", "w") as file:
    device = Array(len(data))
    device.fill(data)
    assert file.write(device) == len(data)
assert open(folder + "/data", "rb").read() == data
with kvikio.CuFile(folder + "/data", "r") as file:
    device = Array(len(data))
    assert file.read(device) == len(data)
    assert device.bytes() == data
    assert file.pread(device, len(data) - 4097, 4097).get() == len(data) - 4097
    assert device.bytes()[: len(data) - 4097] == data[4097:]
    host = bytearray(len(data))
    assert file.read(host) == len(data) and bytes(host) == data
    small = Array(1000)
    assert file.read(small, file_offset=5) == 1000 and small.bytes() == data[5:1005]
    if os.environ["KVIKIO_COMPAT_MODE"] != "ON":
        kvikio.memory_register(device)
        assert file.raw_read(device) == len(data) and device.bytes() == data
        kvikio.memory_deregister(device)
        stream = ctypes.c_void_p()
        must(cuda.cuStreamCreate(ctypes.byref(stream), 1))
        future = file.raw_read_async(device, stream.value, len(data) - 7, 7)
        assert future.check_bytes_done() == len(data) - 7
        assert device.bytes()[: len(data) - 7] == data[7:]
loaded = [line.split()[-1] for line in open("/proc/self/maps") if "libcufile.so" in line]
cufile = ctypes.CDLL(loaded[0]) if loaded else None
assert cufile is None or hasattr(cufile, "straightway_cufile"), loaded
level3 = (ctypes.c_uint64 * 640)()
def answer(function, *arguments):
    function.restype = ctypes.c_uint64
    return function(*arguments) & 0xFFFFFFFF
code = answer(cufile.cuFileGetStatsL3, level3) if cufile else 5001
if code == 5001:  # KvikIO never opened it: compatibility mode is on, or there is no /run/udev
    assert os.environ["KVIKIO_COMPAT_MODE"] != "OFF"
    print("posix only")
else:
    must(code)
    gpu = [level3[1032 // 8 + i] for i in range(31)]
    print("reads", level3[0], level3[1], "writes", level3[2], level3[3],
          "n", gpu[6], "nvfs", gpu[8], "posix", gpu[9])
"""


class KvikioTest(unittest.TestCase):
    def run_with(self, compat_mode: str) -> str:
        folder = install(
            "kvikio-cu12==26.10.*",
            "libkvikio-cu12==26.10.*",
            "rapids-logger==0.3.*",
            "cuda-pathfinder",
            "numpy",
            "packaging",
        )
        with tempfile.TemporaryDirectory() as work:
            config = Path(work, "cufile.json")
            config.write_text("{}  // KvikIO wants one\n")
            program = subprocess.run(
                [sys.executable, "-B", "-c", KVIKIO, work],
                capture_output=True,
                text=True,
                check=False,
                timeout=100,
                env={
                    **os.environ,
                    "PYTHONPATH": str(folder),
                    "LD_LIBRARY_PATH": f"{CUFILE.parent}:{FAKE_CUDA}",
                    "FAKE_CUDA_VERSION": "12060",  # before copies in batches, which it lacks
                    "KVIKIO_COMPAT_MODE": compat_mode,
                    "CUFILE_ENV_PATH_JSON": str(config),
                    "CUFILE_STATS_LEVEL": "3",
                    "STRAIGHTWAY_CUFILE_VERSION": "1.18",
                },
            )
        self.assertEqual(program.returncode, 0, program.stderr)
        return program.stdout.strip()

    def test_compat_mode_off(self) -> None:
        # 9 MiB and a bit: three tasks a call; the raw calls are one read each, of 2 parts where the
        # buffer is registered.
        self.assertRegex(
            self.run_with("OFF"), r"^reads \d+ 0 writes 3 0 n \d+ nvfs 0 posix [1-9]\d*$"
        )

    def test_compat_mode_auto(self) -> None:
        self.assertNotEqual(self.run_with("AUTO"), "")

    def test_compat_mode_on(self) -> None:
        self.assertEqual(self.run_with("ON"), "posix only")


if __name__ == "__main__":
    unittest.main()
