"""Help, version, exit codes and streams."""

import os
import pty
import subprocess
import unittest

from program import PROGRAM, ProgramTest, environment, run

COMMANDS = ["demo", "explain", "copy", "check", "stats", "bench", "completion"]


class UsageTest(ProgramTest):
    def test_version_is_that_of_the_library(self) -> None:
        done = run("--version")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"^straightway \d+\.\d+\.\d+\n$")

    def test_help_names_every_command_and_shows_examples(self) -> None:
        done = run("--help")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stderr, "")
        for part in [*COMMANDS, "Examples:", "Exit codes"]:
            self.assertIn(part, done.stdout)

    def test_help_of_every_command_teaches(self) -> None:
        for command in COMMANDS:
            with self.subTest(command):
                done = run(command, "--help")
                self.assertEqual(done.returncode, 0)
                self.assertIn("Examples:\n  ", done.stdout)
                self.assertIn(f"straightway {command}", done.stdout)
                self.assertNotIn("--simulated", done.stdout)

    def test_wrong_usage_is_2_and_says_where_help_is(self) -> None:
        for words in (
            [],
            ["fly"],
            ["explain"],
            ["copy", "only-one"],
            ["explain", "file", "--polcy", "direct"],
            ["explain", "file", "--policy", "fastest"],
            ["explain", "file", "--policy", "auto|direct"],
            ["stats", "-5"],
            ["stats", "word"],
            ["stats", "--watch=word"],
            ["stats", "--watch=-1"],
            ["stats", "--watch=nan"],
            ["bench", "--cases", "hot,lukewarm"],
            ["bench", "--repeat", "0"],
            ["bench", "--write-to", "/absent"],
            ["completion", "tcsh"],
        ):
            with self.subTest(words):
                done = run(*words)
                self.assert_error(done, 2, "--")
                self.assertEqual(done.stdout, "")

    def test_a_command_that_is_not_there_is_named(self) -> None:
        self.assert_error(run("fly"), 2, "'fly'", "straightway --help")

    def test_f4_sizes_and_memories_that_mean_nothing_are_2(self) -> None:
        file = self.make_file("file", 4096)
        for words in (
            ["--size", "many"],
            ["--size", "-1"],
            ["--offset", "4Q"],
            ["--to", "gpu"],
            ["--to", "cuda:"],
            ["--to", "cuda:-1"],
            ["--to", "cuda:99999999999"],
        ):
            with self.subTest(words):
                self.assert_error(run("explain", file, "=".join(words)), 2, words[-1])

    def test_f4_a_nonsense_variable_is_an_error_that_names_it(self) -> None:
        file = self.make_file("file", 4096)
        done = run("explain", file, STRAIGHTWAY_POLICY="fastest")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("STRAIGHTWAY_POLICY", done.stderr)

    def test_no_colours_off_a_terminal(self) -> None:
        done = run("check")
        self.assertNotIn("\033", done.stdout + done.stderr)

    def on_terminal(self, **changes: str) -> bytes:
        """What `check` writes to a terminal."""
        ours, theirs = pty.openpty()
        plain = environment(TERM="xterm")
        plain.pop("NO_COLOR", None)
        with subprocess.Popen([PROGRAM, "check"], stdout=theirs, env={**plain, **changes}):
            os.close(theirs)
            text = b""
            try:
                while piece := os.read(ours, 65536):
                    text += piece
            except OSError:  # how a terminal without a writer ends
                pass
        os.close(ours)
        return text

    def test_colours_on_a_terminal_unless_unwanted(self) -> None:
        self.assertIn(b"\033[", self.on_terminal())
        self.assertNotIn(b"\033[", self.on_terminal(NO_COLOR="1"))
        self.assertNotIn(b"\033[", self.on_terminal(TERM="dumb"))

    def test_a_full_disk_is_not_success(self) -> None:
        for word in ("check", "--help", "--version"):
            with self.subTest(word), open("/dev/full", "w") as full:
                done = subprocess.run(
                    [PROGRAM, word], stdout=full, stderr=subprocess.PIPE, check=False, text=True
                )
                self.assert_error(done, 1, "standard output")

    def test_closed_standard_streams_are_survived(self) -> None:
        for redirection in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
            with self.subTest(redirection):
                done = subprocess.run(
                    ["sh", "-c", f'"$0" check {redirection}', PROGRAM],
                    capture_output=True,
                    check=False,
                )
                self.assertIn(done.returncode, (0, 1))


if __name__ == "__main__":
    unittest.main()
