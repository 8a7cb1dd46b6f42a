"""What is shown of the backend, step by step."""

import dataclasses
import functools
import json
import pathlib
import random
import subprocess
import time
import typing

from environment import NEWEST, OTHERS
from ranks import Failed, Program

import stand_in_driver
from harness import Fabric, send

#: What nodes have reduced before one of them is killed: that is in the first epoch of the training.
FOLDS_FIRST = 200
#: What is done on two levels.
LEVELS = ("allreduce", "reduce_scatter", "all_gather", "broadcast")


@dataclasses.dataclass
class Place:
    """Where a step runs: an interpreter with torch, the package, a fabric, and a folder."""

    python: pathlib.Path
    package: pathlib.Path
    fabric: Fabric
    folder: pathlib.Path

    def program(self, ranks, worker, *words, env=None):
        return Program(self.python, self.package, self.fabric, ranks, worker, *words, env=env)

    def train(self, how, ranks=4, env=None, limit=150):
        return self.program(ranks, "training_worker.py", how, self.folder, env=env).run(limit)


@dataclasses.dataclass
class Step:
    """`run(place)` returns what it says for people, or raises Failed."""

    name: str
    run: typing.Callable
    words: str
    torch: str = NEWEST
    fabric: typing.Callable = functools.partial(Fabric, shared_host=True)
    #: Whether it has to be asked for: it takes long, or wants another torch.
    asked: bool = False


def need(holds, words):
    if not holds:
        raise Failed(words)


def collectives(ranks, place):
    told = place.program(ranks, "collectives_worker.py").run(200)
    need(not any(each["failed"] for each in told.values()), told)
    counts = told[0]["counts"][0]
    need(counts["tree.allreduce"] > 600 and not counts.get("gloo.allreduce"), f"all_reduce went through Gloo: {counts}")
    through_gloo = sorted(name for name in counts if name.startswith("gloo."))
    return f"{told[0]['cases']} cases on each rank; through Gloo only {', '.join(through_gloo)}"


def works(ranks, place):
    told = place.program(ranks, "works_worker.py").run(100)
    need(not any(each["failed"] for each in told.values()), told)
    return f"{len(told[0]['passed'])} things on each rank"


def joining(ranks, place):
    told = place.program(ranks, "joining_worker.py").run(100)
    return f"{len(told[0]['passed'])} things on each rank"


def training(how, least, place, env=None):
    told = place.train(how, env=env)
    need(all(each["same"] and each.get("read", True) for each in told.values()), f"weights differ between ranks: {told}")
    need(len({each["hash"] for each in told.values()}) == 1, "weights differ between ranks")
    need(told[0]["accuracy"] >= least, f"an accuracy of {told[0]['accuracy']:.3f} only")
    return f"accuracy {told[0]['accuracy']:.3f}; {told[0]['counts']}"


def same_weights(place):
    """DDP's buckets as views, and a run anew, give the same bits."""
    hashes = {how: place.train(how)[0]["hash"] for how in ("ddp", "ddp_views")}
    again = place.train("ddp")[0]["hash"]
    need(again == hashes["ddp"] == hashes["ddp_views"], f"other weights in another run: {hashes}, {again}")
    return f"weights {again[:12]} in three runs"


def all_same(how, ranks, place):
    told = place.train(how, ranks=ranks, limit=200)
    need(all(each["same"] for each in told.values()), told)
    return f"right on {ranks} ranks"


def exact_sums(place):
    """Weights depend neither on which ranks share a host nor on which of them has what part of a
    batch; plain sums show that both could matter."""
    ranks = 8

    def hashes(sums, *ways):
        found = {}
        for hosts, shift in ways:
            told = place.program(ranks, "sums_worker.py", hosts, shift, env={"TRIB_SUMS": sums}).run(150)
            found[hosts, shift] = {each["hash"] for each in told.values()}
            need(len(found[hosts, shift]) == 1, f"weights differ between ranks: {told}")
        return set.union(*found.values())

    exact, plain = hashes("exact", (1, 0), (2, 3), (4, 5), (8, 0)), hashes("plain", (1, 0), (8, 0))
    need(len(exact) == 1, f"exact sums, and weights that differ: {exact}")
    need(len(plain) > 1, "plain sums have the same bits on all hosts: this shows nothing")
    return f"weights {exact.pop()[:12]} on 1, 2, 4 and 8 hosts; plain sums give {len(plain)} others"


def quantised(place):
    """A net learns with quantised sums what it learns with plain ones, in a third of the bytes; a run
    can be repeated bit by bit; and error feedback loses nothing."""
    # All by stream, of which the bytes are counted.
    told = place.program(4, "quantised_worker.py", env={"TRIB_QUOTA": "stream_threshold=0"}).run(200)
    for each in told.values():
        need(each["nearest"], "what was rounded by the hook did not travel as it was")
        found = each["fed_back"]
        means = [found.pop(name) for name in ("torch.float32", "torch.bfloat16")]
        need(all(abs(mean - 1e-3) < 1e-4 for mean in means), f"small gradients of 0.001 become {means} on average")
        need(found == {"no numbers": [32, 0], "plain": True, "set": True}, found)
    ways = told[0]["ways"]
    need(ways["feedback"]["hash"] == ways["feedback again"]["hash"], "another run gives other weights")
    need(ways["plain"]["hash"] != ways["feedback"]["hash"] != ways["no feedback"]["hash"], "the hook makes no difference")
    last = {name: sum(way["losses"][-10:]) / 10 for name, way in ways.items()}
    need(ways["plain"]["losses"][0] > 2 and last["plain"] < 0.3, f"this net learns nothing: {ways['plain']['losses']}")
    need(all(loss < last["plain"] + 0.1 for loss in last.values()), f"quantised sums learn less: {last}")
    share = ways["feedback"]["sent"] / ways["plain"]["sent"]
    need(0.28 < share < 0.31, f"{share:.3f} of the bytes of plain sums")
    return f"losses {', '.join(f'{name} {loss:.3f}' for name, loss in last.items())}; {share:.3f} of the bytes"


def stand_in(place):
    """The environment with a stand-in for CUDA's driver whose memory the host may touch."""
    stand_in_driver.build(place.folder)
    return {"LD_LIBRARY_PATH": str(place.folder), "STAND_IN_OPEN": "1", "TRIB_TORCH_NCCL": "off"}


def levels(hosts, place):
    """Tensors of such a device, with Gloo in NCCL's place on each host."""
    told = place.program(4, "levels_worker.py", hosts, env=stand_in(place)).run(200)
    for each in told.values():
        need(not any(each["waits"].values()), f"the backend waits for a whole device: {each['waits']}")
        counts = each["counts"]
        need(all(counts.get(f"nccl.{name}") for name in LEVELS), f"something went past the host's level: {counts}")
        need(counts["tree.allreduce"] == counts["nccl.allreduce"] + 1, f"only the short vector stays with the tree: {counts}")
    return f"{told[0]['compared']} results; {told[0]['counts']}"


def device(place):
    """Tensors of a device, over a stand-in for CUDA's driver."""
    told = place.program(3, "device_worker.py", env=stand_in(place)).run(200)
    for each in told.values():
        need(not any(each["waits"].values()), f"the backend waits for a whole device: {each['waits']}")
        need(each["out"] > 30 and each["recorded"] > 30, f"hardly anything went through the device: {each}")
        need(not any(name.startswith("gloo.") for name in each["counts"]), f"something went through Gloo: {each['counts']}")
    return f"{told[0]['out']} copies out of the device on rank 0"


def node_killed(place):
    """A node dies while gradients are reduced; the weights are those of an undisturbed run."""
    wanted = place.train("ddp")[0]["hash"]
    program = place.program(4, "training_worker.py", "ddp_slowly", place.folder).start()
    leaves = [name for name in place.fabric.processes() if name.startswith("leaf")]
    before = folded(place.fabric)
    deadline = time.monotonic() + 60 * Program.patience
    while folded(place.fabric) < before + FOLDS_FIRST and time.monotonic() < deadline:
        time.sleep(0.1)
    need(program.forker.poll() is None, "the training was over before a node could be killed")
    need(folded(place.fabric) >= before + FOLDS_FIRST, "no gradient came to a node in a minute")
    name = random.choice(leaves)
    send(place.fabric.processes()[name], 9)
    told = program.told(150)
    need(name not in place.fabric.processes(), f"{name} lives")
    need(all(each["hash"] == wanted for each in told.values()), f"other weights after {name} was killed: {told}, {wanted}")
    epochs = {each["epochs"] for each in told.values()}
    need(0 not in epochs, f"{name} was killed, and not every rank has noticed")
    return f"{name} killed; weights {wanted[:12]} as without"


def folded(fabric):
    """Pieces that nodes have reduced."""
    return sum(counters["fragments_folded"] + counters["segments_folded"] for counters in fabric.node_counters().values())


def rank_killed(place):
    """A rank dies; the others are told who, long before the limit of the process group."""
    told = place.program(4, "training_worker.py", "failure", place.folder).start().told(120, dead={1})
    for rank, each in told.items():
        need(each["told"] and "rank 1" in each["told"], f"rank {rank} was told {each['told']!r}")
        need(each["state"] == "failed" and "rank 1" in each["error"], f"rank {rank} has recorded {each['state']}")
    return f"{max(each['seconds'] for each in told.values()):.2f} s later: {told[0]['told'].splitlines()[0]}"


def late_rank(place):
    told = place.train("late")
    for rank, each in told.items():
        need(each["sum"] == 4, f"a sum of {each['sum']}")
        need(rank == 1 or (each["told"] and "rank 1" in each["told"]), f"rank {rank} was told {each['told']!r}")
    return told[0]["told"]


def restart(place):
    """torchrun begins anew after a rank was killed, and training goes on from the checkpoint."""
    program = place.program(4, "training_worker.py", "elastic", place.folder)
    told = program.torchrun(place.folder, 150, "--max-restarts", "2")
    need((place.folder / "killed").exists(), "no rank was killed")
    need(len(told) == 4 and all(each["first"] == 1 for each in told.values()), f"it did not go on from the checkpoint: {told}")
    need(len({each["hash"] for each in told.values()}) == 1, "weights differ between ranks")
    need(told[0]["accuracy"] >= 0.8, f"an accuracy of {told[0]['accuracy']:.3f} only")
    return f"from epoch {told[0]['first']} on, to an accuracy of {told[0]['accuracy']:.3f}"


def doctor(place):
    env = place.program(1, "collectives_worker.py").env
    command = [place.python, "-m", "tributary.torch.doctor"]
    ask = lambda env, *words: subprocess.run([*command, *words], env=env, capture_output=True, text=True, timeout=60 * Program.patience)  # noqa: E731
    said = ask(env, "--json")
    told = json.loads(said.stdout) if said.returncode == 0 else {}
    need(told.get("well") and len(told["findings"]) == 7, f"{said.stdout}{said.stderr}")
    said = ask({**env, "TRIB_MANAGER": ""})
    need(said.returncode == 1 and "trib fabric up --local" in said.stdout, f"{said.stdout}{said.stderr}")
    return told["findings"][-1]["words"]


def c10d(place):
    told = place.program(1, "c10d_worker.py").run(200)[0]
    need(not told["failed"], "\n".join(f"{name}:\n{words}" for name, words in told["failed"].items()))
    need(len(told["passed"]) > 50, f"only {len(told['passed'])} have passed")
    return f"{len(told['passed'])} passed; skipped {sum(map(len, told['skipped'].values()))}"


def steps_of_collectives():
    for ranks in (2, 3, 4, 8):
        yield Step(f"collectives/{ranks}", functools.partial(collectives, ranks), f"every collective, type and operator on {ranks} ranks")
    words = "the same on 4 ranks that share no memory, through nodes"
    yield Step("collectives/nodes", functools.partial(collectives, 4), words, fabric=Fabric)


def steps_of_training():
    for how, least, words in (
        ("ddp", 0.85, "DDP, a convolutional net"),
        ("ddp_transformer", 0.6, "DDP, a transformer, static graph"),
        ("ddp_bf16", 0.85, "DDP with a hook that sends bf16"),
        ("ddp_no_sync", 0.7, "DDP, gradients of two batches to a step"),
        ("zero", 0.85, "ZeroRedundancyOptimizer"),
        ("fsdp", 0.6, "FSDP2 on a DeviceMesh, with a checkpoint"),
    ):
        yield Step(f"training/{how}", functools.partial(training, how, least), words)
    words = "DDP with a hook that sends fp16"
    yield Step("training/ddp_fp16", functools.partial(training, "ddp_fp16", 0.85), words, asked=True)
    words = "DDP under TORCH_DISTRIBUTED_DEBUG=DETAIL"
    yield Step("training/detail", lambda place: training("ddp", 0.85, place, {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}), words)
    yield Step("training/mesh", functools.partial(all_same, "mesh", 4), "a DeviceMesh of two dimensions")
    yield Step("training/same", same_weights, "the same weights, run after run, also with gradients as views", asked=True)


def steps_with_another_torch():
    """Each of those is another download of its size."""
    for age, version in OTHERS.items():
        for name, run, words in (
            ("collectives", functools.partial(collectives, 4), "every collective, type and operator on 4 ranks"),
            ("training", functools.partial(training, "ddp", 0.85), "DDP, a convolutional net"),
            ("works", functools.partial(works, 3), "works, futures and messages between two ranks, as programs use them"),
            ("joining", functools.partial(joining, 2), "ranks find each other in a used store, and leave nothing of a job behind"),
            ("device", device, "tensors of a device that a stand-in for CUDA's driver makes, on 3 ranks"),
        ):
            yield Step(f"{age}/{name}", run, f"{words}, with torch {version}", version, asked=True)


def with_backups():
    return Fabric(leaves=2, backups=1)


STEPS = [
    Step("c10d", c10d, "torch's own tests of torch.distributed, as far as they go without GPUs"),
    *steps_of_collectives(),
    Step("works", functools.partial(works, 3), "works, futures and messages between two ranks, as programs use them"),
    Step("joining", functools.partial(joining, 2), "ranks find each other in a used store, and leave nothing of a job behind"),
    Step("huge", functools.partial(all_same, "huge", 2), "tensors beyond 2 GiB, on 2 ranks", asked=True),
    *steps_of_training(),
    Step("sums", exact_sums, "exact sums give the same weights whatever hosts 8 ranks are on, and whatever part each has"),
    Step("quantised", quantised, "a net learns with int8 sums, with and without error feedback, on 4 hosts"),
    Step("faults/node", node_killed, "a node is killed while DDP trains: the same weights", fabric=with_backups),
    Step("faults/rank", rank_killed, "a rank is killed: the others raise and name it"),
    Step("faults/late", late_rank, "a rank is late: a limit passes, and the operation goes on"),
    Step("faults/restart", restart, "a rank is killed under torchrun --max-restarts"),
    Step("device", device, "tensors of a device that a stand-in for CUDA's driver makes, on 3 ranks"),
    Step("levels/2", functools.partial(levels, 2), "the same with NCCL's part on two hosts done by Gloo, on 4 ranks"),
    Step("levels/1", functools.partial(levels, 1), "the same on one host, where the tree has nothing to do"),
    *steps_with_another_torch(),
    Step("doctor", doctor, "python -m tributary.torch.doctor"),
]
