"""A part of mpi4py's own tests, those of collectives, under the component for Open MPI: they end as they do without it. The whole is
`make test-apps`."""

import collections
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import mpi4py_source
from harness import BUILD, PYTHON, ROOT, Fabric

COMPONENTS = BUILD / "tributary/openmpi"
MODULES = "test_cco_(buf|nb_buf)$"
RANKS = 2


class Suite(unittest.TestCase):
    def setUp(self):
        if not (COMPONENTS / "mca_coll_tributary.so").exists():
            self.skipTest("no Open MPI 4.1 with its inner headers is here, so there is no component")
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="trib-test-")))
        try:
            self.suite = mpi4py_source.unpack(mpi4py_source.DEBIANS, BUILD.parent / "apps", self.folder)
        except mpi4py_source.Missing as missing:
            self.skipTest(str(missing))

    def outcomes(self, name, env):
        """[{test: how it ended} of each rank]"""
        results = self.folder / name
        results.mkdir()
        given = {
            **os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1", **env,
        }
        words = ["mpirun", "--oversubscribe", "-np", str(RANKS), PYTHON, ROOT / "tests/apps/outcomes.py", self.suite, results, "-q",
                 "-i", MODULES]
        done = subprocess.run(words, env=given, capture_output=True, text=True, timeout=200)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads((results / f"{rank}.json").read_text()) for rank in range(RANKS)]

    def test_collectives_end_as_without_the_component(self):
        report = self.folder / "report.json"
        plain = self.outcomes("plain", {})
        with Fabric() as fabric:
            tree = self.outcomes("tree", {
                "OMPI_MCA_mca_base_component_path": f"SYSTEM_DEFAULT:{COMPONENTS}:USER_DEFAULT", "OMPI_MCA_coll_tributary_enable": "1",
                "TRIB_MANAGER": fabric.manager, "TRIB_MPI": "force", "TRIB_MPI_REPORT_FILE": str(report)})
        self.assertEqual(tree, plain)
        ends = collections.Counter(plain[0].values())
        self.assertGreater(ends["passed"], 100, ends)
        collectives = json.loads(report.read_text())["collectives"]
        for name in ("Allreduce", "Iallreduce", "Bcast", "Ibcast", "Allgather", "Barrier", "Alltoall", "Iscan", "Reduce_scatter_block"):
            self.assertGreater(collectives[f"MPI_{name}"]["tree"], 0, name)


if __name__ == "__main__":
    unittest.main()
