"""Runs the command line under test: the program that the variable STRAIGHTWAY names."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any

PROGRAM = os.environ.get("STRAIGHTWAY", "straightway")
MIB = 1 << 20
SIMULATED_GPU = {"LD_LIBRARY_PATH": os.environ.get("STRAIGHTWAY_FAKE_CUDA", "")}


def environment(**changes: str) -> dict[str, str]:
    """Ours without what would change the program's answers, and with these changes."""
    ours = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("STRAIGHTWAY_", "KVIKIO_", "CUFILE_"))
    }
    return {**ours, **changes}


def run(*words: str | Path, **changes: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        env=environment(**changes),
        stdin=subprocess.DEVNULL,
    )


class ProgramTest(unittest.TestCase):
    """A test with a folder of its own, which goes with it."""

    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="straightway-tools-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def make_file(self, name: str, size_bytes: int) -> Path:
        path = self.folder / name
        path.write_bytes(os.urandom(size_bytes))
        return path

    def make_sparse(self, name: str, size_bytes: int) -> Path:
        path = self.folder / name
        with path.open("wb") as file:
            file.truncate(size_bytes)
        return path

    def start(self, *words: str | Path, **changes: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [PROGRAM, *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(**changes),
        )
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def names(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir())

    def run_json(self, *words: str | Path, code: int = 0, **changes: str) -> Any:
        done = run(*words, "--json", **changes)
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout)

    def assert_error(self, done: subprocess.CompletedProcess[str], code: int, *parts: str) -> None:
        self.assertEqual(done.returncode, code, done.stderr)
        for part in ("straightway: ", *parts):
            self.assertIn(part, done.stderr)
