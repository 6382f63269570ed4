"""Programs of cuFile, unchanged, on our libcufile.so.0 and on the vendor's: verified, with ratios.

    python bench/cufile_clients.py --ours build/dev/cufile/libcufile.so.0 [--vendor PATH]

Needs a GPU, makes its own files. Each client runs in a process of its own, first with ours
preloaded, then with the vendor's library, on the same file, hot in the page cache (--cold: dropped
before each run). What is not installed is named and left out. Ends after --seconds (180), whatever
is left to do.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GIB = 1 << 30

HEAD = """
import ctypes, json, os, sys, time
path, size = sys.argv[1], int(sys.argv[2])
cold = sys.argv[3] == "cold"
def drop():
    if cold:
        fd = os.open(path, os.O_RDONLY)
        os.fsync(fd); os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED); os.close(fd)
def library():
    paths = {l.split()[-1] for l in open("/proc/self/maps") if "libcufile.so" in l}
    ours = [p for p in paths if hasattr(ctypes.CDLL(p), "straightway_cufile")]
    return {"libraries": sorted(paths), "ours": bool(ours)}
def check(bytes_of):  # three places, against the file
    with open(path, "rb") as f:
        for at in (0, size // 2 + 4096, size - 65536):
            f.seek(at)
            assert bytes_of(at, 65536) == f.read(65536), f"wrong bytes at {at}"
def best(run, rounds=3):
    run()
    times = []
    for _ in range(rounds):
        drop()
        begin = time.perf_counter(); run(); times.append(time.perf_counter() - begin)
    return min(times)
def done(seconds, **more):
    print(json.dumps({"gb_per_s": size / seconds / 1e9, **library(), **more}))
"""

CUDA = """
cuda = ctypes.CDLL("libcuda.so.1")
def must(status): assert status == 0, f"CUDA error {status}"
must(cuda.cuInit(0)); context = ctypes.c_void_p()
must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
must(cuda.cuCtxPushCurrent_v2(context))
class Array:
    def __init__(self, size):
        at = ctypes.c_ulonglong(); must(cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(size)))
        self.at, self.size = at.value, size
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "version": 3,
                                         "data": (self.at, False), "strides": None}
    def bytes(self, at, size):
        out = ctypes.create_string_buffer(size)
        must(cuda.cuMemcpyDtoH_v2(out, ctypes.c_ulonglong(self.at + at), ctypes.c_size_t(size)))
        return out.raw
array = Array(size)
"""

CLIENTS = {
    "kvikio": HEAD
    + CUDA
    + """
import kvikio
file = kvikio.CuFile(path, "r")
seconds = best(lambda: file.read(array))
check(array.bytes); done(seconds)
""",
    "one cuFileRead": HEAD
    + CUDA
    + """
class Error(ctypes.Structure): _fields_ = [("code", ctypes.c_int), ("cuda", ctypes.c_int)]
class Descriptor(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("fd", ctypes.c_longlong), ("ops", ctypes.c_void_p)]
lib = ctypes.CDLL("libcufile.so.0")
for name in ("cuFileDriverOpen", "cuFileHandleRegister"): getattr(lib, name).restype = Error
lib.cuFileRead.restype = ctypes.c_ssize_t
begin = time.perf_counter(); error = lib.cuFileDriverOpen(); opened = time.perf_counter() - begin
assert error.code == 0, error.code
fd = os.open(path, os.O_RDONLY | os.O_DIRECT); handle = ctypes.c_void_p()
error = lib.cuFileHandleRegister(ctypes.byref(handle), ctypes.byref(Descriptor(1, fd, None)))
assert error.code == 0, error.code
def read(n=size):
    got = lib.cuFileRead(handle, ctypes.c_void_p(array.at), ctypes.c_size_t(n),
                         ctypes.c_longlong(0), ctypes.c_longlong(0))
    assert got == n, got
seconds = best(read); check(array.bytes)
begin = time.perf_counter()
for _ in range(1000): read(4096)
done(seconds, driver_open_ms=opened * 1e3, read_4k_us=(time.perf_counter() - begin) * 1e3)
""",
    "torch GdsFile": HEAD
    + """
import torch
storage = torch.empty(size, dtype=torch.uint8, device="cuda").untyped_storage()
file = torch.cuda.gds.GdsFile(path, os.O_RDONLY)
seconds = best(lambda: (file.load_storage(storage), torch.cuda.synchronize()))
tensor = torch.tensor([], dtype=torch.uint8, device="cuda").set_(storage)
check(lambda at, n: bytes(tensor[at:at + n].cpu().numpy())); done(seconds)
""",
    "cuda.bindings.cufile": HEAD
    + CUDA
    + """
from cuda.bindings import cufile
cufile.driver_open()
fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
descriptor = cufile.Descr(); descriptor.type = cufile.FileHandleType.OPAQUE_FD
descriptor.handle.fd = fd; descriptor.fs_ops = 0
handle = cufile.handle_register(descriptor.ptr)
def read(): assert cufile.read(handle, array.at, size, 0, 0) == size
seconds = best(read); check(array.bytes); done(seconds)
""",
    "fastsafetensors": HEAD
    + """
import torch
from fastsafetensors import fastsafe_open
def run():
    with fastsafe_open([path], nogds=False, device="cuda:0") as f:
        for key in f.keys(): f.get_tensor(key)
    torch.cuda.synchronize()
seconds = best(run)
from safetensors import safe_open
with safe_open(path, "pt") as a, fastsafe_open([path], nogds=False, device="cuda:0") as b:
    for key in list(a.keys())[:3]: assert torch.equal(a.get_tensor(key).cuda(), b.get_tensor(key))
done(seconds)
""",
}
VARIANTS = [
    ("kvikio", "kvikio", {}),
    ("kvikio 8 threads", "kvikio", {"KVIKIO_NTHREADS": "8"}),
    ("one cuFileRead", "one cuFileRead", {}),
    ("torch GdsFile", "torch GdsFile", {}),
    ("cuda.bindings.cufile", "cuda.bindings.cufile", {}),
    ("fastsafetensors", "fastsafetensors", {}),
]


def make_files(folder: Path, size: int) -> tuple[Path, Path]:
    """A plain file, and a safetensors file of the same size with one tensor."""
    plain, tensors = folder / "plain.bin", folder / "one.safetensors"
    block = os.urandom(64 << 20)
    head = json.dumps({"x": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    head += b" " * (-len(head) % 4096 - 8 + 4096)
    with plain.open("wb") as a, tensors.open("wb") as b:
        b.write(len(head).to_bytes(8, "little") + head)
        for at in range(0, size, len(block)):
            a.write(block[: size - at])
            b.write(block[: size - at])
    return plain, tensors


def run(
    code: str, file: Path, cold: bool, environment: dict[str, str], left: float
) -> dict[str, object]:
    if left <= 1:
        return {"missing": "no time left"}
    size = file.stat().st_size
    try:
        program = subprocess.run(
            [sys.executable, "-c", code, str(file), str(size), "cold" if cold else "hot"],
            capture_output=True,
            text=True,
            check=False,
            timeout=left,
            env={**os.environ, **environment},
        )
    except subprocess.TimeoutExpired:
        return {"missing": "no time left"}
    lines = program.stdout.strip().splitlines()
    if program.returncode != 0 or not lines:
        return {"missing": (program.stderr.strip() or "it printed nothing").splitlines()[-1]}
    result: dict[str, object] = json.loads(lines[-1])
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ours", required=True, help="our libcufile.so.0")
    parser.add_argument("--vendor", help="the vendor's, if the loader does not find it")
    parser.add_argument("--size", type=int, default=4 * GIB)
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--folder", default=None, help="where the files are made")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    ours = str(Path(options.ours).resolve())
    mine = {"LD_PRELOAD": ours, "LD_LIBRARY_PATH": str(Path(ours).parent)}
    theirs = {"LD_LIBRARY_PATH": str(Path(options.vendor).parent)} if options.vendor else {}
    for environment in (mine, theirs):
        if "LD_LIBRARY_PATH" in environment and os.environ.get("LD_LIBRARY_PATH"):
            environment["LD_LIBRARY_PATH"] += ":" + os.environ["LD_LIBRARY_PATH"]
    failed = 0
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        plain, tensors = make_files(Path(folder), options.size)
        for name, client, environment in VARIANTS:
            file = tensors if client == "fastsafetensors" else plain
            code, cold = CLIENTS[client], options.cold
            a = run(code, file, cold, {**environment, **mine}, end - time.monotonic())
            b = run(code, file, cold, {**environment, **theirs}, end - time.monotonic())
            if "missing" not in a and not a["ours"]:
                a["wrong"] = "another library answered"
                failed += 1
            ratio = (
                f"{a['gb_per_s'] / b['gb_per_s']:.1f}"  # type: ignore[operator]
                if "gb_per_s" in a and "gb_per_s" in b
                else "-"
            )
            print(json.dumps({"client": name, "ratio": ratio, "ours": a, "vendor": b}), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
