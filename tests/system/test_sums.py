"""Sums of floating-point numbers that do not depend on order: the same bits for any order of ranks,
any hosts, trees, lanes, protocols and failures, held against exact arithmetic."""

import hashlib
import pathlib
import signal
import tempfile
import unittest

import exact_sums
from exact_sums import TYPES, as_bytes
from harness import Fabric, Ranks, send

RANKS = 8
#: Numbers, and how often they are repeated: below and above a block, the vectors that go without a
#: survey, and a chunk. Such numbers are the worst case: float64 travels as 36 times its bytes.
COUNTS = {name: [(1, 1), (3, 1), (257, 1), (600, 160 if name == "float32" else 5)] for name in TYPES}
ORDERS = [[0, 1, 2, 3, 4, 5, 6, 7], [5, 2, 7, 0, 3, 6, 1, 4]]
#: A job's ranks and tree, in every way that must not matter.
PLACES = {
    "a host each": ({}, {}),
    "one host": ({"shared_host": True}, {}),
    "two hosts": ({"shared_host": True}, {"hosts": ["one", "two"]}),
    "four hosts": ({"shared_host": True}, {"hosts": ["one", "two", "three", "four"]}),
    "datagrams": ({}, {"quota": {"stream_threshold": 1 << 30}}),
    "streams": ({}, {"quota": {"stream_threshold": 0}}),
    "two lanes": ({}, {"quota": {"lanes": 2, "trees": 1, "stripe_threshold": 1000}}),
    "one leaf": ({"leaves": 1}, {}),
}


def digest(name, numbers, repeats=1):
    return hashlib.sha256(as_bytes(name, numbers) * repeats).hexdigest()


class AnyOrder(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.sums = {(name, count): exact_sums.sums(name, RANKS, count) for name in TYPES for count, _ in COUNTS[name]}

    def found(self, place, order, sums):
        fabric, ranks = PLACES[place]
        argument = {"order": order, "sums": sums, "counts": COUNTS}
        with Fabric(**fabric) as fabric, Ranks(fabric, RANKS, "sums_worker", "every_call", argument, **ranks) as running:
            return running.results(240)

    def test_exact_sums_are_the_sums_of_the_numbers_wherever_ranks_are(self):
        for at, place in enumerate(PLACES):
            with self.subTest(place):
                results = self.found(place, ORDERS[at % 2], "exact")
                for result in results:
                    self.check_exact(result["found"])
                boards = [result["counters"]["operations_board"] for result in results]
                self.assertEqual(all(boards), place in ("one host", "two hosts", "four hosts"), boards)

    def check_exact(self, found):
        for key, value in found.items():
            what, name, count, repeats, _, *rank = key.split()
            if what == "sum":
                self.assertEqual(value, [digest(name, self.sums[name, int(count)], int(repeats))], key)
                continue
            numbers = self.sums[name, int(count)] * int(repeats)
            share = len(numbers) // RANKS
            self.assertEqual(value, digest(name, numbers[int(rank[0]) * share :][:share]), key)

    def test_fixed_sums_are_the_same_wherever_ranks_are(self):
        wanted = None
        for place, order in (("a host each", ORDERS[0]), ("one host", ORDERS[1]), ("two hosts", ORDERS[1]), ("two lanes", ORDERS[0])):
            found = {}
            for result in self.found(place, order, "fixed"):
                for key, value in result["found"].items():
                    self.assertEqual(found.setdefault(key, value), value, (place, key))
                    self.assertTrue(key.startswith("block") or len(value) == 1, f"{key}: calls differ")
            wanted = wanted or found
            self.assertEqual(found, wanted, place)

    def test_a_setting_for_all_groups(self):
        argument = {"order": ORDERS[0], "sums": "", "by_call": False, "counts": {"float32": [(257, 1)]}}
        for sums, differs in (("exact", False), ("plain", True)):
            with Fabric() as fabric, Ranks(fabric, RANKS, "sums_worker", "every_call", argument, env={"TRIB_SUMS": sums}) as running:
                found = running.results()[0]["found"]
            self.assertEqual(found["sum float32 257 1 0"] != [digest("float32", self.sums["float32", 257])], differs)


class Calls(unittest.TestCase):
    def test_an_exact_sum_may_be_cut_into_any_calls(self):
        count = 600
        for name in ("float32", "bfloat16"):
            wanted = digest(name, exact_sums.sums(name, 5, count))
            lengths = [1, 2, 97, 300, 200]
            argument = {"type": name, "count": count, "lengths": lengths}
            with Fabric() as fabric, Ranks(fabric, 5, "sums_worker", "split", argument) as running:
                for result in running.results():
                    self.assertEqual(result, [wanted, wanted])

    def test_what_depends_on_order_otherwise_is_refused_and_all_else_is_as_always(self):
        with Fabric() as fabric, Ranks(fabric, 2, "sums_worker", "refused") as running:
            for product, largest, integers in running.results():
                self.assertEqual(product[0], -10)
                self.assertIn("a product of float32 depends on the order", product[1])
                self.assertEqual((largest, integers), ([2.0] * 9, [6] * 9))

    def test_members_that_disagree_are_told(self):
        same = {"odd_sums": "exact", "odd_count": 5000, "odd_type": "float32", "count": 5000}
        for odd, words in (
            ({"odd_sums": "plain"}, r"float32 \(sum\)"),
            ({"odd_count": 5001}, "sum, limbs of"),
            ({"odd_sums": "fixed"}, "fixed survey"),
            ({"odd_count": 9000}, "exact survey"),
            ({"odd_type": "float64"}, "float64"),
            ({"odd_count": 0}, "exact survey"),
            ({"odd_count": 2}, "exact survey"),
        ):
            with self.subTest(odd):
                with Fabric() as fabric, Ranks(fabric, 3, "sums_worker", "disagree", {**same, **odd}) as running:
                    for result in running.results():
                        self.assertEqual(result["status"], -6, result)
                        self.assertRegex(result["text"], words)


class Failures(unittest.TestCase):
    def test_a_sum_is_the_same_when_a_node_dies(self):
        count, repeats = 600, 500
        wanted = digest("float32", exact_sums.sums("float32", RANKS, count), repeats)
        with tempfile.TemporaryDirectory() as folder, Fabric(backups=1) as fabric:
            stop = pathlib.Path(folder) / "stop"
            argument = {"sums": "exact", "count": count, "repeats": repeats, "stop": str(stop)}
            with Ranks(fabric, RANKS, "sums_worker", "over_and_over", argument) as running:
                for name in ("leaf0", "root"):
                    before = running.progress(0)
                    running.reach(lambda: running.progress(0) > before + 3, 60, "sums")
                    send(fabric.processes()[name], signal.SIGKILL)
                before = running.progress(0)
                running.reach(lambda: running.progress(0) > before + 3, 60, "sums after two nodes died")
                stop.touch()
                for result in running.results():
                    self.assertEqual(result["digests"], [wanted])
                    self.assertGreaterEqual(result["counters"]["epochs"], 1)


if __name__ == "__main__":
    unittest.main()
