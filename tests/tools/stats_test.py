"""straightway stats."""

import json
import os
import signal
import subprocess
import time
import unittest

from program import PROGRAM, ProgramTest, environment, run


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


if __name__ == "__main__":
    unittest.main()
