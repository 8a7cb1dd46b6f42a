"""`make test-gpu`, but over a stand-in for CUDA's driver: what it packs runs elsewhere, and says so
where there is no GPU. Its figures say nothing then."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import stand_in_driver
from harness import BUILD, PYTHON, ROOT, has_cuda


class Packed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.TemporaryDirectory(prefix="trib-gpu-")
        cls.addClassCleanup(cls.home.cleanup)
        cls.folder = pathlib.Path(cls.home.name) / "gpu"
        subprocess.run([ROOT / "tests" / "gpu" / "pack", BUILD, cls.folder], check=True, timeout=60)

    def run_it(self, **env):
        return subprocess.run(
            [PYTHON, self.folder / "run"], env={**os.environ, **env}, capture_output=True, text=True, timeout=300,
            cwd="/",
        )

    def test_it_says_that_there_is_no_gpu(self):
        if has_cuda():
            self.skipTest("this machine has a CUDA driver")
        done = self.run_it()
        self.assertEqual((done.returncode, done.stdout), (77, ""))
        self.assertIn("there is no CUDA driver (libcuda.so.1) on this machine; nothing was tested", done.stderr)

    def test_everything_that_it_checks(self):
        stand_in_driver.build(self.home.name)
        done = self.run_it(LD_LIBRARY_PATH=self.home.name)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual((found["device"], found["driver"], found["failed"]), ("stand-in device 0", "12.4", []))
        self.assertEqual((found["checks"]["results"], found["checks"]["sums"]), (15, 12))
        self.assertIn("captured into a CUDA graph", found["checks"]["captured"])
        for overlap in found["checks"]["overlap"]:
            self.assertGreater(overlap["of_the_slower"], 0)
        self.assertEqual(found["checks_launch_blocking"]["results"], 15)
        for kind in ("peers_checks", "peers_checks_launch_blocking"):
            self.assertEqual((found[kind]["results"], found[kind]["combined"]), (27, 22))

    def test_what_is_carried_is_small(self):
        size = sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())
        self.assertLess(size, 64 << 20)


if __name__ == "__main__":
    unittest.main()
