"""Programs shaped like the clients of libsharp_coll, over a real fabric."""

import os
import subprocess
import unittest

from harness import BUILD, ROOT, Fabric

RUN = ROOT / "sharp-coll" / "clients" / "run"
CLIENTS = ["hugectr", "mvapich", "nccl_plugin", "ucc"]


def run(manager, *options, **env):
    return subprocess.run([RUN, "--library", BUILD, *options], env={**os.environ, "TRIB_MANAGER": manager, **env}, capture_output=True,
                          text=True, timeout=300)


class Clients(unittest.TestCase):
    def test_every_client(self):
        with Fabric() as fabric:
            done = run(fabric.manager, "--ranks", "2,3")
        self.assertEqual(done.returncode, 0, f"{done.stdout}\n{done.stderr}")
        self.assertEqual(done.stdout.splitlines(), [f"ok {name} on {ranks} ranks" for name in CLIENTS for ranks in (2, 3)])

    def test_failures_are_noticed(self):
        done = run("", "--ranks", "2", "--only", "mvapich")
        self.assertEqual((done.returncode, done.stdout), (1, "FAILED mvapich on 2 ranks\n"), done.stderr)
        self.assertIn("no manager given", done.stderr)

    def test_the_cause_that_a_client_hides_is_told_once(self):
        """UCC hides init errors, and its users would see only "Resources are not available":
        rank 0 says why, unless the log level is 0."""
        for level, told in ((None, 1), ("1", 1), ("0", 0)):
            with self.subTest(level=level):
                env = {"SHARP_COLL_LOG_LEVEL": level} if level else {}
                done = run("", "--ranks", "8", "--only", "ucc", **env)
                self.assertEqual((done.returncode, done.stdout), (1, "FAILED ucc on 8 ranks\n"), done.stderr)
                lines = [line for line in done.stderr.splitlines() if "sharp_coll_init" in line]
                self.assertEqual(len(lines), told, done.stderr)
                for line in lines:
                    self.assertRegex(line, r"^tributary: sharp_coll_init: .*no manager given.*TRIB_MANAGER.* \(rank 0, ")


if __name__ == "__main__":
    unittest.main()
