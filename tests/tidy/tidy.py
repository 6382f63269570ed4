"""Checks what the compiler does not: sizes, names, which stage includes which, banned calls.

`tidy.py` prints every finding as FILE:LINE: TEXT and exits with 1 if there is one. With
`--compile CXX` it also compiles each installed header alone.
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]

COLUMNS = 100
FUNCTION_LINES = 70
FILE_LINES = 500

BANNED_NAMES = {
    "core",
    "common",
    "utils",
    "util",
    "helper",
    "helpers",
    "manager",
    "impl",
    "detail",
    "handler",
    "misc",
}

# What a stage may include besides its own headers and the installed ones. `api` wires everything;
# nobody includes api but the edges (tools, python, tests, cufile).
STAGE_INCLUDES: dict[str, set[str]] = {
    "plan": set(),
    "os": set(),
    "memory": {"os"},
    "receipt": {"os", "plan"},
    "transport": {"memory", "os"},
    "drive": {"memory", "os", "plan", "receipt", "transport"},
    "api": {"drive", "memory", "os", "plan", "receipt", "transport"},
    "cufile": {"api", "drive", "memory", "os", "plan", "receipt", "transport"},
}

# Sources without a test file of the same name (X_test.cpp or X_gpu_test.cpp), each with the test
# that covers it.
TESTED_BY: dict[str, str] = {
    "src/api/call.cpp": "tests/api/file_test.cpp",
    "src/api/context.cpp": "tests/api/engine_test.cpp",
    "src/api/outcome.cpp": "tests/api/file_test.cpp",
    "src/api/page_cache.cpp": "tests/cases/cold_test.cpp",
    "src/cufile/buffers.cpp": "tests/cufile/exports_files_gpu_test.cpp",
    "src/os/cufile_codes.cpp": "tests/cufile/cases_gpu_test.cpp",
    "src/cufile/driver.cpp": "tests/cufile/exports_driver_test.cpp",
    "src/cufile/environment.cpp": "tests/cufile/exports_driver_test.cpp",
    "src/cufile/exports_queued.cpp": "tests/cufile/queued_gpu_test.cpp",
    "src/cufile/exports_stats.cpp": "tests/cufile/exports_driver_test.cpp",
    "src/cufile/handles.cpp": "tests/cufile/exports_files_gpu_test.cpp",
    "src/cufile/machine.cpp": "tests/cufile/exports_driver_test.cpp",
    "src/cufile/keys.cpp": "tests/cufile/configuration_test.cpp",
    "src/cufile/log.cpp": "tests/cufile/exports_driver_test.cpp",
    "src/cufile/parameters.cpp": "tests/cufile/exports_driver_test.cpp",
    "src/cufile/registration.cpp": "tests/cufile/exports_files_gpu_test.cpp",
    "src/cufile/session.cpp": "tests/cufile/exports_driver_test.cpp",
    "src/cufile/starter.cpp": "tests/cufile/queued_gpu_test.cpp",
    "src/cufile/streams.cpp": "tests/cufile/queued_gpu_test.cpp",
    "src/cufile/topology.cpp": "tests/cufile/exports_driver_test.cpp",
    "src/cufile/transfer.cpp": "tests/cufile/exports_files_gpu_test.cpp",
    "src/cufile/userspace.cpp": "tests/cufile/exports_files_gpu_test.cpp",
    "src/cufile/vectored.cpp": "tests/cufile/exports_files_gpu_test.cpp",
    "src/cufile/version.cpp": "tests/cufile/exports_driver_test.cpp",
    "src/api/peer_call.cpp": "tests/api/peer_test.cpp",
    "src/api/peer_trial.cpp": "tests/api/peer_test.cpp",
    "src/api/peer_ways.cpp": "tests/api/peer_test.cpp",
    "src/api/transport_maker.cpp": "tests/api/engine_test.cpp",
    "src/api/vendor_ways.cpp": "tests/api/vendor_call_gpu_test.cpp",
    "src/transport/cufile_library.cpp": "tests/transport/vendor_cufile_gpu_test.cpp",
    "src/drive/pump.cpp": "tests/api/engine_test.cpp",
    "src/memory/cuda_devices.cpp": "tests/memory/cuda_load_gpu_test.cpp",
    "src/memory/cuda_driver.cpp": "tests/memory/cuda_load_gpu_test.cpp",
    "src/memory/cuda_pinned.cpp": "tests/memory/cuda_lane_gpu_test.cpp",
    "src/memory/cuda_space.cpp": "tests/memory/cuda_load_gpu_test.cpp",
    "src/memory/fork_guard.cpp": "tests/memory/cuda_load_gpu_test.cpp",
    "src/api/small_call.cpp": "tests/api/file_test.cpp",
    "src/api/pin.cpp": "tests/api/pin_gpu_test.cpp",
    "src/memory/cuda_held_pages.cpp": "tests/memory/file_pins_gpu_test.cpp",
    "src/memory/pinned_range.cpp": "tests/memory/file_pins_gpu_test.cpp",
    "src/os/descriptor.cpp": "tests/api/open_file_test.cpp",
    "src/os/disk_account.cpp": "tests/transport/posix_test.cpp",
    "src/os/memory_access.cpp": "tests/transport/uring_test.cpp",
    "src/os/shown_memory.cpp": "tests/receipt/ledger_reader_test.cpp",
    "src/plan/cufile_layer.cpp": "tests/plan/layers_test.cpp",
    "src/plan/direct_paths.cpp": "tests/plan/auto_policy_test.cpp",
    "src/plan/front_layer.cpp": "tests/plan/layers_test.cpp",
    "src/plan/plan.cpp": "tests/plan/plan_property_test.cpp",
    "src/plan/plan_json.cpp": "tests/plan/plan_text_test.cpp",
    "src/plan/runs.cpp": "tests/plan/plan_property_test.cpp",
    "src/plan/words.cpp": "tests/plan/route_test.cpp",
}

# Files that may contain `catch (...)`, each with the reason.
CATCH_ALL: dict[str, str] = {
    "src/api/c_edge.cpp": "the edge of the C ABI: nothing may be thrown into C",
    "src/api/c_edge.hpp": "the edge of the C ABI: nothing may be thrown into C",
    "src/api/engine.cpp": "a user's sink for warnings may throw",
    "src/api/job.cpp": "a user's callback may throw, on a thread of all transfers",
    "src/cufile/edge.hpp": "the edge of the cuFile ABI: nothing may be thrown into C",
    "src/cufile/exports_files.cpp": "the edge of the cuFile ABI: nothing may be thrown into C",
    "src/drive/pump.cpp": "a user's progress callback may throw, on a thread of all transfers",
}

# Files that may call something banned, each with the reason: (file, call).
EXEMPT_CALLS: dict[tuple[str, str], str] = {
    ("src/cufile/environment.cpp", "getenv"): "the edge of the cuFile ABI reads CUFILE_* variables",
}

BANNED_CALLS = {
    "abort": r"\b(?:std::)?abort\s*\(",
    "exit": r"\b(?:std::|::)?_?exit\s*\(",
    "printf": r"\b(?:std::)?f?printf\s*\(",
    "cout": r"\bstd::c(?:out|err|log)\b",
    "puts": r"\bf?puts\s*\(",
    "getenv": r"\bgetenv\s*\(",
}


class Finding(NamedTuple):
    path: str
    line: int
    text: str


def tracked_files(root: Path) -> list[str]:
    """The files that belong to the project: git's view of the tree, or all where there is none."""
    git = subprocess.run(
        [
            "git",
            "-c",
            f"safe.directory={root}",
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
        ],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    if git.returncode == 0:
        return sorted(path for path in git.stdout.splitlines() if (root / path).is_file())
    return sorted(
        str(path.relative_to(root))
        for path in root.rglob("*")
        if path.is_file() and "build" not in path.relative_to(root).parts
    )


RAW_STRING = re.compile(r'R"(\w*)\(.*?\)\1"', re.DOTALL)


def strip_comments(text: str) -> str:
    """Blanks comments and string contents, keeping the line numbers."""
    pattern = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'',
        re.DOTALL,
    )

    def blank(match: re.Match[str]) -> str:
        found = match.group(0)
        return ("" if found.startswith("/") else '""') + "\n" * found.count("\n")

    return pattern.sub(blank, text)


def find_lines(path: str, text: str, pattern: str, message: str) -> Iterator[Finding]:
    for match in re.finditer(pattern, text):
        yield Finding(path, text.count("\n", 0, match.start()) + 1, message)


def check_sizes(path: str, text: str) -> Iterator[Finding]:
    lines = text.splitlines()
    unbroken = RAW_STRING.sub(lambda match: "\n" * match[0].count("\n"), text).splitlines()
    for number, line in enumerate(unbroken, 1):
        if len(line) > COLUMNS:
            yield Finding(path, number, f"{len(line)} columns, {COLUMNS} are the limit")
    if path.startswith(("src/", "include/", "tools/")) and len(lines) > FILE_LINES:
        yield Finding(path, len(lines), f"{len(lines)} lines, {FILE_LINES} are the limit")


def check_names(path: str, text: str) -> Iterator[Finding]:
    parts = Path(path).parts
    words = {word for part in parts for word in (part, *re.split(r"[_.\-]", Path(part).stem))}
    for word in sorted(words & BANNED_NAMES):
        yield Finding(path, 1, f"a file or folder named '{word}' says nothing about what it does")
    for match in re.finditer(r"\b(?:class|struct)\s+(\w+)", text):
        for word in re.findall(r"[A-Z][a-z]+", match.group(1)):
            if word.lower() in BANNED_NAMES:
                line = text.count("\n", 0, match.start()) + 1
                yield Finding(path, line, f"'{match.group(1)}': no class named '{word}'")


def check_includes(path: str, text: str) -> Iterator[Finding]:
    stage = path.split("/")[1]
    allowed = STAGE_INCLUDES.get(stage)
    if allowed is None:
        yield Finding(path, 1, f"src/{stage} is no stage that tests/tidy knows")
        return
    for match in re.finditer(r'^\s*#\s*include\s*"([^"]+)"', text, re.MULTILINE):
        target = match.group(1).split("/")[0]
        if target not in allowed | {stage, "straightway"}:
            line = text.count("\n", 0, match.start()) + 1
            yield Finding(path, line, f"{stage}/ may not include {match.group(1)}")


def check_calls(path: str, text: str) -> Iterator[Finding]:
    for call, pattern in BANNED_CALLS.items():
        if (path, call) in EXEMPT_CALLS or (call == "getenv" and path.startswith("src/api/")):
            continue
        yield from find_lines(path, text, pattern, f"a library does not call {call}")
    if path not in CATCH_ALL:
        yield from find_lines(path, text, r"\bcatch\s*\(\s*\.\.\.", "catch (...) hides what failed")


def check_twins(files: list[str], tested_by: dict[str, str]) -> Iterator[Finding]:
    present = set(files)
    for path in files:
        match = re.fullmatch(r"src/(\w+)/(\w+)\.cpp", path)
        if not match:
            continue
        twins = [f"tests/{match[1]}/{match[2]}{end}" for end in ("_test.cpp", "_gpu_test.cpp")]
        twins += [tested_by[path]] if path in tested_by else []
        if not present.intersection(twins):
            yield Finding(path, 1, f"has no {twins[-1] if path in tested_by else twins[0]}")
    for path in sorted(set(tested_by) - present):
        yield Finding("tests/tidy/tidy.py", 1, f"TESTED_BY names {path}, which does not exist")


def check_installed_includes(path: str, text: str) -> Iterator[Finding]:
    for match in re.finditer(r'^\s*#\s*include\s*(["<])([^">]+)[">]', text, re.MULTILINE):
        line = text.count("\n", 0, match.start()) + 1
        quoted, name = match.group(1) == '"', match.group(2)
        if quoted and not name.startswith("straightway/"):
            yield Finding(path, line, f"an installed header includes {name}")
        if not quoted and not re.fullmatch(r"[a-z_]+|std\w+\.h", name):
            yield Finding(path, line, f"<{name}> is not of the standard library")


NOT_A_FUNCTION = re.compile(
    r"\b(?:namespace|class|struct|enum|union|extern)\b(?!.*\))|=\s*$|^\s*$", re.DOTALL
)


def find_functions(code: str) -> Iterator[tuple[int, int, str]]:
    """First line, number of lines and head of each outermost function body in stripped code."""
    code = re.sub(
        r"^\s*#(?:[^\n]*\\\n)*[^\n]*",
        lambda m: "\n" * m.group(0).count("\n"),
        code,
        flags=re.MULTILINE,
    )
    depth, start, head_at = 0, -1, 0  # depth counts braces inside a function
    for match in re.finditer(r"[{};]", code):
        sign, at = match.group(0), match.start()
        if start >= 0:
            depth += {"{": 1, "}": -1, ";": 0}[sign]
            if depth == 0:
                first = code.count("\n", 0, start) + 1
                yield first, code.count("\n", start, at) + 1, code[head_at:start].strip()
                start, head_at = -1, at + 1
        elif sign == "{" and not NOT_A_FUNCTION.search(code[head_at:at]):
            start, depth = at, 1
        else:
            head_at = at + 1


def check_function_lengths(path: str, code: str) -> Iterator[Finding]:
    for first, length, head in find_functions(code):
        if length > FUNCTION_LINES:
            name = re.findall(r"[\w~:]+", head.split("(")[0])
            yield Finding(
                path,
                first,
                f"{name[-1] if name else 'function'}: {length} lines, "
                f"{FUNCTION_LINES} are the limit",
            )


def check_file(path: str, text: str) -> Iterator[Finding]:
    if Path(path).suffix not in {".cpp", ".hpp", ".h", ".c"}:
        return
    yield from check_sizes(path, text)
    code = strip_comments(text)
    yield from check_names(path, code)
    if path.endswith((".hpp", ".h")) and "#pragma once" not in code:
        yield Finding(path, 1, "#pragma once is missing")
    yield from check_function_lengths(path, code)
    if path.startswith("src/"):
        yield from check_includes(path, text)
        yield from check_calls(path, code)
    if path.startswith("include/"):
        yield from check_installed_includes(path, text)


def check_headers_alone(root: Path, files: list[str], compiler: str) -> Iterator[Finding]:
    for path in files:
        if not path.startswith("include/"):
            continue
        languages = [["-x", "c++", "-std=c++20"]]
        if path.endswith(".h"):
            languages.append(["-x", "c", "-std=c11"])
        for language in languages:
            result = subprocess.run(
                [
                    compiler,
                    *language,
                    "-fsyntax-only",
                    "-Wall",
                    "-Wextra",
                    "-Iinclude",
                    "-include",
                    path,
                    "/dev/null",
                ],
                cwd=root,
                capture_output=True,
                text=True,
                check=False,
            )
            if result.returncode != 0 or result.stderr:
                yield Finding(path, 1, f"does not compile alone: {result.stderr[:300]}")


def check_tree(root: Path, tested_by: dict[str, str], compiler: str | None = None) -> list[Finding]:
    files = tracked_files(root)
    findings: list[Finding] = []
    for path in files:
        if path.startswith(
            ("src/", "include/", "tools/", "tests/", "python/", "bench/", "examples/")
        ) and Path(path).suffix in {".cpp", ".hpp", ".h", ".c"}:
            findings += check_file(path, (root / path).read_text(encoding="utf-8"))
    findings += check_twins(files, tested_by)
    if compiler:
        findings += check_headers_alone(root, files, compiler)
    return findings


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compile", metavar="CXX", help="also compile each installed header alone")
    arguments = parser.parse_args()
    findings = check_tree(ROOT, TESTED_BY, arguments.compile)
    for finding in findings:
        print(f"{finding.path}:{finding.line}: {finding.text}")
    print(f"tidy: {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
