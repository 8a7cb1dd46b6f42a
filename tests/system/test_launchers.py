"""Ranks that another launcher than `trib run` has started: they know who they are, and meet, by its variables alone. No such
launcher is needed here, only what it sets."""

import json
import subprocess
import unittest

from harness import BUILD, PYTHON, ROOT, TRIB, Fabric, rank_env

#: Variables of any launcher, of which the one that runs these tests may have set some.
FOREIGN = ("TRIB_", "SLURM_", "OMPI_", "PMI_", "PMIX_", "TORCHELASTIC_", "MASTER_", "RANK", "WORLD_SIZE")

#: A program over the C interface, with its rank and size from Slurm and no exchange of its own.
PROGRAM = """
import os, native, numpy
context = native.Context(int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"]), timeout_ms=20000)
world, sums = context.group(), numpy.zeros(2)
world.allreduce_blocking(numpy.array([context.rank + 1.0, 2.0]), sums, "float64", "sum")
world.free()
context.finalize()
print(sums.tolist())
"""


def srun(rank, size, step="0"):
    """What srun sets for a rank of job 4711."""
    return {"SLURM_PROCID": str(rank), "SLURM_NTASKS": str(size), "SLURM_JOB_ID": "4711", "SLURM_STEP_ID": step}


def start(fabric, command, env):
    is_foreign = lambda name: name.startswith(FOREIGN) and name != "TRIB_TEST_LIBRARY"
    plain = {name: value for name, value in rank_env().items() if not is_foreign(name)}
    return subprocess.Popen(command, env={**plain, "TRIB_MANAGER": fabric.manager, **env}, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def outcomes(processes):
    """(exit code, stdout, stderr) by rank."""
    said = []
    for process in processes:
        try:
            said.append(process.communicate(timeout=60))
        except subprocess.TimeoutExpired:
            process.kill()
            said.append(process.communicate())
    return [(process.returncode, *texts) for process, texts in zip(processes, said)]


class Launchers(unittest.TestCase):
    def test_two_ranks_of_the_benchmark_meet_by_slurms_variables_alone(self):
        bench = [TRIB, "bench", "--max", "64", "--iterations", "3", "--json"]
        with Fabric() as fabric:
            # Two steps of one job are two programs, and do not meet.
            steps = [[start(fabric, bench, srun(rank, 2, step)) for rank in range(2)] for step in ("0", "1")]
            for step in steps:
                said = outcomes(step)
                for code, _, stderr in said:
                    self.assertEqual(code, 0, stderr)
                self.assertEqual(json.loads(said[0][1])["ranks"], 2)
                self.assertEqual(said[1][1], "", "rank 0 reports")

    def test_a_program_over_the_c_interface_needs_no_exchange(self):
        with Fabric() as fabric:
            ranks = [start(fabric, [PYTHON, "-c", PROGRAM], srun(rank, 2)) for rank in range(2)]
            for code, stdout, stderr in outcomes(ranks):
                self.assertEqual((code, stdout), (0, "[3.0, 4.0]\n"), stderr)

    def test_a_program_with_jobs_of_its_own_is_told_that_they_need_names(self):
        program = """
import os, tributary
before = dict(os.environ)
tributary.Context().close()
assert dict(os.environ) == before
try:
    tributary.Context(0, 1)
except tributary.InvalidError as refused:
    print(refused)
"""
        package = {"PYTHONPATH": str(ROOT / "python/src"), "TRIBUTARY_LIBRARY": str(BUILD / "libtributary.so")}
        with Fabric() as fabric:
            ranks = [start(fabric, [PYTHON, "-c", program], {**srun(rank, 2), **package}) for rank in range(2)]
            for rank, (code, stdout, stderr) in enumerate(outcomes(ranks)):
                self.assertEqual(code, 0, stderr)
                self.assertIn(f"srun says that this is rank {rank} of 2, and the program that it is 0 of 1", stdout)

    def test_what_is_missing_is_named(self):
        bench = [TRIB, "bench", "--max", "64"]
        half, unnamed = {"TRIB_RANK": "0", **srun(0, 1)}, srun(0, 1)
        del unnamed["SLURM_STEP_ID"]
        with Fabric() as fabric:
            for env, words in (
                ({}, "no launcher says which rank this is"),
                (half, "TRIB_RANK is set and TRIB_SIZE is not"),
                ({**srun(0, 1), "SLURM_PROCID": "first"}, "SLURM_PROCID=first is not a number"),
                (unnamed, "SLURM_STEP_ID is not set"),
                ({**srun(0, 1), "TRIB_CUDA": "OFF"}, "TRIB_CUDA=OFF is neither on nor off"),
            ):
                ((code, _, stderr),) = outcomes([start(fabric, bench, env)])
                self.assertNotEqual(code, 0)
                self.assertIn(words, stderr)


if __name__ == "__main__":
    unittest.main()
