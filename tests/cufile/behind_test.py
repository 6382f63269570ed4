"""The vendor's library behind ours: which of the two answers each call, and what ours then counts.

Ours is the library on a machine that the test tells of (told/machine.cpp), the vendor's is the
stand-in, which counts its calls and names its caller.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path
from typing import Any

TOLD = Path(os.environ["STRAIGHTWAY_TOLD"])
OURS = TOLD / "libcufile.so.0"
AUDIT = TOLD / "libstraightway-audit.so"
LINKED = os.environ["STRAIGHTWAY_LINKED"]
FAKES = Path(os.environ["STRAIGHTWAY_FAKES"])
VENDORS = FAKES / "cufile" / "libcufile.so.0"
MIB = 1 << 20
MOST_BYTES = 24 * MIB

CLIENT = """
import ctypes, json, os, struct, sys
SIZE = ctypes.c_size_t

class Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("cuda", ctypes.c_int)]

class Descriptor(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("fd", ctypes.c_long), ("operations", ctypes.c_void_p)]

class Info(ctypes.Structure):
    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p),
                ("symbol", ctypes.c_char_p), ("address", ctypes.c_void_p)]

def device_memory(size):
    cuda = ctypes.CDLL("libcuda.so.1")
    context, memory = ctypes.c_void_p(), ctypes.c_uint64()
    assert cuda.cuInit(0) == 0
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxPushCurrent_v2(context) == 0
    assert cuda.cuMemAlloc_v2(ctypes.byref(memory), SIZE(size)) == 0
    return memory.value

def device_bytes(address, size):
    buffer = ctypes.create_string_buffer(size)
    cuda = ctypes.CDLL("libcuda.so.1")
    assert cuda.fake_cuda_read(ctypes.c_uint64(address), buffer, SIZE(size)) == 0
    return buffer.raw

class Cufile:
    def __init__(self, library):
        self.cdll = library
        for name in ("HandleRegister", "BufRegister", "DriverOpen", "DriverClose_v2",
                     "DriverGetProperties", "GetStatsL3", "StatsStart", "SetParameterBool"):
            getattr(library, "cuFile" + name).restype = Error
        for name in ("Read", "Write"):
            call = getattr(library, "cuFile" + name)
            call.restype = ctypes.c_ssize_t
            call.argtypes = [ctypes.c_void_p, ctypes.c_void_p, SIZE, ctypes.c_long, ctypes.c_long]
        library.cuFileHandleDeregister.argtypes = [ctypes.c_void_p]

    def path(self):
        info = Info()
        dladdr = ctypes.CDLL(None).dladdr
        dladdr(ctypes.cast(self.cdll.cuFileRead, ctypes.c_void_p), ctypes.byref(info))
        return info.file.decode()

    def register(self, path):
        handle = ctypes.c_void_p()
        descriptor = Descriptor(1, os.open(path, os.O_RDWR), None)
        call = self.cdll.cuFileHandleRegister
        return call(ctypes.byref(handle), ctypes.byref(descriptor)).code, handle

    def counters(self):  # of the first GPU: n, p2pdma, nvfs, posix of reads
        stats = ctypes.create_string_buffer(8192)
        code = self.cdll.cuFileGetStatsL3(stats).code
        return code or dict(zip(("n", "p2pdma", "nvfs", "posix"),
                                struct.unpack_from("4Q", stats, 1032 + 48)))

def load(name):
    return Cufile(ctypes.CDLL(name))

def vendors(name):  # what the stand-in counted, or nothing where nobody has loaded it
    found = [line for line in open("/proc/self/maps") if line.rstrip().endswith(VENDORS)]
    if not found:
        return None
    fake = ctypes.CDLL(name)
    fake.fake_cufile_caller.restype = ctypes.c_char_p
    fake.fake_cufile_inner_result.restype = ctypes.c_ssize_t
    counted = {"caller": os.path.normpath(fake.fake_cufile_caller().decode() or "-")}
    for name in ("calls", "handles", "open_count", "foreign_answers", "inner_result",
                 "loaded_after_init", "largest_call"):
        counted[name] = getattr(fake, "fake_cufile_" + name)()
    return counted

def read(cufile, size, offset=0, registered=False):
    code, handle = cufile.register(FILE)
    if code != 0:
        return {"register": code}
    memory = device_memory(size)
    if registered:
        assert cufile.cdll.cuFileBufRegister(ctypes.c_void_p(memory), SIZE(size), 0).code == 0
    moved = cufile.cdll.cuFileRead(handle, memory, size, offset, 0)
    expected = open(FILE, "rb").read()[offset:offset + size]
    right = moved == size and device_bytes(memory, size) == expected
    result = {"moved": moved, "right": right, "library": cufile.path(),
              "counters": cufile.counters(), "vendors": vendors(CONTROLS)}
    cufile.cdll.cuFileHandleDeregister(handle)
    return result

def show(*values):
    print(json.dumps(values))
"""


class BehindTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="straightway-behind-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.file = self.folder / "weights.bin"
        self.file.write_bytes(os.urandom(MOST_BYTES))
        self.log = self.folder / "cufile.log"
        try:
            os.close(os.open(self.file, os.O_RDONLY | os.O_DIRECT))
        except OSError:
            self.skipTest("no O_DIRECT in TMPDIR")
        self.tell_machine()
        # The stand-in under a name that no search for a libcufile meets.
        self.controls = self.folder / "controls.so"
        self.controls.symlink_to(VENDORS)

    def tell_machine(self) -> None:
        """A machine with nvidia-fs, and the file on ext4 on an NVMe drive."""
        device = self.file.stat().st_dev
        number = f"{os.major(device)}:{os.minor(device)}"
        disk = "../../devices/pci0000:00/0000:00:03.0/nvme/nvme0/nvme0n1"
        self.stats = self.folder / "proc/driver/nvidia-fs/stats"
        for name in ("proc/driver/nvidia-fs", "proc/self", "sys/dev/block", "run/udev", "dev"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "sys/dev/block" / disk).mkdir(parents=True)
        (self.folder / "sys/dev/block" / number).symlink_to(disk)
        (self.folder / "proc/self/mountinfo").write_text(
            f"9001 1 {number} / / rw - ext4 /dev/nvme0n1 rw\n"
        )
        (self.folder / "dev/nvidia-fs0").touch()
        (self.folder / "proc/driver/nvidia-fs/version").write_text("version: 2.28.4\n")

    def environment(self, **changes: str) -> dict[str, str]:
        ours = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("STRAIGHTWAY_", "CUFILE_", "LD_"))
        }
        told = {
            "TOLD_MACHINE": str(self.folder),
            "LD_LIBRARY_PATH": str(FAKES / "cuda"),
            "STRAIGHTWAY_VENDOR_LIBRARY": str(VENDORS),
            "STRAIGHTWAY_CUFILE_VERSION": "1.18",
            "CUFILE_ENV_PATH_JSON": str(self.write_json("{}")),
            "CUFILE_STATS_LEVEL": "3",
            "CUFILE_LOGGING_LEVEL": "DEBUG",
            "CUFILE_LOGFILE_PATH": str(self.log),
            "FAKE_CUFILE_DIRECT": "1",
            "FAKE_CUFILE_KERNEL_STATS": str(self.stats),
        }
        return {**ours, **told, **changes}

    def write_json(self, text: str) -> Path:
        path = self.folder / "cufile.json"
        path.write_text(text)
        return path

    def run_client(self, code: str, **changes: str) -> Any:
        values = (str(self.file), str(VENDORS), self.controls_name)
        names = f"FILE, VENDORS, CONTROLS = {values!r}\n"
        done = subprocess.run(
            [sys.executable, "-c", CLIENT + names + textwrap.dedent(code)],
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
            env=self.environment(**changes),
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    @property
    def controls_name(self) -> str:
        return str(self.controls)

    def ways(self) -> list[tuple[str, str]]:
        """Route and evidence of the requests, by the log."""
        text = self.log.read_text() if self.log.exists() else ""
        return re.findall(r"bytes by ([a-z0-9-]+) \((\w+)\)", text)

    def assert_behind(self, result: Any, calls: int) -> None:
        """Ours answered the program, and forwarded that many calls."""
        self.assertTrue(result["right"], result)
        self.assertEqual(result["library"], str(OURS))
        self.assertEqual(result["counters"], {"n": calls, "p2pdma": 0, "nvfs": calls, "posix": 0})
        self.assertEqual(result["vendors"]["calls"], calls)
        self.assertEqual(result["vendors"]["caller"], str(OURS))
        self.assertEqual(result["vendors"]["foreign_answers"], 0)

    def assert_staged(self, result: Any, parts: int) -> None:
        """Ours answered, and the vendor's moved nothing."""
        self.assertTrue(result["right"], result)
        self.assertEqual(result["library"], str(OURS))
        self.assertEqual(result["counters"], {"n": parts, "p2pdma": 0, "nvfs": 0, "posix": parts})
        if result["vendors"] is not None:
            self.assertEqual(result["vendors"]["calls"], 0)

    def check_copies_in_silence(self) -> None:
        """What the vendor's library copies without a word is staged, by its word."""
        (result,) = self.run_client(
            f"show(read(load({str(OURS)!r}), {16 * MIB}))", FAKE_CUFILE_SILENT="1"
        )
        self.assertTrue(result["right"])
        self.assertEqual(result["counters"], {"n": 2, "p2pdma": 0, "nvfs": 0, "posix": 2})
        self.assertEqual(self.ways(), [("staged", "claimed")])


class ForwardTest(BehindTest):
    """Where the vendor's direct path works."""

    def test_each_part_is_one_call_of_the_vendors(self) -> None:
        for size, registered, calls in (
            (4 * MIB, False, 1),
            (20 * MIB, True, 3),
            (17 * MIB, False, 2),  # 8 and 9 MiB
            (9 * MIB, False, 1),
        ):
            with self.subTest(size=size):
                (result,) = self.run_client(
                    f"show(read(load({str(OURS)!r}), {size}, 4096, {registered}))"
                )
                self.assert_behind(result, calls)

    def test_a_request_at_an_odd_offset_is_cut_where_the_caller_cuts_it(self) -> None:
        (result,) = self.run_client(
            f"show(read(load({str(OURS)!r}), {16 * MIB}, {3 * MIB + 4096}, True))"
        )
        self.assert_behind(result, 2)
        self.assertEqual(result["vendors"]["largest_call"], 8 * MIB)

    def test_a_library_that_was_open_before_gets_requests_whole(self) -> None:
        result, count = self.run_client(f"""
        first = load({str(VENDORS)!r})
        assert first.cdll.cuFileDriverOpen().code == 0
        result = read(load({str(OURS)!r}), {24 * MIB}, 0, True)
        show(result, vendors(CONTROLS)["open_count"])
        """)
        self.assertTrue(result["right"])
        self.assertEqual(result["vendors"]["calls"], 1)  # which it cuts in three
        self.assertEqual(result["vendors"]["largest_call"], 24 * MIB)
        self.assertEqual(result["counters"], {"n": 3, "p2pdma": 0, "nvfs": 3, "posix": 0})
        self.assertEqual(self.ways(), [("nvfs", "observed")])
        self.assertEqual(count, 2)  # the program's own, and ours

    def test_what_nvidia_fs_counted_is_observed(self) -> None:
        self.run_client(f"show(read(load({str(OURS)!r}), {16 * MIB}))")
        self.assertEqual(self.ways(), [("nvfs", "observed")])

    def test_without_its_counters_it_is_claimed(self) -> None:
        self.run_client(f"show(read(load({str(OURS)!r}), {16 * MIB}))", FAKE_CUFILE_KERNEL_STATS="")
        self.assertEqual(self.ways(), [("nvfs", "claimed")])

    def test_the_properties_show_nvidia_fs(self) -> None:
        code = f"""
        cufile = load({str(OURS)!r})
        assert cufile.cdll.cuFileDriverOpen().code == 0
        properties = ctypes.create_string_buffer(56)
        assert cufile.cdll.cuFileDriverGetProperties(properties).code == 0
        show(struct.unpack_from("2I", properties), struct.unpack_from("I", properties, 24))
        """
        self.assertEqual(self.run_client(code), [[2, 28], [1 << 4]])
        none = self.run_client(code, STRAIGHTWAY_VENDOR_LIBRARY="none")
        self.assertEqual(none, [[0, 0], [0]])

    def test_the_edges_of_an_unaligned_read_are_staged(self) -> None:
        (result,) = self.run_client(f"show(read(load({str(OURS)!r}), {4 * MIB}, 512))")
        self.assertTrue(result["right"])
        self.assertEqual(result["vendors"]["calls"], 1)
        self.assertEqual(result["counters"]["nvfs"], 1)
        self.assertEqual({route for route, _ in self.ways()}, {"nvfs", "staged"})

    def test_forced_compatibility_leaves_it_alone(self) -> None:
        (result,) = self.run_client(
            f"show(read(load({str(OURS)!r}), {16 * MIB}))", CUFILE_FORCE_COMPAT_MODE="true"
        )
        self.assert_staged(result, 2)
        self.assertIsNone(result["vendors"])


class P2pdmaTest(BehindTest):
    """Where the vendor's library goes by P2PDMA, and there is no nvidia-fs."""

    def tell_machine(self) -> None:
        super().tell_machine()
        shutil.rmtree(self.folder / "proc/driver")
        (self.folder / "proc/sys/kernel").mkdir(parents=True)
        (self.folder / "proc/sys/kernel/osrelease").write_text("6.17.4\n")
        gpu = self.folder / "sys/bus/pci/devices/0000:17:00.0"
        (gpu / "p2pmem").mkdir(parents=True)
        (gpu / "vendor").write_text("0x10de\n")
        (gpu / "p2pmem/size").write_text("137438953472\n")

    def environment(self, **changes: str) -> dict[str, str]:
        told = {
            "FAKE_CUFILE_DIRECT": "0",
            "FAKE_CUFILE_KERNEL_STATS": "",
            "FAKE_CUFILE_P2PDMA": "1",
            "CUFILE_USE_PCIP2PDMA": "true",
        }
        return super().environment(**{**told, **changes})

    def test_parts_go_by_it_and_are_counted_so(self) -> None:
        for allow in ("true", "false"):
            with self.subTest(allow_compat_mode=allow):
                self.log.unlink(missing_ok=True)
                (result,) = self.run_client(
                    f"show(read(load({str(OURS)!r}), {20 * MIB}, 4096, True))",
                    CUFILE_ALLOW_COMPAT_MODE=allow,
                )
                self.assertTrue(result["right"], result)
                self.assertEqual(result["counters"], {"n": 3, "p2pdma": 3, "nvfs": 0, "posix": 0})
                self.assertEqual(result["vendors"]["calls"], 3)
                self.assertEqual(self.ways(), [("p2pdma", "claimed")])

    def test_unasked_it_is_not_taken(self) -> None:
        (result,) = self.run_client(
            f"show(read(load({str(OURS)!r}), {16 * MIB}))", CUFILE_USE_PCIP2PDMA="false"
        )
        self.assert_staged(result, 2)

    def test_copies_in_silence_count_as_posix(self) -> None:
        self.check_copies_in_silence()

    def test_a_file_that_it_does_not_serve_is_refused_with_the_reason(self) -> None:
        (result,) = self.run_client(
            f"show(read(load({str(OURS)!r}), {MIB}))",
            CUFILE_ALLOW_COMPAT_MODE="false",
            FAKE_CUFILE_P2PDMA="0",
        )
        self.assertEqual(result, {"register": 5008})
        self.assertIn("refused this file", self.log.read_text())


class LoadOrderTest(BehindTest):
    """Which library answered each call."""

    def test_preloaded(self) -> None:
        (result,) = self.run_client(
            f"show(read(Cufile(ctypes.CDLL(None)), {4 * MIB}))", LD_PRELOAD=str(OURS)
        )
        self.assert_behind(result, 1)

    def run_linked(self, **changes: str) -> list[str]:
        done = subprocess.run(
            [LINKED, self.file, str(4 * MIB), VENDORS],
            capture_output=True,
            text=True,
            check=True,
            timeout=100,
            env=self.environment(**changes),
        )
        return done.stdout.split()

    def test_linked(self) -> None:
        path = f"{TOLD}:{FAKES / 'cuda'}"
        code, moved, library, calls, caller = self.run_linked(LD_LIBRARY_PATH=path)
        self.assertEqual((code, moved, library), ("0", str(4 * MIB), str(OURS)))
        self.assertEqual((calls, caller), ("1", str(OURS)))
        self.assertEqual(self.ways(), [("nvfs", "observed")])

    def test_linked_with_the_vendors_and_ours_preloaded(self) -> None:
        path = f"{VENDORS.parent}:{FAKES / 'cuda'}"
        _, moved, library, calls, caller = self.run_linked(
            LD_LIBRARY_PATH=path, LD_PRELOAD=str(OURS)
        )
        self.assertEqual((moved, library), (str(4 * MIB), str(OURS)))
        self.assertEqual((calls, caller), ("1", str(OURS)))
        self.log.unlink()
        _, _, library, calls, caller = self.run_linked(LD_LIBRARY_PATH=path)
        self.assertEqual((library, calls), (str(VENDORS), "1"))  # without ours
        self.assertEqual(Path(caller).name, Path(LINKED).name)
        self.assertEqual(self.ways(), [])

    def test_loaded_first(self) -> None:
        ours, again, theirs = self.run_client(f"""
        ours = load({str(OURS)!r})
        first = read(ours, {4 * MIB})
        again = load("libcufile.so.0").path()
        theirs = read(load({str(VENDORS)!r}), {4 * MIB})
        show(first, again, theirs)
        """)
        self.assert_behind(ours, 1)
        self.assertEqual(again, str(OURS))
        # A second copy that the program opens by its path answers it, and is the one behind ours.
        self.assertEqual(os.path.normpath(theirs["library"]), str(VENDORS))
        self.assertEqual(theirs["vendors"]["calls"], 2)
        self.assertNotEqual(theirs["vendors"]["caller"], str(OURS))

    def test_loaded_second(self) -> None:
        theirs, named, ours = self.run_client(f"""
        theirs = load({str(VENDORS)!r})
        first = read(theirs, {4 * MIB})
        named = load("libcufile.so.0").path()
        show(first, named, read(load({str(OURS)!r}), {4 * MIB}))
        """)
        self.assertEqual(theirs["vendors"]["calls"], 1)
        self.assertNotEqual(theirs["vendors"]["caller"], str(OURS))
        self.assertEqual(named, str(VENDORS))
        self.assertEqual(ours["counters"]["nvfs"], 1)
        self.assertEqual(ours["vendors"]["calls"], 2)
        self.assertEqual(ours["vendors"]["caller"], str(OURS))

    def test_calls_of_its_own_are_not_answered_by_ours(self) -> None:
        """Ours is in front of it by LD_PRELOAD: only the way it is loaded keeps the two apart."""
        (behind,) = self.run_client(
            f"show(read(Cufile(ctypes.CDLL(None)), {4 * MIB}))",
            LD_PRELOAD=str(OURS),
            FAKE_CUFILE_REENTER="1",
        )
        self.assertEqual(behind["vendors"]["foreign_answers"], 0)
        self.assertEqual(behind["vendors"]["inner_result"], 4096)
        self.assertEqual(behind["vendors"]["calls"], 2)  # the second is its own
        (by_itself,) = self.run_client(
            f"show(read(load({str(VENDORS)!r}), {4 * MIB}))", LD_PRELOAD=str(OURS)
        )
        self.assertEqual(by_itself["vendors"]["foreign_answers"], 1)

    def test_a_call_that_comes_back_is_served_without_it(self) -> None:
        """The program opened the vendor's in a way that lets ours answer what it calls itself."""
        result, _ = self.run_client(
            f"""
            load({str(VENDORS)!r})
            result = read(Cufile(ctypes.CDLL(None)), {4 * MIB})
            show(result, None)
            """,
            LD_PRELOAD=str(OURS),
            FAKE_CUFILE_REENTER="1",
        )
        self.assertTrue(result["right"])
        self.assertEqual(result["vendors"]["foreign_answers"], 1)
        self.assertEqual(result["vendors"]["inner_result"], 4096)
        self.assertEqual(result["vendors"]["calls"], 1)
        self.assertIn("staged", {route for route, _ in self.ways()})

    def test_under_the_audit_library_the_vendors_is_still_found(self) -> None:
        code = f"""
        ours = load({str(VENDORS)!r})
        show(read(ours, {4 * MIB}), load("libcufile.so").path())
        """
        result, again = self.run_client(code, LD_AUDIT=str(AUDIT))
        self.assert_behind(result, 1)
        self.assertEqual(again, str(OURS))

    def test_it_is_loaded_when_it_is_needed_and_the_gpu_is_there(self) -> None:
        before, after = self.run_client(f"""
        cufile = load({str(OURS)!r})
        assert cufile.cdll.cuFileDriverOpen().code == 0
        code, handle = cufile.register(FILE)
        memory = ctypes.create_string_buffer(4096)
        assert cufile.cdll.cuFileRead(handle, ctypes.addressof(memory), 4096, 0, 0) == 4096
        cufile.cdll.cuFileHandleDeregister(handle)
        before = vendors(CONTROLS)
        show(before, read(cufile, {4 * MIB}))
        """)
        self.assertIsNone(before)
        self.assertEqual(after["vendors"]["loaded_after_init"], 1)

    def test_without_a_gpu_it_is_never_loaded(self) -> None:
        code = f"""
        cufile = load({str(OURS)!r})
        code, handle = cufile.register(FILE)
        memory = ctypes.create_string_buffer(4096)
        moved = cufile.cdll.cuFileRead(handle, ctypes.addressof(memory), 4096, 0, 0)
        show(code, moved, vendors(CONTROLS))
        """
        for mode in ("true", "false"):
            found = self.run_client(code, FAKE_CUDA_INIT="100", CUFILE_ALLOW_COMPAT_MODE=mode)
            self.assertEqual(found, [0, 4096, None])


class UnfitTest(BehindTest):
    """A vendor's library that is absent or does not serve: staged, counted as posix, never nvfs."""

    def check(self, loaded: bool, **changes: str) -> Any:
        code = f"show(read(load({str(OURS)!r}), {16 * MIB}))"
        (result,) = self.run_client(code, **changes)
        self.assert_staged(result, 2)
        self.assertEqual(result["vendors"] is not None, loaded)
        self.assertEqual({route for route, _ in self.ways()}, {"staged"})
        # Without the compatibility mode the file is refused beforehand, and nothing is read.
        (refused,) = self.run_client(code, CUFILE_ALLOW_COMPAT_MODE="false", **changes)
        self.assertEqual(refused, {"register": 5008})
        return result

    def test_not_present(self) -> None:
        self.check(False, STRAIGHTWAY_VENDOR_LIBRARY="none")
        self.check(False, STRAIGHTWAY_VENDOR_LIBRARY=str(self.folder / "no/libcufile.so.0"))

    def test_ours_is_not_taken_for_the_vendors(self) -> None:
        self.check(False, STRAIGHTWAY_VENDOR_LIBRARY=str(OURS))

    def test_too_old(self) -> None:
        self.check(True, FAKE_CUFILE_VERSION="1070")
        self.assertIn("too old", self.log.read_text())

    def test_a_driver_that_does_not_open(self) -> None:
        self.check(True, FAKE_CUFILE_OPEN="5033")
        self.assertIn("CU_FILE_NVFS_SETUP_ERROR", self.log.read_text())

    def test_refusing_to_register(self) -> None:
        result = self.check(True, FAKE_CUFILE_REGISTER="5027")
        self.assertEqual(result["vendors"]["handles"], 0)
        self.assertIn("CU_FILE_HANDLE_NOT_REGISTERED", self.log.read_text())

    def test_registering_without_any_driver(self) -> None:
        self.check(True, FAKE_CUFILE_DIRECT="0")
        self.assertIn("sees no nvidia-fs", self.log.read_text())

    def test_copying_in_silence_is_claimed_as_staged(self) -> None:
        self.check_copies_in_silence()


if __name__ == "__main__":
    unittest.main()
