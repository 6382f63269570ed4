"""straightway completion, by the shells themselves where they are."""

import shutil
import subprocess
import unittest

from program import PROGRAM, ProgramTest, run

COMPLETE = r"""
eval "$("$0" completion bash)"
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_straightway
printf '%s\n' "${COMPREPLY[@]}"
"""


def complete(*words: str) -> list[str]:
    """What bash offers for the last word."""
    done = subprocess.run(
        ["bash", "-c", COMPLETE, PROGRAM, *words], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


class CompletionTest(ProgramTest):
    def test_bash_completes_commands(self) -> None:
        self.assertEqual(complete("straightway", "ex"), ["explain"])
        self.assertIn("copy", complete("straightway", ""))

    def test_bash_completes_options_of_the_command(self) -> None:
        self.assertEqual(complete("straightway", "copy", "--sy"), ["--sync"])
        self.assertEqual(complete("straightway", "check", "--sy"), [])

    def test_bash_completes_words_of_an_option(self) -> None:
        self.assertEqual(complete("straightway", "explain", "--policy", "d"), ["direct"])
        self.assertEqual(complete("straightway", "explain", "--policy", "=", "st"), ["staged"])
        self.assertEqual(complete("straightway", "completion", "z"), ["zsh"])

    def test_bash_leaves_files_to_the_shell(self) -> None:
        self.assertEqual(complete("straightway", "explain", "wei"), [])

    def test_bash_completes_programs_to_run(self) -> None:
        self.assertIn("sleep", complete("straightway", "run", "slee"))
        self.assertEqual(complete("straightway", "run", "--js"), ["--json"])
        self.assertEqual(complete("straightway", "run", "sleep", "--js"), [])

    def test_hidden_options_stay_hidden(self) -> None:
        for shell in ("bash", "zsh", "fish"):
            self.assertNotIn("simulated", run("completion", shell).stdout)

    def test_scripts_parse(self) -> None:
        for shell in ("bash", "zsh", "fish"):
            with self.subTest(shell):
                done = run("completion", shell)
                self.assertEqual(done.returncode, 0)
                self.assertIn("straightway", done.stdout)
                if shutil.which(shell):
                    script = self.folder / shell
                    script.write_text(done.stdout)
                    subprocess.run([shell, "-n", script], check=True)


if __name__ == "__main__":
    unittest.main()
