"""straightway stats."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import unittest

from program import MIB, PROGRAM, SIMULATED_GPU, ProgramTest, environment, run

CUFILE = os.environ.get("STRAIGHTWAY_CUFILE", "")

# A program of cuFile's: 16 MiB into registered memory of the first GPU, which is two parts, and a
# KiB into host memory.
CUFILE_PROGRAM = """
import ctypes, os, sys
cuda = ctypes.CDLL("libcuda.so.1")
cufile = ctypes.CDLL(sys.argv[1])
def must(status):
    assert status == 0, status
context, pointer = ctypes.c_void_p(), ctypes.c_ulonglong()
must(cuda.cuInit(0))
must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
must(cuda.cuCtxPushCurrent_v2(context))
must(cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(16 << 20)))
must(cufile.cuFileDriverOpen())
descriptor = (ctypes.c_uint64 * 3)(1, os.open(sys.argv[2], os.O_RDONLY), 0)
handle = ctypes.c_void_p()
must(cufile.cuFileHandleRegister(ctypes.byref(handle), descriptor))
must(cufile.cuFileBufRegister(ctypes.c_void_p(pointer.value), ctypes.c_size_t(16 << 20), 0))
cufile.cuFileRead.restype = ctypes.c_ssize_t
host = ctypes.create_string_buffer(1024)
for memory, size in ((pointer.value, 16 << 20), (ctypes.addressof(host), 1024)):
    zero = ctypes.c_long(0)
    done = cufile.cuFileRead(handle, ctypes.c_void_p(memory), ctypes.c_size_t(size), zero, zero)
    assert done == size, done
print("ready", flush=True)
sys.stdin.readline()
"""

GDS_STATS = r"""cuFile STATS VERSION : 8
GLOBAL STATS:
Read: ok = 2 err = 0
Write: ok = 0 err = 0
HandleRegister: ok = 1 err = 0
HandleDeregister: ok = 0 err = 0
BufRegister: ok = 1 err = 0
BufDeregister: ok = 0 err = 0
BatchSubmit: ok = 0 err = 0
BatchComplete: ok = 0 err = 0
BatchSetup: ok = 0 err = 0
BatchCancel: ok = 0 err = 0
BatchDestroy: ok = 0 err = 0
BatchEnqueued: ok = 0 err = 0
PosixBatchEnqueued: ok = 0 err = 0
BatchProcessed: ok = 0 err = 0
PosixBatchProcessed: ok = 0 err = 0
Total Read Size (MiB): 16
Read BandWidth (GiB/s): RATE
Avg Read Latency (us): WHOLE
Total Write Size (MiB): 0
Write BandWidth (GiB/s): 0
Avg Write Latency (us): 0
Total Batch Read Size (MiB): 0
Total Batch Write Size (MiB): 0
Batch Read BandWidth (GiB/s): 0
Batch Write BandWidth (GiB/s): 0
Avg Batch Submit Latency (us): 0
Avg Batch Completion Latency (us): 0
READ-WRITE SIZE HISTOGRAM :
0-4(KiB): 1 0
4-8(KiB): 0 0
8-16(KiB): 0 0
16-32(KiB): 0 0
32-64(KiB): 0 0
64-128(KiB): 0 0
128-256(KiB): 0 0
256-512(KiB): 0 0
512-1024(KiB): 0 0
1024-2048(KiB): 0 0
2048-4096(KiB): 0 0
4096-8192(KiB): 0 0
8192-16384(KiB): 0 0
16384-32768(KiB): 1 0
32768-65536(KiB): 0 0
65536-...(KiB): 0 0
PER_GPU STATS:
GPU 0(UUID: 5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a00) Read: bw=RATE util(%)=WHOLE n=2 pcie p2pdma=0 nvfs=0 \
posix=2 unalign=0 dr=0 r_sparse=0 r_inline=0 err=0 MiB=16 Write: bw=0 util(%)=0 n=0 pcie p2pdma=0 \
nvfs=0 posix=0 unalign=0 dr=0 err=0 MiB=0 BufRegister: n=1 err=0 free=0 MiB=16
GPU 1(UUID: 5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a01) Read: bw=0 util(%)=0 n=0 pcie p2pdma=0 nvfs=0 \
posix=0 unalign=0 dr=0 r_sparse=0 r_inline=0 err=0 MiB=0 Write: bw=0 util(%)=0 n=0 pcie p2pdma=0 \
nvfs=0 posix=0 unalign=0 dr=0 err=0 MiB=0 BufRegister: n=0 err=0 free=0 MiB=0
PER_GPU POOL BUFFER STATS:
PER_GPU POSIX POOL BUFFER STATS:
PER_GPU RDMA STATS:
RDMA MRSTATS:
peer name  nr_mrs  mr_size(MiB)
PER GPU THREAD POOL STATS:
gpu node: 0 enqueues:1 completes:1 pending suspends:0 pending yields:0 active:0 suspends:0
gpu node: 1 enqueues:0 completes:0 pending suspends:0 pending yields:0 active:0 suspends:0
""".replace("\\\n", "")


class StatsTest(ProgramTest):
    def test_a_process_without_a_ledger_is_1(self) -> None:
        self.assert_error(run("stats", str(os.getpid())), 1)
        error = self.run_json("stats", str(os.getpid()), code=1)["error"]
        self.assertEqual(error["kind"], "not-found")

    def test_what_is_no_process_id_is_2(self) -> None:
        for word in ("0", "-5", "word", "1.5", "9" * 19, "9" * 400, ""):
            with self.subTest(word):
                done = run("stats", "--", word)
                self.assert_error(done, 2, f"PID: '{word}' is no process id")

    def test_a_process_that_is_not_there_is_1(self) -> None:
        self.assert_error(run("stats", "4194305"), 1)

    def test_the_list_is_json_even_when_empty(self) -> None:
        self.assertIsInstance(self.run_json("stats"), list)

    def test_watching_ends_with_ctrl_c(self) -> None:
        process = self.start("stats", "--json", "--watch=0.05")
        assert process.stdout
        for _ in range(3):
            self.assertIsInstance(json.loads(process.stdout.readline()), list)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)

    def test_watching_ends_when_its_reader_goes(self) -> None:
        with subprocess.Popen(
            [PROGRAM, "stats", "--json", "--watch=0.01"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(),
        ) as process:
            assert process.stdout
            process.stdout.readline()
            process.stdout.close()
            self.assertEqual(process.wait(timeout=60), 1)

    def test_a_running_copy_is_seen_from_outside(self) -> None:
        source = self.make_sparse("source", 2 << 30)
        process = self.start("copy", source, self.folder / "target")
        # Stopped while it is looked at, so that the copy cannot be over first.
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            time.sleep(0.02)
            process.send_signal(signal.SIGSTOP)
            if run("stats", str(process.pid)).returncode == 0:
                break
            process.send_signal(signal.SIGCONT)
        self.assertEqual(self.run_json("stats", str(process.pid))["pid"], process.pid)
        self.assertRegex(run("stats").stdout, rf"(?m)^ +{process.pid} ")
        process.send_signal(signal.SIGCONT)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)

    def start_cufile_program(self, level: str) -> "subprocess.Popen[str]":
        if not os.path.exists(CUFILE):
            self.skipTest("this build has no libcufile.so.0")
        process = subprocess.Popen(
            [sys.executable, "-c", CUFILE_PROGRAM, CUFILE, self.make_sparse("data", 16 * MIB)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(CUFILE_STATS_LEVEL=level, **SIMULATED_GPU),
        )
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        assert process.stdout
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def gds_stats(self, process: "subprocess.Popen[str]", *words: str) -> str:
        done = run("stats", str(process.pid), "--format", "gds_stats", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_a_cufile_program_is_shown_as_gds_stats_shows_it(self) -> None:
        process = self.start_cufile_program("3")
        shown = self.gds_stats(process)
        expected = re.escape(GDS_STATS).replace("RATE", r"[\d.e+-]+").replace("WHOLE", r"\d+")
        self.assertRegex(shown, rf"\A{expected}\Z")
        lines = shown.splitlines()
        for level, last in (
            ("1", "Avg Batch Completion Latency (us): 0"),
            ("2", "65536-...(KiB): 0 0"),
            ("3", lines[-1]),
        ):
            of_level = self.gds_stats(process, "-l", level).splitlines()
            self.assertEqual(of_level[-1], last)
            self.assertEqual(len(of_level), lines.index(last) + 1)

    def test_gds_stats_shows_no_more_than_is_counted(self) -> None:
        process = self.start_cufile_program("1")
        self.assertIn("Read: ok = 2 err = 0", self.gds_stats(process))
        done = run("stats", str(process.pid), "--format=gds_stats", "--level=2")
        self.assert_error(done, 1, "it counts at level 1", "CUFILE_STATS_LEVEL=3")

    def test_gds_stats_of_a_program_that_counts_nothing(self) -> None:
        process = self.start_cufile_program("0")
        done = run("stats", str(process.pid), "--format=gds_stats")
        self.assert_error(done, 1, "it counts nothing", "CUFILE_STATS_LEVEL=3")

    def test_gds_stats_of_a_program_without_our_library_says_what_to_do(self) -> None:
        done = run("stats", str(os.getpid()), "--format=gds_stats")
        self.assert_error(done, 1, str(os.getpid()), "publishes none", "libcufile.so.0")

    def test_watching_gds_stats_ends_with_the_process(self) -> None:
        process = self.start_cufile_program("1")
        watch = self.start("stats", str(process.pid), "--format=gds_stats", "--watch=0.05")
        assert watch.stdout
        self.assertEqual(watch.stdout.readline(), "cuFile STATS VERSION : 8\n")
        process.kill()
        _, err = watch.communicate(timeout=60)
        self.assertEqual(watch.returncode, 0, err)
        self.assertIn(f"process {process.pid} has ended", err)

    def test_gds_stats_needs_a_process_and_is_no_json(self) -> None:
        self.assert_error(run("stats", "--format", "gds_stats"), 2, "PID")
        self.assert_error(run("stats", "1", "--format", "gds_stats", "--json"), 2, "--json")
        self.assert_error(run("stats", "1", "--level", "1"), 2, "--format")
        self.assert_error(run("stats", "1", "--format", "gds_stats", "-l", "4"), 2, "1|2|3")


if __name__ == "__main__":
    unittest.main()
