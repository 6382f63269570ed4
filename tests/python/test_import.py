"""What importing does: nothing that can be seen from outside."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
import straightway as sw
from conftest import run_child

LOOK = """
import os, sys
def look():
    maps = {line.split()[-1] for line in open("/proc/self/maps") if "/" in line}
    return len(os.listdir("/proc/self/task")), sorted(os.listdir("/proc/self/fd")), maps
import asyncio, array, json, re, threading, concurrent.futures, atexit, io, operator, typing
before = look()
import straightway
after = look()
assert before[0] == after[0] == 1, "a thread was started"
assert before[1] == after[1], "a file was opened"
new = {os.path.basename(name) for name in after[2] - before[2]}
assert all(name.startswith("_straightway") for name in new), new
assert not any("cuda" in name or "cufile" in name for name in after[2])
"""


def test_importing_starts_no_thread_opens_no_file_touches_no_cuda() -> None:
    child = run_child("-c", LOOK)
    assert (child.returncode, child.stderr) == (0, "")


def test_importing_needs_no_writable_folder(tmp_path: Path) -> None:
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    code = f"import os; os.chdir({str(tmp_path)!r}); import straightway"
    child = run_child("-c", code, env={"HOME": "/nonexistent"})
    assert (child.returncode, child.stdout, child.stderr) == (0, "", "")
    assert os.listdir(tmp_path) == []


def test_importing_survives_nonsense_in_the_environment() -> None:
    code = """
import straightway as sw
try:
    sw.open("/proc/self/exe")
except ValueError as error:
    assert "STRAIGHTWAY_POLICY" in str(error), error
else:
    raise SystemExit("the nonsense was accepted")
"""
    child = run_child("-c", code, env={"STRAIGHTWAY_POLICY": "nonsense"})
    assert (child.returncode, child.stderr) == (0, "")


def test_closed_standard_descriptors_are_never_taken(path: Path) -> None:
    code = """
import os, sys
for fd in (0, 1, 2):
    os.close(fd)
import straightway as sw
file = sw.open(sys.argv[1])
file.read_into(bytearray(2 << 20))
taken = [fd for fd in ("0", "1", "2") if os.path.exists("/proc/self/fd/" + fd)]
file.submit_read(bytearray(2 << 20)).result()
os._exit(len(taken) + (file.fileno() < 3))
"""
    assert run_child("-c", code, str(path)).returncode == 0


def test_versions_agree() -> None:
    assert sw.version() == sw.__version__
    assert sw.__version__.count(".") == 2


def test_everything_public_has_a_docstring_with_an_example() -> None:
    for name in set(sw.__all__) - {"__version__"}:
        public = getattr(sw, name)
        assert ">>>" in (public.__doc__ or ""), name
        if public in (sw.Context, sw.File, sw.Job):
            methods = [m for m in vars(public).items() if not m[0].startswith("_")]
            for method_name, method in methods:
                assert ">>>" in (method.__doc__ or ""), f"{name}.{method_name}"


def test_the_package_is_typed() -> None:
    folder = Path(sw.__file__).parent
    assert (folder / "py.typed").exists()
    assert (folder / "_straightway.pyi").exists()


def test_the_extension_needs_glibc_alone() -> None:
    import re
    import shutil
    import subprocess

    readelf = shutil.which("readelf")
    if readelf is None:
        pytest.skip("readelf is not installed")
    listed = subprocess.run(
        [readelf, "-d", sw._straightway.__file__], capture_output=True, text=True, check=True
    ).stdout
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", listed)
    allowed = r"lib(c|m|dl|pthread|rt)\.so\.\d+|ld-linux.*|libpython.*"
    assert [name for name in needed if not re.fullmatch(allowed, name)] == []


def test_the_command_line_is_packaged_or_says_so() -> None:
    child = run_child("-m", "straightway", "--help")
    packaged = (Path(sw.__file__).parent / "bin" / "straightway").exists()
    assert (child.returncode == 0) == packaged
    assert "straightway" in child.stdout + child.stderr
