"""Arrays of the frameworks, on a machine with a GPU; elsewhere each test says what is missing."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
import straightway as sw

SIZE = 3 << 20


@pytest.fixture
def cupy() -> Any:
    module = pytest.importorskip("cupy")
    try:
        module.cuda.runtime.getDeviceCount()
    except module.cuda.runtime.CUDARuntimeError as error:
        pytest.skip(f"no GPU for CuPy: {error}")
    return module


@pytest.fixture
def torch() -> Any:
    module = pytest.importorskip("torch")
    if not module.cuda.is_available():
        pytest.skip("no GPU for Torch")
    return module


@pytest.fixture
def jax() -> Any:
    module = pytest.importorskip("jax")
    if module.default_backend() != "gpu":
        pytest.skip("no GPU for JAX")
    return module


def test_cupy_reads_and_writes(cupy: Any, path: Path, content: bytes, tmp_path: Path) -> None:
    target = cupy.zeros((3, 1 << 20), cupy.uint8)
    with sw.open(path) as file:
        receipt = file.read_into(target, offset=3)
        assert cupy.asnumpy(target).tobytes() == content[3 : 3 + SIZE]
        assert receipt.device == f"cuda:{target.device.id}"
        file.read_into(target[1], offset=9)
        assert cupy.asnumpy(target[1]).tobytes() == content[9 : 9 + (1 << 20)]
        with pytest.raises(ValueError, match="contiguous"):
            file.read_into(target[:, ::2])
        file.read_into(cupy.asfortranarray(target))
    with sw.open(tmp_path / "out", "w") as file:
        file.write_from(target)
    assert (tmp_path / "out").read_bytes() == cupy.asnumpy(target).tobytes()


def test_cupy_work_on_a_stream_comes_first(cupy: Any, tmp_path: Path) -> None:
    stream = cupy.cuda.Stream(non_blocking=True)
    with sw.open(tmp_path / "out", "w") as file:
        for value in range(20):
            with stream:
                source = cupy.full(SIZE, value, cupy.uint8)
                for _ in range(20):
                    source += 1
            file.write_from(source, stream=stream)
            assert (tmp_path / "out").read_bytes() == bytes([value + 20]) * SIZE
            with stream:  # the interface names the current stream
                source += 1
                file.write_from(source)
            assert (tmp_path / "out").read_bytes() == bytes([value + 21]) * SIZE


@pytest.mark.parametrize("allocator", ["pool", "async", "managed"])
def test_cupy_memory_of_every_allocator(
    cupy: Any, path: Path, content: bytes, allocator: str
) -> None:
    make = {
        "pool": lambda size: cupy.get_default_memory_pool().malloc(size),
        "async": lambda size: cupy.cuda.malloc_async(size),
        "managed": lambda size: cupy.cuda.malloc_managed(size),
    }[allocator]
    with cupy.cuda.using_allocator(make):
        target = cupy.zeros(SIZE, cupy.uint8)
    with sw.open(path) as file:
        assert file.read_into(target).moved_bytes == SIZE
    assert cupy.asnumpy(target).tobytes() == content[:SIZE]


def test_cupy_from_many_threads(cupy: Any, path: Path, content: bytes) -> None:
    targets = [cupy.zeros(100_000, cupy.uint8) for _ in range(32)]
    with sw.open(path) as file:
        threads = [
            threading.Thread(target=file.read_into, args=(target, i * 1001))
            for i, target in enumerate(targets)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for i, target in enumerate(targets):
        assert cupy.asnumpy(target).tobytes() == content[i * 1001 : i * 1001 + 100_000]


def test_torch_reads_and_writes(torch: Any, path: Path, content: bytes, tmp_path: Path) -> None:
    target = torch.zeros((3, 1 << 20), dtype=torch.uint8, device="cuda")
    with sw.open(path) as file:
        receipt = file.read_into(target, offset=3)
        assert target.cpu().numpy().tobytes() == content[3 : 3 + SIZE]
        assert receipt.device.startswith("cuda:")
        half = torch.zeros(SIZE // 2, dtype=torch.bfloat16, device="cuda")
        assert file.read_into(half).moved_bytes == SIZE
        assert half.view(torch.uint8).cpu().numpy().tobytes() == content[:SIZE]
        with pytest.raises(ValueError, match="contiguous"):
            file.read_into(target.t()[::2])
        pinned = torch.zeros(SIZE, dtype=torch.uint8).pin_memory()
        assert file.read_into(pinned).device == "host"
        assert pinned.numpy().tobytes() == content[:SIZE]
    with sw.open(tmp_path / "out", "w") as file:
        file.write_from(target)
    assert (tmp_path / "out").read_bytes() == target.cpu().numpy().tobytes()


def test_torch_work_on_a_stream_comes_first(torch: Any, tmp_path: Path) -> None:
    stream = torch.cuda.Stream()
    with sw.open(tmp_path / "out", "w") as file:
        for value in range(20):
            with torch.cuda.stream(stream):
                source = torch.full((SIZE,), value, dtype=torch.uint8, device="cuda")
                for _ in range(20):
                    source += 1
            file.write_from(source, stream=stream)
            assert (tmp_path / "out").read_bytes() == bytes([value + 20]) * SIZE


def test_torch_on_the_host(path: Path, content: bytes) -> None:
    torch = pytest.importorskip("torch")
    target = torch.zeros(SIZE, dtype=torch.uint8)
    with sw.open(path) as file:
        file.read_into(target, offset=1)
    assert target.numpy().tobytes() == content[1 : 1 + SIZE]


def test_jax_arrays_are_sources_only(jax: Any, path: Path, tmp_path: Path) -> None:
    source = jax.numpy.arange(1 << 20, dtype=jax.numpy.int32)
    with sw.open(tmp_path / "out", "w") as file:
        assert file.write_from(source).moved_bytes == 4 << 20
    expected = jax.device_get(source).tobytes()
    assert (tmp_path / "out").read_bytes() == expected
    with sw.open(path) as file, pytest.raises(ValueError, match="read-only"):
        file.read_into(source)
