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
    "nvfs-server": ("/data/model", 0, 0),
    "p2pdma-server": ("/data/model", 0, 0),
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
        self.assertEqual(sections[6]["title"], "Configuration of libcufile.so.0")
        for section, way in zip(sections[4:6], ("nvfs", "p2pdma"), strict=True):
            title = rf"^Direct way {way}: \d+ lacking, \d+ unknown of \d+$"
            self.assertRegex(section["title"], title)
        facts = by_subject(sections[1])
        self.assertIn("1 MiB of 1 MiB resident", facts["page cache"]["fact"])
        self.assertIn(facts["pin"]["verdict"], ("pass", "lacking"))
        self.assertTrue(facts["pin"]["fact"])
        device, host = by_subject(sections[2]), by_subject(sections[3])
        for route in ("nvfs", "p2pdma", "staged"):
            self.assertIn(route, device)
        self.assertEqual(host["buffered"]["verdict"], "pass")
        for findings in (device, host):
            for finding in findings.values():
                self.assertTrue(finding["fact"], finding)

    def test_a_folder_has_a_file_system_but_no_routes(self) -> None:
        sections = self.run_json("check", self.folder)
        self.assertEqual(len(sections), 5)
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
        sections = self.run_json("check", "--tree", self.folder)
        self.assertEqual(len(sections), 3)
        for section in sections:
            finding = by_subject(section)["cufile.json"]
            self.assertEqual(finding["verdict"], "lacking")
            self.assertIn("/etc/cufile.json:1:17: expected a value", finding["fact"])

    def test_keys_that_take_no_effect_are_listed_with_the_reason(self) -> None:
        (self.folder / "etc").mkdir()
        (self.folder / "etc" / "cufile.json").write_text(
            '{"properties": {"prefer_iouring": true, "io_batchsize": 64, "io_priority": "high",\n'
            '  "posix_pool_slab_count": [1, 2, 3], "use_poll_mode": 1},\n'
            ' "execution": {"max_io_queue_depth": 64, "max_io_threads": 8}}'
        )
        section = self.run_json("check", "--tree", self.folder)[-1]
        self.assertEqual(section["title"], "Configuration of libcufile.so.0")
        found = {f["subject"]: (f["verdict"], f["fact"], f["source"]) for f in section["findings"]}
        file = "/etc/cufile.json"
        ours = "takes no effect: Straightway's own settings decide that here"
        vendors = "it matters only where the vendor's library does the direct I/O"
        not_taken = "it must be true or false, and is 1; false is used"
        self.assertEqual(
            found,
            {
                "cufile.json": ("pass", f"{file} is in force", file),
                "properties.use_poll_mode": ("lacking", not_taken, f"{file}:2:56"),
                "execution.max_io_queue_depth": ("lacking", f"= 64 (file) {ours}", file),
                "properties.posix_pool_slab_count": ("lacking", f"= [1,2,3] (file) {ours}", file),
                "properties.io_priority": (
                    "lacking",
                    f"= high (file) takes no effect: {vendors}",
                    file,
                ),
                "properties.prefer_iouring": (
                    "lacking",
                    "= true (file) takes no effect: nothing here depends on it",
                    file,
                ),
            },
        )
        for finding in section["findings"][1:]:
            self.assertTrue(finding["fix"])
        text = run("check", "--tree", self.folder).stdout
        self.assertRegex(text, r"(?m)^  lacking  properties\.prefer_iouring +" r"= true \(file\) ")

    def test_variables_count_here(self) -> None:
        config = self.folder / "cufile.json"
        config.write_text("{}")
        sections = self.run_json("check", CUFILE_ENV_PATH_JSON=str(config), CUFILE_NVTX="true")
        finding = by_subject(sections[-1])["profile.nvtx"]
        self.assertEqual(finding["source"], "environment")
        self.assertIn("= true (environment) takes no effect", finding["fact"])
        sections = self.run_json("check", CUFILE_STATS_LEVEL="9")
        finding = by_subject(sections[-1])["cufile.json"]
        self.assertEqual((finding["verdict"], finding["source"]), ("lacking", "environment"))
        self.assertIn("CUFILE_STATS_LEVEL", finding["fact"])

    def test_recorded_machines_as_gdscheck_reports_them(self) -> None:
        for machine in FILES:
            with self.subTest(machine):
                folder = self.folder / machine
                folder.mkdir()
                lay_out(machine, folder)
                done = run("check", "--tree", folder, "--format", "gdscheck")
                self.assertEqual(done.returncode, 0, done.stderr)
                golden = MACHINES / f"{machine}.gdscheck"
                if os.environ.get("STRAIGHTWAY_WRITE_GOLDEN"):
                    golden.write_text(done.stdout)
                self.assertEqual(done.stdout, golden.read_text())

    def test_gdscheck_claims_no_way_that_lacks_something(self) -> None:
        for machine in FILES:
            folder = self.folder / machine
            folder.mkdir()
            lay_out(machine, folder)
            report = run("check", "--tree", folder, "--format", "gdscheck").stdout
            seen = False
            for section in self.run_json("check", "--tree", folder)[:2]:
                whole = all(finding["verdict"] == "pass" for finding in section["findings"])
                seen = seen or whole
                if not whole:
                    way = section["title"].split()[2].rstrip(":")
                    self.assertNotRegex(report, rf"(?m)^ NVMe  .*\b{way}\b")
            self.assertEqual("Platform verification succeeded" in report, seen)

    def test_gdscheck_shows_configuration_and_variables(self) -> None:
        config = self.folder / "cufile.json"
        config.write_text(
            '{"properties": {"allow_compat_mode": false, "rdma_dynamic_routing": true,'
            ' "posix_pool_slab_count": [1, 2, 3]}, "fs": {"beegfs": {"posix_gds_min_kb": 7}}}'
        )
        done = run("check", "--format", "gdscheck", CUFILE_ENV_PATH_JSON=str(config))
        self.assertEqual(done.returncode, 0, done.stderr)
        for line in (
            f"CUFILE_ENV_PATH_JSON : {config}",
            "SCSI               : Unsupported",
            "properties.use_compat_mode : false",
            "properties.rdma_dynamic_routing : 1",
            "properties.posix_pool_slab_count : 1 2 3",
            "fs.beegfs.posix_gds_min_kb: 7",
        ):
            self.assertIn(f"\n {line}\n", done.stdout)

    def test_gdscheck_of_a_damaged_configuration(self) -> None:
        config = self.folder / "cufile.json"
        config.write_text("{,")
        done = run("check", "--format", "gdscheck", CUFILE_ENV_PATH_JSON=str(config))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"{config}:1:2: ", done.stdout)
        self.assertIn(" NVMe               : Unsupported\n", done.stdout)

    def test_gdscheck_is_of_the_machine_and_no_json(self) -> None:
        self.assert_error(run("check", "--format", "gdscheck", "--json"), 2, "--json")
        self.assert_error(run("check", "--format", "gdscheck", self.folder), 2, "FILE")

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
