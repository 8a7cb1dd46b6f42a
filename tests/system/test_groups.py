"""Groups by the thousand: memory does not grow, and the manager is not needed."""

import pathlib
import signal
import tempfile
import unittest

from harness import Fabric, Ranks, resident_bytes, send


class Groups(unittest.TestCase):
    def test_5000_made_and_freed_without_growth(self):
        with Fabric() as fabric:
            argument = {"warm_up": 500, "number": 5000, "gate": None}
            with Ranks(fabric, 4, "loop_worker", "many_groups", argument) as ranks:
                ranks.reach(lambda: ranks.progress(0) == 0, 60, "warm-up")
                nodes = {n: p for n, p in fabric.processes().items() if n != "manager"}
                before = {name: resident_bytes(pid) for name, pid in nodes.items()}
                results = ranks.results(timeout=180)
                grown = {name: resident_bytes(pid) - before[name] for name, pid in nodes.items()}
            self.assertLess(max(grown.values()), 4 << 20, grown)
            self.assertLess(max(r["grown"] for r in results), 2 << 20, results)
            print(f"{min(r['rate'] for r in results):.0f} groups made, used and freed a second on 4 ranks")

    def test_1000_groups_with_the_manager_stopped(self):
        with Fabric() as fabric, tempfile.TemporaryDirectory() as folder:
            gate = pathlib.Path(folder) / "gate"
            for lease_operations in (0, 1):
                argument = {"warm_up": 10, "number": 500, "gate": str(gate), "stream_count": 20_000}
                quota = {"lease_operations": lease_operations}
                with Ranks(fabric, 8, "loop_worker", "many_groups", argument, quota) as ranks:
                    ranks.reach(lambda: ranks.progress(0) == 0, 60, "warm-up")
                    manager = fabric.processes()["manager"]
                    send(manager, signal.SIGSTOP)
                    try:
                        gate.touch()
                        ranks.results(timeout=120)
                    finally:
                        send(manager, signal.SIGCONT)
                        gate.unlink()

    def test_who_leaves_reads_alone_what_it_waits_for(self):
        """What the helper thread reads wakes nobody, so that a rank waited for up to a second to hear that all had left."""
        with Fabric() as fabric, tempfile.TemporaryDirectory() as folder:
            with Ranks(fabric, 2, "loop_worker", "leave", str(pathlib.Path(folder) / "gate")) as ranks:
                self.assertEqual(ranks.results(60), [True, False])

    def test_a_quota_whose_buffers_have_one_size_ends_nobodys_job(self):
        least = {"payload": 1024, "segment": 1024, "window": 16, "streams": 1, "staging": 1, "flight": 1}
        quotas = [({"payload": 8192, "segment": 8192}, 8, 1600), (least, 1, 40)]
        with Fabric() as fabric, tempfile.TemporaryDirectory() as folder:
            stop = pathlib.Path(folder) / "stop"
            with Ranks(fabric, 4, "loop_worker", "loop", {"counts": [5, 9000], "stop": str(stop)}) as other:
                other.reach(lambda: other.progress(0) > 5, 30, "the other job runs")
                for quota, groups, operations in quotas:
                    argument = {"groups": groups, "operations": operations}
                    with Ranks(fabric, 4, "loop_worker", "allgathers", argument, quota) as ranks:
                        ranks.results(60)
                before = other.progress(0)
                other.reach(lambda: other.progress(0) > before + 5, 30, "the other job goes on")
                stop.touch()
                other.results(60)
            self.assertTrue(all(node["connected"] for node in fabric.status()["nodes"]))
            broken = {name: counters["jobs_broken"] for name, counters in fabric.node_counters().items()}
            self.assertEqual(set(broken.values()), {0}, broken)


if __name__ == "__main__":
    unittest.main()
