"""straightway demo, as on a machine without a GPU."""

import os
import signal
import time
import unittest

from program import MIB, ProgramTest, run


class DemoTest(ProgramTest):
    def setUp(self) -> None:
        super().setUp()
        before = os.environ.get("CUDA_VISIBLE_DEVICES")
        self.addCleanup(self.show_gpus, before)
        self.show_gpus("-1")

    @staticmethod
    def show_gpus(which: str | None) -> None:
        if which is None:
            os.environ.pop("CUDA_VISIBLE_DEVICES", None)
        else:
            os.environ["CUDA_VISIBLE_DEVICES"] = which

    def test_it_makes_reads_verifies_and_removes_a_file(self) -> None:
        done = run("demo", "--size", "3M", TMPDIR=str(self.folder))
        self.assertEqual(done.returncode, 0, done.stderr)
        for part in ("made for this demo", "The plan", "The receipt", f"all {3 * MIB} bytes"):
            self.assertIn(part, done.stdout)
        self.assertEqual(self.names(), [])

    def test_a_file_of_the_user_is_only_read(self) -> None:
        file = self.make_file("file", 2 * MIB + 123)
        before = (file.read_bytes(), file.stat().st_mtime_ns)
        shown = self.run_json("demo", file)
        self.assertTrue(shown["verified"])
        self.assertEqual(shown["size_bytes"], 2 * MIB + 123)
        self.assertEqual(shown["receipt"]["moved_bytes"], 2 * MIB + 123)
        self.assertFalse(shown["made"])
        self.assertEqual((file.read_bytes(), file.stat().st_mtime_ns), before)
        self.assertEqual(self.names(), ["file"])

    def test_size_bounds_what_is_read_of_it(self) -> None:
        shown = self.run_json("demo", self.make_file("file", 2 * MIB), "--size", "4K")
        self.assertEqual(shown["size_bytes"], 4096)

    def test_the_simulated_gpu_says_that_it_is_simulated(self) -> None:
        file = self.make_file("file", 2 * MIB + 5)
        shown = self.run_json("demo", file)
        self.assertEqual(shown["target"], "host memory")
        simulated = shown["simulated"]
        self.assertTrue(simulated["verified"])
        self.assertEqual(simulated["receipt"]["moved_bytes"], 2 * MIB + 5)
        done = run("demo", file)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("The GPU is simulated", done.stdout)
        self.assertIn("speed means nothing", done.stdout)
        self.assertIn("into cuda:0", done.stdout)
        self.assertIn("staged", done.stdout)
        self.assertEqual(done.stdout.count(f"all {2 * MIB + 5} bytes"), 2)

    def test_a_simulated_gpu_that_is_not_there_is_an_error(self) -> None:
        file = self.make_file("file", MIB)
        done = run("demo", file, STRAIGHTWAY_SIMULATED_GPU=str(self.folder))
        self.assert_error(done, 2, "STRAIGHTWAY_SIMULATED_GPU")

    def test_b11_what_cannot_be_read_is_named(self) -> None:
        os.mkfifo(self.folder / "pipe")
        (self.folder / "empty").touch()
        for name in ("absent", "pipe", "empty", "."):
            with self.subTest(name):
                path = self.folder / name
                self.assert_error(run("demo", path), 1, str(path))

    def test_more_than_the_memory_is_refused_before_it_is_taken(self) -> None:
        done = run("demo", self.make_sparse("huge", 1 << 43), "--size", "8192G")
        self.assert_error(done, 1, "--size")

    def test_a_demo_of_no_bytes_is_a_wrong_command_line(self) -> None:
        done = run("demo", "--size", "0", TMPDIR=str(self.folder))
        self.assert_error(done, 2, "--size=0")
        self.assertEqual(self.names(), [])

    def test_ctrl_c_removes_the_file(self) -> None:
        process = self.start("demo", "--size", "1G", TMPDIR=str(self.folder))
        deadline = time.monotonic() + 60
        while not self.names() and time.monotonic() < deadline:
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        self.assertEqual(self.names(), [])


if __name__ == "__main__":
    unittest.main()
