"""Collectives over memory of a GPU, in the order of a stream, with a stand-in for the driver: right
bits, an order that shows overlap, no wait for a whole device, and errors that reach every rank."""

import json
import pathlib
import unittest

import stand_in_driver
from harness import Fabric, Ranks

#: Chunks of 64 KiB, and four slots.
QUOTA = {"flight": 1, "segment": 8192, "staging": 1}
RANKS = 3


class Device(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.driver = stand_in_driver.built_for(cls)
        cls.fabric = Fabric()
        cls.addClassCleanup(cls.fabric.__exit__)

    def ranks(self, function, argument=None, env=None, fabric=None, quota=QUOTA, size=RANKS):
        env = {"LD_LIBRARY_PATH": self.driver, **(env or {})}
        return Ranks(fabric or self.fabric, size, "device_worker", function, argument, quota, env)

    def results(self, *arguments, **named):
        with self.ranks(*arguments, **named) as ranks:
            return ranks.results()

    def check_collectives(self, counts, sums="plain", **named):
        for rank, result in enumerate(self.results("collectives", {"counts": counts, "sums": sums}, **named)):
            self.assertGreaterEqual(result["compared"], 7 * len(counts), f"rank {rank}")
            told = result["counts"]
            for waits in ("cuCtxSynchronize", "cuStreamSynchronize", "cuMemcpyHtoD", "cuMemcpyDtoH"):
                self.assertEqual(told[waits], 0, f"rank {rank} waits for a whole device: {told}")
            self.assertEqual(told["copy pageable"], 0, told)
            self.assertLessEqual(told["cuMemHostAlloc"], 4, told)
            self.assertEqual(told["cuMemHostAlloc"], told["cuMemFreeHost"], "pinned memory is given back")
            self.assertGreater(told["copy device-host"], 0)

    def test_results_have_the_bits_of_the_same_call_over_memory_of_the_host(self):
        self.check_collectives([1, 1000, 100_003])

    def test_sums_that_are_not_plain(self):
        for sums in ("exact", "int8"):
            with self.subTest(sums):
                self.check_collectives([1000, 100_003], sums=sums)

    def test_sums_have_the_same_blocks_wherever_a_vector_is_cut(self):
        # Of two ranks a buffer has 10,922 elements of each block. The last chunk of 16,404 elements
        # has 20, and a vector of as many would be summed exactly.
        argument = {"counts": [16_404, 30_000], "sums": ["fixed", "exact", "int8", "plain"]}
        self.assertEqual(self.results("wide_sums", argument, size=2), [4 * 2 * 2 * 2] * 2)

    def test_operations_that_follow_each_other_at_once(self):
        for compared in self.results("back_to_back", {"counts": [50_000, 7, 20_001], "turns": 3}):
            self.assertGreaterEqual(compared, 3 * 3 * 3)

    def test_ranks_of_one_host(self):
        with Fabric(shared_host=True) as fabric:
            self.check_collectives([1, 1000, 50_000], fabric=fabric)

    def test_several_lanes(self):
        self.check_collectives([1000, 50_000], quota={**QUOTA, "lanes": 2, "stripe_threshold": 16384})

    def test_nothing_hangs_when_calls_return_only_when_all_is_done(self):
        self.check_collectives([1000, 50_000], env={"CUDA_LAUNCH_BLOCKING": "1"})

    def test_memory_out_of_a_pool(self):
        self.check_collectives([1000], env={"STAND_IN_POOL": "1"})

    def test_chunks_are_copied_while_others_travel(self):
        count = 32 * (64 << 10) // 4
        for trace in self.results("pipeline", {"count": count}):
            self.assertEqual((trace.count("o"), trace.count("b")), (32, 32), trace)
            # Four slots: the fifth chunk needs one whose result is on its way back, and the ninth
            # one whose result is there.
            self.assertLessEqual(trace.index("b"), 8, trace)
            self.assertLess(trace.index("b"), trace.rindex("o"), trace)
            self.assertGreater(trace.count("bo") + trace.count("ob"), 8, trace)

    def test_what_is_begun_later_comes_behind(self):
        for counters in self.results("order", {"count": 60_000, "turns": 4}, quota={**QUOTA, "streams": 1}):
            self.assertGreater(counters["operations_sat"], 0)

    def test_a_result_waits_for_no_stream_of_a_later_operation(self):
        not_ready = 600
        self.assertEqual(self.results("apart", {"count": 60_000}), [not_ready] * RANKS)

    def test_a_capture_beside_is_not_spoilt(self):
        env = {"STAND_IN_DELAY_US": "5000"}
        for result in self.results("beside_a_capture", {"count": 60_000}, env=env):
            self.assertEqual(result["told"], [[0, 0]] * 4, result)
            self.assertEqual(result["pinned"], result["freed"], "pinned memory is given back")

    def test_an_error_of_the_driver_reaches_every_rank_in_words(self):
        for call, number, code, status, begins in (
            ("cuMemHostAlloc", 1, 2, -11, True),
            ("cuMemcpyAsync", 3, 1, -15, True),
            ("cuMemcpyAsync", 12, 1, -15, True),
            ("copy", 2, 700, -15, True),
            ("copy", 9, 719, -15, True),
            ("cuEventSynchronize", 2, 719, -15, True),
            ("cuStreamCreate", 1, 2, -11, False),
            ("cuEventRecord", 1, 400, -15, False),
        ):
            with self.subTest(call=call, number=number):
                argument = {"fail": [call, number, code], "rank": 1, "count": 150_000, "begins": begins}
                results = self.results("failing", argument)
                self.assertEqual(results[1]["status"], status, results)
                self.assertIn(f"({code}): ", results[1]["text"])
                for other in (results[0], results[2]):
                    self.assertEqual(other["status"], -7, results)
                    self.assertIn("rank 1", other["text"])

    def test_what_cannot_be_is_refused_with_words_and_the_group_works_on(self):
        for captured, host, null in self.results("refused"):
            self.assertEqual(captured[0], -10)
            self.assertIn("captured into a CUDA graph", captured[1])
            self.assertEqual(host[0], -1)
            self.assertIn("no buffer of the call is memory of a GPU", host[1])
            self.assertEqual(null[0], -1)
            self.assertIn("a buffer is null", null[1])

    def test_a_limit_passes_and_the_operation_goes_on(self):
        for told in self.results("late", {"count": 150_000})[1:]:
            for status, text in told[:2]:
                self.assertEqual(status, -8)
                self.assertIn("allreduce of 150000 float32 (sum) is not done after 50 ms", text)
            self.assertEqual(told[2], 0, "a child after fork is told so, and frees what it holds without harm")

    def test_nothing_is_over_while_it_is_copied_though_the_job_was_left(self):
        self.assertEqual(self.results("finalized", size=2)[1], {"early": False, "copied": True})

    def test_without_a_driver(self):
        off = self.results("without_driver", env={"TRIB_CUDA": "off"})
        self.assertEqual({status for status, _ in off}, {-10})
        self.assertIn("TRIB_CUDA has switched it off", off[0][1])

    def test_a_rank_that_is_killed_ends_the_operation_of_the_others(self):
        with self.ranks("dying", {"rank": 1, "count": 500_000}) as ranks:
            output, _ = ranks.process.communicate(timeout=60)
            for rank in (0, 2):
                path = pathlib.Path(ranks.folder.name) / f"{rank}.json"
                self.assertTrue(path.exists(), f"rank {rank} has told nothing: {output}")
                told = json.loads(path.read_text())
                self.assertEqual((told["status"], told["next"]), (-7, -7), told)
                self.assertIn("rank 1", told["text"])


if __name__ == "__main__":
    unittest.main()
