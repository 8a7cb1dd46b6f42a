"""Quantised sums: the bound on their error, the bytes that they take, and the same bits for one
tree, whatever segments, protocols, lanes and failures there are."""

import pathlib
import signal
import tempfile
import unittest

from harness import Fabric, Ranks, send

RANKS = 8
#: Below and above a chunk, and with an end that is no whole block.
COUNTS = {"float32": [1000, 70_001], "float16": [1000], "bfloat16": [1000]}
#: Jobs with one logical tree for all that are named alike up to the colon.
PLACES = {
    "a host each": ({}, {}),
    "a host each: again": ({}, {}),
    "a host each: datagrams": ({}, {"quota": {"stream_threshold": 1 << 30}}),
    "a host each: streams": ({}, {"quota": {"stream_threshold": 0, "segment": 2000}}),
    "a host each: two lanes": ({}, {"quota": {"lanes": 2, "trees": 1, "stripe_threshold": 1000}}),
    "four hosts": ({"shared_host": True}, {"hosts": ["one", "two", "three", "four"]}),
    "four hosts: again": ({"shared_host": True}, {"hosts": ["one", "two", "three", "four"]}),
    "four hosts: streams": (
        {"shared_host": True},
        {"hosts": ["one", "two", "three", "four"], "env": {"TRIB_SHARED_MEMORY": "off"}, "quota": {"stream_threshold": 0}},
    ),
    "one host": ({"shared_host": True}, {}),
}
#: Of the bytes of float32, headers among them.
MOST = 0.30


class Sums(unittest.TestCase):
    def test_sums_are_right_small_and_the_same_for_one_tree(self):
        seen = {}
        for place, (fabric, ranks) in PLACES.items():
            with self.subTest(place):
                with Fabric(**fabric) as fabric, Ranks(fabric, RANKS, "quantised_worker", "every_call", {"counts": COUNTS}, **ranks) as running:
                    results = running.results(240)
                found = {}
                for result in results:
                    # Normally distributed elements are off by about a fiftieth of the sum's.
                    self.assertLess(max(result["errors"]), 0.04)
                    for key, value in result["found"].items():
                        self.assertEqual(found.setdefault(key, value), value, f"{key}: ranks differ")
                self.assertEqual(seen.setdefault(place.split(":")[0], found), found, "other bits in the same tree")
                self.check_bytes(place, results)

    def check_bytes(self, place, results):
        for way in ("sent", "received"):
            # The first rank of a host speaks for it.
            ways = [result["ways"][way] for result in results]
            if place == "one host":
                # A sign of life may fall into it, and no vector.
                self.assertLess(sum(ways), 1e-3, way)
            elif place.endswith("datagrams"):
                self.assertLess(max(ways), 0.01, way)
            else:
                self.assertTrue(0.28 < max(ways) < MOST, f"{way}: {ways}")

    def test_another_setting_for_all_groups(self):
        argument = {"counts": {"float32": [1000]}}
        with Fabric() as fabric, Ranks(fabric, 2, "quantised_worker", "every_call", argument, env={"TRIB_SUMS": "int8"}) as running:
            self.assertLess(max(running.results()[0]["errors"]), 0.04)

    def test_what_is_not_quantised_is_as_always(self):
        with Fabric() as fabric, Ranks(fabric, 3, "quantised_worker", "as_always") as running:
            for told in running.results():
                self.assertEqual(told.pop("no numbers"), [1])
                self.assertTrue(all(told.values()), told)

    def test_members_that_disagree_are_told(self):
        for odd, count in (("plain", 5000), ("exact", 5000), ("fixed", 100)):
            with self.subTest(odd), Fabric() as fabric:
                argument = {"odd": odd, "count": count}
                with Ranks(fabric, 3, "quantised_worker", "disagree", argument) as running:
                    for result in running.results():
                        self.assertEqual(result["status"], -6, result)
                        self.assertRegex(result["text"], "float32 .sum, int8 blocks.")

    def test_a_job_whose_pieces_hold_no_block_is_told(self):
        with Fabric() as fabric, Ranks(fabric, 2, "quantised_worker", "narrow", quota={"payload": 32}) as running:
            for text in running.results():
                self.assertIn("int8 sums travel in blocks of 36 bytes, and this job's payload or segment has 32", text)

    def test_a_sum_is_the_same_when_a_node_dies(self):
        found = []
        for victim in (None, "leaf0"):
            with tempfile.TemporaryDirectory() as folder, Fabric(backups=1) as fabric:
                go_on, rounds = pathlib.Path(folder) / "go_on", 40
                argument = {"count": 300_000, "rounds": rounds, "go_on": str(go_on)}
                with Ranks(fabric, RANKS, "quantised_worker", "rounds", argument) as running:
                    running.reach(lambda: running.progress(0) >= rounds // 4, 60, "sums")
                    if victim:
                        send(fabric.processes()[victim], signal.SIGKILL)
                    go_on.touch()
                    results = running.results()
                found.append({tuple(result["digests"]) for result in results})
                self.assertEqual(min(result["counters"]["epochs"] for result in results) > 0, victim is not None)
        self.assertEqual(len(found[0]), 1, "ranks differ")
        self.assertEqual(found[0], found[1])
        self.assertEqual(len(set(next(iter(found[0])))), rounds, "each sum is rounded otherwise")


if __name__ == "__main__":
    unittest.main()
