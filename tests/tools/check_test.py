"""straightway check."""

import os
import unittest
from typing import Any

from program import MIB, ProgramTest, run


def by_subject(section: dict[str, Any]) -> dict[str, dict[str, str]]:
    return {finding["subject"]: finding for finding in section["findings"]}


class CheckTest(ProgramTest):
    def test_the_machine(self) -> None:
        (machine,) = self.run_json("check")
        findings = by_subject(machine)
        self.assertEqual(findings["kernel"]["fact"], os.uname().release)
        self.assertEqual(findings["page"]["verdict"], "pass")
        nvidia_fs = "pass" if os.path.exists("/proc/driver/nvidia-fs") else "lacking"
        self.assertEqual(findings["nvidia-fs"]["verdict"], nvidia_fs)
        udev = "pass" if os.path.isdir("/run/udev") else "lacking"
        self.assertEqual(findings["udev"]["verdict"], udev)
        for finding in machine["findings"]:
            self.assertIn(finding["verdict"], ("pass", "lacking", "unknown"))
            self.assertTrue(finding["fact"])

    def test_a_file_with_its_routes(self) -> None:
        file = self.make_file("file", MIB)
        sections = self.run_json("check", file)
        self.assertEqual(
            [section["title"] for section in sections],
            ["This machine", str(file), "Routes into cuda:0", "Routes into host memory"],
        )
        facts = by_subject(sections[1])
        self.assertIn("1 MiB of 1 MiB resident", facts["page cache"]["fact"])
        device, host = by_subject(sections[2]), by_subject(sections[3])
        for route in ("nvfs", "p2pdma", "staged"):
            self.assertIn(route, device)
        self.assertEqual(host["buffered"]["verdict"], "pass")
        for findings in (device, host):
            for finding in findings.values():
                self.assertTrue(finding["fact"], finding)

    def test_a_folder_has_a_file_system_but_no_routes(self) -> None:
        sections = self.run_json("check", self.folder)
        self.assertEqual(len(sections), 2)
        self.assertEqual(by_subject(sections[1])["file system"]["verdict"], "pass")

    def test_text_has_a_line_for_each_fact(self) -> None:
        done = run("check", self.make_file("file", MIB))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^  pass +kernel +\d")
        self.assertRegex(done.stdout, r"(?m)^  (pass|lacking|unknown) +direct I/O +\w")

    def test_b11_a_missing_file_is_1(self) -> None:
        self.assert_error(run("check", self.folder / "absent"), 1, "absent", "ENOENT")

    def test_an_empty_file_is_no_error(self) -> None:
        (self.folder / "empty").touch()
        self.assertEqual(run("check", self.folder / "empty").returncode, 0)


if __name__ == "__main__":
    unittest.main()
