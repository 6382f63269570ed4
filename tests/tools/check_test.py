"""straightway check."""

import os
import unittest
from pathlib import Path
from typing import Any

from program import MIB, ProgramTest, run

MACHINES = Path(__file__).parent / "machines"
# Of each recorded machine: the file that is asked for, and the exit codes of --require direct and
# --require staged.
FILES = {
    "amd": ("/data/model", 1, 1),
    "cloud-vm": ("/home/u/model", 1, 0),
    "container": ("/app/model", 1, 0),
    "lvm-laptop": ("/home/u/model", 1, 0),
    "nvfs-server": ("/data/model", 1, 0),
    "p2pdma-server": ("/data/model", 1, 0),
    "wsl": ("/home/u/model", 1, 1),
}


def lay_out(machine: str, folder: Path) -> None:
    """Makes what a manifest describes: `file = text` (\\n in it), `link -> target`, `folder/`."""
    for line in (MACHINES / f"{machine}.tree").read_text().splitlines():
        if line.startswith("#"):
            continue
        name, separator, value = line.partition(" -> ")
        if separator:
            path = folder / name[1:]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(value)
        elif line.endswith("/"):
            (folder / line[1:]).mkdir(parents=True, exist_ok=True)
        else:
            name, _, value = line.partition(" =")
            path = folder / name[1:]
            path.parent.mkdir(parents=True, exist_ok=True)
            text = value.strip().encode().decode("unicode_escape")
            path.write_text(text + "\n" if text else "")


def by_subject(section: dict[str, Any]) -> dict[str, dict[str, str]]:
    return {finding["subject"]: finding for finding in section["findings"]}


class CheckTest(ProgramTest):
    def test_the_machine(self) -> None:
        machine = self.run_json("check")[0]
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
            ["This machine", str(file), "Routes into cuda:0", "Routes into host memory"]
            + [section["title"] for section in sections[4:]],
        )
        for section, way in zip(sections[4:], ("nvfs", "p2pdma"), strict=True):
            title = rf"^Direct way {way}: \d+ lacking, \d+ unknown of \d+$"
            self.assertRegex(section["title"], title)
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
        self.assertEqual(len(sections), 4)
        self.assertEqual(by_subject(sections[1])["file system"]["verdict"], "pass")

    def test_text_has_a_line_for_each_fact(self) -> None:
        done = run("check", self.make_file("file", MIB))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^  pass +kernel +\d")
        self.assertRegex(done.stdout, r"(?m)^  (pass|lacking|unknown) +direct I/O +\w")

    def test_recorded_machines_give_their_reports(self) -> None:
        for machine, (file, direct, staged) in FILES.items():
            with self.subTest(machine):
                folder = self.folder / machine
                folder.mkdir()
                lay_out(machine, folder)
                done = run("check", "--tree", folder, file)
                self.assertEqual(done.returncode, 0, done.stderr)
                golden = MACHINES / f"{machine}.txt"
                if os.environ.get("STRAIGHTWAY_WRITE_GOLDEN"):
                    golden.write_text(done.stdout)
                self.assertEqual(done.stdout, golden.read_text())
                for require, code in (("direct", direct), ("staged", staged)):
                    done = run("check", "--tree", folder, "--require", require, file)
                    self.assertEqual(done.returncode, code, require)

    def test_whatever_is_lacking_comes_with_a_fix(self) -> None:
        for machine, (file, _, _) in FILES.items():
            folder = self.folder / machine
            folder.mkdir()
            lay_out(machine, folder)
            for section in self.run_json("check", "--tree", folder, file):
                for finding in section["findings"]:
                    self.assertTrue(finding["fact"], finding)
                    self.assertTrue(finding["source"], finding)
                    if finding["verdict"] == "lacking":
                        self.assertTrue(finding.get("fix"), finding)

    def test_a_damaged_configuration_is_pointed_at(self) -> None:
        (self.folder / "etc").mkdir()
        (self.folder / "etc" / "cufile.json").write_text('{"properties": [}')
        for section in self.run_json("check", "--tree", self.folder):
            finding = by_subject(section)["cufile.json"]
            self.assertEqual(finding["verdict"], "lacking")
            self.assertIn("/etc/cufile.json:1:17: expected a value", finding["fact"])

    def test_an_empty_tree_lacks_nearly_everything(self) -> None:
        done = run("check", "--tree", self.folder, "--require", "direct", "/data/x")
        self.assertEqual(done.returncode, 1)
        self.assertIn("its version cannot be read", done.stdout)

    def test_require_takes_two_words(self) -> None:
        self.assertEqual(run("check", "--require", "fast").returncode, 2)

    def test_b11_a_missing_file_is_1(self) -> None:
        self.assert_error(run("check", self.folder / "absent"), 1, "absent", "ENOENT")

    def test_an_empty_file_is_no_error(self) -> None:
        (self.folder / "empty").touch()
        self.assertEqual(run("check", self.folder / "empty").returncode, 0)


if __name__ == "__main__":
    unittest.main()
