"""The programs that move a file into GPU memory, each behind the same few calls."""

from __future__ import annotations

import array
import importlib
import importlib.metadata
import os
from dataclasses import dataclass
from typing import Any

MIB = 1 << 20
TENSORS = 64  # in the file of the safetensors readers


@dataclass(frozen=True)
class Sample:
    """A file: a safetensors header, then size_bytes of content from offset on."""

    path: str
    offset: int
    size_bytes: int


class ManyRanges:
    """Ranges of one size, one after another in one buffer, in the form that each program takes."""

    def __init__(self, offsets: list[int], size: int, target: Any) -> None:
        self.target = target
        self.parts = [
            (offset, size, target[i * size : (i + 1) * size]) for i, offset in enumerate(offsets)
        ]
        numbers = array.array("q", [n for offset in offsets for n in (offset, size)])
        self.rows = memoryview(numbers).cast("B").cast("q", (len(offsets), 2))


class Way:
    """One program with one choice of settings. What it cannot do, it has no method for."""

    peer = ""  # the distribution
    name = ""
    settings: dict[str, Any]
    cases: tuple[str, ...] = ("hot", "cold")
    pinned_bytes: int | None = None  # where the program says it

    def prepare(self) -> None:
        """Not timed, before each run."""

    def read(self, sample: Sample, buffer: Any) -> Any:
        """The whole content; buffer, or arrays in file order, and what keeps them alive."""
        raise NotImplementedError

    def open(self, sample: Sample) -> Any:
        """What ranges() and small() need, with close()."""
        raise NotImplementedError

    def ranges(self, file: Any, ranges: ManyRanges) -> None:
        raise NotImplementedError

    def small(self, file: Any, offset: int, size: int, array: Any) -> None:
        raise NotImplementedError


class Straightway(Way):
    peer = name = "straightway"
    cases = ("hot", "cold", "ranges", "small")

    def __init__(self) -> None:
        self.module = importlib.import_module("straightway")
        self.settings = {"all": "defaults"}

    def read(self, sample: Sample, buffer: Any) -> Any:
        with self.module.open(sample.path) as file:
            receipt = file.read_into(buffer, offset=sample.offset, exact=True)
        self.pinned_bytes = receipt.pinned_bytes
        return buffer

    def open(self, sample: Sample) -> Any:
        return self.module.open(sample.path)

    def ranges(self, file: Any, ranges: ManyRanges) -> None:
        self.pinned_bytes = file.read_ranges(ranges.rows, into=ranges.target).pinned_bytes

    def small(self, file: Any, offset: int, size: int, array: Any) -> None:
        file.read_into(array, offset=offset, exact=True)


class Plain(Way):
    """What one writes without a library."""

    peer = "numpy"
    name = "numpy.fromfile, cupy.asarray"
    cases = ("hot", "cold", "small")

    def __init__(self, gpu: Any) -> None:
        self.numpy = importlib.import_module("numpy")
        self.gpu = gpu
        self.settings = {}

    def read(self, sample: Sample, buffer: Any) -> Any:
        bytes_ = self.numpy.fromfile(
            sample.path, self.numpy.uint8, sample.size_bytes, offset=sample.offset
        )
        return self.gpu.asarray(bytes_)

    def open(self, sample: Sample) -> Any:
        return open(sample.path, "rb", buffering=0)

    def small(self, file: Any, offset: int, size: int, array: Any) -> None:
        array.set(self.numpy.frombuffer(os.pread(file.fileno(), size, offset), self.numpy.uint8))


class KvikIO(Way):
    peer = "kvikio"
    keys = ("compat_mode", "num_threads", "task_size", "gds_threshold", "bounce_buffer_size")
    originals: dict[str, Any] | None = None

    def __init__(
        self, name: str, compat: str = "", cases: str = "hot,cold", **changes: Any
    ) -> None:
        self.cases = tuple(cases.split(","))
        self.module = importlib.import_module("kvikio")
        self.defaults = importlib.import_module("kvikio.defaults")
        if KvikIO.originals is None:
            KvikIO.originals = {key: self.defaults.get(key) for key in self.keys}
        if compat:
            changes["compat_mode"] = getattr(self.module.CompatMode, compat)
        self.values = {**KvikIO.originals, **changes}
        self.settings = {key: str(value) for key, value in self.values.items()}
        self.name = f"kvikio {name}"

    def prepare(self) -> None:
        self.defaults.set(self.values)

    def read(self, sample: Sample, buffer: Any) -> Any:
        with self.module.CuFile(sample.path, "r") as file:
            file.pread(buffer, sample.size_bytes, sample.offset).get()
        return buffer

    def open(self, sample: Sample) -> Any:
        return self.module.CuFile(sample.path, "r")

    def ranges(self, file: Any, ranges: ManyRanges) -> None:
        for future in [file.pread(part, size, offset) for offset, size, part in ranges.parts]:
            future.get()

    def small(self, file: Any, offset: int, size: int, array: Any) -> None:
        file.pread(array, size, offset).get()


class KvikIORaw(KvikIO):
    def small(self, file: Any, offset: int, size: int, array: Any) -> None:
        file.raw_read(array, size, offset)


def to_arrays(gpu: Any, tensors: dict[str, Any]) -> list[Any]:
    return [gpu.from_dlpack(tensors[f"t{i}"]) for i in range(TENSORS)]


class Safetensors(Way):
    peer = name = "safetensors"

    def __init__(self, gpu: Any) -> None:
        self.module = importlib.import_module("safetensors.torch")
        self.gpu = gpu
        self.settings = {"device": "cuda:0"}

    def read(self, sample: Sample, buffer: Any) -> Any:
        return to_arrays(self.gpu, self.module.load_file(sample.path, device="cuda:0"))


class FastSafetensors(Way):
    peer = "fastsafetensors"

    def __init__(self, gpu: Any, threads: int) -> None:
        self.module = importlib.import_module("fastsafetensors")
        self.torch = importlib.import_module("torch")
        self.gpu = gpu
        self.settings = {"nogds": True, "max_threads": threads}
        self.name = f"fastsafetensors nogds {threads} threads"

    def read(self, sample: Sample, buffer: Any) -> Any:
        loader = self.module.SafeTensorsFileLoader(
            self.module.SingleGroup(), self.torch.device("cuda:0"), **self.settings
        )
        loader.add_filenames({0: [sample.path]})
        files = loader.copy_files_to_device()
        tensors = {f"t{i}": files.get_tensor(f"t{i}") for i in range(TENSORS)}
        return [*to_arrays(self.gpu, tensors), Kept((loader, files))]


class Kept:
    """Keeps what stands behind arrays, and frees it with them."""

    def __init__(self, parts: tuple[Any, Any]) -> None:
        self.parts = parts

    def __del__(self) -> None:
        loader, files = self.parts
        files.close()
        loader.close()


class InstantTensor(Way):
    peer = "instanttensor"
    name = "instanttensor (each tensor cloned)"

    def __init__(self, gpu: Any) -> None:
        self.module = importlib.import_module("instanttensor")
        importlib.import_module("torch")
        self.gpu = gpu
        self.settings = {"framework": "pt"}

    def read(self, sample: Sample, buffer: Any) -> Any:
        with self.module.safe_open([sample.path], framework="pt", device=0) as file:
            tensors = {name: tensor.clone() for name, tensor in file.tensors()}
        return to_arrays(self.gpu, tensors)


# The name to look for, and what is imported; the distribution's name carries the CUDA version for
# some.
PEERS = {
    "straightway": ("straightway", ["straightway"]),
    "kvikio": ("kvikio", ["kvikio-cu13", "kvikio-cu12", "kvikio"]),
    "safetensors": ("safetensors.torch", ["safetensors"]),
    "fastsafetensors": ("fastsafetensors", ["fastsafetensors"]),
    "instanttensor": ("instanttensor", ["instanttensor"]),
    "numpy": ("numpy", ["numpy"]),
    "cupy": ("cupy", ["cupy-cuda13x", "cupy-cuda12x", "cupy"]),
}


def version_of(distributions: list[str], module: Any) -> str:
    for name in distributions:
        try:
            return f"{name} {importlib.metadata.version(name)}"
        except importlib.metadata.PackageNotFoundError:
            continue
    return str(getattr(module, "__version__", "version not known"))


def look_for(peer: str) -> dict[str, str]:
    """Its version, or why it is missing."""
    module_name, distributions = PEERS[peer]
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # a library that does not load here raises anything
        return {"missing": f"{type(error).__name__}: {error}"}
    return {"version": version_of(distributions, module)}


def kvikio_ways() -> list[Way]:
    big = {"task_size": 16 * MIB, "bounce_buffer_size": 16 * MIB}
    return [
        KvikIO("default", cases="hot,cold,ranges,small"),
        KvikIO("8 threads", cases="hot,cold,ranges", num_threads=8),
        KvikIO("16 threads", num_threads=16),
        KvikIO("8 threads, tasks and buffers of 16 MiB", num_threads=8, **big),
        KvikIO("compat ON, 1 thread", "ON", "small"),
        KvikIO("compat ON, 8 threads", "ON", "hot,cold,ranges", num_threads=8),
        KvikIO("compat ON, 16 threads", "ON", "hot,cold,ranges", num_threads=16),
        KvikIO("compat ON, 16 threads, 16 MiB", "ON", num_threads=16, **big),
        KvikIO("compat OFF, 8 threads", "OFF", num_threads=8),
        KvikIORaw("compat ON, 1 thread, raw_read", "ON", "small"),
    ]


def make_ways(peer: str, gpu: Any) -> list[Way]:
    if peer == "straightway":
        return [Straightway()]
    if peer == "kvikio":
        return kvikio_ways()
    if peer == "numpy":
        return [Plain(gpu)]
    if peer == "safetensors":
        return [Safetensors(gpu)]
    if peer == "fastsafetensors":
        return [FastSafetensors(gpu, 16), FastSafetensors(gpu, 32)]
    return [InstantTensor(gpu)] if peer == "instanttensor" else []


def find_ways(gpu: Any, wanted: str | None) -> tuple[list[Way], dict[str, dict[str, str]]]:
    """The ways that can run here, and what became of every peer."""
    peers = {peer: look_for(peer) for peer in PEERS}
    ways: list[Way] = []
    for peer, found in peers.items():
        if "missing" in found:
            continue
        if gpu is None and peer != "straightway":
            found["note"] = "not measured: there is no GPU here"
            continue
        try:
            ways += make_ways(peer, gpu)
        except Exception as error:
            peers[peer] = {"missing": f"{type(error).__name__}: {error}"}
    if wanted:
        parts = wanted.split(",")
        ways = [way for way in ways if any(part in way.name for part in parts)]
    return ways, peers
