"""The nodes do the work: with one of them stopped nothing moves, and afterwards everything goes
on."""

import pathlib
import signal
import tempfile
import time
import unittest

from harness import Fabric, Ranks, send, wait_until


class StoppedNode(unittest.TestCase):
    def test_stop_and_continue(self):
        with Fabric() as fabric, tempfile.TemporaryDirectory() as folder:
            stop = pathlib.Path(folder) / "stop"
            with Ranks(fabric, 8, "loop_worker", "loop", {"counts": [5, 9000], "stop": str(stop)}) as ranks:
                wait_until(lambda: ranks.progress(0) > 20, 30, "first operations")
                for name in ("root", "leaf0"):
                    pid = fabric.processes()[name]
                    send(pid, signal.SIGSTOP)
                    try:
                        time.sleep(0.5)
                        frozen = [ranks.progress(r) for r in range(8)]
                        time.sleep(2)
                        self.assertEqual([ranks.progress(r) for r in range(8)], frozen, f"{name} is stopped")
                    finally:
                        send(pid, signal.SIGCONT)
                    wait_until(lambda: ranks.progress(0) > frozen[0] + 20, 30, f"progress after {name} goes on")
                stop.touch()
                results = ranks.results()
            self.assertEqual(len({r["digest"] for r in results}), 1)


if __name__ == "__main__":
    unittest.main()
