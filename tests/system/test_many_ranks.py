"""192 ranks share a host: they join, their sums are right, and when one of them is killed all others
learn its name and leave nothing open."""

import json
import os
import pathlib
import signal
import statistics
import subprocess
import tempfile
import unittest

from harness import HERE, LIBRARY, TRIB, Fabric, rank_env, send, wait_until

RANKS = int(os.environ.get("TRIB_TEST_RANKS", "192"))
INCLUDE = HERE.parents[1] / "capi" / "include"
#: The launcher ends all ranks when one fails. Here a rank may. The shell says which process it is.
ALONE = ["sh", "-c", '"$@" & echo $! >"$0/$TRIB_RANK.pid"; wait $! || true']


class ManyRanks(unittest.TestCase):
    def test_they_join_and_outlive_one_that_is_killed(self):
        # The lowest rank hosts the node to which all others send.
        for killed in (RANKS // 2, 0):
            with self.subTest(killed=killed):
                self.check(killed)

    def check(self, killed):
        with tempfile.TemporaryDirectory() as folder, Fabric(shared_host=True) as fabric:
            folder = pathlib.Path(folder)
            program = folder / "many_ranks"
            library = [f"-L{LIBRARY.parent}", "-ltributary", f"-Wl,-rpath,{LIBRARY.parent}"]
            source = HERE / "many_ranks.c"
            subprocess.run(["gcc", "-O1", "-Wall", "-Werror", f"-I{INCLUDE}", source, "-o", program, *library], check=True)
            command = [TRIB, "run", "-n", str(RANKS), "--", *ALONE, folder, program, folder]
            launcher = subprocess.Popen(command, env=rank_env(fabric), stderr=subprocess.PIPE, text=True)
            try:
                joined = self.all_say(folder, "joined", range(RANKS))
                send(int((folder / f"{killed}.pid").read_text()), signal.SIGKILL)
                over = self.all_say(folder, "over", [rank for rank in range(RANKS) if rank != killed])
                _, said = launcher.communicate(timeout=60)
            finally:
                launcher.kill()
                launcher.communicate()
        # That is what the shell says of the rank that was killed.
        self.assertEqual(said.replace("Killed\n", ""), "")
        self.assertEqual(launcher.returncode, 0)
        memory = [each["kib"] for each in joined.values()]
        print(
            f"{RANKS} ranks: joined within {max(each['joined'] for each in joined.values()):.2f} s; "
            f"{statistics.median(memory)} KiB in a rank, {max(memory)} KiB in the one that hosts their node"
        )
        for rank, each in over.items():
            self.assertIn(f"rank {killed}", each["text"], rank)
            self.assertEqual(each["descriptors"], 0, rank)

    def all_say(self, folder, what, ranks):
        """{rank: what it has said}"""
        paths = {rank: folder / f"{rank}.{what}" for rank in ranks}
        wait_until(lambda: all(path.exists() for path in paths.values()), 90, f"{what} of all ranks")
        return {rank: json.loads(path.read_text()) for rank, path in paths.items()}


if __name__ == "__main__":
    unittest.main()
