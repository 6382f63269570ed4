"""The tidy test finds what it is there to find: a small tree with one violation at a time."""

import tempfile
import unittest
from pathlib import Path

import tidy


def findings(
    files: dict[str, str], compiler: str | None = None, tested_by: dict[str, str] | None = None
) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            target = Path(folder, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        found = tidy.check_tree(Path(folder), tested_by or {}, compiler)
        return [f"{one.path}:{one.line}: {one.text}" for one in found]


class Tidy(unittest.TestCase):
    def expect(self, path: str, text: str, *expected: str) -> None:
        found = [line for line in findings({path: text}) if "has no tests/" not in line]
        self.assertEqual(len(found), len(expected), found)
        for line, start in zip(found, expected, strict=True):
            self.assertTrue(line.startswith(start), line)

    def test_clean_source_has_no_finding(self) -> None:
        self.expect("src/plan/a.cpp", '#include "plan/a.hpp"\n#include "straightway/plan.hpp"\n')

    def test_long_line(self) -> None:
        self.expect("src/plan/a.cpp", "\n//" + "x" * 99 + "\n", "src/plan/a.cpp:2: 101 columns")

    def test_banned_file_and_class_names(self) -> None:
        self.expect(
            "src/plan/utils.cpp", "", "src/plan/utils.cpp:1: a file or folder named 'utils'"
        )
        self.expect("src/plan/a.cpp", "\nclass FileManager;\n", "src/plan/a.cpp:2: 'FileManager'")

    def test_stage_includes(self) -> None:
        self.expect(
            "src/transport/a.cpp",
            '#include "drive/driver.hpp"\n',
            "src/transport/a.cpp:1: transport/ may not include drive/driver.hpp",
        )
        self.expect(
            "src/plan/a.cpp",
            '#include "os/facts.hpp"\n',
            "src/plan/a.cpp:1: plan/ may not include os/facts.hpp",
        )
        self.expect(
            "src/drive/a.cpp",
            '#include "api/engine.hpp"\n',
            "src/drive/a.cpp:1: drive/ may not include api/engine.hpp",
        )

    def test_banned_calls(self) -> None:
        self.expect("src/os/a.cpp", "void f() { std::abort(); }\n", "src/os/a.cpp:1: ")
        self.expect("src/os/a.cpp", '\nchar* f() { return getenv("A"); }\n', "src/os/a.cpp:2: ")
        self.expect("src/api/a.cpp", 'char* f() { return getenv("A"); }\n')
        self.expect("src/os/a.cpp", "// abort() is never called; nor is exit()\n")
        self.expect("src/os/a.cpp", "void f() { snprintf(a, 1, b); on_exit_signal(); }\n")
        self.expect(
            "src/os/a.cpp",
            "void f() { try { g(); } catch (...) {} }\n",
            "src/os/a.cpp:1: catch (...)",
        )

    def test_headers(self) -> None:
        self.expect("src/os/a.hpp", "int f();\n", "src/os/a.hpp:1: #pragma once")
        self.expect(
            "include/straightway/a.hpp",
            "#pragma once\n#include <fmt/format.h>\n",
            "include/straightway/a.hpp:2: <fmt/format.h>",
        )
        found = findings({"include/straightway/a.hpp": "#pragma once\nstd::size_t a();\n"}, "g++")
        self.assertEqual(len(found), 1, found)
        self.assertIn("does not compile alone", found[0])

    def test_twins(self) -> None:
        self.assertEqual(
            findings({"src/os/a.cpp": ""}), ["src/os/a.cpp:1: has no tests/os/a_test.cpp"]
        )
        self.assertEqual(findings({"src/os/a.cpp": "", "tests/os/a_test.cpp": ""}), [])
        self.assertEqual(findings({"src/os/a.cpp": "", "tests/os/a_gpu_test.cpp": ""}), [])
        table = {"src/os/a.cpp": "tests/os/b_test.cpp"}
        files = {"src/os/a.cpp": "", "tests/os/b_test.cpp": ""}
        self.assertEqual(findings(files, tested_by=table), [])
        files = {"src/os/a.cpp": ""}
        self.assertEqual(len(findings(files, tested_by=table)), 1)
        files = {"tests/os/b_test.cpp": ""}
        self.assertEqual(len(findings(files, tested_by=table)), 1)

    def test_raw_strings_are_as_long_as_they_are(self) -> None:
        self.expect("tests/os/a_test.cpp", 'auto a = R"(x\n' + "y" * 200 + '\n)";\n')

    def test_long_function(self) -> None:
        body = "int f(int a) {\n" + "  if (a) { a += 1; }\n" * 69 + "  return a;\n}\n"
        self.expect(
            "src/os/a.cpp",
            "namespace a {\nclass B {\n" + body + "};\n}\n",
            "src/os/a.cpp:3: f: 72 lines",
        )
        self.expect("src/os/a.cpp", "namespace a {\n" + "void f() {}\n" * 99 + "}\n")
        self.expect("src/os/a.cpp", "void f() {\n  char a = '{';\n}\n" + "int b;\n" * 99)


if __name__ == "__main__":
    unittest.main()
