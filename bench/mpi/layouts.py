"""Where bench/mpi/run measures, and with which programs."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Layout:
    """Hosts of a laboratory, each with a link of 200 Mbit/s, or one host, in whose memory its ranks
    meet. `parts` has the programs of tests/mpi for each part, with their arguments."""

    hosts: int
    per_host: int
    parts: dict

    @property
    def ranks(self):
        return self.hosts * self.per_host

    def shape(self):
        """The options of `trib lab up`."""
        return ["--hosts", self.hosts, "--leaf-ports", 4, "--rate", "200mbit"]


PARTS = ("calls", "together", "overlap")
TOGETHER = ("together 65536 400",)
LAYOUTS = {
    "8x4": Layout(8, 4, {"calls": ("benchmarks 16384 2 20",), "together": TOGETHER}),
    "4x4": Layout(4, 4, {"calls": ("benchmarks 16384 2 30",), "together": TOGETHER}),
    "8x1": Layout(8, 1, {"calls": ("benchmarks 16384 2 20",), "together": TOGETHER}),
    "1x16": Layout(1, 16, {"calls": ("benchmarks 65536 2 8",)}),
    "1x8": Layout(1, 8, {"calls": ("benchmarks 65536 3 8",)}),
    "1x4": Layout(1, 4, {"calls": ("benchmarks 65536 3 8",)}),
    "1x2": Layout(1, 2, {"calls": ("benchmarks 65536 3 8",)}),
    "2x1": Layout(2, 1, {"overlap": ("overlap 1048576", "overlap 16777216 5")}),
    "4x1": Layout(4, 1, {"overlap": ("overlap 1048576",)}),
}
