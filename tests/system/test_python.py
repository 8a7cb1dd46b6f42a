"""The package for Python, over NumPy: the same collectives, and what waits, dies and forks."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

from harness import HERE, LIBRARY, PYTHON, ROOT, Fabric, Ranks

SOURCE = ROOT / "python" / "src"
ENV = {"PYTHONPATH": f"{HERE}:{SOURCE}", "TRIBUTARY_LIBRARY": str(LIBRARY)}


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.fabric = Fabric()
        cls.enterClassContext(cls.fabric)

    def run_ranks(self, function, ranks=4, argument=None):
        with Ranks(self.fabric, ranks, "python_worker", function, argument, env=ENV) as started:
            return started.results()

    def test_its_unit_tests_pass(self):
        folder = ROOT / "python" / "tests"
        for path in sorted(folder.glob("test_*.py")):
            done = subprocess.run([PYTHON, path], env={**os.environ, **ENV}, capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_every_collective_is_right_with_every_type_and_operator(self):
        for ranks, counts in ((4, [0, 1, 100]), (2, [3000])):
            cases = self.run_ranks("every_collective", ranks, {"counts": counts})
            self.assertGreater(min(cases), 300)

    def test_a_group_takes_exact_sums(self):
        for total, both, largest, told in self.run_ranks("exact_sums", 3):
            self.assertEqual(total[0], 1.0)
            self.assertAlmostEqual(total[1], 3e-3, 9)
            self.assertEqual(both, total)
            self.assertEqual(largest[0], 2.0**127)
            self.assertIn("'about' is no way to take sums: plain, fixed, exact, int8", told)

    def test_each_launcher_says_which_rank_this_is(self):
        # One write is one line; what `print` writes in two, lines of other ranks get between.
        program = "import json, os, python_worker; os.write(1, (json.dumps(python_worker.who(None)) + '\\n').encode())"
        environment = {**os.environ, **ENV, "TRIB_MANAGER": self.fabric.manager, "OMPI_MCA_rmaps_base_oversubscribe": "1",
                       "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}  # fmt: skip
        # The worker asks for the test's own ways to note something; a program of a user's has none.
        code = f"import sys, types; sys.modules['rank'] = types.SimpleNamespace(note=None, await_note=None); {program}"
        mpirun = ["mpirun.openmpi", "-np", "3", PYTHON, "-c", code]
        done = subprocess.run(mpirun, env=environment, capture_output=True, text=True, timeout=60)
        told = sorted((json.loads(line) for line in done.stdout.splitlines()), key=lambda each: each["rank"])
        self.assertEqual(told, [{"rank": rank, "size": 3, "sum": 3} for rank in range(3)], done.stderr)
        started = []
        for rank in range(2):
            mine = {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1",
                    "TORCHELASTIC_RUN_ID": f"test-{os.getpid()}", "TORCHELASTIC_RESTART_COUNT": "0"}  # fmt: skip
            command = [PYTHON, "-c", code]
            started.append(subprocess.Popen(command, env={**environment, **mine}, stdout=subprocess.PIPE, text=True))
        told = [json.loads(process.communicate(timeout=60)[0]) for process in started]
        self.assertEqual(told, [{"rank": rank, "size": 2, "sum": 1} for rank in range(2)])

    def test_a_wait_has_a_limit_and_holds_no_other_thread_up(self):
        for rank, told in enumerate(self.run_ranks("waiting")):
            self.assertEqual((told["orphans"], told["closed"]), (0, f"<tributary.Context rank {rank} of 4, left>"))
            if rank != 1:
                self.assertRegex(told["told"]["words"], r"not done after 500 ms: .* late")
                # What is told is the call, not what it is made of.
                self.assertRegex(told["told"]["exactly"], r"^allreduce of 5000 float32 \(sum\) is not done after 500 ms: .* late")
                self.assertGreater(told["told"]["counted"], 10)

    def test_ctrl_c_ends_a_wait(self):
        self.assertEqual(self.run_ranks("interrupted", 2)[0], "interrupted")

    def test_a_forked_child_uses_nothing_and_harms_nothing(self):
        self.assertEqual(self.run_ranks("forked"), [{"code": 0, "sum": 4}] * 4)

    def test_a_rank_that_is_gone_is_named(self):
        told = self.run_ranks("dying")
        self.assertEqual(told[1], "left")
        for words in (told[rank] for rank in (0, 2, 3)):
            self.assertRegex(words, "rank 1 on ")

    def test_a_library_that_is_none_is_told_with_the_next_step(self):
        env = {**os.environ, **ENV, "TRIBUTARY_LIBRARY": str(pathlib.Path(sys.executable))}
        done = subprocess.run([PYTHON, "-c", "import tributary"], env=env, capture_output=True, text=True, timeout=60)
        self.assertRegex(done.stderr, r"ImportError: .* cannot be loaded as Tributary's library: .*pip install ./python")


if __name__ == "__main__":
    unittest.main()
