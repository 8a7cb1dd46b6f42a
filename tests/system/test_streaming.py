"""Streaming works as such: results come while most of the vector is still to be sent, and nodes
need little memory."""

import unittest

from harness import Fabric, Ranks, resident_bytes, wait_until

BYTES = 64 << 20


class Streaming(unittest.TestCase):
    def test_first_result_before_half_is_sent(self):
        with Fabric() as fabric:
            nodes = {n: p for n, p in fabric.processes().items() if n != "manager"}
            before = {name: resident_bytes(pid) for name, pid in nodes.items()}
            with Ranks(fabric, 4, "loop_worker", "first_byte", {"bytes": BYTES}) as ranks:
                results = ranks.results()
            peak = {name: peak_bytes(pid) - before[name] for name, pid in nodes.items()}
        for rank, result in enumerate(results):
            self.assertLess(result["sent_at_first_result"], BYTES / 2, f"rank {rank}")
        # There are 2 children, staging 12, flight 12, segments of 48 KiB, 4 contexts, and a window
        # of 16 x 3 x payload.
        grant = 4 * (2 * 12 + 12) * (48 << 10) + 2 * 16 * 3 * 9000
        self.assertLess(max(peak.values()), grant + (8 << 20), peak)
        most = max(r["sent_at_first_result"] for r in results)
        print(f"at most {most / BYTES:.1%} of the vector was sent when the first result came; nodes grew by {peak}")

    def test_one_operation_beyond_4_gib(self):
        with Fabric() as fabric, Ranks(fabric, 2, "loop_worker", "huge", {"bytes": (4 << 30) + (64 << 20)}) as ranks:
            for result in ranks.results(timeout=240):
                self.assertGreater(result["counters"]["stream_bytes_sent"], 4 << 30)


def peak_bytes(pid):
    with open(f"/proc/{pid}/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


if __name__ == "__main__":
    unittest.main()
