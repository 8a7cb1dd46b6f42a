"""What one operation puts on the links of a laboratory."""

import pathlib
import tempfile

from harness import RanksOnHosts, wait_until

#: Where a receiver's kernel is kept from the processor, TCP at the sender holds its silence for a
#: loss and sends segments again that have long arrived: mostly one (a tail loss probe), after a
#: timeout some more. This only ever adds, and not every time; what always travels counts.
TURNS = 3
#: So many bytes for each byte of a vector mean that it has travelled once: headers take a per cent
#: with jumbo frames and five with frames of 1500 bytes.
ONCE = 1.1


def least_carried(lab, counters, ranks, function, argument, quota=None, meanwhile=lambda: None):
    """The least that each link has carried for one operation of `network_worker` with a rank on
    each host: {link: counts}, as `counters()` returns them. Calls `meanwhile` before the first."""
    with tempfile.TemporaryDirectory() as gates:
        argument = {**argument, "turns": TURNS, "gates": gates}
        with RanksOnHosts(lab, ranks, "network_worker", function, argument, quota) as running:
            turns = list(carried_between(running, gates, TURNS, counters, meanwhile))
            running.results()
    return least(turns)


def carried_between(ranks, gates, number, counters, meanwhile=lambda: None):
    """Opens so many gates of `network_worker.gated`, one after the other, and says after each what
    the links have carried meanwhile. Calls `meanwhile` before the first."""
    for gate in range(number):
        reached = lambda step: all(ranks.progress(rank) == step for rank in range(ranks.ranks))
        wait_until(lambda: reached(2 * gate), 60, f"ranks at gate {gate}")
        if gate == 0:
            meanwhile()
        before = counters()
        pathlib.Path(gates, str(gate)).touch()
        wait_until(lambda: reached(2 * gate + 1), 60, f"ranks behind gate {gate}")
        after = counters()
        pathlib.Path(gates, f"{gate}.read").touch()
        yield {link: tuple(now - then for now, then in zip(after[link], before[link])) for link in after}


def least(turns):
    """The least of each count over several turns of the same."""
    return {link: tuple(map(min, *(turn[link] for turn in turns))) for link in turns[0]}
