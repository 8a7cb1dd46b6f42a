"""What programs do with works, futures and messages, each thing by itself, on every rank."""

import functools
import gc
import json
import os
import subprocess
import sys
import threading
import time
import traceback
import weakref
from datetime import timedelta
from unittest import mock

import torch
import torch.distributed as dist
import tributary.torch  # noqa: F401 - registers the backend
from ranks import free_port
from tributary.torch.reduction import average

#: Whether this torch's Gloo connects two ranks when these want to, and no others.
CONNECTS_LATE = "lazy_init" in (dist.ProcessGroupGloo.create_default_device.__doc__ or "")
#: A program whose first rank exits while a callback waits for the other, which ends with its input.
EXIT = """\
import sys
import threading
import torch
import torch.distributed as dist
import tributary.torch

dist.init_process_group("tributary")
is_inside = threading.Event()

def after(done):
    is_inside.set()
    dist.all_reduce(torch.ones(4))

store = dist.group.WORLD.get_group_store()
if dist.get_rank() == 0:
    dist.all_reduce(torch.ones(4), async_op=True).get_future().then(after)
    # What hangs on a future that is fulfilled runs at once, in this thread.
    store.set("hung", "1")
    is_inside.wait()
    sys.exit(3)
store.wait(["hung"])
dist.all_reduce(torch.ones(4))
sys.stdin.read()
"""
#: Longer than anything takes here that waits for nobody, in seconds.
SOON = 20


def two_ranks_alone():
    """Two ranks send and receive while all others, and one of these, do something else."""
    if not CONNECTS_LATE:
        return
    rank, got = dist.get_rank(), torch.zeros(3)
    sent = dist.isend(torch.full((3,), 7.0), 1) if rank == 0 else None
    total = torch.ones(2)
    dist.all_reduce(total)
    assert (total == dist.get_world_size()).all()
    if rank == 1:
        dist.recv(got, 0)
        assert (got == 7).all()
    if sent is not None:
        sent.wait()
    dist.barrier()


def messages_in_a_new_group():
    """The same in a group, twice under one name: what the first one left in the store is of no use."""
    for number in range(2):
        group = dist.new_group([0, 1], group_desc="pair")
        if dist.get_rank() < 2:
            got = torch.zeros(1)
            other = 1 - dist.get_rank()
            works = dist.batch_isend_irecv(
                [dist.P2POp(dist.isend, torch.full((1,), float(number)), other, group), dist.P2POp(dist.irecv, got, other, group)]
            )
            for work in works:
                work.wait()
            assert got.item() == number
            dist.destroy_process_group(group)
        dist.barrier()


def a_future_within_a_future():
    """What hangs on a future begins an operation and waits for its future."""
    first, second = torch.ones(4), torch.ones(4)
    chained = (
        dist.all_reduce(first, async_op=True).get_future().then(lambda _: dist.all_reduce(second, async_op=True).get_future().wait()[0])
    )
    assert (chained.wait() == dist.get_world_size()).all()


def a_future_of_its_own():
    """What hangs on a work's future asks the work for it again."""
    tensor, seen = torch.ones(4), []
    work = dist.all_reduce(tensor, async_op=True)
    work.get_future().then(lambda _: seen.append(work.get_future().value()[0].sum().item())).wait()
    assert seen == [4 * dist.get_world_size()], seen


def let_first_go(group):
    """All ranks but the first wait until it calls `let_others_go`: till then none of its operations
    is over, so that what it hangs on their futures runs in the thread that fulfils them."""
    if dist.get_rank() != 0:
        group.get_group_store().wait(["go"], timedelta(seconds=SOON))


def let_others_go(group):
    if dist.get_rank() == 0:
        group.get_group_store().set("go", "1")


def a_future_that_waits_for_a_later_one():
    """What hangs on a future waits for one that was asked for later, or before."""
    group = dist.new_group()
    let_first_go(group)
    first, second = [dist.all_reduce(torch.ones(4), group=group, async_op=True).get_future() for _ in range(2)]
    chained = first.then(lambda _: second.wait()[0])
    let_others_go(group)
    assert (chained.wait() == dist.get_world_size()).all()
    dist.destroy_process_group(group)


def operations_begun_while_works_are_looked_at():
    """An operation looks which ones before it are over. What hangs on their futures begins others."""
    group, gate, begun = dist.new_group(), threading.Event(), []

    def reduce():
        return dist.all_reduce(torch.ones(4), group=group, async_op=True)

    let_first_go(group)
    # The thread that fulfils futures stays here, where it comes first.
    held = reduce().get_future().then(lambda _: threading.current_thread() is threading.main_thread() or gate.wait(SOON))
    works = [reduce() for _ in range(8)]
    hanging = [work.get_future().then(lambda _: begun.append(reduce())) for work in works]
    let_others_go(group)
    deadline = time.monotonic() + SOON
    while not all(work._request.done() for work in works):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    group._most_under_way = 0
    last = reduce()
    gate.set()
    for future in (held, *hanging):
        future.wait()
    assert len(begun) == len(works)
    for work in (*works, *begun, last):
        assert (work.result()[0] == dist.get_world_size()).all()
    dist.destroy_process_group(group)


def a_mismatch_of_what_callbacks_begin():
    """The rank that has begun an operation in a callback is told that its order may be at fault."""
    group = dist.new_group()
    let_first_go(group)
    future = dist.all_reduce(torch.ones(4), group=group, async_op=True).get_future()
    try:
        if dist.get_rank() == 0:
            begun = future.then(lambda _: dist.all_reduce(torch.ones(3), group=group, async_op=True))
            let_others_go(group)
            begun.wait().wait()
        else:
            future.wait()
            dist.all_reduce(torch.ones(5), group=group)
    except dist.DistBackendError as told:
        assert dist.get_rank() != 0 or "in callbacks of futures" in str(told), told
    else:
        raise AssertionError("sums of other lengths were taken")
    # Nobody leaves before all have been told.
    dist.barrier()
    dist.destroy_process_group(group)


def a_new_limit_for_messages():
    """It holds for ranks that are connected already, too."""
    group = dist.new_group([0, 1])
    if dist.get_rank() < 2:
        other, got = 1 - dist.get_rank(), torch.zeros(1)
        sent, received = dist.isend(torch.ones(1), other, group), dist.irecv(got, other, group)
        sent.wait()
        received.wait()
        group.set_timeout(timedelta(seconds=1))
        if dist.get_rank() == 0:
            began = time.monotonic()
            try:
                dist.recv(got, 1, group)
            except RuntimeError:
                assert time.monotonic() - began < SOON
            else:
                raise AssertionError("a message came that nobody has sent")
    dist.barrier()
    if dist.get_rank() < 2:
        dist.destroy_process_group(group)


def a_future_has_a_limit():
    """The last rank is late: the others' futures fail when the operation's limit has passed, and
    the group can be given up soon."""
    group = dist.new_group(timeout=timedelta(seconds=1))
    dist.barrier(group)
    if dist.get_rank() == dist.get_world_size() - 1:
        time.sleep(3)
        dist.destroy_process_group(group)
    else:
        began = time.monotonic()
        told = dist.all_reduce(torch.ones(4), group=group, async_op=True).get_future()
        try:
            told.wait()
        except Exception as error:
            # It does not tell of a rank that has left: that comes later.
            assert "is not done after" in str(error), error
        else:
            raise AssertionError("a future was fulfilled without the last rank")
        dist.destroy_process_group(group)
        assert time.monotonic() - began < SOON
    dist.barrier()


def a_group_is_given_up_after_a_wait_in_vain():
    """A work of which a thread waits for the future: who has waited in vain gives the group up."""
    group = dist.new_group(timeout=timedelta(seconds=120))
    dist.barrier(group)
    if dist.get_rank() == dist.get_world_size() - 1:
        time.sleep(2)
    else:
        began = time.monotonic()
        work = dist.all_reduce(torch.ones(4), group=group, async_op=True)
        work.get_future()
        try:
            work.wait(timedelta(seconds=0.5))
        except dist.DistBackendError:
            pass
        dist.destroy_process_group(group)
        assert time.monotonic() - began < SOON
    dist.barrier()


def a_future_asked_for_while_a_group_is_aborted():
    """The thread that fulfils futures starts with the first of them. Another thread aborts the group
    meanwhile, or a signal's handler does."""
    start, rank = threading.Thread.start, dist.get_rank()
    for is_handler in (False, True):
        group = dist.new_group()
        dist.barrier(group)
        before = threading.active_count()
        if rank == 0:
            work, others = dist.all_reduce(torch.ones(4), group=group, async_op=True), []

            def meanwhile(thread, group=group, is_handler=is_handler, others=others):
                with mock.patch.object(threading.Thread, "start", start):
                    if is_handler:
                        group.abort()
                    else:
                        others.append(threading.Thread(target=group.abort))
                        others[0].start()
                        # It comes to its end now or when the thread has started.
                        others[0].join(1)
                start(thread)

            with mock.patch.object(threading.Thread, "start", meanwhile):
                future = work.get_future()
            deadline = time.monotonic() + SOON
            while not future.done() or threading.active_count() > before:
                assert time.monotonic() < deadline, (future.done(), threading.enumerate())
                time.sleep(0.01)
        dist.barrier()
        dist.destroy_process_group(group)


def the_exit_ends_what_a_callback_waits_for():
    """Inside torch: its thread would come back to no interpreter, which ends a process with SIGABRT."""
    if dist.get_rank() != 0:
        return
    env = {**os.environ, "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}
    ranks = [
        subprocess.Popen([sys.executable, "-W", "ignore", "-c", EXIT], env={**env, "RANK": str(rank)}, stdin=subprocess.PIPE)
        for rank in range(2)
    ]
    try:
        assert ranks[0].wait(60) == 3, ranks[0].returncode
    finally:
        for rank in ranks:
            rank.stdin.close()
            rank.wait(60)


def futures_that_two_threads_ask_for():
    """One thread fulfils them, also where both are the first."""
    group, begun, made, futures = dist.new_group(), threading.Barrier(2), [], []
    let_first_go(group)
    works = [dist.all_reduce(torch.ones(4), group=group, async_op=True) for _ in range(2)]

    def ask(work):
        begun.wait(SOON)
        futures.append(work.get_future())

    threads, thread_of = [threading.Thread(target=ask, args=[work]) for work in works], threading.Thread

    def made_slowly(*arguments, **options):
        time.sleep(0.1)
        made.append(thread_of(*arguments, **options))
        return made[-1]

    with mock.patch.object(threading, "Thread", made_slowly):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    let_others_go(group)
    for future in futures:
        assert (future.wait()[0] == dist.get_world_size()).all()
    assert len(futures) == 2 and len(made) <= 1, (futures, made)
    dist.destroy_process_group(group)


def works_that_nobody_asks_for():
    """A work that is dropped keeps no later one's tensors."""
    dist.all_reduce(torch.ones(4), async_op=True)
    tensors = []
    for _ in range(200):
        tensor = torch.ones(4)
        tensors.append(weakref.ref(tensor))
        dist.all_reduce(tensor, async_op=True).wait()
        del tensor
    dist.barrier()
    gc.collect()
    kept = sum(tensor() is not None for tensor in tensors)
    assert kept < 100, f"{kept} of 200 tensors are kept"


def an_average_of_large_halves():
    """The sum is outside the type's range; the average is not."""
    tensor = torch.full((4,), 40_000.0, dtype=torch.float16)
    dist.all_reduce(tensor, dist.ReduceOp.AVG)
    assert ((tensor.float() - 40_000).abs() <= 32).all(), tensor


def an_average_of_what_was_made_in_inference_mode():
    """Torch lets nothing outside that mode change such tensors, on whichever thread."""
    with torch.inference_mode():
        inside, later = torch.full((4,), 6.0), torch.full((4,), 6.0)
        dist.all_reduce(inside, dist.ReduceOp.AVG, async_op=True).get_future().wait()
    dist.all_reduce(later, dist.ReduceOp.AVG, async_op=True).get_future().wait()
    with torch.inference_mode():
        assert inside.eq(6.0).all() and later.eq(6.0).all(), (inside, later)


def an_average_of_small_integers_over_many():
    """More ranks than the type has numbers for; torch would take their number as one of the type."""
    for size, number, dtype, wanted in ((200, 100, torch.int8, 0), (256, 255, torch.uint8, 0), (200, -100, torch.int8, 0), (3, -7, torch.int8, -2)):
        total = torch.tensor([number], dtype=dtype)
        average(size, total)
        assert total.item() == wanted, (size, total)


def a_tensor_that_is_refused_stays_as_it_was():
    """An average of halves is divided first."""
    group = dist.new_group()
    dist.barrier(group)
    group.abort()
    halves = torch.ones(4, dtype=torch.float16)
    for call in (dist.all_reduce, functools.partial(dist.reduce, dst=dist.get_rank())):
        try:
            call(halves, op=dist.ReduceOp.AVG, group=group)
        except dist.DistBackendError as refused:
            assert "left" in str(refused), refused
        else:
            raise AssertionError("a group that was aborted has taken a sum")
    assert torch.equal(halves, torch.ones(4, dtype=torch.float16)), halves
    dist.barrier()
    dist.destroy_process_group(group)


def a_factor_that_is_a_tensor():
    """It has another type than what is reduced."""
    tensor = torch.full((4,), 3.0, dtype=torch.bfloat16)
    dist.reduce(tensor, 0, dist._make_nccl_premul_sum(torch.tensor([0.5])))
    wanted = 1.5 * dist.get_world_size() if dist.get_rank() == 0 else 3.0
    assert (tensor == wanted).all(), tensor


def numbers_that_are_still_to_be_negated():
    """Torch notes that a tensor is negative, and computes it when it is read."""
    lazy = torch.tensor([1 + 2j, 3 - 1j]).conj().imag
    assert lazy.is_neg()
    wanted = lazy.clone() * dist.get_world_size()
    dist.all_reduce(lazy)
    assert torch.equal(lazy.clone(), wanted), (lazy, wanted)


def memory_of_two_devices():
    """It is refused with words."""
    for call, arguments in (
        (dist.all_gather_into_tensor, (torch.empty(2 * dist.get_world_size(), device="meta"), torch.ones(2))),
        (dist.reduce_scatter_tensor, (torch.empty(2, device="meta"), torch.ones(2 * dist.get_world_size()))),
    ):
        try:
            call(*arguments)
        except ValueError as refused:
            assert "one device" in str(refused), refused
        else:
            raise AssertionError(f"{call.__name__} took memory of two devices")


THINGS = [
    two_ranks_alone,
    messages_in_a_new_group,
    a_future_within_a_future,
    a_future_of_its_own,
    a_future_that_waits_for_a_later_one,
    operations_begun_while_works_are_looked_at,
    a_mismatch_of_what_callbacks_begin,
    a_new_limit_for_messages,
    a_future_has_a_limit,
    a_group_is_given_up_after_a_wait_in_vain,
    a_future_asked_for_while_a_group_is_aborted,
    the_exit_ends_what_a_callback_waits_for,
    futures_that_two_threads_ask_for,
    works_that_nobody_asks_for,
    an_average_of_large_halves,
    an_average_of_what_was_made_in_inference_mode,
    an_average_of_small_integers_over_many,
    a_tensor_that_is_refused_stays_as_it_was,
    a_factor_that_is_a_tensor,
    numbers_that_are_still_to_be_negated,
    memory_of_two_devices,
]


def main():
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), size, rank == 0)
    init = functools.partial(dist.init_process_group, "tributary", store=store, rank=rank, world_size=size)
    try:
        # Torch asks a backend to connect at once when a program names its device.
        init(device_id=torch.device("cpu", 0))
    except ValueError:
        # Older torch wants that to be one of CUDA's.
        init()
    passed, failed = [], {}
    for thing in THINGS:
        try:
            thing()
            passed.append(thing.__name__)
        except Exception:
            failed[thing.__name__] = traceback.format_exc()
            break
    if not failed:
        dist.destroy_process_group()
    print(json.dumps({"rank": dist.get_rank() if failed else None, "passed": passed, "failed": failed}), flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
