"""The manual pages: well formed, and naming what --help names."""

import os
import re
import shutil
import subprocess
import unittest
from pathlib import Path

from program import run

PAGES = Path(os.environ.get("STRAIGHTWAY_MAN", "docs/man"))


def options_in_help(command: str) -> set[str]:
    return set(re.findall(r"(--[a-z]+)", run(command, "--help").stdout.split("Examples:")[0]))


def commands_in_help() -> list[str]:
    commands = run("--help").stdout.split("Subcommands:")[1].split("Examples:")[0]
    return re.findall(r"(?m)^  ([a-z]+)", commands)


class ManTest(unittest.TestCase):
    def test_every_command_has_a_page(self) -> None:
        self.assertGreater(len(commands_in_help()), 5)
        for command in commands_in_help():
            self.assertTrue((PAGES / f"straightway-{command}.1").is_file(), command)

    def test_pages_name_every_option(self) -> None:
        for command in commands_in_help():
            text = (PAGES / f"straightway-{command}.1").read_text()
            for option in options_in_help(command):
                with self.subTest(command=command, option=option):
                    self.assertRegex(text, rf"(Fl|,) -{option[2:]}\b")

    def test_pages_refer_to_pages_that_exist(self) -> None:
        for page in PAGES.glob("*.1"):
            for name in re.findall(r"(?m)^\.Xr (straightway[a-z-]*) 1", page.read_text()):
                self.assertTrue((PAGES / f"{name}.1").is_file(), f"{page.name}: {name}")

    def test_pages_are_well_formed(self) -> None:
        formatter = shutil.which("mandoc") or shutil.which("groff")
        if not formatter:
            self.skipTest("neither mandoc nor groff is here")
        lint = ["-T", "lint", "-W", "warning"]
        if formatter.endswith("groff"):
            lint = ["-mandoc", "-ww", "-z", "-Tutf8"]
        for page in sorted(PAGES.glob("*.1")):
            with self.subTest(page.name):
                done = subprocess.run(
                    [formatter, *lint, page], capture_output=True, text=True, check=False
                )
                self.assertEqual(done.stderr, "")
                self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    unittest.main()
