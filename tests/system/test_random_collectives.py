"""100 random collectives a run, compared with a plain reference: the bits are the same whatever
the path, the workers and the order of arrival."""

import unittest

from harness import Fabric, Ranks

import random_worker
import reference

NUMBER, MOST, RANKS = 100, 1 << 20, 8
#: Two leaves take the ranks in blocks, so this is the shape of the fold.
TREE = [[0, 1, 2, 3], [4, 5, 6, 7]]


def expected(seed, number=NUMBER, most=MOST, tree=TREE):
    """By rank, the digest of each result."""
    digests = [{} for _ in range(RANKS)]
    for call in random_worker.calls(seed, number, most):
        ranks = random_worker.GROUPS[call["group"]]
        inputs = {rank: random_worker.input_of(call, seed, rank) for rank in ranks}
        for rank, output in reference.result(tree, ranks, call, inputs).items():
            digests[rank][str(call["index"])] = random_worker.digest(output)
    return digests


class RandomCollectives(unittest.TestCase):
    def check(self, fabric, seed, wanted, quota, shuffled, what):
        argument = {"seed": seed, "number": NUMBER, "most": MOST, "shuffled": shuffled, "shuffle_seed": seed}
        with Ranks(fabric, RANKS, "random_worker", "run", argument, quota) as ranks:
            results = ranks.results(timeout=180)
        for rank, (result, want) in enumerate(zip(results, wanted)):
            wrong = [i for i in want if result["digests"].get(i) != want[i]]
            self.assertEqual(wrong, [], f"{what}: rank {rank} has other bits in these calls")
        return results

    def test_same_bits_on_every_path_with_one_and_two_workers(self):
        seed = 1
        wanted = expected(seed)
        for workers in (1, 2):
            with Fabric(workers=workers) as fabric:
                mixed = self.check(fabric, seed, wanted, {}, True, f"mixed, {workers} workers")
                self.assertTrue(all(r["counters"]["operations_llt"] and r["counters"]["operations_sat"] for r in mixed))
                streamed = self.check(fabric, seed, wanted, {"stream_threshold": 0}, False, f"SAT, {workers} workers")
                self.assertTrue(all(r["counters"]["operations_sat"] for r in streamed))
                never = {"stream_threshold": 1 << 40}
                datagrams = self.check(fabric, seed, wanted, never, True, f"LLT, {workers} workers")
                self.assertTrue(all(r["counters"]["operations_sat"] == 0 for r in datagrams))


if __name__ == "__main__":
    unittest.main()
