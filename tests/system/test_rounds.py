"""Ten rounds of faults, the first of those that `make rounds` plays by the thousand."""

import json
import subprocess
import unittest

from harness import ROOT


class Rounds(unittest.TestCase):
    def test_every_operation_ends_with_the_bits_that_it_would_have_had(self):
        rounds = [ROOT / "tests" / "rounds" / "run", "--quick", "--rounds", "10", "--json"]
        done = subprocess.run(rounds, capture_output=True, text=True, timeout=400)
        if "cannot be built here" in done.stderr:
            self.skipTest(done.stderr)
        outcomes = [json.loads(line) for line in done.stdout.splitlines()]
        for outcome in outcomes:
            print("seed {seed}: {fault} {where}, {epochs} epochs, stall {stall} ms: {verdict}".format(**outcome))
        self.assertEqual([outcome["verdict"] for outcome in outcomes], ["ok"] * 10, done.stderr)
        # A node that is dead or stopped leads to another epoch, or nobody was hurt.
        hurt = [outcome for outcome in outcomes if outcome["fault"] in ("kill", "kill all", "stop")]
        self.assertTrue(hurt and all(outcome["epochs"] > 0 for outcome in hurt), outcomes)


if __name__ == "__main__":
    unittest.main()
