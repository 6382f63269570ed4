"""Tiny array classes that speak the array protocols, without a framework."""

from __future__ import annotations

import ctypes
from typing import Any


class _Device(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int32), ("id", ctypes.c_int32))


class _Type(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("type", _Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class _ManagedVersioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = (ctypes.c_void_p, ctypes.c_char_p)
_name_of = ctypes.pythonapi.PyCapsule_GetName
_name_of.restype = ctypes.c_char_p
_name_of.argtypes = (ctypes.c_void_p,)

_exports: dict[int, tuple[Any, ...]] = {}  # by the address of the managed tensor


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def _on_capsule_gone(capsule: int) -> None:
    _exports.pop(_pointer_of(capsule, _name_of(capsule)), None)


_NAMES = (b"dltensor", b"dltensor_versioned")


class DLPack:
    """Bytes at an address, shown through DLPack 1.x."""

    def __init__(
        self,
        address: int,
        size: int,
        *,
        shape: tuple[int, ...] | None = None,
        strides: tuple[int, ...] | None = None,
        device: tuple[int, int] = (1, 0),
        read_only: bool = False,
        major: int = 1,
    ) -> None:
        self.address = address
        self.shape = (size,) if shape is None else shape
        self.strides = strides
        self.device = device
        self.read_only = read_only
        self.major = major
        self.streams: list[int | None] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(
        self, *, stream: int | None = None, max_version: tuple[int, int] | None = None
    ) -> object:
        self.streams.append(stream)
        return self._export(versioned=max_version is not None and max_version >= (1, 0))

    def _export(self, versioned: bool) -> object:
        count = len(self.shape)
        numbers = ctypes.c_int64 * count
        shape = numbers(*self.shape)
        strides = None if self.strides is None else numbers(*self.strides)
        tensor = _Tensor(self.address, _Device(*self.device), count, _Type(1, 8, 1), shape, strides)
        if versioned:
            managed: Any = _ManagedVersioned(self.major, 0, None, None, int(self.read_only), tensor)
        else:
            managed = _Managed(tensor, None, None)
        address = ctypes.addressof(managed)
        _exports[address] = (managed, shape, strides, self)
        return _new_capsule(
            address, _NAMES[versioned], ctypes.cast(_on_capsule_gone, ctypes.c_void_p)
        )

    def live_exports(self) -> int:
        return sum(1 for export in _exports.values() if export[-1] is self)


class DLPackHost(DLPack):
    """Host memory that is seen through DLPack alone."""

    def __init__(self, size: int, **keywords: Any) -> None:
        self.memory = (ctypes.c_uint8 * size)()
        super().__init__(ctypes.addressof(self.memory), size, **keywords)

    def tobytes(self) -> bytes:
        return bytes(self.memory)


class OldDLPackHost(DLPackHost):
    """A producer from before DLPack 1.0, which knows no max_version."""

    def __dlpack__(self, *, stream: int | None = None) -> object:  # type: ignore[override]
        self.streams.append(stream)
        return self._export(versioned=False)


class FakeGpu:
    """The simulated GPU's controls, in a process whose libcuda.so.1 it is."""

    def __init__(self) -> None:
        driver = ctypes.CDLL("libcuda.so.1")
        assert hasattr(driver, "straightway_fake_cuda"), "this is no simulated GPU"
        self.driver = driver
        for name in ("allocate", "read", "write", "fill_later", "release"):
            function = getattr(driver, f"fake_cuda_{name}")
            function.restype = ctypes.c_ulonglong if name == "allocate" else ctypes.c_int
            setattr(self, f"_{name}", function)

    _allocate: Any
    _read: Any
    _write: Any
    _fill_later: Any
    _release: Any

    def allocate(self, size: int, device: int = 0) -> int:
        address = self._allocate(ctypes.c_int(device), ctypes.c_size_t(size))
        assert address != 0
        return int(address)

    def read(self, address: int, size: int) -> bytes:
        target = (ctypes.c_uint8 * size)()
        assert self._read(ctypes.c_ulonglong(address), target, ctypes.c_size_t(size)) == 0
        return bytes(target)

    def write(self, address: int, data: bytes) -> None:
        size = ctypes.c_size_t(len(data))
        assert self._write(ctypes.c_ulonglong(address), data, size) == 0

    def fill_later(self, address: int, value: int, size: int, stream: int, delay_us: int) -> None:
        self._fill_later(
            ctypes.c_ulonglong(address),
            ctypes.c_int(value),
            ctypes.c_size_t(size),
            ctypes.c_void_p(stream),
            ctypes.c_uint(delay_us),
        )


class CudaArray:
    """Device bytes, shown through __cuda_array_interface__."""

    def __init__(self, address: int, size: int, **interface: Any) -> None:
        self.__cuda_array_interface__ = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
            "strides": None,
        } | interface
