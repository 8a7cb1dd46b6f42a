"""Sums of programs that use libsharp_coll have the same bits whatever the order of their ranks,
where TRIB_SUMS asks for it, and are the sums of the numbers where it asks for exact ones."""

import pathlib
import subprocess
import tempfile
import unittest

import exact_sums
from exact_sums import TYPES
from harness import BUILD, ROOT, Fabric

RANKS, COUNTS = 4, (1, 6, 700)
ORDERS = ("0,1,2,3", "3,1,0,2")


class Sums(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="trib-test-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        sources = ROOT / "sharp-coll"
        subprocess.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror", f"-I{sources / 'include'}",
                        f"-I{sources / 'conformance'}", "-o", cls.folder / "same_sums", ROOT / "tests" / "sharp_coll" / "same_sums.c",
                        f"-L{BUILD}", "-lsharp_coll"], check=True)

    def sums(self, fabric, name, count, order, sums, *words):
        for giver in range(RANKS):
            numbers = exact_sums.as_bytes(name, exact_sums.given(name, giver, count))
            (self.folder / f"given.{giver}").write_bytes(numbers)
        env = {**fabric.env, "TRIB_MANAGER": fabric.manager, "LD_LIBRARY_PATH": str(BUILD), "TRIB_SUMS": sums}
        done = subprocess.run([self.folder / "same_sums", str(RANKS), "sums", self.folder, name, str(count), order, *words],
                              env=env, capture_output=True, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stdout), (0, "ok sums\n"), done.stderr)
        return (self.folder / "sums").read_bytes()

    def test_exact_sums_by_every_call_and_every_cut(self):
        with Fabric() as apart, Fabric(shared_host=True) as together:
            for name in TYPES:
                for count in COUNTS:
                    wanted = exact_sums.as_bytes(name, exact_sums.sums(name, RANKS, count))
                    for fabric, order in zip((apart, together), ORDERS):
                        self.assertEqual(self.sums(fabric, name, count, order, "exact", "cut"), wanted, (name, count, order))

    def test_fixed_sums_by_every_call_in_any_order(self):
        with Fabric() as apart, Fabric(shared_host=True) as together:
            for name in TYPES:
                found = {self.sums(fabric, name, 700, order, "fixed") for fabric in (apart, together) for order in ORDERS}
                self.assertEqual(len(found), 1, name)

    def test_plain_sums_of_such_numbers_are_others(self):
        """Else the tests above would show nothing."""
        with Fabric() as fabric:
            wanted = exact_sums.as_bytes("float32", exact_sums.sums("float32", RANKS, 700))
            self.assertNotEqual(self.sums(fabric, "float32", 700, ORDERS[0], "plain"), wanted)


if __name__ == "__main__":
    unittest.main()
