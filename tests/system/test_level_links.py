"""The link of a host carries each vector once at most, whatever the number of ranks there and wherever
they are, counted on the links of a laboratory."""

import os
import random
import tempfile
import unittest

from carried import carried_between, least
from harness import TRIB, Ranks
from test_lab import Lab

HOSTS = 8
#: The bytes of a vector: as a whole, for collectives that give each rank a block.
S = 4 << 20
#: A link carries headers besides. Less than all of a vector cannot do.
LEAST, MOST = 0.98, 1.02
#: TCP may send something again that has arrived, so each is done twice, and the least counts.
TURNS = 2
#: The ranks on each host. `RANKS_PER_HOST=1,2,4,8` shows more, and has two cores work for minutes.
EACH = [int(each) for each in os.environ.get("RANKS_PER_HOST", "4").split(",")]
COLLECTIVES = ["allreduce", "reduce", "bcast", "reduce_scatter", "allgather"]


class Placed(Ranks):
    """Ranks on the hosts of a laboratory, rank n on host hN for the n-th N."""

    def __init__(self, lab, hosts, worker, function, argument):
        case = "".join(f"{rank}) host=h{host};; " for rank, host in enumerate(hosts))
        through = ["sh", "-c", f'case $TRIB_RANK in {case}esac; exec "{TRIB}" lab exec --name {lab.name} $host -- "$@"', "sh"]
        super().__init__(None, len(hosts), worker, function, argument, through=through)


def placements(each):
    """{name: the host of each rank}"""
    block = [host for host in range(HOSTS) for _ in range(each)]
    shuffled = random.Random(each).sample(block, len(block))
    return {"block": block, "cyclic": list(range(HOSTS)) * each, "random": shuffled}


def wanted(collective, hosts, members):
    """{host: vectors that its link has to carry (up, down)}, of hosts that have members."""
    size = len(members)
    here = {host: [at for at, rank in enumerate(members) if hosts[rank] == host] for host in range(HOSTS)}
    share = {host: len(own) / size for host, own in here.items() if own}
    return {
        host: {
            "allreduce": (1, 1),
            "reduce": (1, float(0 in here[host])),
            # On the root's host the others take it from the root.
            "bcast": (float(0 in here[host]), float(0 not in here[host])),
            "reduce_scatter": (1, part),
            # What a host's members give does not come back.
            "allgather": (part, 1 - part),
        }[collective]
        for host, part in share.items()
    }


class Links(unittest.TestCase):
    def judge(self, lab, hosts, runs):
        """Runs collectives one after the other, and compares what each host's link has carried."""
        with tempfile.TemporaryDirectory() as gates:
            turns = [run for run in runs for _ in range(TURNS)]
            argument = {"gates": gates, "runs": [(collective, members, S // 8) for collective, members in turns]}
            with Placed(lab, hosts, "level_links_worker", "run", argument) as ranks:
                carried = list(carried_between(ranks, gates, len(turns), lab.counters))
                ranks.results()
        for number, (collective, members) in enumerate(runs):
            links = least(carried[TURNS * number:TURNS * (number + 1)])
            with self.subTest(members=len(members)):
                self.compare(collective, wanted(collective, hosts, members), lambda *key: links[key][0] / S)

    def compare(self, collective, wanted, carried):
        for host, ways in wanted.items():
            for way, want in zip(("up", "down"), ways):
                came = carried(f"h{host}", way)
                with self.subTest(collective=collective, host=host, way=way):
                    # What is nothing but headers has no ratio.
                    self.assertGreaterEqual(came, LEAST * want)
                    self.assertLessEqual(came, MOST * want if want == 1 else want + 0.03)

    def test_a_hosts_link_carries_each_vector_once(self):
        for each in EACH:
            with Lab("--hosts", str(HOSTS), "--leaf-ports", "4", "--rate", "2gbit") as lab:
                for name, hosts in placements(each).items():
                    if each == 1 and name != "block":
                        continue
                    everybody = list(range(len(hosts)))
                    # Half of all: some of each host's ranks, or all of every second host's.
                    groups = [everybody, everybody[::2]] if each > 1 else [everybody]
                    runs = [(collective, members) for members in groups for collective in COLLECTIVES]
                    with self.subTest(each=each, placement=name):
                        self.judge(lab, hosts, runs)


if __name__ == "__main__":
    unittest.main()
