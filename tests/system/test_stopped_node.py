"""The nodes do the work: with one stopped nothing moves. Without a backup one that goes on is waited for as long as the job says, one that
does not is given up then, and one that only has to wait for a processor is never blamed."""

import multiprocessing
import pathlib
import signal
import tempfile
import time
import unittest

from harness import Fabric, Ranks, send


def burn(stop):
    while not stop.is_set():
        sum(range(100_000))


class StoppedNode(unittest.TestCase):
    def test_stop_and_continue(self):
        with Fabric() as fabric, tempfile.TemporaryDirectory() as folder:
            stop = pathlib.Path(folder) / "stop"
            with Ranks(fabric, 8, "loop_worker", "loop", {"counts": [5, 9000], "stop": str(stop)}) as ranks:
                ranks.reach(lambda: ranks.progress(0) > 20, 30, "first operations")
                for name in ("root", "leaf0"):
                    pid = fabric.processes()[name]
                    send(pid, signal.SIGSTOP)
                    try:
                        time.sleep(0.5)
                        frozen = [ranks.progress(r) for r in range(8)]
                        time.sleep(1)
                        self.assertEqual([ranks.progress(r) for r in range(8)], frozen, f"{name} is stopped")
                    finally:
                        send(pid, signal.SIGCONT)
                    ranks.reach(lambda: ranks.progress(0) > frozen[0] + 20, 30, f"progress after {name} goes on")
                stop.touch()
                results = ranks.results()
            self.assertEqual(len({r["digest"] for r in results}), 1)

    def test_answers_that_come_twice_are_told_from_what_is_rejected(self):
        with Fabric(leaves=1) as fabric, tempfile.TemporaryDirectory() as folder:
            stop = pathlib.Path(folder) / "stop"
            with Ranks(fabric, 4, "loop_worker", "loop", {"counts": [5], "stop": str(stop)}) as ranks:
                ranks.reach(lambda: ranks.progress(0) > 20, 30, "first operations")
                pid = fabric.processes()["leaf0"]
                # Meanwhile the ranks ask again and again; the node answers each of these questions
                # with the result. Where one rank was late, the others' questions came before it and
                # are answered with what the node holds; so it is stopped more than once.
                for _ in range(3):
                    before = ranks.progress(0)
                    send(pid, signal.SIGSTOP)
                    time.sleep(0.5)
                    send(pid, signal.SIGCONT)
                    ranks.reach(lambda: ranks.progress(0) > before + 20, 30, "progress after the node goes on")
                stop.touch()
                counters = [result["counters"] for result in ranks.results()]
        rejected, repeated = ([rank[name] for rank in counters] for name in ("datagrams_rejected", "datagrams_repeated"))
        self.assertEqual(sum(rejected), 0, counters)
        self.assertGreater(sum(repeated), 0, counters)

    def test_one_without_a_backup_that_is_away_for_seconds_is_no_error(self):
        with Fabric() as fabric, tempfile.TemporaryDirectory() as folder:
            stop = pathlib.Path(folder) / "stop"
            argument = {"counts": [5, 9000], "stop": str(stop)}
            with Ranks(fabric, 8, "loop_worker", "loop", argument, quota={"deputies": 0}) as ranks:
                ranks.reach(lambda: ranks.progress(0) > 20, 30, "first operations")
                pids = [fabric.processes()[name] for name in ("leaf0", "root")]
                for pid in pids:
                    send(pid, signal.SIGSTOP)
                # With a backup it would be given up after five questions.
                time.sleep(9)
                for pid in pids:
                    send(pid, signal.SIGCONT)
                before = ranks.progress(0)
                ranks.reach(lambda: ranks.progress(0) > before + 20, 60, "progress afterwards")
                stop.touch()
                results = ranks.results()
            silent = {name: counters["links_silent"] for name, counters in fabric.node_counters().items()}
        self.assertEqual(len({r["digest"] for r in results}), 1)
        self.assertEqual(set(silent.values()), {0}, silent)

    def test_one_that_stays_stopped_is_given_up_when_the_job_says(self):
        for name in ("leaf0", "root"):
            with Fabric() as fabric, tempfile.TemporaryDirectory() as folder:
                stopped = pathlib.Path(folder) / "stopped"
                argument = {"counts": [5, 9000], "signal": str(stopped)}
                with Ranks(fabric, 8, "loop_worker", "until_error", argument, quota={"deputies": 0, "dead_after_ms": 5000}) as ranks:
                    ranks.reach(lambda: ranks.progress(0) > 20, 30, "first operations")
                    pid = fabric.processes()[name]
                    send(pid, signal.SIGSTOP)
                    stopped.touch()
                    results = ranks.results()
                for rank, result in enumerate(results):
                    self.assertIn("does not answer", result["text"], f"rank {rank}")
                    # Without a word of the job it would be a minute.
                    self.assertLess(result["after"], 45, f"rank {rank}, {name} stopped")
                print(f"{name} stopped: told after {max(result['after'] for result in results):.1f} s")

    def test_who_waits_for_a_processor_is_not_blamed(self):
        stop_burning = multiprocessing.Event()
        burners = [multiprocessing.Process(target=burn, args=(stop_burning,), daemon=True) for _ in range(25)]
        # Ten questions a second: fifty in the span after which a node is given up.
        quota = {"heartbeat_ms": 100, "dead_after_ms": 5000}
        with Fabric() as fabric, tempfile.TemporaryDirectory() as folder:
            stop = pathlib.Path(folder) / "stop"
            argument = {"counts": [5, 9000], "stop": str(stop)}
            with Ranks(fabric, 8, "loop_worker", "loop", argument, quota=quota) as ranks:
                ranks.reach(lambda: ranks.progress(0) > 20, 60, "first operations")
                for burner in burners:
                    burner.start()
                try:
                    time.sleep(15)
                    before = ranks.progress(0)
                    ranks.reach(lambda: ranks.progress(0) > before, 100, "progress under load")
                    stop.touch()
                    ranks.results()
                finally:
                    stop_burning.set()
                    for burner in burners:
                        burner.join()
            silent = {name: counters["links_silent"] for name, counters in fabric.node_counters().items()}
            self.assertEqual(set(silent.values()), {0}, silent)


if __name__ == "__main__":
    unittest.main()
