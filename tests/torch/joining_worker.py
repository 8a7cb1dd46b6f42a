"""How ranks find each other in torch's store, whatever others have left there, and what they leave."""

import gc
import json
import os
import tempfile
import threading
import time
import types
from datetime import timedelta
from unittest import mock

import torch
import torch.distributed as dist
import tributary.torch
from torch._C import _distributed_c10d as c10d
from tributary.errors import ExchangeError, InvalidError
from tributary.torch import jobs, meeting, process_group

#: Longer than anything takes here, in seconds.
LIMIT = timedelta(seconds=20)
#: Whether this torch aborts process groups of all backends.
ABORTS = hasattr(dist.ProcessGroup, "abort")


class Ranks:
    """The ranks of this program, with a store of their own."""

    def __init__(self):
        self.rank, self.size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), self.size, self.rank == 0)

    def wait_for_all(self, name):
        """Returns when all ranks have called it."""
        self.store.set(f"{name}/{self.rank}", "1")
        self.store.wait([f"{name}/{rank}" for rank in range(self.size)], LIMIT)

    def part(self, name):
        """A part of the store."""
        return dist.PrefixStore(name, self.store)

    def init(self, name):
        """Makes the default process group."""
        dist.init_process_group("tributary", store=self.part(name), rank=self.rank, world_size=self.size, timeout=LIMIT)

    def join(self, name, limit=LIMIT):
        """Joins a job of all ranks, and leaves it when all are there."""
        context = jobs.join(self.part(name), self.rank, self.size, limit, False)
        context.group().barrier()
        self.wait_for_all(f"all are in {name}")
        context.close()


def other_counts_of_starts(ranks):
    """Agents of torchrun count for themselves how often they have started their ranks."""
    with mock.patch.dict(os.environ, TORCHELASTIC_RESTART_COUNT=str(ranks.rank)):
        ranks.init("counts")
        total = torch.ones(2)
        dist.all_reduce(total)
        assert (total == ranks.size).all(), total
        dist.destroy_process_group()


def what_a_start_before_has_left(ranks):
    """Rank 0 finds all of it, before the others say that they are there."""
    if ranks.rank == 0:
        left = dist.PrefixStore("tributary", ranks.part("left"))
        for name in ("hello/1", "gather/0/0", "gather/0/1", "broadcast/0", "broadcast/1"):
            left.set(name, "of another start")
    ranks.wait_for_all("it is there")
    if ranks.rank != 0:
        time.sleep(0.3)
    ranks.join("left")


def one_job_after_another(ranks):
    """Nothing is left in the store that the next one could take for its own."""
    for _ in range(3):
        ranks.join("again")


def a_very_long_limit(ranks):
    """It is longer than a C int of milliseconds."""
    ranks.join("long", timedelta(seconds=1.8e8))


def every_kind_of_store(ranks):
    """Two threads meet; one alone is told who is missing."""
    with tempfile.TemporaryDirectory() as folder:
        for store in (dist.HashStore(), dist.FileStore(f"{folder}/store", 2)):
            found = {}

            def be(rank, store=store, found=found):
                found[rank] = meeting.meet(store, rank, 2, LIMIT)

            threads = [threading.Thread(target=be, args=[rank]) for rank in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            found[0].set("key", "value")
            assert found[1].get("key") == b"value"
            for rank, words in ((0, "missing: rank 1"), (1, "rank 0 has not answered rank 1")):
                try:
                    meeting.meet(dist.PrefixStore(f"alone {rank}", store), rank, 2, timedelta(seconds=0.1))
                except ExchangeError as told:
                    assert words in str(told), told
                else:
                    raise AssertionError("a rank has met nobody and was told nothing")


def one_that_comes_late(ranks):
    """The limit counts from the start of each: who came first has waited longer by the end than that."""
    limit, found = timedelta(seconds=6), {}

    def be(store, rank, seconds):
        time.sleep(seconds)
        found[rank] = meeting.meet(store, rank, 3, limit)

    store = dist.HashStore()
    begins = {1: 0.0, 0: 3.0, 2: 7.8}
    threads = [threading.Thread(target=be, args=[store, rank, seconds]) for rank, seconds in begins.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [0, 1, 2], found


def ranks_that_wait_for_another_one(ranks):
    """All are told in words when the limit has passed, also those that rank 0 has answered."""
    options = options_for(ranks, "incomplete", timedelta(seconds=2), ranks.size + 1)
    ranks.wait_for_all("they begin")
    try:
        process_group.create(options, None)
    except dist.DistBackendError as told:
        missing = f"rank {ranks.size}"
        assert missing in str(told) or (ranks.rank != 0 and "rank 0" in str(told)), told
    else:
        raise AssertionError(f"there is no rank {ranks.size}, and a group of it")
    # Rank 0 has the store.
    ranks.wait_for_all("they have been told")


def a_rank_that_stops_joining(ranks):
    """Who waits for its bytes is told which one it is."""
    exchange, other = (jobs.StoreExchange(ranks.part(f"stops/{ranks.rank}"), rank, 2, timedelta(seconds=2)) for rank in (0, 1))
    for call, words in ((lambda: exchange.gather(b"mine"), "rank 1 has stopped"), (lambda: other.broadcast(None, 4), "rank 0 has stopped")):
        try:
            call()
        except ExchangeError as told:
            assert words in str(told), told
        else:
            raise AssertionError("bytes came that nobody has left")


def options_for(ranks, name, limit=LIMIT, size=None):
    """What torch gives a backend that is to make the default process group."""
    size = size or ranks.size
    return types.SimpleNamespace(
        store=ranks.part(name), group_rank=ranks.rank, group_size=size, timeout=limit, global_ranks_in_group=[], group_id="0"
    )


def abort():
    """Aborts all process groups. Older torch does so with its own backends alone."""
    if ABORTS:
        dist.distributed_c10d._abort_process_group()
        return
    for group in list(dist.distributed_c10d._world.pg_names):
        group.abort()
    dist.destroy_process_group()


def wait_for_end_of_threads(before):
    """Returns when there are no more threads than before."""
    deadline = time.monotonic() + LIMIT.total_seconds()
    while threading.active_count() > before:
        assert time.monotonic() < deadline, threading.enumerate()
        time.sleep(0.01)


def a_group_that_is_given_up_leaves_nothing(ranks):
    """Neither its job nor its threads."""
    before = threading.active_count()
    for number, give_up in enumerate((abort, dist.destroy_process_group, abort)):
        ranks.init("given up")
        context = tributary.torch.current()
        dist.new_group()
        dist.all_reduce(torch.ones(4), async_op=True).get_future().wait()
        ranks.wait_for_all(f"all are done, {number}")
        give_up()
        assert tributary.torch.current() is None
        assert repr(context).endswith(", left>"), context
        wait_for_end_of_threads(before)


def a_dropped_group_leaves_nothing(ranks):
    """The same where nobody gives it up: older torch drops a process group that is destroyed."""
    before = threading.active_count()
    for number in range(3):
        group = process_group.create(options_for(ranks, f"dropped/{number}"), None)
        context = tributary.torch.current()
        options = c10d.AllreduceOptions()
        if process_group._WAITS_HERE:
            options.asyncOp = True
        group.allreduce([torch.ones(4)], options).get_future().wait()
        ranks.wait_for_all(f"nobody needs it, {number}")
        assert context is not None
        if number == 1:
            # It may be garbage that another thread finds, which has something locked.
            cycle = [group]
            cycle.append(cycle)
            del group, cycle
            with context._lock:
                gc.collect()
        else:
            del group
        deadline = time.monotonic() + LIMIT.total_seconds()
        while not repr(context).endswith(", left>"):
            assert number == 1 and time.monotonic() < deadline, context
            time.sleep(0.01)
        assert tributary.torch.current() is None
        wait_for_end_of_threads(before)


def operations_after_an_abort(ranks):
    """All are refused at once, with words."""
    for call in ("abort", "shutdown"):
        group = process_group.create(options_for(ranks, f"after {call}"), None)
        ranks.wait_for_all(f"all are here, {call}")
        getattr(group, call)()
        began = time.monotonic()
        for operation in (
            lambda group: group.alltoall_base(torch.ones(ranks.size), torch.ones(ranks.size), [], []),
            lambda group: group.send([torch.ones(1)], 1 - ranks.rank),
            lambda group: group.recv([torch.ones(1)], 1 - ranks.rank),
            lambda group: group.recv_anysource([torch.ones(1)]),
            lambda group: group.allreduce([torch.ones(1)]),
        ):
            try:
                operation(group)
            except dist.DistBackendError as told:
                assert "this rank has left the process group" in str(told), told
            else:
                raise AssertionError("a group that was left goes on")
        # Their limit is longer.
        assert time.monotonic() - began < LIMIT.total_seconds() / 2
        # A second time does nothing.
        group.abort()
        group.shutdown()


def end_after_an_abort(ranks):
    """The program ends at once, and what ends Gloo is not cut off in the middle of it."""
    group = process_group.create(options_for(ranks, "at the end"), None)
    group.alltoall_base(torch.ones(ranks.size), torch.ones(ranks.size), [], []).wait()
    group.abort()


def a_group_that_cannot_be_made_leaves_nothing(ranks):
    """The job that was joined for it is left."""
    options = options_for(ranks, "in vain")
    with mock.patch.object(jobs, "group", side_effect=InvalidError("no group today")):
        try:
            process_group.create(options, None)
        except dist.DistBackendError as told:
            assert "no group today" in str(told), told
        else:
            raise AssertionError("there is a group")
    assert jobs.current() is None


THINGS = [
    other_counts_of_starts,
    what_a_start_before_has_left,
    one_job_after_another,
    a_very_long_limit,
    every_kind_of_store,
    one_that_comes_late,
    ranks_that_wait_for_another_one,
    a_rank_that_stops_joining,
    a_group_that_is_given_up_leaves_nothing,
    a_dropped_group_leaves_nothing,
    operations_after_an_abort,
    a_group_that_cannot_be_made_leaves_nothing,
]


def main():
    ranks = Ranks()
    for thing in THINGS:
        thing(ranks)
    ranks.wait_for_all("the end")
    print(json.dumps({"passed": [thing.__name__ for thing in THINGS]}), flush=True)
    end_after_an_abort(ranks)


if __name__ == "__main__":
    main()
