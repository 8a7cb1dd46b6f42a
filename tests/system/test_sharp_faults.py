"""libsharp_coll while the manager or a rank goes away: the first changes nothing, and the second
ends in errors or an abort, never in wrong data."""

import os
import pathlib
import re
import signal
import subprocess
import tempfile
import unittest

from harness import BUILD, ROOT, Fabric, send

SOURCES = ROOT / "sharp-coll"
RANKS = 3


class Faults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="trib-test-")
        cls.addClassCleanup(folder.cleanup)
        cls.program = pathlib.Path(folder.name) / "faults"
        includes = [f"-I{SOURCES / 'include'}", f"-I{SOURCES / 'conformance'}"]
        subprocess.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror", *includes, "-o", cls.program,
                        SOURCES / "misuse" / "faults.c", f"-L{BUILD}", "-lsharp_coll"], check=True)

    def start(self, fabric, *arguments, **env):
        env = {**fabric.env, "TRIB_MANAGER": fabric.manager, "LD_LIBRARY_PATH": str(BUILD), **env}
        return subprocess.Popen([self.program, str(RANKS), *arguments], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def goes_on_after(self, number):
        with Fabric() as fabric, self.start(fabric, "manager") as program:
            self.assertEqual(program.stdout.readline(), "ready\n")
            send(fabric.processes()["manager"], number)
            said, errors = program.communicate("x", timeout=60)
            self.assertEqual((program.returncode, said), (0, "ok manager\n"), errors)

    def test_manager_stopped_after_init(self):
        self.goes_on_after(signal.SIGSTOP)

    def test_manager_killed_after_init(self):
        self.goes_on_after(signal.SIGKILL)

    def ended(self, errors):
        """{rank: signal}; nothing else may have been wrong."""
        self.assertNotIn("not so", errors)
        return {int(rank): int(number) for rank, number in re.findall(r"\w+: rank (\d+) ended by signal (\d+)", errors)}

    def test_rank_killed_with_requests_outstanding(self):
        victim = {RANKS - 1: int(signal.SIGKILL)}
        aborted = 0
        with Fabric() as fabric:
            for seed in range(1, 9):
                with self.subTest(seed=seed):
                    with self.start(fabric, "killed", str(seed), SHARP_COLL_ON_ERROR="complete") as program:
                        errors = program.communicate(timeout=60)[1]
                    self.assertEqual(self.ended(errors), victim, errors)
                    with self.start(fabric, "killed", str(seed)) as program:
                        errors = program.communicate(timeout=60)[1]
                    # A rank whose operations do without what the victim lacks, as the root of a
                    # bcast does, has no reason to end.
                    others = {rank: number for rank, number in self.ended(errors).items() if rank not in victim}
                    self.assertLessEqual(set(others.values()), {int(signal.SIGABRT)}, errors)
                    self.assertEqual(errors.count("SHARP_COLL_ON_ERROR=complete lets it go on"), len(others), errors)
                    aborted += len(others)
            self.assertGreater(aborted, 0)
            self.assertEqual(sorted(fabric.processes()), ["leaf0", "leaf1", "manager", "root"])

    def test_posts_that_fail_where_no_code_is_looked_at(self):
        victim = {RANKS - 1: int(signal.SIGKILL)}
        with Fabric() as fabric:
            with self.start(fabric, "ignored", SHARP_COLL_ON_ERROR="complete") as program:
                errors = program.communicate(timeout=60)[1]
            self.assertEqual(self.ended(errors), victim, errors)
            with self.start(fabric, "ignored") as program:
                errors = program.communicate(timeout=60)[1]
        self.assertEqual(self.ended(errors), {**dict.fromkeys(range(RANKS - 1), int(signal.SIGABRT)), **victim}, errors)
        self.assertEqual(errors.count("an operation could not be posted"), RANKS - 1, errors)


if __name__ == "__main__":
    unittest.main()
