"""What an allreduce costs besides time: bytes and packets on every link, system calls and waits of
ranks and nodes.

These are counts, not times, so that they are the same on a busy machine. Where being late costs
something (one more question after a result, one more acknowledgement, one more sleep, a segment that
TCP sends again because an acknowledgement is late), the least of some runs counts, for every link and
every process by itself. A limit is a tenth or more above the highest count that was measured here, on a
loaded machine or not. A change that makes something cheaper lowers its limit; a change that has to
raise a limit says in its commit what this buys.
"""

import collections
import pathlib
import tempfile
import unittest

from harness import RanksOnHosts
from system_calls import Calls, tracepoint, waits
from test_lab import Lab

HOSTS = 4
#: There are many short runs, so that each link has one that nothing disturbed.
RUNS = 8
#: Operations of one run, by vector size in bytes: datagrams, then streams.
OPERATIONS = {4: 300, 64 << 10: 30, 1 << 20: 8, 8 << 20: 2}

#: The most that one operation may cost where it costs most: on one link in one direction, or at one
#: process. Wire bytes are a multiple of the vector, except for the vector of 4 bytes. Calls are
#: those that do something.
LIMITS = {
    # There is a datagram each way on each link, 150 bytes with all headers. Processes send one per
    # neighbour and direction, and wake at most once per datagram that they take; that is a look, a
    # read and a send. A tenth is added for the questions of ranks whose answers a loaded machine
    # delays.
    4: {
        "wire bytes": 165, "packets": 1.1,
        "rank sends": 1.1, "leaf sends": 2.2, "spine sends": 1.1,
        "rank calls": 3.4, "leaf calls": 8.5, "spine calls": 5.6,
        "rank waits": 1.2, "leaf waits": 3.3, "spine waits": 2.5,
    },
    # Between two of these a rank holds a lease that no operation uses. Its helper thread looks
    # every 10 ms whether the program streams on, and then watches for the lease to be asked back:
    # on a machine where an operation takes as long as that, it is one wait more.
    # A vector is four segments, and two leaves send it to the spine, which may wait for each of the
    # eight. On a fast machine it is done with some before the next ones come, and 3.4 waits were
    # counted; where it finds more of them at once, 2.
    64 << 10: {
        "wire bytes": 1.012, "packets": 11,
        "rank sends": 1.3, "leaf sends": 5.2, "spine sends": 3.5,
        "rank calls": 8.2, "leaf calls": 15, "spine calls": 10,
        "rank waits": 2.6, "leaf waits": 4, "spine waits": 4,
    },
    1 << 20: {
        "wire bytes": 1.012, "packets": 170,
        "rank sends": 26, "leaf sends": 84, "spine sends": 56,
        "rank calls": 85, "leaf calls": 235, "spine calls": 155,
        "rank waits": 28, "leaf waits": 70, "spine waits": 50,
    },
    # Segments have 48 KiB here. How many of them one call takes depends on which process gets the
    # processor when.
    8 << 20: {
        "wire bytes": 1.011, "packets": 1300,
        "rank sends": 90, "leaf sends": 560, "spine sends": 390,
        "rank calls": 420, "leaf calls": 1500, "spine calls": 1150,
        "rank waits": 110, "leaf waits": 480, "spine waits": 390,
    },
}


class Cost(unittest.TestCase):
    def test_an_allreduce_costs_no_more_than_it_did(self):
        options = ("--hosts", str(HOSTS), "--leaf-ports", "2", "--rate", "500mbit")
        with Lab(*options) as lab, tempfile.TemporaryDirectory() as gates:
            runs = [run for run in OPERATIONS.items() for _ in range(RUNS)]
            argument = {"gates": gates, "runs": runs, "tracepoint": tracepoint()}
            with RanksOnHosts(lab.name, HOSTS, "cost_worker", "allreduces", argument) as ranks:
                nodes = Nodes(lab)
                self.addCleanup(nodes.close)
                carried = [self.run_one(lab, nodes, ranks, pathlib.Path(gates), number) for number in range(len(runs))]
                spent = ranks.results()
                counted = nodes.are_counted()
        print()
        if not counted or spent[0][0]["calls"] is None:
            print("system calls are not counted: this kernel does not show its tracepoints here")
        for number, (size, operations) in enumerate(OPERATIONS.items()):
            here = range(RUNS * number, RUNS * (number + 1))
            links = least(carried[run] for run in here)
            processes = [least({"": counts(rank[run])} for run in here)[""] for rank in spent]
            self.judge(size, costs(size, operations, links, processes))

    def run_one(self, lab, nodes, ranks, gates, number):
        """Opens one gate; returns what links and nodes have counted when all ranks are through."""
        ranks.reach(lambda: all(ranks.progress(rank) == 2 * number for rank in range(HOSTS)), 60, f"ranks at gate {number}")
        before = {**lab.counters(), **nodes.counters()}
        (gates / str(number)).touch()
        ranks.reach(lambda: all(ranks.progress(rank) > 2 * number for rank in range(HOSTS)), 60, f"run {number}")
        after = {**lab.counters(), **nodes.counters()}
        (gates / f"{number}.read").touch()
        return {key: tuple(a - b for a, b in zip(after[key], before[key])) for key in after}

    def judge(self, size, cost):
        limits = {name: limit for name, limit in LIMITS[size].items() if name in cost}
        said = (f"{name} {cost[name]:.5g} ({limit:g})" for name, limit in limits.items())
        print(f"{size} bytes, figure (limit): {', '.join(said)}")
        for name, limit in limits.items():
            with self.subTest(bytes=size, what=name):
                self.assertLessEqual(cost[name], limit)


class Nodes:
    """System calls and waits of the aggregation nodes."""

    def __init__(self, lab):
        daemons = lab.status()["daemons"]
        self.pids = {daemon["name"]: daemon["pid"] for daemon in daemons if daemon["name"] != "manager"}
        self.calls = {name: Calls(pid, tracepoint()) for name, pid in self.pids.items()}

    def are_counted(self):
        return all(calls.counts() is not None for calls in self.calls.values())

    def close(self):
        for calls in self.calls.values():
            calls.close()

    def counters(self):
        """{("node", name): (waits, calls, sends)}, the last two where they are counted."""
        return {("node", name): (waits(pid), *(self.calls[name].counts() or ())) for name, pid in self.pids.items()}


def counts(rank):
    """What a rank spent in one run: (waits, calls, sends), the last two where they are counted."""
    return (rank["waits"], *(rank["calls"] or ()))


def least(runs):
    """The least count of some runs for each key, each count by itself: {key: counts}."""
    runs = list(runs)
    return {key: tuple(map(min, *(run[key] for run in runs))) for key in runs[0]}


def costs(size, operations, carried, ranks):
    """What one operation costs where it costs most, under the names of LIMITS, by what links,
    nodes and ranks have spent in so many."""
    found = collections.defaultdict(float)

    def take(names, counts):
        for name, count in zip(names, counts):
            found[name] = max(found[name], count / operations)

    for (link, way), counts in carried.items():
        if link == "node":
            role = way.rstrip("0123456789")
            take((f"{role} waits", f"{role} calls", f"{role} sends"), counts)
        else:
            take(("wire bytes", "packets"), counts)
    for spent in ranks:
        take(("rank waits", "rank calls", "rank sends"), spent)
    if size > 4:
        found["wire bytes"] /= size
    return found


if __name__ == "__main__":
    unittest.main()
