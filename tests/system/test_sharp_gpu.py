"""libsharp_coll over memory of a GPU, with the driver that stands in for CUDA's: what is queued there
is not waited for, what a descriptor does not say is found out, and what fails is told to all."""

import pathlib
import re
import signal
import subprocess
import unittest

import stand_in_driver
from harness import BUILD, ROOT, Fabric

SOURCES = ROOT / "sharp-coll"
RANKS = 3


class Gpu(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(stand_in_driver.built_for(cls))
        includes = [f"-I{SOURCES / 'include'}", f"-I{SOURCES / 'conformance'}"]
        subprocess.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror", *includes, "-o", cls.folder / "gpu",
                        SOURCES / "misuse" / "gpu.c", SOURCES / "coll_test" / "cuda.c", f"-L{BUILD}", "-lsharp_coll", "-ldl"], check=True)

    def run_it(self, fabric, mode, **env):
        # A hang is a failure: a signal ends the ranks.
        env = {**fabric.env, "TRIB_MANAGER": fabric.manager, "LD_LIBRARY_PATH": f"{BUILD}:{self.folder}", "CONFORMANCE_LIMIT_S": "60", **env}
        return subprocess.run([self.folder / "gpu", str(RANKS), mode], env=env, capture_output=True, text=True, timeout=120)

    def test_right_results(self):
        with Fabric() as fabric:
            for mode in ("busy", "windows"):
                with self.subTest(mode=mode):
                    done = self.run_it(fabric, mode)
                    self.assertEqual((done.returncode, done.stdout), (0, f"ok {mode}\n"), done.stderr)

    def test_memory_that_was_switched_off_is_refused(self):
        with Fabric() as fabric:
            done = self.run_it(fabric, "windows", SHARP_COLL_ENABLE_CUDA="0")
        self.assertEqual(done.stdout, "FAILED windows\n", done.stderr)
        self.assertIn("sharp_coll_do_allgather_nb: memory of a GPU was given, and SHARP_COLL_ENABLE_CUDA=0", done.stderr)
        self.assertNotIn("ended by signal", done.stderr)

    def test_a_copy_that_fails_at_one_rank(self):
        with Fabric() as fabric:
            done = self.run_it(fabric, "copy", SHARP_COLL_ON_ERROR="complete")
            self.assertEqual((done.returncode, done.stdout), (0, "ok copy\n"), done.stderr)
            done = self.run_it(fabric, "copy")
        ended = {int(rank): int(number) for rank, number in re.findall(r"copy: rank (\d+) ended by signal (\d+)", done.stderr)}
        self.assertEqual(ended, dict.fromkeys(range(RANKS), int(signal.SIGABRT)), done.stderr)


if __name__ == "__main__":
    unittest.main()
