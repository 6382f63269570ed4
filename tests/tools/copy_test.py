"""straightway copy."""

import os
import signal
import subprocess
import time
import unittest

from program import MIB, PROGRAM, ProgramTest, environment, run


class CopyTest(ProgramTest):
    def test_bytes_of_every_size_arrive(self) -> None:
        for size_bytes in (0, 1, 4095, 4096, 8 * MIB - 1, 8 * MIB, 40 * MIB + 17):
            with self.subTest(size_bytes):
                source = self.make_file("source", size_bytes)
                target = self.folder / f"target-{size_bytes}"
                result = self.run_json("copy", source, target)
                self.assertEqual(target.read_bytes(), source.read_bytes())
                self.assertEqual(result["size_bytes"], size_bytes)
                if size_bytes > 0:
                    self.assertEqual(result["read"]["moved_bytes"], size_bytes)
                    self.assertEqual(result["written"]["moved_bytes"], size_bytes)
        self.assertEqual([name for name in self.names() if name.startswith(".")], [])

    def test_text_says_what_moved_which_way(self) -> None:
        done = run("copy", self.make_file("source", MIB), self.folder / "target")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("copied 1 MiB", done.stdout)
        self.assertIn("buffered", done.stdout)
        self.assertEqual(done.stderr, "", "progress is for terminals")

    def test_policies_caches_and_syncs(self) -> None:
        source = self.make_file("source", 3 * MIB + 5)
        for words in (
            ["--sync", "data"],
            ["--sync", "full"],
            ["--cache", "keep"],
            ["--cache", "bypass"],
            ["--policy", "auto"],
        ):
            with self.subTest(words):
                target = self.folder / "target"
                done = run("copy", "--force", *words, source, target)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(target.read_bytes(), source.read_bytes())

    def test_of_the_attributes_the_mode_bits_are_kept(self) -> None:
        source = self.make_file("source", 10)
        source.chmod(0o4751)
        target = self.folder / "target"
        self.assertEqual(run("copy", source, target).returncode, 0)
        self.assertEqual(target.stat().st_mode & 0o7777, 0o751)

    def test_closed_standard_streams_are_not_written_into_files(self) -> None:
        source = self.make_file("source", 3 * MIB + 5)
        before = source.read_bytes()
        for redirection in (">&-", "2>&-", "<&- >&- 2>&-"):
            with self.subTest(redirection):
                target = self.folder / "target"
                command = f'exec "$0" copy --force "$1" "$2" {redirection}'
                subprocess.run(
                    ["sh", "-c", command, PROGRAM, str(source), str(target)],
                    env=environment(),
                    capture_output=True,
                    check=False,
                )
                self.assertEqual(target.read_bytes(), before)
                self.assertEqual(source.read_bytes(), before)

    def test_what_exists_is_refused_without_force(self) -> None:
        source = self.make_file("source", 100)
        target = self.make_file("target", 10)
        before = target.read_bytes()
        self.assert_error(run("copy", source, target), 1, "exists", "--force", str(target))
        self.assertEqual(target.read_bytes(), before)
        self.assertEqual(run("copy", "--force", source, target).returncode, 0)
        self.assertEqual(target.read_bytes(), source.read_bytes())

    def test_b4_no_tail_of_a_longer_target_stays(self) -> None:
        source = self.make_file("source", 4096)
        target = self.make_file("target", 8192)
        self.assertEqual(run("copy", "-f", source, target).returncode, 0)
        self.assertEqual(target.stat().st_size, 4096)

    def test_the_same_file_is_refused_under_any_name(self) -> None:
        source = self.make_file("source", 100)
        (self.folder / "symbolic").symlink_to(source)
        os.link(source, self.folder / "hard")
        before = source.read_bytes()
        for name in ("source", "symbolic", "hard"):
            with self.subTest(name):
                done = run("copy", "--force", source, self.folder / name)
                self.assert_error(done, 1, "same file")
        self.assertEqual(source.read_bytes(), before)

    def test_h_a_link_stands_for_its_file(self) -> None:
        source = self.make_file("source", 100)
        real = self.make_file("real", 10)
        link = self.folder / "link"
        link.symlink_to("real")
        self.assertEqual(run("copy", "--force", source, link).returncode, 0)
        self.assertTrue(link.is_symlink())
        self.assertEqual(real.read_bytes(), source.read_bytes())

    def test_h_a_dangling_link_is_refused(self) -> None:
        source = self.make_file("source", 100)
        (self.folder / "link").symlink_to("nowhere")
        self.assert_error(run("copy", "--force", source, self.folder / "link"), 1, "ENOENT")
        self.assertEqual(self.names(), ["link", "source"])

    def test_b11_what_is_no_file_is_refused(self) -> None:
        source = self.make_file("source", 100)
        os.mkfifo(self.folder / "pipe")
        for words in (
            [self.folder, self.folder / "target"],
            [source, self.folder],
            [source, self.folder / "pipe"],
            [self.folder / "pipe", self.folder / "target"],
            [source, "/dev/null"],
            ["/dev/null", self.folder / "target"],
            [self.folder / "absent", self.folder / "target"],
            [source, self.folder / "absent" / "target"],
        ):
            with self.subTest(words):
                self.assert_error(run("copy", "--force", *words), 1)
        self.assertEqual(self.names(), ["pipe", "source"])

    def test_an_empty_target_is_refused_before_anything_is_made(self) -> None:
        source = self.make_file("source", MIB)
        self.assert_error(run("copy", source, ""), 2, "TARGET is empty")
        self.assertEqual(os.listdir(self.folder), ["source"])

    def test_a_file_without_a_size_is_not_copied_as_empty(self) -> None:
        done = run("copy", "/proc/self/status", self.folder / "target")
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(self.names(), [])

    def test_a13_a_limit_on_file_sizes_leaves_nothing_behind(self) -> None:
        source = self.make_file("source", 4 * MIB)
        done = subprocess.run(
            [
                "sh",
                "-c",
                'ulimit -f 1024; trap "" XFSZ; exec "$0" copy "$1" "$2"',
                PROGRAM,
                source,
                self.folder / "target",
            ],
            capture_output=True,
            text=True,
            check=False,
            env=environment(),
        )
        self.assert_error(done, 1, "EFBIG")
        self.assertEqual(self.names(), ["source"])

    def test_a13_a_full_file_system_leaves_nothing_behind(self) -> None:
        done = run("copy", self.make_sparse("huge", 1 << 43), self.folder / "target")
        self.assert_error(done, 1, "target")
        self.assertEqual(self.names(), ["huge"])

    def test_ctrl_c_ends_cleanly_and_says_what_moved(self) -> None:
        source = self.make_sparse("source", 2 << 30)
        target = self.make_file("target", 10)
        before = target.read_bytes()
        process = self.start("copy", "--force", source, target)
        deadline = time.monotonic() + 60
        while len(self.names()) < 3 and time.monotonic() < deadline:
            time.sleep(0.002)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        self.assertEqual(out, "")
        self.assertIn("had been copied", err)
        self.assertEqual(self.names(), ["source", "target"])
        self.assertEqual(target.read_bytes(), before)


if __name__ == "__main__":
    unittest.main()
