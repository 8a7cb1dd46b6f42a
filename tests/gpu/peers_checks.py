"""A rank of `make test-gpu`: GPUs of a host combine what they have (TRIB_CUDA_PEERS), with the bits of
the same over memory of the host. The ranks are two hosts of two, and may share one GPU."""

import json
import os
import pathlib
import time

import cuda
import numpy as np

import tributary

#: From 256 KiB on ranks combine; the last vector has several chunks, and parts that are not alike.
COUNTS = (1000, 1 << 18, 1_000_003)
TYPES = ("float32", "float64", "float16", "int32", "uint8", "int64")
OPERATORS = {"float32": ("sum", "max"), "float64": ("prod", "min")}
ROUNDS = 5


def values(rank: int, count: int, dtype: str) -> np.ndarray:
    """Numbers whose sum depends on the order of summands, if they are no integers."""
    draw = np.random.default_rng(rank)
    if np.issubdtype(dtype, np.integer):
        return draw.integers(0, 100, count).astype(dtype)
    return (draw.standard_normal(count) * 10.0 ** draw.integers(-2, 3, count)).astype(dtype)


def compare(device: cuda.Device, group: tributary.Group) -> int:
    """How many results have the right bits."""
    compared, stream = 0, device.stream()
    for count in COUNTS:
        for dtype in TYPES:
            for op in OPERATORS.get(dtype, ("sum",)):
                mine = values(group.rank, count, dtype)
                expected = group.allreduce(mine.copy(), op=op)
                # What comes before is late, so that a copy that does not wait for it finds garbage.
                device.spin(stream, 2_000_000)
                x = device.array(mine, stream)
                group.iallreduce(x, op=op).wait_stream(stream.value)
                found = x.read()
                wrong = np.count_nonzero(found.view("uint8") != expected.view("uint8"))
                assert wrong == 0, f"{count} {dtype} {op}: {wrong} bytes differ"
                compared += 1
        # Several under way at once use memory of the device in turn.
        mine = values(group.rank, count, "float32")
        vectors = [device.array(mine, stream) for _ in range(3)]
        for request in [group.iallreduce(x) for x in vectors]:
            request.wait_stream(stream.value)
        expected = group.allreduce(mine.copy())
        for x in vectors:
            assert np.array_equal(x.read(), expected)
        compared += 1
    return compared


def seconds(device: cuda.Device, group: tributary.Group, nbytes: int) -> float:
    """An allreduce of so many bytes, the median of some."""
    x, took = device.array(values(group.rank, nbytes // 4, "float32"), device.stream()), []
    for _ in range(ROUNDS):
        group.barrier()
        began = time.perf_counter()
        group.iallreduce(x).wait()
        took.append(time.perf_counter() - began)
    return sorted(took)[ROUNDS // 2]


def main() -> None:
    rank, size = int(os.environ["TRIB_RANK"]), int(os.environ["TRIB_SIZE"])
    os.environ |= {"TRIB_HOST": f"host-{2 * rank // size}", "TRIB_CUDA_PEERS": "on"}
    with tributary.Context() as context:
        device = cuda.Device(context.rank)
        group = context.group()
        found = {"results": compare(device, group), "combined": context.counters()["operations_combined"]}
        longs = (len(COUNTS) - 1) * (3 + sum(len(OPERATORS.get(dtype, ("sum",))) for dtype in TYPES))
        if os.environ.get("CUDA_LAUNCH_BLOCKING") != "1":
            found["16_MiB_s"] = seconds(device, group, 16 << 20)
        group.barrier()
        group.free()
        assert found["combined"] == longs, f"{found['combined']} operations were combined, and not {longs}: see TRIB_LOG=info"
        if context.rank == 0:
            pathlib.Path(os.environ["TRIB_GPU_OUT"]).write_text(json.dumps(found))


main()
