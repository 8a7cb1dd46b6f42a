"""Ranks that share a host hang below a node of the tree that lives in one of them: the host's link
carries each vector once, and the job outlives that rank."""

import functools
import json
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

from harness import TRIB, Fabric, Ranks, send, wait_until

import test_random_collectives

HOSTS = ["h0", "h1", "h2", "h3"]
RANKS = 8
#: Two hosts of two ranks each hang below each leaf.
TREE = [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]
#: Each rank is bound to a domain of the host by its number.
BOUND = ["sh", "-c", 'TRIB_NUMA=$((TRIB_RANK % 2)) exec "$@"', "sh"]

#: One rank may not share memory.
APART = ["sh", "-c", '[ $TRIB_RANK != 5 ] || export TRIB_SHARED_MEMORY=off; exec "$@"', "sh"]

#: The launcher ends all ranks when one fails. Here a rank may.
ALONE = ["sh", "-c", '"$@" || true', "sh"]


@functools.cache
def expected(seed, number, most, tree):
    return test_random_collectives.expected(seed, number, most, json.loads(tree))


def told(fabric, *words):
    command = [TRIB, *words, "--json", "--manager", fabric.manager]
    return json.loads(subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout)


def payload_in(fabric):
    """{node: bytes of vectors that came to it}"""
    counters = fabric.node_counters()
    return {name: counts.get("payload_bytes_in", 0) for name, counts in counters.items()}


def edges_over_memory(pid):
    """How many ends of edges a process has mapped."""
    return pathlib.Path(f"/proc/{pid}/maps").read_text().count("memfd:tributary-edge")


class Levels(unittest.TestCase):
    def check_bits(self, fabric, tree, hosts=(), quota=None, through=()):
        seed, number, most = 3, 60, 1 << 17
        wanted = expected(seed, number, most, json.dumps(tree))
        argument = {"seed": seed, "number": number, "most": most, "shuffled": True, "shuffle_seed": seed}
        with Ranks(fabric, RANKS, "random_worker", "run", argument, quota, through=through, hosts=hosts) as ranks:
            results = ranks.results(180)
        for rank, (result, want) in enumerate(zip(results, wanted)):
            self.assertEqual([i for i in want if result["digests"].get(i) != want[i]], [], f"rank {rank}")
        self.assertEqual({result["counters"]["epochs"] for result in results}, {0}, "nobody has died")
        return sum(result["counters"]["operations_board"] for result in results)

    def test_bits_are_those_of_the_tree_with_its_levels(self):
        with Fabric(shared_host=True) as fabric:
            self.check_bits(fabric, TREE, HOSTS)
            self.check_bits(fabric, test_random_collectives.TREE, HOSTS, {"levels": "none"})

    def test_a_lone_host_needs_no_node(self):
        with Fabric(shared_host=True) as fabric:
            self.check_bits(fabric, [[0, 2, 4, 6], [1, 3, 5, 7]], ["h0"], through=BOUND)
            self.check_bits(fabric, list(range(RANKS)), ["h0"], {"levels": "host"}, through=BOUND)
            for name, counters in fabric.node_counters().items():
                self.assertEqual([counters.get(what, 0) for what in ("jobs_installed", "datagrams_in", "stream_bytes_in")], [0, 0, 0], name)
            (first, second) = told(fabric, "jobs", "--all")["past"]
            self.assertEqual((first["state"], second["state"]), ("ended", "ended"))

    def test_bits_do_not_depend_on_who_shares_memory(self):
        with Fabric(shared_host=True) as fabric:
            self.check_bits(fabric, TREE, HOSTS, through=APART)
            self.check_bits(fabric, TREE, HOSTS, through=["env", "TRIB_SHARED_MEMORY=off"])

    def test_bits_do_not_depend_on_what_folds_the_ranks_of_a_host(self):
        """Boards; or, where a job has several lanes or is strict, a node in a rank for each lane."""
        lanes, strict = {"lanes": 2, "stripe_threshold": 4096}, {"recovery": "strict"}
        with Fabric(shared_host=True) as fabric:
            self.assertGreater(self.check_bits(fabric, TREE, HOSTS), 0)
            for quota, through in ((lanes, ()), (strict, APART), ({**lanes, **strict}, ())):
                with self.subTest(quota=quota, through=through):
                    self.assertEqual(self.check_bits(fabric, TREE, HOSTS, quota, through), 0)

    def test_ranks_of_a_host_share_memory_with_their_node_where_they_may(self):
        with tempfile.TemporaryDirectory() as folder, Fabric(shared_host=True) as fabric:
            stop = pathlib.Path(folder) / "stop"
            argument = {"counts": [5, 100_000], "stop": str(stop), "pause": 0.01}
            with Ranks(fabric, RANKS, "loop_worker", "loop", argument, hosts=HOSTS, through=APART) as ranks:
                ranks.reach(lambda: ranks.progress(0) > 5, 30, "first operations")
                edges = [edges_over_memory(pid) for pid in ranks.pids()]
                drawn = subprocess.run([TRIB, "explain", "1", "--manager", fabric.manager], capture_output=True, text=True, timeout=30)
                stop.touch()
                ranks.results(60)
        # The lower rank of a host hosts its node and is its child, too.
        self.assertEqual(edges, [3, 1, 3, 1, 2, 0, 3, 1])
        self.assertRegex(drawn.stdout, r"(?m)^ +ranks 4-5 on h2 +rank 5: no shared memory ", drawn.stderr)
        self.assertEqual(drawn.stdout.count("no shared memory"), 1, drawn.stdout)

    def test_a_vector_comes_to_a_leaf_once_for_each_host(self):
        count, iterations = 100_000, 5
        came = {}
        for levels in ("none", "host"):
            with Fabric(shared_host=True) as fabric:
                argument = {"counts": [count], "iterations": iterations}
                with Ranks(fabric, RANKS, "loop_worker", "loop", argument, {"levels": levels}, hosts=HOSTS) as ranks:
                    ranks.results(60)
                came[levels] = payload_in(fabric)
        vector = 8 * count * iterations
        for leaf in ("leaf0", "leaf1"):
            # From each child below and from the root; and a flag that says whether to go on.
            self.assertAlmostEqual(came["none"][leaf] / vector, 4 + 1, delta=0.02)
            self.assertAlmostEqual(came["host"][leaf] / vector, 2 + 1, delta=0.02)
        self.assertAlmostEqual(came["host"]["root"] / vector, 2, delta=0.02)

    def test_explain_shows_the_level(self):
        with tempfile.TemporaryDirectory() as folder, Fabric(shared_host=True) as fabric:
            stop = pathlib.Path(folder) / "stop"
            argument = {"counts": [5], "stop": str(stop), "pause": 0.01}
            with Ranks(fabric, RANKS, "loop_worker", "loop", argument, hosts=HOSTS) as ranks:
                ranks.reach(lambda: ranks.progress(0) > 5, 30, "first operations")
                homes = {home["name"]: home["at"] for home in told(fabric, "explain", "1")["homes"]}
                (job,) = told(fabric, "jobs")["live"]
                stop.touch()
                ranks.results(60)
        wanted = {"root": "root", "leaf0": "leaf0", "leaf1": "leaf1"}
        self.assertEqual(homes, {**wanted, **{f"host h{n}": f"rank {2 * n} on h{n}" for n in range(4)}})
        self.assertEqual(job["activity"]["ranks"], RANKS)


class Leaders(unittest.TestCase):
    """A rank that hosts its host's node dies, or stops."""

    def run_without(self, number, lead, dies, act):
        """Ranks in groups with and without `lead`; `act` does something to it."""
        with tempfile.TemporaryDirectory() as folder, Fabric(shared_host=True) as fabric:
            argument = {"folder": folder, "lead": lead, "dies": dies}
            with Ranks(fabric, RANKS, "levels_worker", "survive", argument, through=ALONE, hosts=HOSTS[:number]) as ranks:
                ranks.reach(lambda: min(ranks.progress(rank) for rank in range(RANKS)) > 3, 30, "first operations")
                act(fabric, ranks)
                (pathlib.Path(folder) / "stop").touch()
                return self.results(ranks, folder, lead)

    def results(self, ranks, folder, lead):
        paths = [pathlib.Path(folder) / f"{rank}.over" for rank in range(RANKS)]
        wait_until(lambda: all(path.exists() for rank, path in enumerate(paths) if rank != lead), 60, "all others end")
        wait_until(lambda: paths[lead].exists() or not pathlib.Path(f"/proc/{ranks.pids()[lead]}").exists(), 30, "the lead ends")
        ranks.stop()
        return [json.loads(path.read_text()) if path.exists() else None for path in paths]

    def test_a_leader_that_is_killed_fails_its_own_groups_with_its_name_and_no_others(self):
        for number, lead in ((4, 2), (1, 0)):
            with self.subTest(hosts=number):
                def act(fabric, ranks):
                    began, before = time.monotonic(), ranks.progress(7)
                    send(ranks.pids()[lead], signal.SIGKILL)
                    ranks.reach(lambda: ranks.progress(7) > before + 10, 30, "operations without it")
                    print(f"{number} hosts: others went on after {time.monotonic() - began:.1f} s")

                said = self.run_without(number, lead, True, act)
                self.assertIsNone(said[lead])
                for rank in set(range(RANKS)) - {lead}:
                    world = said[rank]["world"]
                    self.assertRegex(world["text"], rf"rank {lead} on h\d+", rank)
                    self.assertLess(world["after"], 20, rank)
                print(f"{number} hosts: its groups failed after {max(each['world']['after'] for each in said if each):.1f} s")

    def test_a_leader_that_stops_is_late_and_others_go_on_without_it(self):
        lead = 2

        def act(fabric, ranks):
            pid, before = ranks.pids()[lead], ranks.progress(7)
            send(pid, signal.SIGSTOP)
            try:
                ranks.reach(lambda: ranks.progress(7) > before + 10, 60, "operations without it")
                moved = {home["name"]: home["at"] for home in told(fabric, "jobs")["live"][0]["moved"]}
                self.assertEqual(moved["host h1"], "rank 3 on h1")
            finally:
                send(pid, signal.SIGCONT)

        said = self.run_without(4, lead, False, act)
        self.assertEqual([said[rank]["world"] for rank in range(RANKS)], ["right"] * RANKS)


class Late(unittest.TestCase):
    """All ranks share a host and its memory, where no node sees what they do, and one is late."""

    late = 5

    def late_ranks(self, fabric, which="1"):
        """{rank: the operation to which it has not come}"""
        parts = told(fabric, "explain", which)["parts"]
        groups = [group for hosted in parts for group in hosted["part"]["groups"] if group.get("board")]
        return {late["rank"]: (late["operation"], late["what"]) for group in groups for late in group["late"]}

    def text(self, fabric, *words):
        command = [TRIB, *words, "--manager", fabric.manager]
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout

    def drawn(self, fabric, lines):
        """The first lines of `trib status --watch`, which ends because nobody reads more."""
        command = [TRIB, "status", "--watch", "--interval", "0.2", "--manager", fabric.manager]
        watching = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        drawn = "".join(watching.stdout.readline() for _ in range(lines))
        watching.stdout.close()
        watching.wait(30)
        return drawn

    def check(self, through=(), computes=False):
        with tempfile.TemporaryDirectory() as folder, Fabric(shared_host=True) as fabric:
            argument = {"folder": folder, "late": self.late, "computes": computes}
            with Ranks(fabric, RANKS, "levels_worker", "late", argument, through=through, hosts=["h0"]) as ranks:
                wait_until(lambda: told(fabric, "jobs")["live"], 30, "the job")
                wait_until(lambda: self.late in self.late_ranks(fabric), 30, "its ranks say who is late")
                self.assertEqual(self.late_ranks(fabric), {self.late: (2, "allreduce of 3 int64 (sum)")})
                if not computes:
                    ranks.reach(lambda: all(ranks.progress(rank) for rank in range(RANKS) if rank != self.late), 30, "they have waited")
                process = rf"rank {self.late} on h0 \(PID {ranks.pids()[self.late]}\)"
                who = rf"field \(ranks 0-7\) waits for {process} to come to its 2nd operation, allreduce of 3 int64 \(sum\), for \d"
                whole, group = self.text(fabric, "explain", "1"), self.text(fabric, "explain", "1/field")
                for said in (whole, group):
                    self.assertRegex(said, who)
                    self.assertRegex(said, rf"(?m)^host h0 .* host memory .*rank {self.late} on h0")
                self.assertRegex(whole, r"(?m)^stands still: field \(ranks 0-7\), at its 2nd operation")
                self.assertIn("It works in the memory of its host", group)
                self.assertRegex(self.drawn(fabric, 30), rf"rank {self.late} \d.* late")
                (pathlib.Path(folder) / "come").touch()
                wait_until(lambda: self.late_ranks(fabric) == {}, 30, "nobody is late any more")
                self.assertIn("Nothing waits", self.text(fabric, "explain", "1"))
                (pathlib.Path(folder) / "stop").touch()
                results = ranks.results(60)
        for rank, result in enumerate(results):
            self.assertEqual(result["counters"]["operations_board"], 2, rank)
            if not computes and rank != self.late:
                self.assertRegex(result["text"], rf"^allreduce of 3 int64 \(sum\) is not done after 700 ms: {process} is late; it goes on")

    def test_who_waits_says_for_whom(self):
        self.check()

    def test_who_waits_says_for_whom_across_the_domains_of_the_host(self):
        self.check(through=BOUND)

    def test_who_computes_meanwhile_says_for_whom_it_would_wait(self):
        self.check(computes=True)


if __name__ == "__main__":
    unittest.main()
