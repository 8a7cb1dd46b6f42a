"""A rank of `make test-gpu`: every collective over memory of the device beside the same one over
memory of the host, and how well copies and the network overlap."""

import json
import os
import pathlib
import statistics
import time

import cuda
import numpy as np

import tributary

COUNTS = (1, 1000, 1_000_003)
MEASURED_BYTES = (4 << 20, 64 << 20)
ROUNDS = 15
SPIN_S = 3.0
IS_BLOCKING = os.environ.get("CUDA_LAUNCH_BLOCKING") == "1"


def values(rank: int, count: int) -> np.ndarray:
    """Numbers whose sum depends on the order of summands."""
    draw = np.random.default_rng(rank)
    return (draw.standard_normal(count) * 10.0 ** draw.integers(-3, 4, count)).astype("float32")


def same(ours: np.ndarray, theirs: np.ndarray, what: str) -> None:
    assert ours.tobytes() == theirs.tobytes(), f"{what}: {np.count_nonzero(ours != theirs)} of {theirs.size} elements differ"


def collectives(device: cuda.Device, group: tributary.Group) -> int:
    """Right bits, in the order of a stream; how many results were compared."""
    compared, stream = 0, device.stream()
    rank, size = group.rank, group.size
    for count in COUNTS:
        mine, whole = values(rank, count), values(rank, count * size)

        def on_device(array: np.ndarray) -> cuda.Array:
            # What comes before is late, so that a copy that does not wait for it finds garbage.
            device.spin(stream, 2_000_000)
            return device.array(array, stream)

        x = on_device(mine)
        group.iallreduce(x).wait_stream(stream.value)
        same(x.read(), group.allreduce(mine.copy()), "allreduce")
        x = on_device(mine)
        group.ireduce(x, size - 1).wait_stream(stream.value)
        expected = group.reduce(mine.copy(), size - 1)
        if expected is not None:
            same(x.read(), expected, "reduce")
        x = on_device(values(rank, count))
        group.ibroadcast(x, size - 1).wait_stream(stream.value)
        same(x.read(), values(size - 1, count), "broadcast")
        x, y = on_device(whole), on_device(np.zeros(count, "float32"))
        group.ireduce_scatter(x, y).wait_stream(stream.value)
        same(y.read(), group.reduce_scatter(whole, np.zeros(count, "float32")), "reduce_scatter")
        x, y = on_device(mine), on_device(np.zeros(count * size, "float32"))
        group.iallgather(x, y).wait_stream(stream.value)
        same(y.read(), np.concatenate([values(other, count) for other in range(size)]), "allgather")
        compared += 5
    return compared


def sums(device: cuda.Device, group: tributary.Group) -> int:
    """Sums whose bits depend on no order, which take several rounds; how many were compared."""
    compared, stream = 0, device.stream()
    for kind in ("fixed", "exact"):
        group.set_sums(kind)
        for count in COUNTS:
            mine, whole = values(group.rank, count), values(group.rank, count * group.size)
            device.spin(stream, 2_000_000)
            x = device.array(mine, stream)
            group.iallreduce(x).wait_stream(stream.value)
            same(x.read(), group.allreduce(mine.copy()), f"{kind} allreduce")
            x, y = device.array(whole, stream), device.array(np.zeros(count, "float32"), stream)
            group.ireduce_scatter(x, y).wait_stream(stream.value)
            same(y.read(), group.reduce_scatter(whole, np.zeros(count, "float32")), f"{kind} reduce_scatter")
            compared += 2
    group.set_sums("plain")
    return compared


def waits_for_no_device(device: cuda.Device, group: tributary.Group) -> None:
    """An operation in one stream is over while a kernel runs in another. Where the driver itself
    waits for each kernel, there is nothing to see."""
    if IS_BLOCKING:
        return
    busy, stream = device.stream(), device.stream()
    x = device.array(values(group.rank, 1_000_000), stream)
    group.iallreduce(x).wait()
    group.barrier()
    device.spin(busy, int(SPIN_S * 1e9))
    end = device.event(busy)
    request = group.iallreduce(x)
    request.wait_stream(stream.value)
    request.wait()
    assert not device.has_come(end), "an operation has waited for a kernel of another stream"
    device.wait(busy)


def captured(device: cuda.Device, group: tributary.Group) -> str:
    """The words with which a stream is refused that is captured."""
    stream, graph = device.stream(), cuda.P()
    x = device.array(values(group.rank, 10), stream)
    device.wait(stream)
    device.call("cuStreamBeginCapture_v2", stream, cuda.c.c_int(0))
    try:
        group.iallreduce(x)
    except tributary.UnsupportedError as refused:
        return str(refused)
    finally:
        device.call("cuStreamEndCapture", stream, cuda.c.byref(graph))
    raise AssertionError("a stream that is captured was taken")


def timed(group: tributary.Group, work: object) -> float:
    """The time of a piece of work that all ranks begin together, in seconds."""
    group.barrier()
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def overlap(device: cuda.Device, group: tributary.Group, nbytes: int) -> dict:
    """The time of an allreduce over memory of the device beside its parts alone: the copies, which go
    both ways at once, and the same allreduce over memory of the host. Each round has all three."""
    stream, back = device.stream(), device.stream()
    host = values(group.rank, nbytes // 4)
    x = device.array(host, stream)
    pinned = device.pinned(2 * host.nbytes)

    def copies() -> None:
        device.copy(pinned, x.address, host.nbytes, stream)
        device.copy(x.address, pinned + host.nbytes, host.nbytes, back)
        device.wait(stream)
        device.wait(back)

    parts = {"copies_s": copies, "network_s": lambda: group.allreduce(host), "together_s": lambda: group.iallreduce(x).wait()}
    rounds = [{name: timed(group, work) for name, work in parts.items()} for _ in range(ROUNDS)]
    of_the_slower = [max(each["copies_s"], each["network_s"]) / each["together_s"] for each in rounds]
    return {
        "bytes": host.nbytes,
        **{name: statistics.median(each[name] for each in rounds) for name in parts},
        "of_the_slower": statistics.median(of_the_slower),
        "from": min(of_the_slower),
        "to": max(of_the_slower),
        "goal": 0.9,
    }


def main() -> None:
    with tributary.Context() as context:
        device = cuda.Device(context.rank)
        with_device = context.group()
        found = {"results": collectives(device, with_device), "sums": sums(device, with_device)}
        waits_for_no_device(device, with_device)
        found["captured"] = captured(device, with_device)
        if not IS_BLOCKING:
            found["overlap"] = [overlap(device, with_device, nbytes) for nbytes in MEASURED_BYTES]
        with_device.barrier()
        with_device.free()
        if context.rank == 0:
            pathlib.Path(os.environ["TRIB_GPU_OUT"]).write_text(json.dumps(found))


main()
