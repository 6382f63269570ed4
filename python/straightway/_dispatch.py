"""The one thread that makes the calls which the engine's threads ask for."""

from __future__ import annotations

import atexit
import os
import threading

from . import _straightway

_lock = threading.Lock()
_thread: threading.Thread | None = None


def _run() -> None:
    while True:
        callback, arguments = _straightway.next_event()
        try:
            callback(*arguments)
        except BaseException as raised:
            _straightway.report_raised(raised, callback)
        del callback, arguments  # else they would live until the next event


def start() -> None:
    """Starts the thread unless it runs: wherever a callback is given."""
    global _thread
    with _lock:
        if _thread is None:
            _thread = threading.Thread(target=_run, name="straightway-callbacks", daemon=True)
            _thread.start()


def _after_fork() -> None:
    global _lock, _thread
    _lock = threading.Lock()
    _thread = None
    _straightway.after_fork()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_straightway.close_bridge)
