"""A rank is late under MPI: the others wait in MPI_Allreduce and still progress their MPI."""

import json
import unittest

import test_mpi
from harness import Fabric

SECONDS = 60

#: Fifty visits to the MPI a second take 0.6 to 1 % of a CPU that nobody else slows down. Where
#: others do, the same visits take up to twice as long; a rank that looked more often would take far
#: more.
MOST = 0.02
#: A visit every 20 ms comes with two sleeps, about a hundred a second; visits twice as often would
#: be two hundred.
SLEEPS = 150

setUpModule, tearDownModule = test_mpi.setUpModule, test_mpi.tearDownModule


class LateRankUnderMpi(unittest.TestCase):
    def test_waiting_is_cheap(self):
        with Fabric() as fabric:
            mpi = test_mpi.Mpi(fabric, 4, test_mpi.PROGRAMS / "late_rank", "2", str(SECONDS))
            code, out, err, report = mpi.end(SECONDS + 60)
        self.assertEqual(code, 0, out + err)
        self.assertGreater(report["collectives"]["MPI_Allreduce"]["tree"], 0)
        said = json.loads(next(line for line in out.splitlines() if line.startswith("{")))
        self.assertLess(said["cpu_share"], MOST, said)
        self.assertLess(said["sleeps"] / said["waited_s"], SLEEPS, said)
        print(f"waiting sleeps {said['sleeps'] / said['waited_s']:.0f} times a second")
        print(f"waiting in MPI_Allreduce costs {said['cpu_share']:.2%} of a CPU")


if __name__ == "__main__":
    unittest.main()
