"""Which objects are memory, and how they are refused."""

from __future__ import annotations

import array
import ctypes
import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import straightway as sw
from arrays import DLPackHost, OldDLPackHost


def read(path: Path, target: object, **keywords: object) -> sw.Receipt:
    with sw.open(path) as file:
        return file.read_into(target, **keywords)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "target",
    [
        bytearray(1000),
        memoryview(bytearray(1000)),
        array.array("d", [0.0] * 125),
        np.zeros((5, 25), np.float64),
        np.zeros((5, 25), np.float64, order="F"),
        np.zeros((10, 50), np.dtype([("a", "u1"), ("b", "u1")])),
        np.zeros(125, "M8[ns]"),
        np.zeros((3, 1000), np.uint8)[1],
        np.zeros((1000, 1), np.uint8)[:, :1],
        np.zeros((2000,), np.uint8)[1001:],
    ],
    ids=["bytearray", "view", "array", "C", "F", "struct", "time", "row", "ones", "tail"],
)
def test_any_contiguous_writable_buffer_is_a_target(
    path: Path, content: bytes, target: object
) -> None:
    size = memoryview(target).nbytes if not isinstance(target, np.ndarray) else target.nbytes
    assert read(path, target, offset=3).moved_bytes == size
    if isinstance(target, np.ndarray):
        assert target.tobytes(order="A") == content[3 : 3 + size]
    else:
        assert bytes(memoryview(target).cast("B")) == content[3 : 3 + size]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "target",
    [
        np.zeros((10, 10))[:, ::2],
        np.zeros((10, 10))[:, 1:],
        np.zeros(10)[::-1],
        np.zeros((2, 3, 4)).transpose(1, 0, 2),
        memoryview(bytearray(10))[::2],
        np.broadcast_to(np.zeros(3), (2, 3)),
    ],
    ids=["step", "column", "reverse", "permuted", "view", "broadcast"],
)
def test_what_is_not_contiguous_is_refused_with_a_way_out(path: Path, target: object) -> None:
    with pytest.raises(ValueError, match="ascontiguousarray"):
        read(path, target)


@pytest.mark.parametrize("kind", ["bytes", "view", "numpy"])
def test_what_is_read_only_is_a_source_only(path: Path, tmp_path: Path, kind: str) -> None:
    frozen = np.arange(10, dtype=np.uint8)
    frozen.flags.writeable = False
    source = {"bytes": bytes(range(10)), "view": memoryview(bytes(range(10))), "numpy": frozen}[
        kind
    ]
    with pytest.raises(ValueError, match="read-only"):
        read(path, source)
    with sw.open(tmp_path / "out", "w") as file:
        assert file.write_from(source).moved_bytes == 10
    assert (tmp_path / "out").read_bytes() == bytes(range(10))


@pytest.mark.parametrize("wrong", [None, 5, "text", [1, 2], object(), {}])
def test_what_is_no_memory_is_a_type_error(path: Path, wrong: object) -> None:
    with pytest.raises(TypeError, match=type(wrong).__name__):
        read(path, wrong)
    with sw.open(path) as file, pytest.raises(TypeError, match=type(wrong).__name__):
        file.submit_read(wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        np.array([1, "two", None], dtype=object),
        np.zeros(3, dtype=[("number", "i4"), ("item", "O")]),
        np.zeros(3, dtype=[("date", "M8[s]"), ("item", "O")]),  # NumPy gives no format for dates
        memoryview(np.array([None, None], dtype=object)),
        (ctypes.py_object * 2)(None, None),
    ],
    ids=["objects", "record", "record-with-date", "view", "ctypes"],
)
def test_python_objects_are_never_overwritten(path: Path, tmp_path: Path, wrong: object) -> None:
    with pytest.raises(ValueError, match="Python objects"):
        read(path, wrong)
    with sw.open(path) as file, pytest.raises(ValueError, match="Python objects"):
        file.read_ranges([(0, None, wrong)])
    with sw.open(tmp_path / "out", "w") as file, pytest.raises(ValueError, match="Python objects"):
        file.write_from(wrong)
    assert (tmp_path / "out").stat().st_size == 0


@pytest.mark.parametrize("kind", ["M8[s]", [("Order", "i4"), ("Odd", "f8")], "U3", "c16"])
def test_other_elements_are_bytes(path: Path, content: bytes, kind: Any) -> None:
    target = np.zeros(5, dtype=kind)
    assert read(path, target).moved_bytes == target.nbytes
    assert target.tobytes() == content[: target.nbytes]


@pytest.mark.parametrize("kind", [DLPackHost, OldDLPackHost])
def test_dlpack_on_the_host(path: Path, content: bytes, kind: type[DLPackHost]) -> None:
    target = kind(1000)
    assert read(path, target, offset=1).moved_bytes == 1000
    assert target.tobytes() == content[1:1001]
    assert target.live_exports() == 0


def test_dlpack_strides_and_flags_are_heeded(path: Path) -> None:
    with pytest.raises(ValueError, match="contiguous"):
        read(path, DLPackHost(100, shape=(5, 10), strides=(20, 1)))
    assert read(path, DLPackHost(100, shape=(5, 10), strides=(1, 5))).moved_bytes == 50
    with pytest.raises(ValueError, match="read-only"):
        read(path, DLPackHost(100, read_only=True))
    with pytest.raises(TypeError, match="device type 7"):
        read(path, DLPackHost(100, device=(7, 0)))
    with pytest.raises(ValueError, match="DLPack 2"):
        read(path, DLPackHost(100, major=2))
    with pytest.raises(ValueError, match="overflows"):
        read(path, DLPackHost(100, shape=(2**40, 2**40)))
    with pytest.raises(ValueError, match="negative"):
        read(path, DLPackHost(100, shape=(-1,)))


def test_dlpack_memory_is_released_once_the_job_is_drained(path: Path) -> None:
    target = DLPackHost(2 << 20)
    with sw.open(path) as file:
        job = file.submit_read(target)
        job.result()
        del job
        file.read_into(bytearray(1))  # any call collects what the engine gave back
    assert target.live_exports() == 0


def test_a_job_keeps_its_array_and_then_lets_go(path: Path) -> None:
    class Tracked(np.ndarray):  # type: ignore[type-arg]
        pass

    target = np.zeros(3 << 20, np.uint8).view(Tracked)
    alive = weakref.ref(target)
    with sw.open(path) as file:
        job = file.submit_read(target)
        del target
        job.result()
        del job
        file.read_into(bytearray(1))
    gc.collect()
    assert alive() is None


def test_a_bytearray_cannot_be_resized_in_flight(path: Path) -> None:
    target = bytearray(3 << 20)
    with sw.open(path) as file:
        job = file.submit_read(target)
        if not job.done():
            with pytest.raises(BufferError):
                target.clear()
        job.result()
        file.read_into(bytearray(1))
    target.clear()


def test_errors_of_the_array_pass_through(path: Path) -> None:
    class Broken:
        @property
        def __cuda_array_interface__(self) -> dict[str, object]:
            raise RuntimeError("requires grad")

    with pytest.raises(RuntimeError, match="requires grad"):
        read(path, Broken())


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"data": None}, ValueError, "data"),
        ({"data": (0, False)}, ValueError, "null"),
        ({"data": (4096, True)}, ValueError, "read-only"),
        ({"shape": (-1,)}, ValueError, "negative"),
        ({"shape": (2**40, 2**40)}, ValueError, "overflow"),
        ({"typestr": "|O8"}, ValueError, "no fixed size"),
        ({"typestr": "<fx"}, ValueError, "unreadable"),
        ({"typestr": "<"}, ValueError, "no fixed size"),
        ({"strides": (8,)}, ValueError, "contiguous"),
        ({"strides": (8, 4)}, ValueError, "length"),
        ({"mask": 1}, ValueError, "mask"),
        ({"stream": 0}, ValueError, "stream 0"),
    ],
)
def test_a_malformed_interface_is_refused(
    path: Path, change: dict[str, object], error: type[Exception], text: str
) -> None:
    class Device:
        __cuda_array_interface__ = {
            "shape": (10,),
            "typestr": "<f4",
            "data": (4096, False),
            "version": 3,
        } | change

    with pytest.raises(error, match=text):
        read(path, Device())


@pytest.mark.parametrize("missing", ["shape", "typestr", "data"])
def test_an_incomplete_interface_is_refused(path: Path, missing: str) -> None:
    interface = {"shape": (10,), "typestr": "<f4", "data": (4096, False), "version": 3}
    del interface[missing]

    class Device:
        __cuda_array_interface__ = interface

    with pytest.raises(ValueError, match=missing):
        read(path, Device())


@pytest.mark.parametrize("wrong", ["0", 1.5, object()])
def test_what_is_no_stream_is_a_type_error(path: Path, wrong: object) -> None:
    with pytest.raises(TypeError, match="stream"):
        read(path, bytearray(8), stream=wrong)
    with pytest.raises(ValueError, match="stream"):
        read(path, bytearray(8), stream=-1)
