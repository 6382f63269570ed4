"""straightway run: programs on our libcufile.so.0, and the summary of their receipts."""

import json
import os
import pty
import signal
import stat
import subprocess
import sys
import textwrap
import time
import unittest
from pathlib import Path
from typing import Any

from program import MIB, PROGRAM, SIMULATED_GPU, ProgramTest, environment, run

OURS = Path(os.environ.get("STRAIGHTWAY_CUFILE", ""))
VENDORS = Path(os.environ.get("STRAIGHTWAY_FAKE_CUFILE", "")) / "libcufile.so.0"
CLIENTS = Path(os.environ.get("STRAIGHTWAY_RUN_CLIENTS", ""))
AUDIT = OURS.with_name("libstraightway-audit.so")

# A cuFile client in a language that all have here.
CUFILE = """
import ctypes, os, sys
class Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("cuda", ctypes.c_int)]
class Descriptor(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("fd", ctypes.c_long), ("operations", ctypes.c_void_p)]

def load(name):
    library = ctypes.CDLL(name)
    for symbol in ("cuFileHandleRegister", "cuFileGetVersion", "cuFileDriverClose_v2"):
        getattr(library, symbol).restype = Error
    library.cuFileRead.restype = ctypes.c_ssize_t
    library.cuFileRead.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t,
                                   ctypes.c_long, ctypes.c_long]
    return library

def whose(library):
    ours = hasattr(library, "straightway_cufile")
    return "ours" if ours else "vendor" if hasattr(library, "straightway_fake_cufile") else "?"

def read(library, path, address, size, times=1):
    fd = os.open(path, os.O_RDONLY)
    handle = ctypes.c_void_p()
    descriptor = Descriptor(1, fd, None)
    assert library.cuFileHandleRegister(ctypes.byref(handle), ctypes.byref(descriptor)).code == 0
    for _ in range(times):
        assert library.cuFileRead(handle, address, size, 0, 0) >= 0
    library.cuFileHandleDeregister(handle)
    os.close(fd)

def read_host(path, size, times=1):
    memory = ctypes.create_string_buffer(size)
    read(load("libcufile.so.0"), path, ctypes.addressof(memory), size, times)
"""


def client(code: str) -> list[str]:
    return [sys.executable, "-c", CUFILE + textwrap.dedent(code)]


def run_client(code: str, *options: str, **changes: str) -> "subprocess.CompletedProcess[str]":
    return run("run", *options, *client(code), **changes)


@unittest.skipUnless(OURS.is_file(), "the library cannot be loaded here (a sanitizer)")
class RunTest(ProgramTest):
    def summary_of(self, code: str, exit_code: int = 0, **changes: str) -> Any:
        output = self.folder / "summary.json"
        done = run_client(code, "--json", "--output", str(output), **changes)
        self.assertEqual(done.returncode, exit_code, done.stderr)
        return json.loads(output.read_text())


class AnswerTest(RunTest):
    """Exit codes, signals, words: as if the program had been started in our place."""

    def test_the_exit_code_is_the_programs(self) -> None:
        for code in (0, 1, 7, 255):
            self.assertEqual(run("run", "sh", "-c", f"exit {code}").returncode, code)

    def test_a_signal_gives_128_and_its_number(self) -> None:
        for name in ("KILL", "TERM", "SEGV"):
            done = run("run", "sh", "-c", f"kill -{name} $$")
            self.assertEqual(done.returncode, 128 + getattr(signal, f"SIG{name}"))
            self.assertIn(f"ended by signal {getattr(signal, 'SIG' + name).value}", done.stderr)

    def test_a_program_that_cannot_start(self) -> None:
        self.assert_error(run("run", "no-such-program"), 127, "no-such-program", "No such file")
        plain = self.make_file("plain", 10)
        self.assert_error(run("run", plain), 126, "plain", "denied")
        self.assert_error(run("run"), 2, "none was named")
        self.assert_error(
            run("run", "--output", self.folder / "no" / "such", "true"), 125, "no/such"
        )

    def test_options_behind_the_program_are_its_own(self) -> None:
        done = run("run", "echo", "--json", "--help", "-o", "x")
        self.assertEqual(done.stdout, "--json --help -o x\n")
        self.assertEqual(run("run", "--", "echo", "a").stdout, "a\n")
        self.assertEqual(run("run", "echo", "--", "a").stdout, "-- a\n")
        self.assert_error(run("run", "--jsn", "true"), 2, "--jsn")

    def test_standard_output_is_the_programs(self) -> None:
        done = run("run", "--json", "echo", "hello")
        self.assertEqual(done.stdout, "hello\n")
        self.assertEqual(json.loads(done.stderr)["command"], ["echo", "hello"])

    def test_the_program_starts_with_our_own_signals(self) -> None:
        show = ["grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"]
        directly = subprocess.run(
            show, capture_output=True, text=True, check=True, env=environment()
        )
        self.assertEqual(run("run", *show).stdout, directly.stdout)

    def wait_for_line(self, process: "subprocess.Popen[str]") -> str:
        assert process.stdout is not None
        return process.stdout.readline().strip()

    def test_signals_that_are_sent_to_us_are_passed_on(self) -> None:
        script = "trap 'echo told; exit 9' {}; echo ready; while :; do sleep 0.05; done"
        for name in ("TERM", "INT", "HUP", "USR1"):
            with self.subTest(name):
                process = self.start("run", "sh", "-c", script.format(name))
                self.assertEqual(self.wait_for_line(process), "ready")
                process.send_signal(getattr(signal, f"SIG{name}"))
                self.assertEqual(self.wait_for_line(process), "told")
                self.assertEqual(process.wait(30), 9)

    def test_ctrl_c_reaches_the_program_once_and_the_summary_comes(self) -> None:
        script = (
            "import signal, time\nseen = []\n"
            "signal.signal(signal.SIGINT, lambda *_: seen.append(1))\n"
            "print('ready', flush=True)\n"
            "while not seen: time.sleep(0.01)\n"
            "time.sleep(0.3)\nprint('seen', len(seen), flush=True)\nraise SystemExit(5)\n"
        )
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(PROGRAM, [PROGRAM, "run", sys.executable, "-c", script], environment())
        output = b""
        sent = False
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                output += os.read(terminal, 4096)
            except OSError:
                break
            if b"ready" in output and not sent:
                os.write(terminal, b"\x03")
                sent = True
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 5, output)
        self.assertIn(b"seen 1", output)
        self.assertIn(b"ended with 5", output)


class LibraryTest(RunTest):
    """Which library answers."""

    def whose(self, *words: str, **changes: str) -> list[str]:
        done = run(*words, **changes)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.split()

    def directly(self, code: str, **changes: str) -> list[str]:
        done = subprocess.run(
            client(code), capture_output=True, text=True, check=True, env=environment(**changes)
        )
        return done.stdout.split()

    def test_under_run_every_name_and_path_leads_to_ours(self) -> None:
        copy = self.folder / "libcufile.so.1.15.1"
        copy.write_bytes(VENDORS.read_bytes())
        found = self.whose(
            "run",
            *client(f"""
            for name in ("libcufile.so.0", "libcufile.so", {str(VENDORS)!r}, {str(copy)!r}):
                print(whose(load(name)))
            """),
            LD_LIBRARY_PATH=str(VENDORS.parent),
        )
        self.assertEqual(found, ["ours"] * 4)

    def test_under_run_a_program_that_is_linked_by_a_path_of_its_own_gets_ours(self) -> None:
        linked = str(CLIENTS / "run_linked")
        direct = subprocess.run([linked], capture_output=True, text=True, check=True)
        self.assertIn(str(VENDORS), direct.stdout)
        version, path = self.whose("run", linked, STRAIGHTWAY_CUFILE_VERSION="1.18")
        self.assertEqual((version, Path(path).resolve()), ("1180", OURS.resolve()))

    def test_under_run_a_preloaded_vendors_library_is_ours(self) -> None:
        linked = str(CLIENTS / "run_linked")
        _, path = self.whose("run", linked, LD_PRELOAD=str(VENDORS))
        self.assertEqual(Path(path).resolve(), OURS.resolve())

    def test_under_run_what_straightway_opens_on_purpose_is_the_vendors(self) -> None:
        code = f"""
        # A path that was redirected is a name of ours to the loader: the second is spelled apart
        for name, root in (("libopener.so", ""), ("libstraightway-opener.so", "/.")):
            opener = ctypes.CDLL({str(CLIENTS)!r} + "/" + name)
            opener.open_library.restype = ctypes.c_void_p
            handle = opener.open_library((root + {str(VENDORS)!r}).encode())
            print(whose(ctypes.CDLL(None, handle=handle)))
        """
        self.assertEqual(self.whose("run", *client(code)), ["ours", "vendor"])

    def test_the_audit_library_alone(self) -> None:
        code = f"print(whose(load({str(VENDORS)!r})))"
        self.assertEqual(self.directly(code), ["vendor"])
        self.assertEqual(self.directly(code, LD_AUDIT=str(AUDIT)), ["ours"])

    def test_preloaded_ours_answers_what_is_linked_or_opened_by_name(self) -> None:
        code = f"""
        for name in (None, "libcufile.so.0", {str(VENDORS)!r}):
            print(whose(ctypes.CDLL(name)))
        """
        found = self.directly(code, LD_PRELOAD=str(OURS))
        self.assertEqual(found, ["ours", "ours", "vendor"])  # by an absolute path: a second copy
        linked = subprocess.run(
            [CLIENTS / "run_linked"],
            capture_output=True,
            text=True,
            check=True,
            env=environment(LD_PRELOAD=str(OURS)),
        )
        self.assertIn(str(OURS), linked.stdout)

    def test_in_the_search_path_ours_answers_what_is_opened_by_name(self) -> None:
        code = 'print(whose(load("libcufile.so.0")))'
        self.assertEqual(self.directly(code, LD_LIBRARY_PATH=str(OURS.parent)), ["ours"])
        linked = subprocess.run(  # its own path goes first
            [CLIENTS / "run_linked"],
            capture_output=True,
            text=True,
            check=True,
            env=environment(LD_LIBRARY_PATH=str(OURS.parent)),
        )
        self.assertNotIn(str(VENDORS) if "RUNPATH" in self.dynamic() else str(OURS), linked.stdout)

    def dynamic(self) -> str:
        return subprocess.run(
            ["readelf", "-d", CLIENTS / "run_linked"], capture_output=True, text=True, check=True
        ).stdout

    def test_loaded_first_or_second_the_name_is_the_firsts(self) -> None:
        for first, second, name in ((OURS, VENDORS, "ours"), (VENDORS, OURS, "vendor")):
            code = f"""
            print(whose(load({str(first)!r})), whose(load({str(second)!r})))
            print(whose(load("libcufile.so.0")))
            """
            other = "vendor" if name == "ours" else "ours"
            self.assertEqual(self.directly(code), [name, other, name])

    def test_what_was_in_the_environment_stays(self) -> None:
        script = 'echo "$LD_AUDIT $LD_PRELOAD"'
        before = str(self.folder / "before.so")
        done = run("run", "sh", "-c", script, LD_AUDIT=before, LD_PRELOAD="libm.so.6")
        audit, preload = done.stdout.split()
        self.assertEqual(preload, "libm.so.6")
        self.assertEqual([Path(part).name for part in audit.split(":")], [AUDIT.name, "before.so"])
        again = run("run", "sh", "-c", script, LD_AUDIT=audit)
        self.assertEqual(again.stdout.split()[0], audit)


class ObstacleTest(RunTest):
    def test_a_static_program_is_said_plainly_and_runs(self) -> None:
        done = run("run", CLIENTS / "run_static")
        self.assert_error(
            done, 3, "it is statically linked; it runs as it is", "nothing could be put"
        )

    def test_a_program_with_other_privileges_is_said_plainly_and_runs(self) -> None:
        if os.geteuid() != 0:
            self.skipTest("only root can make one")
        program = self.folder / "true"
        program.write_bytes(Path("/bin/true").read_bytes())
        os.chown(program, 65534, -1)
        program.chmod(0o755 | stat.S_ISUID)
        self.folder.chmod(0o755)
        self.assert_error(run("run", program), 0, "other privileges")

    def test_the_interpreter_of_a_script_counts(self) -> None:
        script = self.folder / "script"
        script.write_text(f"#!{CLIENTS / 'run_static'}\n")
        script.chmod(0o755)
        self.assert_error(run("run", script), 3, "statically linked")
        script.write_text("#!/usr/bin/env sh\nexit 0\n")
        self.assertNotIn("runs as it is", run("run", script).stderr)

    def test_a_program_without_cufile_is_told_why_there_is_nothing(self) -> None:
        done = run("run", "true")
        self.assertIn("nothing went through Straightway", done.stderr)
        self.assertIn("no process of it opened cuFile", done.stderr)


class SummaryTest(RunTest):
    def setUp(self) -> None:
        super().setUp()
        self.file = self.make_file("weights.bin", 4 * MIB)

    def test_files_routes_bytes_and_reasons(self) -> None:
        done = run_client(f"read_host({str(self.file)!r}, {4 * MIB}, times=3)")
        self.assertEqual(done.returncode, 0, done.stderr)
        for part in (
            "12 MiB read, 0 bytes written, by 1 process",
            f"read 12 MiB of {self.file} into host memory: 3 requests of 4 MiB on average",
            "buffered",
            "cuFile moves host memory in one piece",
        ):
            self.assertIn(part, done.stderr)

    def test_json_has_the_same(self) -> None:
        summary = self.summary_of(f"read_host({str(self.file)!r}, {4 * MIB}, times=3)")
        (file,) = summary["files"]
        self.assertEqual(file["path"], str(self.file))
        self.assertEqual(file["door"], "cufile")
        self.assertEqual((file["moved_bytes"], file["requests"]), (12 * MIB, 3))
        (way,) = file["routes"]
        self.assertEqual((way["route"], way["bytes"]), ("buffered", 12 * MIB))
        self.assertEqual(file["layer"]["n"], 0)  # host memory moves no counter of that layer
        self.assertEqual(summary["exit_code"], 0)
        self.assertEqual(len(summary["processes"]), 1)

    def test_a_killed_program_has_a_summary(self) -> None:
        summary = self.summary_of(
            f"read_host({str(self.file)!r}, {MIB}); os.kill(os.getpid(), 9)", exit_code=137
        )
        self.assertEqual(summary["read_bytes"], MIB)
        self.assertEqual(summary["signal"], 9)

    def test_children_count_too(self) -> None:
        for start in ("fork", "exec"):
            with self.subTest(start):
                summary = self.summary_of(f"""
                    import subprocess
                    read_host({str(self.file)!r}, {MIB})
                    if {start!r} == "fork":
                        if os.fork() == 0:
                            read_host({str(self.file)!r}, {MIB})
                            os._exit(0)
                        os.wait()
                    elif len(sys.argv) == 1:
                        code = open("/proc/self/cmdline").read().split("\\0")[2]
                        subprocess.run([sys.executable, "-c", code, "child"], check=True)
                """)
                self.assertEqual(summary["read_bytes"], 2 * MIB)
                self.assertEqual(len(summary["processes"]), 1 if start == "fork" else 2)

    def test_many_small_requests_are_advised_to_be_larger(self) -> None:
        done = run_client(f"read_host({str(self.file)!r}, 4096, times=200)")
        self.assertIn("What would be faster", done.stderr)
        self.assertIn("larger requests: 200 were of 4 KiB on average", done.stderr)

    def test_failures_are_counted(self) -> None:
        summary = self.summary_of(f"""
            os.environ["CUFILE_ALLOW_COMPAT_MODE"] = "true"
            library = load("libcufile.so.0")
            try:
                read(library, {str(self.file)!r}, 4096, {MIB})
            except AssertionError:
                pass
        """)
        self.assertEqual(summary["read_errors"], 1)

    def test_device_memory_with_its_refusals(self) -> None:
        code = f"""
        cuda = ctypes.CDLL("libcuda.so.1")
        context, memory = ctypes.c_void_p(), ctypes.c_uint64()
        assert cuda.cuInit(0) == 0
        assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
        assert cuda.cuCtxPushCurrent_v2(context) == 0
        assert cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t({4 * MIB})) == 0
        read(load("libcufile.so.0"), {str(self.file)!r}, memory.value, {4 * MIB}, 2)
        """
        summary = self.summary_of(code, **SIMULATED_GPU)
        (file,) = summary["files"]
        self.assertEqual((file["memory"], file["moved_bytes"]), ("cuda:0", 8 * MIB))
        self.assertEqual({way["route"] for way in file["routes"]}, {"staged"})
        self.assertEqual(file["layer"], {"n": 2, "nvfs": 0, "p2pdma": 0, "posix": 2})
        self.assertIn("nvfs", {refusal["route"] for refusal in file["refused"]})
        text = run_client(code, **SIMULATED_GPU).stderr
        self.assertIn("into cuda:0", text)
        self.assertIn("not nvfs", text)
        self.assertIn("cuFile counters: n=2 nvfs=0 p2pdma=0 posix=2", text)
        self.assertIn("which was read 2 times over", text)

    def test_straightways_own_interface_counts_too(self) -> None:
        done = run("run", PROGRAM, "copy", self.file, self.folder / "copy")
        self.assertIn(f"read 4 MiB of {self.file}", done.stderr)
        self.assertIn("write 4 MiB to", done.stderr)

    def test_a_wrong_place_is_passed_over(self) -> None:
        for place in ("/proc/self/exe", "/dev/null", "/no/such", str(self.file), "x"):
            done = run("copy", self.file, self.folder / "copy", "--force", STRAIGHTWAY_RUN=place)
            self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
