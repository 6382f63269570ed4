"""What is true of device memory, on the simulated GPU. test_device.py runs each case in a process
of its own: `python device_cases.py CASE FILE`, with the fake driver in LD_LIBRARY_PATH."""

from __future__ import annotations

import array
import asyncio
import concurrent.futures
import ctypes
import os
import signal
import sys
import threading
import time
from pathlib import Path

import straightway as sw
from arrays import CudaArray, DLPack, FakeGpu

SIZE = (2 << 20) + 123


def expect(error: type[BaseException], text: str, call: object) -> BaseException:
    try:
        call()  # type: ignore[operator]
    except error as raised:
        assert text in str(raised), str(raised)
        return raised
    raise AssertionError(f"no {error.__name__}")


def case_interface(path: Path, content: bytes, gpu: FakeGpu) -> None:
    address = gpu.allocate(SIZE)
    with sw.open(path) as file:
        receipt = file.read_into(CudaArray(address, SIZE), offset=5)
    assert gpu.read(address, SIZE) == content[5 : 5 + SIZE]
    assert receipt.device == "cuda:0"
    assert receipt.routes["staged"].bytes == SIZE
    assert {"nvfs", "p2pdma"} <= set(receipt.refused)
    assert str(receipt).splitlines()[0].startswith("2.00 MiB into cuda:0 ")


def case_interior_pointers(path: Path, content: bytes, gpu: FakeGpu) -> None:
    address = gpu.allocate(SIZE)
    gpu.write(address, b"\xaa" * SIZE)
    with sw.open(path) as file:
        file.read_into(CudaArray(address + 1001, 5000), offset=77)
    wanted = b"\xaa" * 1001 + content[77:5077] + b"\xaa" * (SIZE - 6001)
    assert gpu.read(address, SIZE) == wanted


def case_write(path: Path, content: bytes, gpu: FakeGpu) -> None:
    address = gpu.allocate(SIZE)
    gpu.write(address, content[:SIZE])
    out = path.with_name("out")
    with sw.open(out, "w") as file:
        receipt = file.write_from(CudaArray(address, SIZE, data=(address, True)), offset=3)
    assert receipt.direction == "write"
    assert out.read_bytes() == b"\0\0\0" + content[:SIZE]


def case_dlpack(path: Path, content: bytes, gpu: FakeGpu) -> None:
    address = gpu.allocate(SIZE)
    target = DLPack(address, SIZE, device=(2, 0))
    with sw.open(path) as file:
        file.read_into(target)
        assert gpu.read(address, SIZE) == content[:SIZE]
        file.read_into(target, offset=1, size=10)
        file.read_into(DLPack(address, SIZE, device=(13, 0)), offset=9)
    assert gpu.read(address, SIZE) == content[9 : 9 + SIZE]
    assert target.streams == [1, 1]  # the legacy default stream: the producer orders its work
    assert target.live_exports() == 0


def case_dlpack_that_names_another_device(path: Path, content: bytes, gpu: FakeGpu) -> None:
    address = gpu.allocate(SIZE)
    host = bytearray(SIZE)
    place = ctypes.addressof(ctypes.c_char.from_buffer(host))
    with sw.open(path) as file:
        for array in (DLPack(address, SIZE, device=(2, 1)), DLPack(place, SIZE, device=(2, 0))):
            expect(ValueError, "device", lambda array=array: file.read_into(array))
    assert host == bytes(SIZE)


def case_dlpack_gets_the_callers_stream(path: Path, content: bytes, gpu: FakeGpu) -> None:
    address = gpu.allocate(SIZE)
    target = DLPack(address, SIZE, device=(2, 0))
    stream = make_stream(gpu)

    class Cupy:
        ptr = stream

    class Torch:
        cuda_stream = stream

    class Protocol:
        def __cuda_stream__(self) -> tuple[int, int]:
            return (0, stream)

    class Numba:
        handle = ctypes.c_void_p(stream)

    with sw.open(path) as file:
        for given in (stream, Cupy(), Torch(), Protocol(), Numba(), 0, 1, 2):
            file.read_into(target, stream=given)
    assert target.streams == [stream] * 5 + [1, 1, 2]


def case_read_only_dlpack_is_a_source_only(path: Path, content: bytes, gpu: FakeGpu) -> None:
    address = gpu.allocate(SIZE)
    source = DLPack(address, SIZE, device=(2, 0), read_only=True)
    gpu.write(address, content[:SIZE])
    with sw.open(path) as file:
        expect(ValueError, "read-only", lambda: file.read_into(source))
    with sw.open(path.with_name("out"), "w") as file:
        file.write_from(source)
    assert path.with_name("out").read_bytes() == content[:SIZE]


def case_the_device_comes_from_the_pointer(path: Path, content: bytes, gpu: FakeGpu) -> None:
    address = gpu.allocate(SIZE, device=1)
    with sw.open(path) as file:
        receipt = file.read_into(CudaArray(address, SIZE))
        assert file.explain(CudaArray(address, SIZE)).device == "cuda:1"
    assert receipt.device == "cuda:1"
    assert gpu.read(address, SIZE) == content[:SIZE]


def case_explain_before_memory_exists(path: Path, content: bytes, gpu: FakeGpu) -> None:
    with sw.open(path) as file:
        plan = file.explain(to="cuda:1")
        assert (plan.device, plan.wanted_bytes) == ("cuda:1", len(content))
        assert list(plan.routes) == ["staged"]
        assert file.explain(to="cuda", size=10).device == "cuda:0"
    assert gpu.driver.fake_cuda_allocations() == 0


def case_direct_is_refused_with_the_reason(path: Path, content: bytes, gpu: FakeGpu) -> None:
    address = gpu.allocate(SIZE)
    gpu.write(address, b"\xaa" * SIZE)
    with sw.open(path) as file:
        target = CudaArray(address, SIZE)
        error = expect(sw.RouteRefused, "", lambda: file.read_into(target, policy="direct"))
        assert file.explain(target, policy="direct").failure is not None
    assert isinstance(error, OSError)
    assert error.filename == str(path)
    assert gpu.read(address, SIZE) == b"\xaa" * SIZE


def case_ranges_on_the_device(path: Path, content: bytes, gpu: FakeGpu) -> None:
    address = gpu.allocate(SIZE)
    ranges = [(i * 5003, 4999, CudaArray(address + i * 5000, 4999)) for i in range(100)]
    with sw.open(path) as file:
        receipt = file.read_ranges(ranges)
    assert receipt.routes["staged"].bytes == 499_900
    for i in range(100):
        assert gpu.read(address + i * 5000, 4999) == content[i * 5003 : i * 5003 + 4999]


def case_rows_on_the_device(path: Path, content: bytes, gpu: FakeGpu) -> None:
    address = gpu.allocate(SIZE)
    gpu.write(address, b"\xaa" * SIZE)
    rows = [(i * 5003, 4999, (99 - i) * 5000) for i in range(100)]
    numbers = array.array("q", [number for row in rows for number in row])
    with sw.open(path) as file:
        wanted = memoryview(numbers).cast("B").cast("q", (100, 3))
        receipt = file.read_ranges(wanted, into=CudaArray(address, SIZE))
        expect(
            ValueError,
            "range 1 of",
            lambda: file.read_ranges([(0, 1, 0), (0, 2, SIZE - 1)], into=CudaArray(address, SIZE)),
        )
    assert receipt.routes["staged"].bytes == 499_900
    for offset, size, position in rows:
        assert gpu.read(address + position, size) == content[offset : offset + size]
        assert gpu.read(address + position + size, 1) == b"\xaa"
    with sw.open(path.with_name("out"), "w") as file:
        file.write_ranges([(7, 10, 5000), (0, 7, 1)], source=CudaArray(address, SIZE))
    assert path.with_name("out").read_bytes() == (
        gpu.read(address + 1, 7) + gpu.read(address + 5000, 10)
    )


def case_order_after_the_default_stream(path: Path, content: bytes, gpu: FakeGpu) -> None:
    address = gpu.allocate(SIZE)
    gpu.fill_later(address, 7, SIZE, 0, 200_000)
    with sw.open(path.with_name("out"), "w") as file:
        file.write_from(CudaArray(address, SIZE))
    assert path.with_name("out").read_bytes() == b"\7" * SIZE


def case_order_after_the_named_stream(path: Path, content: bytes, gpu: FakeGpu) -> None:
    address = gpu.allocate(SIZE)
    stream = make_stream(gpu)
    with sw.open(path.with_name("out"), "w") as file:
        gpu.fill_later(address, 7, SIZE, stream, 200_000)
        file.write_from(CudaArray(address, SIZE), stream=stream)
        assert path.with_name("out").read_bytes() == b"\7" * SIZE
        gpu.fill_later(address, 9, SIZE, stream, 200_000)
        file.write_from(CudaArray(address, SIZE, stream=stream))
        assert path.with_name("out").read_bytes() == b"\x09" * SIZE


def case_small_reads_stay_on_the_callers_thread(path: Path, content: bytes, gpu: FakeGpu) -> None:
    address = gpu.allocate(SIZE)
    with sw.open(path) as file:
        for size, desk in ((5000, 256 << 10), (SIZE, 2 << 20)):
            receipt = file.read_into(CudaArray(address, size), offset=7)
            assert receipt.pinned_bytes == desk, receipt  # no ring
            assert gpu.read(address, size) == content[7 : 7 + size]
        gpu.fill_later(address, 7, SIZE, 0, 200_000)  # waited for where Ctrl-C is seen
        receipt = file.read_into(CudaArray(address, 5000), offset=9)
        assert receipt.pinned_bytes > 2 << 20, receipt
    assert gpu.read(address, 5000) == content[9:5009]


def case_D4_a_failed_copy_is_an_error(path: Path, content: bytes, gpu: FakeGpu) -> None:
    address = gpu.allocate(SIZE)
    with sw.open(path) as file:
        gpu.driver.fake_cuda_fail_copies(ctypes.c_int(719))
        error = expect(sw.DeviceError, "", lambda: file.read_into(CudaArray(address, SIZE)))
        assert isinstance(error, sw.DeviceError)
        assert error.code == 719
        assert error.kind == "device"  # type: ignore[attr-defined]


def case_foreign_pointers_are_refused(path: Path, content: bytes, gpu: FakeGpu) -> None:
    address = gpu.allocate(4096)
    with sw.open(path) as file:
        for wrong in (CudaArray(address, 1 << 30), CudaArray(8, 4096), CudaArray(1 << 40, 8)):
            try:
                file.read_into(wrong)
            except (ValueError, OSError, RuntimeError):
                continue
            raise AssertionError("a foreign pointer was accepted")
        file.read_into(CudaArray(address, 4096))
    assert gpu.read(address, 4096) == content[:4096]


def hold_once_copying(gpu: FakeGpu) -> None:
    """Holds the copies of a transfer that has begun; they are slow enough (SLOW) to be caught."""
    end = time.monotonic() + 30
    while gpu.driver.fake_cuda_calls_of(b"cuMemcpyHtoDAsync") == 0:
        assert time.monotonic() < end
        time.sleep(0.001)
    gpu.driver.fake_cuda_hold(1)


def in_flight(path: Path, gpu: FakeGpu) -> tuple[sw.File, sw.Job]:
    address = gpu.allocate(3 << 20)
    file = sw.open(path)
    job = file.submit_read(CudaArray(address, 3 << 20))
    hold_once_copying(gpu)
    time.sleep(0.05)
    assert not job.done()
    assert "in flight" in repr(job)
    return file, job


def let_go_later(gpu: FakeGpu, seconds: float = 0.2) -> None:
    threading.Timer(seconds, lambda: gpu.driver.fake_cuda_hold(0)).start()


def case_cancel_drains_and_then_reports(path: Path, content: bytes, gpu: FakeGpu) -> None:
    file, job = in_flight(path, gpu)
    expect(TimeoutError, "goes on", lambda: job.result(timeout=0.05))
    assert job.cancel()
    let_go_later(gpu)
    error = expect(concurrent.futures.CancelledError, "", job.result)
    assert error.kind == "cancelled"  # type: ignore[attr-defined]
    assert job.done()
    file.close()


def case_a_cancelled_await_cancels_the_job(path: Path, content: bytes, gpu: FakeGpu) -> None:
    async def main() -> None:
        async with asyncio.timeout(0.1):
            await job

    file, job = in_flight(path, gpu)
    expect(TimeoutError, "", lambda: asyncio.run(main()))
    let_go_later(gpu, 0)
    expect(concurrent.futures.CancelledError, "", job.result)
    file.close()


def case_ctrl_c_drains(path: Path, content: bytes, gpu: FakeGpu) -> None:
    def interrupt() -> None:
        hold_once_copying(gpu)
        os.kill(os.getpid(), signal.SIGINT)
        let_go_later(gpu, 0.3)

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    address = gpu.allocate(3 << 20)
    threading.Thread(target=interrupt).start()
    with sw.open(path) as file:
        target = CudaArray(address, 3 << 20)
        expect(KeyboardInterrupt, "", lambda: file.read_into(target))
        state = gpu.read(address, 3 << 20)
        time.sleep(0.1)
        assert gpu.read(address, 3 << 20) == state  # nothing was in flight any more


def case_a_deadline_drains(path: Path, content: bytes, gpu: FakeGpu) -> None:
    def hinder() -> None:
        hold_once_copying(gpu)
        let_go_later(gpu, 0.4)

    address = gpu.allocate(3 << 20)
    threading.Thread(target=hinder).start()
    with sw.open(path) as file:
        target = CudaArray(address, 3 << 20)
        error = expect(TimeoutError, "", lambda: file.read_into(target, deadline=0.1))
        assert error.kind == "deadline-exceeded"  # type: ignore[attr-defined]
        assert file.read_into(target).moved_bytes == 3 << 20


def case_fork_refuses_the_gpu_in_the_child(path: Path, content: bytes, gpu: FakeGpu) -> None:
    address = gpu.allocate(SIZE)
    file = sw.open(path)
    file.read_into(CudaArray(address, SIZE))
    pid = os.fork()
    if pid == 0:
        try:
            error = expect(RuntimeError, "", lambda: file.read_into(CudaArray(address, SIZE)))
            assert error.kind == "forked", error  # type: ignore[attr-defined]
            host = bytearray(SIZE)
            file.read_into(host)
            assert host == content[:SIZE]
        except BaseException as raised:
            print(repr(raised), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    file.read_into(CudaArray(address, SIZE), offset=1)
    assert gpu.read(address, SIZE) == content[1 : 1 + SIZE]


def case_a_fork_before_the_first_use_is_told_too(path: Path, content: bytes, gpu: FakeGpu) -> None:
    address = gpu.allocate(SIZE)  # by another library: straightway has not used the GPU yet
    pid = os.fork()
    if pid == 0:
        try:
            with sw.open(path) as file:
                error = expect(RuntimeError, "fork", lambda: file.read_into(CudaArray(address, 9)))
                assert error.kind == "forked", error  # type: ignore[attr-defined]
        except BaseException as raised:
            print(repr(raised), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def case_C2_exit_in_flight(path: Path, content: bytes, gpu: FakeGpu) -> None:
    global kept
    kept = in_flight(path, gpu)


def case_warmup(path: Path, content: bytes, gpu: FakeGpu) -> None:
    context = sw.Context(threads=2, pinned_bytes="8M")
    context.warmup("cuda:0")
    assert 0 < ctypes.c_uint64(gpu.driver.fake_cuda_pinned_bytes()).value <= 8 << 20
    address = gpu.allocate(SIZE)
    with sw.open(path, context=context) as file:
        assert file.read_into(CudaArray(address, SIZE)).pinned_bytes <= 8 << 20
    assert gpu.read(address, SIZE) == content[:SIZE]


def case_pin(path: Path, content: bytes, gpu: FakeGpu) -> None:
    address = gpu.allocate(SIZE)
    warnings: list[str] = []
    context = sw.Context(on_warning=warnings.append, pin_bytes="64M")
    assert context.settings["pin_bytes"] == sw.Setting(64 << 20, "api")
    with sw.open(path, context=context) as file:
        with file.pin() as pin, file.pin([(0, "64K"), (1 << 20, 5)], device="cuda:0"):
            assert pin.holds
            assert pin.size == len(content)
            assert "holds" in repr(pin)
            receipt = file.read_into(CudaArray(address, SIZE), offset=5)
            assert gpu.read(address, SIZE) == content[5 : 5 + SIZE]
            assert receipt.routes["pinned-cache"].bytes == SIZE
            assert receipt.pin_bytes >= len(content)
            assert list(file.explain(to="cuda:0").routes) == ["pinned-cache"]
        assert not pin.holds
        pin.release()
        assert list(file.explain(to="cuda:0").routes) == ["staged"]
        pin = file.pin()
        with open(path, "r+b") as other:
            other.write(b"new")
        receipt = file.read_into(CudaArray(address, SIZE))
        assert gpu.read(address, SIZE) == b"new" + content[3:SIZE]
        assert receipt.refused["pinned-cache"].code == "pin-lost"
        assert not pin.holds
        expect(ValueError, "ranges", lambda: file.pin([(1, 2, 3)]))  # type: ignore[list-item]
        expect(ValueError, "device", lambda: file.pin(device="disk"))
    expect(ValueError, "closed", file.pin)
    small = sw.Context(pin_bytes=4096)
    with sw.open(path, context=small) as file:
        expect(MemoryError, "pin_bytes", file.pin)
    while not warnings:
        time.sleep(0.01)
    assert len(warnings) == 1
    assert "gave up the pin" in warnings[0]


def make_stream(gpu: FakeGpu) -> int:
    driver = gpu.driver
    context, stream = ctypes.c_void_p(), ctypes.c_void_p()
    assert driver.cuInit(0) == 0
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert driver.cuCtxSetCurrent(context) == 0
    assert driver.cuStreamCreate(ctypes.byref(stream), 1) == 0
    assert stream.value
    return stream.value


kept: object = None
SLOW = (  # cases that catch copies in flight
    "cancel_drains_and_then_reports",
    "a_cancelled_await_cancels_the_job",
    "ctrl_c_drains",
    "a_deadline_drains",
    "C2_exit_in_flight",
)
CASES = {name.removeprefix("case_"): case for name, case in globals().items() if "case_" in name}

if __name__ == "__main__":
    file_path = Path(sys.argv[2])
    CASES[sys.argv[1]](file_path, file_path.read_bytes(), FakeGpu())
