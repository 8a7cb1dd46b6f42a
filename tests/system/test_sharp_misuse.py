"""libsharp_coll misused at random, from several threads at once, and by one rank of several, on a
fabric that serves an honest job afterwards."""

import pathlib
import re
import subprocess
import tempfile
import unittest

from harness import BUILD, ROOT, Fabric

SOURCES = ROOT / "sharp-coll"
RUN = SOURCES / "misuse" / "run"
#: Cases of misuse/bad_rank.c, and what every rank says about the victim.
BAD_RANKS = {
    "rank_too_large": "world_rank {n9} of world_size {n} makes no sense",
    "rank_too_large_0": "world_rank {n9} of world_size {n} makes no sense",
    "rank_negative": "world_rank -3 of world_size {n} makes no sense",
    "rank_negative_0": "world_rank -3 of world_size {n} makes no sense",
    "rank_of_another": "it was told that it is rank {n2} of {n}, and the out-of-band exchange has it as rank {last}",
    "size_zero": "world_rank {last} of world_size 0 makes no sense",
    "size_zero_0": "world_rank 0 of world_size 0 makes no sense",
    "size_huge": "world_rank {last} of world_size 2147483647 makes no sense",
    "size_of_another": "it was told that it is rank {last} of {n1}, and rank 0 that it is one of {n}",
    "context_null": "argument `context` is NULL",
    "wait_ms": "TRIB_WAIT_MS=soon is not a number of milliseconds",
    "timeout_ms": "TRIB_TIMEOUT_MS=-1 is not a number of milliseconds",
    "host_not_text": "TRIB_HOST is not UTF-8",
    "manager_0": "`over there` is not a manager address",
    "quota_0": "TRIB_QUOTA: `window=many`",
    "member_too_large": "rank {n9} of a group of {n} in a job of {n} makes no sense",
    "member_too_large_0": "rank {n9} of a group of {n} in a job of {n} makes no sense",
    "member_negative": "rank -1 of a group of {n} in a job of {n} makes no sense",
    "member_of_another": "it was told that it is rank {n2} of {n}, and the out-of-band exchange has it as rank {last}",
    "group_of_none": "rank {last} of a group of 0 in a job of {n} makes no sense",
    "group_of_none_0": "rank 0 of a group of 0 in a job of {n} makes no sense",
    "group_too_large": "rank {last} of a group of {n1} in a job of {n} makes no sense",
    "comm_null": "argument `comm` is NULL",
}


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

    def test_one_bad_rank_fails_all_with_its_number_and_reason(self):
        """One rank of 2, 3, 4 and 8 makes a call that makes no sense, or has a nonsensical
        variable: no rank waits for ever."""
        with Fabric() as fabric, tempfile.TemporaryDirectory(prefix="trib-test-") as folder:
            program = pathlib.Path(folder) / "bad_rank"
            subprocess.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror", f"-I{SOURCES / 'include'}",
                            f"-I{SOURCES / 'conformance'}", "-o", program, SOURCES / "misuse" / "bad_rank.c", f"-L{BUILD}",
                            "-lsharp_coll"], check=True)
            # A hang is a failure: a signal ends the program.
            env = {**fabric.env, "TRIB_MANAGER": fabric.manager, "LD_LIBRARY_PATH": str(BUILD), "CONFORMANCE_LIMIT_S": "60"}
            for ranks in (2, 3, 4, 8):
                numbers = {"n": ranks, "n1": ranks + 1, "n2": ranks - 2, "n9": ranks + 9, "last": ranks - 1}
                for case, words in BAD_RANKS.items():
                    with self.subTest(case=case, ranks=ranks):
                        done = subprocess.run([program, str(ranks), case], env=env, capture_output=True, text=True, timeout=120)
                        self.assertEqual((done.returncode, done.stdout), (0, f"ok {case}\n"), done.stderr)
                        victim = 0 if case.endswith("_0") else ranks - 1
                        told = re.escape(f"rank {victim}: ") + re.escape(words.format(**numbers))
                        self.assertEqual(len(re.findall(f" ERROR .*{told}", done.stderr)), ranks, done.stderr)
                for case in ("group_too_small", "no_streams", "no_streams_0"):
                    done = subprocess.run([program, str(ranks), case], env=env, capture_output=True, text=True, timeout=120)
                    self.assertEqual((done.returncode, done.stdout), (0, f"ok {case}\n"), done.stderr)
            self.assertEqual(sorted(fabric.processes()), ["leaf0", "leaf1", "manager", "root"])


if __name__ == "__main__":
    unittest.main()
