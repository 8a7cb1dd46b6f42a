"""GPUs of one host combine what they have before it leaves the host (TRIB_CUDA_PEERS=on), with a
stand-in for the driver: right bits, less over each bus, and errors that reach every rank."""

import json
import pathlib
import unittest

import stand_in_driver
from harness import Fabric, Ranks

#: Chunks of 64 KiB for each rank of a host, and four slots.
QUOTA = {"flight": 1, "segment": 8192, "staging": 1}
HOSTS = {
    "two hosts of two": ["h0"] * 2 + ["h1"] * 2,
    "one host of three": ["h0"] * 3,
    "two hosts of three": ["h0"] * 3 + ["h1"] * 3,
    "two and one": ["h0"] * 2 + ["h1"],
}
#: From 256 KiB on ranks combine.
OPERATIONS = [
    ["float32", "sum", 100_003], ["float64", "max", 40_000], ["float16", "sum", 150_001], ["int32", "prod", 65_536],
    ["float32", "sum", 1000], ["bfloat16", "min", 140_000], ["float32", "sum", 65_537],
]
LONG = 6


class DevicePeers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.driver = stand_in_driver.built_for(cls)
        cls.fabric = Fabric(shared_host=True)
        cls.addClassCleanup(cls.fabric.__exit__)

    def ranks(self, function, argument=None, hosts="two hosts of two", env=None, through=()):
        hosts = HOSTS[hosts]
        env = {"LD_LIBRARY_PATH": self.driver, "TRIB_CUDA_PEERS": "on", "STAND_IN_DELAY_US": "50", **(env or {})}
        return Ranks(self.fabric, len(hosts), "device_worker", function, argument, QUOTA, env, through, hosts)

    def results(self, *arguments, **named):
        with self.ranks(*arguments, **named) as ranks:
            return ranks.results()

    def check_that_none_combines(self, failed=None, **named):
        """One rank's first such call may have failed."""
        for rank, told in enumerate(self.results("combined", {"operations": OPERATIONS}, **named)):
            self.assertEqual((told["operations_combined"], told["cuLaunchKernel"]), (0, 0), told)
            self.assertGreater(told["copy device-host"], 0, told)
            for take, give in (("cuIpcOpenMemHandle", "cuIpcCloseMemHandle"), ("cuMemAlloc", "cuMemFree")):
                self.assertEqual(told[take] - told[give], int((rank, take) == (1, failed)), told)

    def test_results_have_the_bits_of_the_same_call_over_memory_of_the_host(self):
        for name in ("two hosts of two", "one host of three", "two hosts of three"):
            with self.subTest(name):
                near = HOSTS[name].count("h0")
                for told in self.results("combined", {"operations": OPERATIONS}, hosts=name):
                    self.assertEqual(told["operations_combined"], LONG, told)
                    self.assertGreaterEqual(told["cuLaunchKernel"], LONG, told)
                    # The short one is copied as before; of long ones a kernel brings what travels.
                    self.assertEqual(told["copy device-host"], 1, told)
                    self.assertEqual(told["cuIpcOpenMemHandle"], near - 1, told)
                    self.assertEqual(told["cuIpcCloseMemHandle"], near - 1, told)
                    self.assertEqual((told["cuMemAlloc"], told["cuMemFree"]), (1, 1), "what the others had mapped is given back")
                    self.assertEqual(told["cuCtxSynchronize"], 0, told)

    def test_all_collectives_beside_it(self):
        for rank, result in enumerate(self.results("collectives", {"counts": [1000, 70_000], "sums": "plain"})):
            self.assertGreaterEqual(result["compared"], 14, f"rank {rank}")
            told = result["counts"]
            for waits in ("cuCtxSynchronize", "cuStreamSynchronize", "cuMemcpyHtoD", "cuMemcpyDtoH"):
                self.assertEqual(told[waits], 0, f"rank {rank} waits for a whole device: {told}")
            self.assertGreater(told["cuLaunchKernel"], 0)
            self.assertEqual(told["cuMemHostAlloc"], told["cuMemFreeHost"], "pinned memory is given back")

    def test_operations_that_follow_each_other_at_once(self):
        for compared in self.results("back_to_back", {"counts": [70_000, 7, 20_001], "turns": 2}):
            self.assertGreaterEqual(compared, 2 * 3 * 3)

    def test_what_is_begun_later_comes_behind(self):
        for counters in self.results("order", {"count": 70_000, "turns": 4}):
            self.assertEqual(counters["operations_combined"], 3 * 4)

    def test_ranks_that_disagree_are_told(self):
        even = ["float32", "sum", 100_000]
        for odd in (["float32", "max", 100_000], ["int32", "sum", 100_000], ["float32", "sum", 100_001], ["float32", "sum", 1000]):
            with self.subTest(odd):
                for told in self.results("disagreeing", {"rank": 1, "even": even, "odd": odd}):
                    self.assertEqual(told["status"], -6, told)

    def test_nobody_waits_for_a_rank_that_leaves(self):
        for hosts in ("two hosts of two", "one host of three"):
            results = self.results("leaving", {"rank": 1}, hosts=hosts)
            for told in (results[0], *results[2:]):
                self.assertEqual(told["status"], -7, results)
                self.assertLess(told["took"], 20, results)

    def test_memory_is_given_back_where_a_callback_frees_the_group(self):
        first, second, _ = self.results("freed_in_a_callback", hosts="one host of three")
        for told in (first, second):
            self.assertEqual(told, {"operations_combined": 1, "cuMemFree": 1})

    def test_nothing_hangs_when_calls_return_only_when_all_is_done(self):
        for told in self.results("combined", {"operations": OPERATIONS}, env={"CUDA_LAUNCH_BLOCKING": "1"}):
            self.assertGreaterEqual(told["cuLaunchKernel"], LONG)

    def test_it_is_off_unless_every_rank_wants_it(self):
        self.check_that_none_combines(env={"TRIB_CUDA_PEERS": "off"})
        one = ["sh", "-c", '[ $TRIB_RANK != 2 ] || export TRIB_CUDA_PEERS=off; exec "$@"', "sh"]
        self.check_that_none_combines(through=one)

    def test_hosts_with_other_numbers_of_ranks_do_not_combine(self):
        self.check_that_none_combines(hosts="two and one")

    def test_a_rank_that_cannot_keeps_all_from_it(self):
        for call, number in (
            ("cuIpcOpenMemHandle", 1), ("cuIpcGetMemHandle", 1), ("cuMemAlloc", 2 * len(OPERATIONS) + 1),
            ("cuModuleLoadData", 1),
        ):
            with self.subTest(call):
                odd = ["sh", "-c", f'[ $TRIB_RANK != 1 ] || export STAND_IN_FAIL={call}:{number}:217; exec "$@"', "sh"]
                self.check_that_none_combines(failed=call, through=odd)

    def test_an_error_of_the_driver_reaches_every_rank_in_words(self):
        for call, number, code in (
            ("cuLaunchKernel", 2, 719), ("kernel", 2, 700), ("copy", 3, 700), ("copy", 8, 719),
        ):
            with self.subTest(call=call, number=number):
                argument = {"fail": [call, number, code], "rank": 1, "count": 300_000, "begins": True}
                results = self.results("failing", argument)
                self.assertEqual(results[1]["status"], -15, results)
                self.assertIn(f"({code}): ", results[1]["text"])
                for other in (results[0], *results[2:]):
                    self.assertEqual(other["status"], -7, results)

    def test_a_rank_that_is_killed_ends_the_operation_of_the_others(self):
        with self.ranks("dying", {"rank": 1, "count": 500_000}) as ranks:
            output, _ = ranks.process.communicate(timeout=60)
            for rank in (0, 2, 3):
                path = pathlib.Path(ranks.folder.name) / f"{rank}.json"
                self.assertTrue(path.exists(), f"rank {rank} has told nothing: {output}")
                told = json.loads(path.read_text())
                self.assertEqual((told["status"], told["next"]), (-7, -7), told)


if __name__ == "__main__":
    unittest.main()
