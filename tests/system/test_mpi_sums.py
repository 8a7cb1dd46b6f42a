"""Sums of MPI programs have the same bits whatever the order of their ranks, where TRIB_SUMS asks
for it, and are the sums of the numbers where it asks for exact ones."""

import pathlib
import tempfile

import exact_sums
import test_mpi
from harness import PYTHON, Fabric
from test_mpi import PROGRAMS, Mpi, Programs, setUpModule, tearDownModule  # noqa: F401

RANKS, COUNTS = 4, (1, 6, 1000)


class Sums(Programs):
    def sums(self, fabric, count, order, more=(), **options):
        """The bytes of the sums, and the report."""
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            for giver in range(RANKS):
                numbers = exact_sums.given("float64", giver, count, wild=False)
                (folder / f"given.{giver}").write_bytes(exact_sums.as_bytes("float64", numbers))
            program = [PROGRAMS / "same_sums", folder, count, ",".join(map(str, order))]
            # A library that is preloaded can hand out no requests.
            words = [*more, "nonblocking"] if options["through"] == "component" else more
            _, _, report = self.good(Mpi(fabric, RANKS, *program, *words, **options))
            return (folder / "sums").read_bytes(), report

    def test_exact_sums_by_every_call(self):
        with Fabric() as apart, Fabric(shared_host=True) as together:
            for count in COUNTS:
                wanted = exact_sums.as_bytes("float64", exact_sums.sums("float64", RANKS, count, wild=False))
                for fabric, through, order in (
                    (apart, "preload", (0, 1, 2, 3)), (apart, "component", (3, 1, 0, 2)), (together, "component", (2, 0, 3, 1)),
                ):
                    # Where the MPI would be faster, the tree does them all the same.
                    env = {"TRIB_SUMS": "exact", "TRIB_MPI": "on"}
                    found, report = self.sums(fabric, count, order, env=env, through=through)
                    self.assertEqual(found, wanted, (through, count))
                    taken = ["MPI_Allreduce", "MPI_Reduce", "MPI_Reduce_scatter"]
                    for name in taken + (["MPI_Iallreduce"] if through == "component" else []):
                        self.assertGreater(self.tree(report, name), 0, report)
                    for name in ("MPI_Allreduce", "MPI_Reduce_scatter"):
                        self.assertEqual(report["collectives"][name]["mpi"].get("combination", 0), RANKS, "the product")

    def test_the_info_of_a_communicator_asks_for_exact_sums(self):
        count = 500
        wanted = exact_sums.as_bytes("float64", exact_sums.sums("float64", RANKS, count, wild=False))
        with Fabric() as fabric:
            for through in ("preload", "component"):
                found, report = self.sums(fabric, count, (1, 2, 3, 0), more=["info"], env={"TRIB_MPI": "on"}, through=through)
                self.assertEqual(found, wanted, through)
                self.assertEqual(report["collectives"]["MPI_Allreduce"]["mpi"].get("combination", 0), RANKS, "the product")
                plain, _ = self.sums(fabric, count, (1, 2, 3, 0), env={"TRIB_MPI": "force"}, through=through)
                self.assertNotEqual(plain, wanted, "without the key")

    def test_on_one_host_all_but_such_sums_stays_with_the_mpi(self):
        with Fabric() as fabric:
            for through in ("preload", "component"):
                mpi = Mpi(fabric, RANKS, PROGRAMS / "two_hosts", env={"TRIB_SUMS": "exact", "TRIB_MPI": "on"}, through=through)
                _, _, report = self.good(mpi)
                for name in ("MPI_Allreduce", "MPI_Reduce", "MPI_Barrier"):
                    figures = report["collectives"][name]
                    self.assertEqual((figures["tree"], figures["mpi"]), (0, {"one_host": RANKS * 50}), (through, name))
                self.assertGreater(report["groups"]["made"], 0, "for sums of floating-point numbers")

    def test_fixed_sums_in_any_order(self):
        with Fabric() as fabric:
            env = {"OMPI_MCA_coll_tributary_sums": "fixed"}
            found = {self.sums(fabric, 1000, order, env=env, through="component")[0] for order in ((0, 1, 2, 3), (3, 1, 0, 2))}
            self.assertEqual(len(found), 1)

    def test_quantised_sums_are_refused_with_a_line_and_taken_plainly(self):
        with Fabric() as fabric:
            for through, name in (("preload", "TRIB_SUMS"), ("component", "OMPI_MCA_coll_tributary_sums")):
                mpi = Mpi(fabric, RANKS, PYTHON, "-c", TENTHS, env={name: "int8", "TRIB_MPI": "force"}, through=through)
                out, err, report = self.good(mpi)
                self.assertIn("TRIB_SUMS=int8 is for gradients", err)
                self.assertGreater(self.tree(report), 0, report)
                self.assertIn("off by less than 1e-6", out)


#: A sum of numbers that have more than seven bits.
TENTHS = """
from mpi4py import MPI
import numpy as np
total = np.empty(1000, np.float32)
MPI.COMM_WORLD.Allreduce(np.full(1000, 0.1, np.float32), total)
assert abs(total - 0.4).max() < 1e-6, total
print("off by less than 1e-6", flush=True)
"""

if __name__ == "__main__":
    test_mpi.unittest.main()
