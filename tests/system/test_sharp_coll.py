"""libsharp_coll: the conformance suite over a real fabric, its tools, and what the library's
binary requires of a system."""

import os
import re
import subprocess
import unittest

from harness import BUILD, ROOT, Fabric

SUITE = ROOT / "sharp-coll" / "conformance" / "run"
MUTANTS = SUITE.parent / "mutants" / "run"
LIBRARY = BUILD / "libsharp_coll.so"
#: Debian 12, the oldest system that is supported.
GLIBC = (2, 36)


def environment(fabric):
    return {**fabric.env, "TRIB_MANAGER": fabric.manager}


class SharpColl(unittest.TestCase):
    def test_conformance(self):
        """Runs the suite on 3 processes; `make conformance` has more."""
        with Fabric() as fabric:
            done = subprocess.run([SUITE, "--library", BUILD, "--ranks", "3"], env=environment(fabric), capture_output=True,
                                  text=True, timeout=380)
        self.assertEqual(done.returncode, 0, f"{done.stdout}\n{done.stderr}")
        self.assertIn("78 of 78 items pass", done.stdout)

    def test_conformance_on_a_lone_host(self):
        """8 ranks share a host, whose node lives in one of them, so aggregation nodes
        fold nothing; nor do they for 1 rank. C55 takes 4 GiB."""
        with Fabric(shared_host=True) as fabric:
            done = subprocess.run([SUITE, "--library", BUILD, "--ranks", "1,8", "--except", "C55"],
                                  env=environment(fabric), capture_output=True, text=True, timeout=300)
            counters = fabric.node_counters()
        self.assertEqual(done.returncode, 0, f"{done.stdout}\n{done.stderr}")
        self.assertIn("77 of 77 items pass", done.stdout)
        self.assertEqual({name: counts.get("payload_bytes_folded", 0) for name, counts in counters.items()},
                         dict.fromkeys(counters, 0))

    def test_the_suite_can_fail(self):
        """A broken library of each group is noticed; `make conformance-mutants` has more."""
        with Fabric() as fabric:
            done = subprocess.run([MUTANTS, "--library", BUILD, "--quick"], env=environment(fabric), capture_output=True, text=True,
                                  timeout=120)
        self.assertEqual(done.returncode, 0, f"{done.stdout}\n{done.stderr}")
        self.assertIn("5 of 5 mutants caught", done.stdout)

    def test_over_nothing(self):
        """The library itself neither allocates nor enters the kernel for an operation; the parts
        of a call that fails keep their buffers."""
        done = subprocess.run([ROOT / "sharp-coll" / "null" / "run", "--library", BUILD], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, f"{done.stdout}\n{done.stderr}")

    def test_hello(self):
        hello = [BUILD / "sharp-coll" / "sharp_hello", "-d", "mlx5_0:1"]
        with Fabric() as fabric:
            done = subprocess.run(hello, env=environment(fabric), capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stdout), (0, "Test Passed.\n"), done.stderr)
            few = {**environment(fabric), "SHARP_COLL_JOB_QUOTA_OSTS": "3", "SHARP_COLL_LOG_LEVEL": "3"}
            done = subprocess.run(hello, env=few, capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stdout), (0, "Test Passed.\n"), done.stderr)
            self.assertIn("3 operations by datagram of", done.stderr)
            self.assertIn("3 of one group", done.stderr)
        done = subprocess.run(hello, env=environment(fabric), capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1, "the fabric is gone")
        self.assertIn("cannot make a job", done.stderr)

    def test_settings_are_printed(self):
        tool = BUILD / "sharp-coll" / "sharp_coll_dump_config"
        env = {**os.environ, "SHARP_COLL_LOG_LEVEL": "4"}
        plain = subprocess.run([tool], env=env, capture_output=True, text=True, check=True).stdout
        self.assertIn("SHARP_COLL_LOG_LEVEL=4\n", plain)
        self.assertTrue(all(re.match(r"SHARP_\w+=", line) for line in plain.splitlines()), plain)
        full = subprocess.run([tool, "-f"], env=env, capture_output=True, text=True, check=True).stdout
        self.assertGreater(len(full.splitlines()), 3 * len(plain.splitlines()))

    def test_symbol_versions(self):
        listed = subprocess.run(["objdump", "-T", LIBRARY], capture_output=True, text=True, check=True).stdout
        needed = max(tuple(map(int, version.split("."))) for version in re.findall(r"GLIBC_([0-9.]+)", listed))
        self.assertLessEqual(needed, GLIBC)


if __name__ == "__main__":
    unittest.main()
