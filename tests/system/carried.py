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
    least = {}
    with tempfile.TemporaryDirectory() as gates:
        argument = {**argument, "turns": TURNS, "gates": gates}
        with RanksOnHosts(lab, ranks, "network_worker", function, argument, quota) as running:
            for turn in range(TURNS):
                reached = lambda step: all(running.progress(rank) == step for rank in range(ranks))
                wait_until(lambda: reached(2 * turn), 60, f"ranks ready for turn {turn}")
                if turn == 0:
                    meanwhile()
                before = counters()
                pathlib.Path(gates, str(turn)).touch()
                wait_until(lambda: reached(2 * turn + 1), 60, f"turn {turn} done")
                after = counters()
                pathlib.Path(gates, f"{turn}.read").touch()
                for link in after:
                    carried = tuple(now - then for now, then in zip(after[link], before[link]))
                    least[link] = tuple(map(min, carried, least.get(link, carried)))
            running.results()
    return least
