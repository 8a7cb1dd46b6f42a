"""Ten rounds of faults, the first of those that `make rounds` plays by the thousand, and some of other kinds."""

import json
import shutil
import subprocess
import unittest

from harness import ROOT


class Rounds(unittest.TestCase):
    def play(self, *words):
        """The outcomes of these rounds, which must be good."""
        rounds = [ROOT / "tests" / "rounds" / "run", *words, "--json"]
        done = subprocess.run(rounds, capture_output=True, text=True, timeout=400)
        if "cannot be built here" in done.stderr:
            self.skipTest(done.stderr)
        outcomes = [json.loads(line) for line in done.stdout.splitlines()]
        for outcome in outcomes:
            print("seed {seed}: {fault} {where}, {epochs} epochs, stall {stall} ms: {verdict}".format(**outcome))
        self.assertEqual({outcome["verdict"] for outcome in outcomes}, {"ok"}, done.stderr)
        return outcomes

    def test_every_operation_ends_with_the_bits_that_it_would_have_had(self):
        outcomes = self.play("--quick", "--rounds", "10")
        self.assertEqual(len(outcomes), 10)
        # A node that is dead or stopped leads to another epoch, or nobody was hurt.
        hurt = [outcome for outcome in outcomes if outcome["fault"] in ("kill", "kill all", "stop")]
        self.assertTrue(hurt and all(outcome["epochs"] > 0 for outcome in hurt), outcomes)

    def test_a_job_needs_no_node_at_all(self):
        (outcome,) = self.play("--rounds", "1", "--faults", "no nodes", "--vectors", "256 B")
        self.assertGreater(outcome["epochs"], 0, outcome)

    @unittest.skipUnless(shutil.which("mpirun.openmpi") and shutil.which("mpicc"), "Open MPI is not installed")
    def test_an_application_under_an_mpi_comes_to_the_same_numbers(self):
        (outcome,) = self.play("--rounds", "1", "--faults", "kill", "--vectors", "mpi")
        self.assertGreater(outcome["epochs"], 0, outcome)


if __name__ == "__main__":
    unittest.main()
