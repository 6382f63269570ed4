"""straightway explain."""

import unittest

from program import MIB, SIMULATED_GPU, ProgramTest, run


class ExplainTest(ProgramTest):
    def test_text_names_the_route(self) -> None:
        done = run("explain", self.make_file("file", MIB))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("buffered", done.stdout)

    def test_range_door_and_direction_reach_the_plan(self) -> None:
        file = self.make_file("file", MIB)
        plan = self.run_json("explain", file, "--offset", "4K", "--size", "64K", "--write")
        request = plan["request"]
        self.assertEqual(request["direction"], "write")
        self.assertIn("4096", str(request))
        self.assertIn("65536", str(request))
        words = ["explain", file, "--door", "kvikio", "--to", "cuda:0"]
        plan = self.run_json(*words, **SIMULATED_GPU)
        self.assertEqual(plan["request"]["door"], "kvikio")

    def test_registered_counts_at_the_cufile_door(self) -> None:
        file = self.make_file("file", MIB)
        words = ["explain", file, "--door", "cufile", "--to", "cuda:0"]
        plain = self.run_json(*words, **SIMULATED_GPU)
        registered = self.run_json(*words, "--registered", **SIMULATED_GPU)
        self.assertFalse(plain["request"]["registered"])
        self.assertTrue(registered["request"]["registered"])

    def test_without_size_it_is_the_rest_of_the_file(self) -> None:
        file = self.make_file("file", MIB)
        plan = self.run_json("explain", file, "--offset", "1000")
        self.assertIn(str(MIB - 1000), str(plan["request"]))

    def test_e5_a_policy_that_cannot_be_met_is_1_with_the_plan(self) -> None:
        file = self.make_file("file", MIB)
        done = run("explain", file, "--to", "cuda:0", "--policy", "direct")
        self.assertEqual(done.returncode, 1)
        self.assertIn("nvfs", done.stdout)

    def test_e5_peer_memory_is_named_and_what_it_lacks(self) -> None:
        file = self.make_file("file", MIB)
        words = ["explain", file, "--to", "peer:ffff:1f:1f.7", "--policy", "direct"]
        plan = self.run_json(*words, code=1)
        self.assertEqual(plan["request"]["memory"]["space"], "peer")
        self.assertEqual(plan["facts"]["peer"]["device"], "ffff:1f:1f.7")
        self.assertFalse(plan["facts"]["peer"]["published"])
        self.assertIsNotNone(plan["failure"])

    def test_b11_a_missing_file_is_named(self) -> None:
        absent = self.folder / "absent"
        self.assert_error(run("explain", absent), 1, "absent", "ENOENT")
        error = self.run_json("explain", absent, code=1)["error"]
        self.assertEqual(error["kind"], "not-found")
        self.assertEqual(error["path"], str(absent))

    def test_b11_a_folder_is_refused(self) -> None:
        self.assert_error(run("explain", self.folder), 1, str(self.folder))


if __name__ == "__main__":
    unittest.main()
