"""C2: the end of the process, in every state: the exit code is kept, nothing crashes or hangs."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import run_child

RUNS = 12  # of each; together more than a hundred

START = """
import atexit, os, sys, threading, time
import straightway as sw
path = sys.argv[1]
target = bytearray(48 << 20)
file = sw.open(path)
"""

ENDS = {
    "idle": ("file.read_into(target)", 0),
    "closed": ("file.read_into(target); file.close()", 0),
    "in_flight": ("jobs = [file.submit_read(target) for _ in range(4)]", 0),
    "in_flight_dropped": ("for _ in range(4): file.submit_read(bytearray(8 << 20))", 0),
    "in_flight_own_context": (
        "context = sw.Context(threads=2); file = sw.open(path, context=context)\n"
        "job = file.submit_read(target)",
        0,
    ),
    "exit_code": ("job = file.submit_read(target); sys.exit(42)", 42),
    "exception": ("job = file.submit_read(target); raise RuntimeError('on purpose')", 1),
    "callback_due": (
        "job = file.submit_read(target)\njob.add_done_callback(lambda job: time.sleep(0.01))",
        0,
    ),
    "callback_returns_at_the_end": (  # it waits for the GIL, which the sum keeps until the end
        "begun = threading.Event()\n"
        "def callback(job): begun.set(); time.sleep(0.05)\n"
        "file.submit_read(target).add_done_callback(callback)\n"
        "from straightway import _straightway; begun.wait()\n"
        "atexit.register(_straightway.close_bridge); atexit.register(sum, range(10_000_000))",
        0,
    ),
    "daemon_reading": (
        "def work():\n"
        "    while True: file.read_into(target, size=8 << 20)\n"
        "for _ in range(3): threading.Thread(target=work, daemon=True).start()\n"
        "time.sleep(0.02); sys.exit(9)",
        9,
    ),
    "daemon_small_reads": (
        "def work():\n"
        "    mine = bytearray(4096)\n"
        "    while True: file.read_into(mine)\n"
        "for _ in range(3): threading.Thread(target=work, daemon=True).start()\n"
        "time.sleep(0.02)",
        0,
    ),
    "daemon_waiting": (
        "job = file.submit_read(target)\n"
        "def work():\n"
        "    while True: job.result()\n"
        "threading.Thread(target=work, daemon=True).start()",
        0,
    ),
    "thread_not_joined": (
        "threading.Thread(target=lambda: file.read_into(target)).start()",
        0,
    ),
    "atexit_exit": ("atexit.register(lambda: sys.exit(3)); job = file.submit_read(target)", 0),
    "atexit_read": (
        "def last():\n"
        "    assert file.read_into(target).moved_bytes == 48 << 20\n"
        "    print('read at exit')\n"
        "atexit.register(last)",
        0,
    ),
    "os_exit": ("job = file.submit_read(target); os._exit(5)", 5),
}


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("exit") / "big"
    with made.open("wb") as raw:
        raw.truncate(48 << 20)
    return made


@pytest.mark.parametrize("end", ENDS)
def test_C2_the_exit_code_is_kept(big: Path, end: str) -> None:
    code, expected = ENDS[end]
    for _ in range(RUNS):
        child = run_child("-c", START + code, str(big))
        assert child.returncode == expected, child.stderr
        if end == "atexit_read":
            assert child.stdout == "read at exit\n"
        if end not in ("exception", "atexit_exit"):
            assert child.stderr == ""


def test_ctrl_c_stops_a_blocking_read_and_drains_it(big: Path) -> None:
    code = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
seen = threading.Event()
def interrupt():
    while not seen.wait(0.5):  # again on a machine so busy that one came at a bad moment
        os.kill(os.getpid(), signal.SIGINT)
try:
    threading.Thread(target=interrupt, daemon=True).start()
    for _ in range(10000):
        file.read_into(target)
except KeyboardInterrupt:
    seen.set()
    file.close()
    target.clear()  # refused while anything is in flight
    sys.exit(77)
"""
    child = run_child("-c", START + code, str(big))
    assert (child.returncode, child.stderr) == (77, "")


def test_ctrl_c_ends_read_many_between_batches(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.write_bytes(b"x" * 1000)
    code = """
import signal
signal.signal(signal.SIGALRM, signal.default_int_handler)
targets = [bytearray(1000) for _ in range(6000)]
def requests():
    for array in targets:
        yield (path, 0, None, array)
    signal.setitimer(signal.ITIMER_REAL, 0.03)
try:
    sw.read_many(requests())
except KeyboardInterrupt:
    for array in targets:
        array.append(1)  # refused while anything is in flight
    sys.exit(77 if targets[-1][0] == 0 else 1)
"""
    child = run_child("-c", START + code, str(small))
    assert (child.returncode, child.stderr) == (77, "")
