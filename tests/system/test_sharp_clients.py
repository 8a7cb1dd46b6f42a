"""Programs shaped like the clients of libsharp_coll, over a real fabric."""

import os
import subprocess
import unittest

from harness import BUILD, ROOT, Fabric

RUN = ROOT / "sharp-coll" / "clients" / "run"
CLIENTS = ["hugectr", "mvapich", "nccl_plugin", "ucc"]


def run(manager, *options):
    return subprocess.run([RUN, "--library", BUILD, *options], env={**os.environ, "TRIB_MANAGER": manager}, capture_output=True,
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


if __name__ == "__main__":
    unittest.main()
