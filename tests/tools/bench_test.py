"""straightway bench: its cases on host memory and on the simulated GPU, with tiny files."""

import os
import signal
import time
import unittest
from pathlib import Path
from typing import Any

from program import MIB, SIMULATED_GPU, ProgramTest, run

KEYS = [
    "case",
    "bytes",
    "median_gbs",
    "spread",
    "share_of_ceiling",
    "cpu_s_per_gb",
    "pinned_bytes",
    "first_call_gbs",
    "verified",
]
SMALL = ["small 4 KiB", "small 64 KiB", "small 1 MiB"]


class BenchTest(ProgramTest):
    def bench(self, *words: str | Path, code: int = 0, **changes: str) -> dict[str, Any]:
        """The cases by name, of a run that is as short as can be."""
        shown = self.run_json("bench", "--repeat", "1", *words, code=code, **changes)
        self.assertEqual(list(shown), ["machine", "cases"])
        self.machine = shown["machine"]
        for case in shown["cases"]:
            self.assertEqual(list(case)[: len(KEYS)], KEYS)
        return {case["case"]: case for case in shown["cases"]}

    def assert_measured(self, case: dict[str, Any]) -> None:
        self.assertIs(case["verified"], True, case)
        for key in ("median_gbs", "share_of_ceiling", "first_call_gbs"):
            self.assertGreater(case[key], 0, case)
        for key in ("spread", "cpu_s_per_gb", "pinned_bytes"):
            self.assertGreaterEqual(case[key], 0, case)

    def assert_no_numbers(self, case: dict[str, Any]) -> None:
        self.assertIs(case["verified"], False)
        for key in KEYS[2:-1]:
            self.assertIsNone(case[key], key)

    def test_hot_small_and_ranges_into_host_memory(self) -> None:
        file = self.make_file("file", 3 * MIB + 123)
        before = (file.read_bytes(), file.stat().st_mtime_ns)
        cases = self.bench(file, "--to", "host", "--cases", "hot,small,ranges")
        self.assertEqual(list(cases), ["hot", *SMALL, "ranges"])
        for case in cases.values():
            self.assert_measured(case)
        self.assertEqual(cases["hot"]["bytes"], 3 * MIB + 123)
        self.assertEqual(cases["hot"]["ceiling"], "copiers")
        self.assertEqual(cases["ranges"]["ranges"], 3 * 64)
        self.assertGreaterEqual(cases["small 4 KiB"]["p99_us"], cases["small 4 KiB"]["p50_us"])
        for key in ("kernel", "cpus", "memory_bytes", "gpu", "driver", "filesystem", "device"):
            self.assertIn(key, self.machine)
        self.assertEqual(self.machine["kernel"], os.uname().release)
        self.assertIsNone(self.machine["gpu"])
        self.assertGreater(self.machine["ceilings"]["copiers_gbs"], 0)
        self.assertEqual((file.read_bytes(), file.stat().st_mtime_ns), before)
        self.assertEqual(self.names(), ["file"])

    def test_cold_mixed_and_write_are_measured_or_say_why_not(self) -> None:
        file = self.make_file("file", 8 * MIB)
        cases = self.bench(file, "--to", "host", "--cases", "cold,mixed,write")
        if "skipped" in cases.get("cold", {}):  # a file system without a disk
            self.assert_no_numbers(cases["cold"])
            self.assert_no_numbers(cases["mixed"])
        else:
            for name in ("cold auto", "cold keep", "cold drop", "cold bypass", "mixed"):
                self.assert_measured(cases[name])
            self.assertEqual(cases["mixed"]["hot_bytes"], 4 * MIB)
            self.assertGreater(cases["cold keep"]["cached_after"], 0.98)
        for name in ("write", "write bypass"):
            self.assert_measured(cases[name])
        self.assertEqual(self.names(), ["file"])

    def test_the_simulated_gpu_is_read_and_written(self) -> None:
        file = self.make_file("file", 4 * MIB + 5)
        words = ["--to", "cuda:0", "--cases", "hot,small,ranges,write"]
        cases = self.bench(file, *words, **SIMULATED_GPU)
        for case in cases.values():
            self.assert_measured(case)
        self.assertEqual(cases["hot"]["ceiling"], "link")
        self.assertGreater(cases["hot"]["pinned_bytes"], 0)
        self.assertIs(self.machine["simulated"], True)
        self.assertIn("Simulated", self.machine["gpu"])

    def test_pinned_pages_are_read_or_it_says_why_not(self) -> None:
        file = self.make_file("file", 4 * MIB)
        words = ["--to", "cuda:0", "--cases", "pinned"]
        cases = self.bench(file, *words, **SIMULATED_GPU)
        if "skipped" in cases["pinned"]:  # a file system whose pages cannot be pinned safely
            self.assert_no_numbers(cases["pinned"])
            return
        self.assert_measured(cases["pinned"])
        self.assertEqual(cases["pinned"]["pinned_cache_bytes"], 4 * MIB)
        self.assert_measured(cases["pin and read"])
        self.assertGreater(cases["pin and read"]["release_ms"], 0)
        host = self.bench(file, "--to", "host", "--cases", "pinned")
        self.assertIn("GPU", host["pinned"]["skipped"])

    def test_wrong_bytes_have_no_number(self) -> None:
        file = self.make_file("file", 4 * MIB)
        words = ["--to", "cuda:0", "--cases", "hot"]
        wrong = {**SIMULATED_GPU, "FAKE_CUDA_WRONG_COPIES": "1"}
        cases = self.bench(file, *words, code=1, **wrong)
        self.assert_no_numbers(cases["hot"])
        self.assertIn("differ", cases["hot"]["error"]["message"])
        done = run("bench", "--repeat", "1", file, *words, **wrong)
        self.assert_error(done, 1, "NOT VERIFIED", str(file))
        self.assertIn("NOT VERIFIED", done.stdout)
        row = next(line for line in done.stdout.splitlines() if line.startswith("hot "))
        self.assertNotRegex(row, r"\d")

    def test_text_names_ceilings_cases_and_limits(self) -> None:
        file = self.make_file("file", 2 * MIB)
        done = run("bench", file, "--to", "host", "--repeat", "2", "--cases", "hot,small")
        self.assertEqual(done.returncode, 0, done.stderr)
        for part in ("Ceilings", "copiers", "hot ", "small 4 KiB", "p50", "(max - min) / median"):
            self.assertIn(part, done.stdout)
        self.assertRegex(done.stdout, r"(?m)^(Limited by|Below what|The runs differ)")
        self.assertEqual(done.stderr, "")

    def test_a_file_is_made_and_removed_and_the_memory_chosen(self) -> None:
        cases = self.bench("--size", "2M", "--cases", "hot", TMPDIR=str(self.folder))
        self.assert_measured(cases["hot"])
        self.assertEqual(cases["hot"]["bytes"], 2 * MIB)
        self.assertEqual(self.names(), [])

    def test_size_bounds_what_is_read(self) -> None:
        file = self.make_file("file", 2 * MIB)
        cases = self.bench(file, "--to", "host", "--size", "64K", "--cases", "hot,small,mixed")
        self.assertEqual(cases["hot"]["bytes"], 65536)
        self.assertIn("smaller", cases["small 1 MiB"]["skipped"])
        self.assertIn("skipped", cases["mixed"])

    def test_the_written_file_may_lie_elsewhere(self) -> None:
        other = self.folder / "other"
        other.mkdir()
        file = self.make_file("file", MIB)
        words = ["--to", "host", "--cases", "write", "--write-to", other]
        self.assert_measured(self.bench(file, *words)["write"])
        self.assertEqual(list(other.iterdir()), [])

    def test_b11_what_cannot_be_read_is_named(self) -> None:
        (self.folder / "empty").touch()
        for name in ("absent", "empty", "."):
            with self.subTest(name):
                path = self.folder / name
                self.assert_error(run("bench", path, "--to", "host"), 1, str(path))

    def test_a_gpu_that_is_not_there_is_an_error(self) -> None:
        done = run("bench", self.make_file("file", MIB), "--to", "cuda:77", **SIMULATED_GPU)
        self.assert_error(done, 1, "cuda:77")

    def test_ctrl_c_removes_the_file(self) -> None:
        process = self.start("bench", "--to", "host", "--size", "1G", TMPDIR=str(self.folder))
        deadline = time.monotonic() + 60
        while not self.names() and time.monotonic() < deadline:
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        self.assertEqual(self.names(), [])

    def test_no_case_needs_write_access_to_the_file(self) -> None:
        file = self.make_file("file", 2 * MIB)
        file.chmod(0o444)
        self.assert_measured(self.bench(file, "--to", "host", "--cases", "hot")["hot"])


if __name__ == "__main__":
    unittest.main()
