"""A rank is late under MPI: the others wait in MPI_Allreduce and still progress their MPI."""

import json
import unittest

import test_mpi
from harness import Fabric

SECONDS = 60

setUpModule, tearDownModule = test_mpi.setUpModule, test_mpi.tearDownModule


class LateRankUnderMpi(unittest.TestCase):
    def test_waiting_is_cheap(self):
        with Fabric() as fabric:
            mpi = test_mpi.Mpi(fabric, 4, test_mpi.PROGRAMS / "late_rank", "2", str(SECONDS))
            code, out, err, report = mpi.end(SECONDS + 60)
        self.assertEqual(code, 0, out + err)
        self.assertGreater(report["collectives"]["MPI_Allreduce"]["tree"], 0)
        said = json.loads(next(line for line in out.splitlines() if line.startswith("{")))
        self.assertLess(said["cpu_share"], 0.01, said)
        print(f"waiting in MPI_Allreduce costs {said['cpu_share']:.2%} of a CPU")


if __name__ == "__main__":
    unittest.main()
