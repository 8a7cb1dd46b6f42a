"""Links over UCX: the same bits as over TCP, nothing beside the links, a node that dies, and a host
without UCX."""

import pathlib
import subprocess
import tempfile
import unittest

from carried import ONCE
from harness import TRIB, RanksOnHosts
from test_doctor import by_name
from test_lab import Lab
from test_random_collectives import expected


def library():
    """The file of UCX's library, wherever the distribution has it."""
    lines = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout.splitlines()
    found = [line.split(" => ")[1] for line in lines if line.strip().startswith("libucp.so.0 ")]
    return pathlib.Path(found[0]).resolve()


def counters(lab):
    return {node["name"]: node["counters"] for node in lab.manager_status()["nodes"]}


class Ucx(unittest.TestCase):
    def test_the_bits_are_the_same_and_all_frames_go_by_ucx(self):
        seed, number, most = 11, 80, 1 << 16
        wanted = expected(seed, number, most)
        argument = {"seed": seed, "number": number, "most": most, "shuffled": True, "shuffle_seed": 3}
        with Lab("--hosts", "8", "--leaf-ports", "4", "--rate", "1gbit", "--ucx") as lab:
            with RanksOnHosts(lab.name, 8, "random_worker", "run", argument) as ranks:
                results = ranks.results(120)
            for rank, (result, want) in enumerate(zip(results, wanted)):
                self.assertEqual(result["digests"], want, f"rank {rank}")
            self.assertTrue(all(r["counters"]["operations_llt"] and r["counters"]["operations_sat"] for r in results))
            for name, counts in counters(lab).items():
                edges = 2 if name == "spine" else 5
                self.assertEqual((counts["links_ucx"], counts["links_opened"]), (edges, edges), name)
                self.assertEqual((counts["datagrams_in"], counts["datagrams_out"]), (0, 0), name)
                self.assertGreater(counts["ucx_bytes_in"], counts["payload_bytes_in"], name)

    def test_hosts_of_two_ranks_and_two_links_are_children_over_ucx_too(self):
        argument = {"seed": 9, "number": 60, "most": 1 << 14, "shuffled": True, "shuffle_seed": 4}
        wanted = expected(9, 60, 1 << 14, [[[0, 1], [2, 3]], [[4, 5], [6, 7]]])
        with Lab("--hosts", "4", "--leaf-ports", "2", "--rate", "1gbit", "--ports", "2", "--ucx") as lab:
            quota = {"lanes": 2, "trees": 1}
            with RanksOnHosts(lab.name, 8, "random_worker", "run", argument, quota, per_host=2) as ranks:
                results = ranks.results(120)
            for rank, (result, want) in enumerate(zip(results, wanted)):
                self.assertEqual(result["digests"], want, f"rank {rank}")
            # Each lane has the links of two hosts and the one above; ranks of a host share memory.
            self.assertEqual({name: counts["links_ucx"] for name, counts in counters(lab).items()},
                             {"spine": 4, "leaf0": 6, "leaf1": 6})

    def test_payloads_are_sealed_over_ucx_too(self):
        wanted = expected(12, 60, 1 << 16, [[[0, 1], [2, 3]], [[4, 5], [6, 7]]])
        argument = {"seed": 12, "number": 60, "most": 1 << 16, "shuffled": True, "shuffle_seed": 5}
        with Lab("--hosts", "4", "--leaf-ports", "2", "--rate", "1gbit", "--ucx") as lab:
            for mode in ("signed", "encrypted"):
                with RanksOnHosts(lab.name, 8, "random_worker", "run", argument, {"data_path": mode}, per_host=2) as ranks:
                    results = ranks.results(120)
                for rank, (result, want) in enumerate(zip(results, wanted)):
                    self.assertEqual(result["digests"], want, f"rank {rank}, {mode}")
            self.assertTrue(all(counts["links_ucx"] for counts in counters(lab).values()))

    def test_a_vector_crosses_every_link_once_each_way(self):
        size = 4 << 20
        with Lab("--hosts", "4", "--leaf-ports", "2", "--rate", "1gbit", "--ucx") as lab:
            for link, (count, _) in lab.carried(4, size).items():
                self.assertGreater(count, size, link)
                self.assertLess(count, ONCE * size, link)

    def test_a_job_outlives_its_nodes(self):
        for name in ("leaf0", "spine"):
            with self.subTest(name):
                self.outlive(name)

    def outlive(self, name):
        with Lab("--hosts", "4", "--leaf-ports", "2", "--rate", "1gbit", "--backups", "1", "--ucx") as lab:
            with tempfile.TemporaryDirectory() as folder:
                stop = pathlib.Path(folder) / "stop"
                argument = {"counts": [3, 700, 60_000], "stop": str(stop)}
                with RanksOnHosts(lab.name, 4, "loop_worker", "loop", argument) as ranks:
                    ranks.reach(lambda: ranks.progress(0) > 5, 30, "first operations")
                    lab.fault("kill", "--process", name)
                    before = ranks.progress(0)
                    ranks.reach(lambda: ranks.progress(0) > before + 5, 60, "operations after it")
                    stop.touch()
                    results = ranks.results(60)
            self.assertEqual(len({result["digest"] for result in results}), 1)
            self.assertTrue(all(result["counters"]["epochs"] >= 1 for result in results))

    def test_a_host_without_ucx_is_told_what_to_install(self):
        with Lab("--hosts", "2", "--leaf-ports", "2", "--ucx") as lab:
            doctor = [TRIB, "doctor", "--json", "--timeout", "5"]
            checks = by_name(lab.run("exec", "h1", "--", *doctor).stdout)
            self.assertEqual(checks["ucx"]["state"], "ok")
            self.assertIn("stream", checks)
            self.assertRegex(checks["ucx"]["found"], r"^UCX 1\.\d+.*tcp/eth0.*UCX_TLS=tcp,self")

            hidden = f'mount --bind /dev/null {library()} && exec "$@"'
            done = lab.run("exec", "h1", "--", "unshare", "--mount", "sh", "-c", hidden, "sh", *doctor, check=False)
            self.assertEqual(done.returncode, 1, done.stderr)
            checks = by_name(done.stdout)
            self.assertEqual(checks["trial job"]["state"], "failed")
            self.assertIn("install libucx0", checks["trial job"]["found"])
            self.assertIn("not installed", checks["ucx"]["found"])


if __name__ == "__main__":
    unittest.main()
