"""Forking after use: the child's host transfers start afresh."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import run_child

START = """
import os, sys, threading
import straightway as sw
path = sys.argv[1]
content = open(path, "rb").read()
file = sw.open(path)
target = bytearray(len(content))
def end(pid):
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code == 0, code
def in_child(work):
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException as error:
            print(type(error).__name__, error, file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    end(pid)
def read(which):
    mine = bytearray(len(content))
    assert which.read_into(mine).moved_bytes == len(content)
    assert mine == content
"""

CASES = {
    "before_use": "in_child(lambda: read(file)); read(file)",
    "after_use": "read(file); in_child(lambda: read(file)); read(file)",
    "new_file": "read(file); in_child(lambda: read(sw.open(path)))",
    "small": (
        "small = bytearray(100)\n"
        "file.read_into(small)\n"
        "def work():\n"
        "    assert file.read_into(small, offset=5).moved_bytes == 100\n"
        "    assert small == content[5:105]\n"
        "in_child(work)"
    ),
    "in_flight": (
        "jobs = [file.submit_read(bytearray(len(content))) for _ in range(8)]\n"
        "in_child(lambda: read(sw.open(path)))\n"
        "assert [job.result().moved_bytes for job in jobs] == [len(content)] * 8"
    ),
    "callbacks": (
        "job = file.submit_read(target)\n"
        "job.add_done_callback(lambda job: None)\n"
        "job.result()\n"
        "def work():\n"
        "    seen = threading.Event()\n"
        "    own = sw.open(path).submit_read(bytearray(2 << 20))\n"
        "    own.add_done_callback(lambda job: seen.set())\n"
        "    assert seen.wait(20)\n"
        "in_child(work)"
    ),
    "grandchild": "read(file)\nin_child(lambda: in_child(lambda: read(sw.open(path))))\nread(file)",
    "dropped_in_child": (
        "read(file)\n"
        "def work():\n"
        "    global file\n"
        "    file.close()\n"
        "    del file\n"
        "in_child(work)\n"
        "read(file)"
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_host_transfers_work_in_a_forked_child(path: Path, case: str) -> None:
    child = run_child("-W", "ignore::DeprecationWarning", "-c", START + CASES[case], str(path))
    assert (child.returncode, child.stderr) == (0, "")


def test_a_job_of_the_parent_is_an_error_in_the_child(path: Path) -> None:
    code = """
with open(path, "r+b") as raw:
    raw.truncate(256 << 20)
jobs = [file.submit_read(bytearray(32 << 20), offset=i << 20) for i in range(8)]
def work():
    try:
        jobs[-1].result()
    except RuntimeError as error:
        assert error.kind == "forked", error.kind
    else:
        assert jobs[-1].done()  # it was done before the fork
in_child(work)
for job in jobs:
    assert job.result().moved_bytes == 32 << 20
"""
    child = run_child("-W", "ignore::DeprecationWarning", "-c", START + code, str(path))
    assert (child.returncode, child.stderr) == (0, "")
