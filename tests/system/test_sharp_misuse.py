"""libsharp_coll misused at random, and from several threads at once, on a fabric that serves an honest job afterwards."""

import subprocess
import unittest

from harness import BUILD, ROOT, Fabric

RUN = ROOT / "sharp-coll" / "misuse" / "run"


class Misuse(unittest.TestCase):
    def test_calls_end_with_errors_or_right_data_and_daemons_stay(self):
        with Fabric() as fabric:
            before = fabric.processes()
            env = {**fabric.env, "TRIB_MANAGER": fabric.manager}
            done = subprocess.run([RUN, "--library", BUILD, "--ranks", "1,2", "--steps", "800"], env=env, capture_output=True, text=True,
                                  timeout=300)
            print(done.stdout.splitlines()[-1])
            self.assertEqual(done.returncode, 0, f"{done.stdout}\n{done.stderr}")
            self.assertEqual(fabric.processes(), before, "a daemon has ended")
            hello = subprocess.run([BUILD / "sharp-coll" / "sharp_hello"], env=env, capture_output=True, text=True, timeout=60)
            self.assertEqual((hello.returncode, hello.stdout), (0, "Test Passed.\n"), hello.stderr)
            self.assertEqual(fabric.status()["jobs"], [], "jobs are left")


if __name__ == "__main__":
    unittest.main()
