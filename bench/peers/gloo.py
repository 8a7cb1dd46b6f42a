#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Gloo's side of the comparison (torch.distributed), measured as collectives.c measures an MPI.

gloo.py --cells COLLECTIVE:BYTES:MODE[:ITERATIONS],... [--budget SECONDS] [--min-iterations N]
[--gate]

Rank, size and where the ranks meet come from the environment: RANK, WORLD_SIZE, MASTER_ADDR,
MASTER_PORT.
"""

import argparse
import datetime
import json
import os
import resource
import sys
import time

PAUSE_S = 0.005
MOST_ITERATIONS = 20_000
WARM_UP_BATCH = 20
IN_FLIGHT = 8
#: What Gloo in this torch does not have, or has only as something else.
MISSING = {"reduce_scatter"}


def cell(text):
    words = text.split(":")
    if len(words) not in (3, 4):
        raise argparse.ArgumentTypeError(f"{text!r} is not COLLECTIVE:BYTES:MODE[:ITERATIONS]")
    return words[0], int(words[1]), words[2], int(words[3]) if len(words) == 4 else 0


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", required=True, type=lambda text: [cell(word) for word in text.split(",")])
    parser.add_argument("--budget", type=float, default=0.25)
    parser.add_argument("--min-iterations", type=int, default=4)
    parser.add_argument("--gate", action="store_true")
    return parser.parse_args()


class Work:
    """The operation of one cell: its buffers, and what must come out. Two inputs are used in
    turn."""

    def __init__(self, collective, size, mode, rank, ranks):
        self.collective, self.mode, self.rank = collective, mode, rank
        elements = (size + 3) // 4
        block = (elements + ranks - 1) // ranks
        if collective == "allgather":
            elements = block * ranks
        self.bytes = 0 if collective == "barrier" else elements * 4
        own = block if collective == "allgather" else elements

        def given(of, round_):
            return ((torch.arange(own, dtype=torch.int64) * 7 + of * 3 + round_ * 5) % 1021).to(torch.float32)

        self.input = [given(rank, round_) for round_ in range(2)]
        every = lambda round_: [given(of, round_) for of in range(ranks)]  # noqa: E731
        if collective == "allgather":
            self.expected = [torch.cat(every(round_)) for round_ in range(2)]
        elif collective == "bcast":
            self.expected = [given(0, round_) for round_ in range(2)]
        else:
            self.expected = [sum(every(round_)) for round_ in range(2)]
        flights = IN_FLIGHT if mode == "flight" else 1
        self.output = [torch.zeros(elements) for _ in range(flights)]
        self.blocks = [list(output.split(block)) if collective == "allgather" else [] for output in self.output]

    def start(self, iteration, at):
        """Posts one operation. Gloo reduces in place, so the input is copied first, as a program
        has to do."""
        given, output = self.input[iteration % 2], self.output[at]
        if self.collective == "barrier":
            dist.barrier()
            return None
        if self.collective == "allgather":
            return dist.all_gather(self.blocks[at], given, async_op=True)
        if self.collective == "bcast":
            return dist.broadcast(given if self.rank == 0 else output, 0, async_op=True)
        output.copy_(given)
        if self.collective == "reduce":
            return dist.reduce(output, 0, async_op=True)
        return dist.all_reduce(output, async_op=True)

    def run(self, iteration):
        for request in [self.start(iteration, at) for at in range(len(self.output))]:
            if request is not None:
                request.wait()

    def wrong(self, iteration):
        if self.collective == "barrier" or self.rank != 0 and self.collective == "reduce":
            return 0
        if self.rank == 0 and self.collective == "bcast":
            return 0
        expected = self.expected[iteration % 2]
        return sum(int((output != expected).sum()) for output in self.output)


def over_ranks(own, op):
    value = torch.tensor([float(own)], dtype=torch.float64)
    dist.all_reduce(value, op=op)
    return value.item()


def gate(options, rank, event):
    if not options.gate:
        return
    if rank == 0:
        print(json.dumps({"event": event}), flush=True)
        if not sys.stdin.readline():
            sys.exit("gloo.py: nobody opens the gate")
    dist.barrier()


def usage():
    own = resource.getrusage(resource.RUSAGE_SELF)
    return time.process_time_ns(), own.ru_nvcsw + own.ru_nivcsw


def slowest_of(work, operations):
    start = time.monotonic()
    for at in range(operations):
        work.run(at + 1)
    return over_ranks((time.monotonic() - start) / operations, dist.ReduceOp.MAX)


def choose(options, work, iterations):
    if iterations:
        return min(iterations, MOST_ITERATIONS)
    slowest = slowest_of(work, 1)
    if slowest * 10 * WARM_UP_BATCH < options.budget:
        slowest = slowest_of(work, WARM_UP_BATCH)
    each = slowest + (PAUSE_S if work.mode == "single" else 0)
    return int(min(max(options.budget / max(each, 1e-7), options.min_iterations), MOST_ITERATIONS))


def measure(options, work, iterations):
    work.run(0)
    wrong = over_ranks(work.wrong(0), dist.ReduceOp.SUM)
    iterations = choose(options, work, iterations)
    gate(options, work.rank, "ready")
    work.run(1)
    dist.barrier()
    before, times, start = usage(), [], time.monotonic()
    last = start
    for iteration in range(iterations):
        if work.mode == "single":
            time.sleep(PAUSE_S)
            dist.barrier()
            last = time.monotonic()
        work.run(iteration)
        end = time.monotonic()
        times.append(end - last)
        last = end
    elapsed = sum(times) if work.mode == "single" else last - start
    after = usage()
    # A rank that checks its result takes processor time from those that still wait for theirs.
    dist.barrier()
    gate(options, work.rank, "done")
    wrong += over_ranks(work.wrong(iterations - 1), dist.ReduceOp.SUM)
    times = torch.tensor(times, dtype=torch.float64)
    if work.mode == "single":
        dist.all_reduce(times, op=dist.ReduceOp.MAX)
    times = times.sort().values
    ranks = dist.get_world_size()
    return {
        "iterations": iterations,
        "operations": iterations + 1,
        "seconds": over_ranks(elapsed, dist.ReduceOp.MAX),
        "latencies_us": {
            "median": over_ranks(times[iterations // 2], dist.ReduceOp.SUM) / ranks * 1e6,
            "p99": over_ranks(times[iterations * 99 // 100], dist.ReduceOp.MAX) * 1e6,
            "min": over_ranks(times[0], dist.ReduceOp.MIN) * 1e6,
            "max": over_ranks(times[-1], dist.ReduceOp.MAX) * 1e6,
        },
        "cpu_ns": over_ranks(after[0] - before[0], dist.ReduceOp.SUM),
        "context_switches": over_ranks(after[1] - before[1], dist.ReduceOp.SUM),
        "wrong": int(wrong),
    }


def main():
    options = arguments()
    # Eight ranks share few cores; more threads in each would only wait for one another.
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
    rank, ranks = dist.get_rank(), dist.get_world_size()
    failed = False
    for collective, size, mode, iterations in options.cells:
        head = {"collective": collective, "bytes": size, "mode": mode, "asked_bytes": size}
        if collective in MISSING:
            row = {**head, "unsupported": f"gloo has no {collective}"}
        else:
            work = Work(collective, size, mode, rank, ranks)
            row = {**head, "bytes": work.bytes, **measure(options, work, iterations)}
            failed = failed or row["wrong"] > 0
        if rank == 0:
            print(json.dumps(row), flush=True)
    dist.destroy_process_group()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    arguments()
    # This comes after the arguments, because a wrong command line should not wait for torch.
    import torch
    import torch.distributed as dist

    main()
