"""What tenants with valid keys, strangers and broken clients try, each with what it costs others. A
function takes a fabric and returns figures; tests and `run` judge them.
"""

import contextlib
import os
import pathlib
import select
import signal
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "system"))

import speaker  # noqa: E402
from harness import PYTHON, Ranks, resident_bytes  # noqa: E402

MIB = 1 << 20


def pour(rank, frames, limit_s, most=1 << 40):
    """Sends `frames` again and again, without reading, until the node takes no more or the time is over.
    Returns the bytes that it took."""
    stream, sent, end = rank.stream, 0, time.monotonic() + limit_s
    stream.setblocking(False)
    view, at = memoryview(frames), 0
    try:
        while sent < most and time.monotonic() < end:
            _, ready, _ = select.select([], [stream], [], min(0.5, limit_s))
            if not ready:
                break
            took = stream.send(view[at:])
            sent, at = sent + took, (at + took) % len(view)
    except (ConnectionError, BrokenPipeError):
        pass
    stream.setblocking(True)
    return sent


class Peak:
    """The most memory that a process has while this is open, in bytes, beyond what it had before."""

    def __init__(self, pid):
        self.pid, self.over = pid, threading.Event()

    def __enter__(self):
        self.before = self.most = resident_bytes(self.pid)
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def _watch(self):
        while not self.over.wait(0.02):
            with contextlib.suppress(OSError, ValueError):
                self.most = max(self.most, resident_bytes(self.pid))

    @property
    def grown(self):
        return self.most - self.before


def leaf_of(fabric):
    return fabric.processes()["leaf0"]


#: A job that asks for next to nothing, so that all that it takes is what peers make it take.
TINY = {"groups": 64, "osts": 64, "window": 1, "payload": 64, "streams": 1, "segment": 64, "staging": 1, "flight": 1}


def echoed_refusals(fabric, seconds=5):
    """A rank sends joins whose lists of 65,535 ranges are refused, and reads no answer."""
    tenant = speaker.Tenant(fabric.manager, 2, TINY)
    rank = speaker.Rank(tenant, 0)
    frame = rank.frame(speaker.JOIN, speaker.join_body(1, [(7, 1, 1)] * 65_535))
    with Peak(leaf_of(fabric)) as peak:
        taken = pour(rank, frame, seconds, 2000 * MIB)
    rank.close()
    tenant.close()
    return {"sent_mib": taken / MIB, "node_mib": peak.grown / MIB}


def unfinished_creations(fabric, count=40_000):
    """A rank begins creations that nobody else joins."""
    tenant = speaker.Tenant(fabric.manager, 2, {"groups": 65_536})
    rank = speaker.Rank(tenant, 0)
    body = speaker.join_body(0, [(0, 2, 1)])
    joins = b"".join(rank.frame(speaker.JOIN, body[:48] + struct.pack("<Q", tag) + body[56:]) for tag in range(count))
    with Peak(leaf_of(fabric)) as peak:
        with contextlib.suppress(ConnectionError):
            rank.stream.sendall(joins)
        time.sleep(1)
    rank.close()
    tenant.close()
    return {"creations": count, "node_mib": peak.grown / MIB}


def end_of_numbers(fabric):
    """A rank that has the lock says that its lease ends at the last number that there is."""
    tenant = speaker.Tenant(fabric.manager, 1)
    rank = speaker.Rank(tenant, 0)
    rank.send(speaker.JOIN, speaker.join_body(1, [(0, 1, 1)]))
    group, generation = 0, 0
    about = {"group": group, "generation": generation, "flags": speaker.FLAG_STREAM, "count": 1 << 20, "op_seq": 1}
    rank.send(speaker.INTENT, seq=1, **about)
    rank.send(speaker.STOP_AT, seq=(1 << 64) - 1, **about)
    rank.send(speaker.CONTRIBUTION, seq=(1 << 64) - 1, **about)
    rank.stream.settimeout(5)
    end = "nothing came"
    try:
        while True:
            end = rank.hear()[0]
    except TimeoutError:
        end = f"open after {end}"
    except ConnectionError:
        end = "closed"
    rank.close()
    tenant.close()
    return {"edge": end}


class Victim:
    """A job of two ranks that does short operations all the time, on nodes that others attack. A phase is
    what happens for some seconds; `medians` then has an operation's median time in each, in microseconds."""

    def __init__(self, fabric, phases, seconds):
        self.phases = {name: None for name in phases}
        self.seconds = seconds
        self.ranks = Ranks(fabric, 2, "victim_worker", "latencies", {"seconds": len(phases) * (seconds + 1)})

    def __enter__(self):
        self.ranks.__enter__()
        self.ranks.reach(lambda: self.ranks.progress(0) >= 0, 60, "the other job's first operation")
        return self

    @contextlib.contextmanager
    def phase(self, name):
        began = time.monotonic()
        yield self.seconds
        self.phases[name] = began, time.monotonic()

    def __exit__(self, *words):
        try:
            if words[0] is None:
                spans = self.ranks.results()[0]
                self.medians = {
                    name: statistics.median(us for at, us in spans if since <= at < until)
                    for name, (since, until) in self.phases.items()
                }
        finally:
            self.ranks.__exit__(*words)


SINK = """
import select, socket, sys
stream, datagrams = socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagrams.bind(("127.0.0.1", 0))
print(stream.getsockname()[1], datagrams.getsockname()[1], flush=True)
readers, buffer = [stream, datagrams], bytearray(1 << 16)
while True:
    for ready in select.select(readers, [], [])[0]:
        if ready is stream:
            readers.append(stream.accept()[0])
        elif ready.recv_into(buffer) == 0:
            readers.remove(ready)
"""


class Sink:
    """A process that reads what it is sent and does nothing with it: the load of an attack without its
    effect. Instead of a rank it has the two sockets of one."""

    def __enter__(self):
        self.process = subprocess.Popen([PYTHON, "-c", SINK], stdout=subprocess.PIPE, text=True)
        stream, datagrams = map(int, self.process.stdout.readline().split())
        self.stream = socket.create_connection(("127.0.0.1", stream))
        self.datagrams, self.node_address = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), ("127.0.0.1", datagrams)
        return self

    def __exit__(self, *_):
        self.stream.close()
        self.datagrams.close()
        self.process.kill()
        self.process.communicate()


def flood(fabric, seconds, attack):
    """What an operation of another job takes while nothing happens, while `attack` goes into a sink, and
    while it goes to a node."""
    tenant = speaker.Tenant(fabric.manager, 2)
    rank = speaker.Rank(tenant, 0)
    with Sink() as sink:
        figures = phases(fabric, seconds, attack, sink, rank, rank)
    rank.close()
    tenant.close()
    return figures


def phases(fabric, seconds, attack, sink, target, rank):
    with Victim(fabric, ("quiet", "sink", "attack"), seconds) as victim:
        with victim.phase("quiet"):
            time.sleep(seconds)
        with victim.phase("sink"):
            attack(sink, rank, seconds)
        with victim.phase("attack"):
            sent = attack(target, rank, seconds)
    return {"sent": sent, **{f"{name}_us": us for name, us in victim.medians.items()},
            "times": victim.medians["attack"] / victim.medians["sink"]}


def control_flood(fabric, seconds=3):
    """A rank sends control frames as fast as the node takes them, beside another job."""
    def attack(target, rank, seconds):
        return pour(target, rank.frame(speaker.HEARTBEAT) * 2000, seconds) // speaker.HEADER_LEN
    return flood(fabric, seconds, attack)


def datagram_flood(fabric, seconds=3):
    """A rank sends datagrams with right tags as fast as it can, beside another job. Told as well is what its
    nodes lost of what came, and how many far ends got a queue of their own."""
    def counted(name):
        return sum(counters.get(name, 0) for counters in fabric.node_counters().values())

    def attack(target, rank, seconds):
        probe, sent, end = rank.frame(speaker.PROBE), 0, time.monotonic() + seconds
        while time.monotonic() < end:
            for _ in range(200):
                target.datagrams.sendto(probe, target.node_address)
            sent += 200
        return sent
    before = {name: counted(name) for name in ("datagram_socket_overflow", "datagram_queues_apart")}
    figures = flood(fabric, seconds, attack)
    return {**figures, **{name: counted(name) - count for name, count in before.items()}}


def question_flood(fabric, seconds=3, groups=20_000, askers=16):
    """A tenant whose job has many groups asks what it does, as fast as it is answered, about another tag
    each time and from several hosts; beside another job. The sink is the manager alone: it asks no node
    about a job that does not exist. `share` is what of a worker's time went into answers."""
    tenant = speaker.Tenant(fabric.manager, 2, {**TINY, "groups": 65_536, "osts": 65_536, "control_memory": 256 * MIB})
    ranks = [speaker.Rank(tenant, rank) for rank in (0, 1)]
    create_groups(ranks, groups)
    spent = []
    managers = [speaker.Manager(fabric.manager, host=f"127.0.0.{2 + number}") for number in range(askers)]

    def attack(job, _, seconds):
        asked, end = [0] * askers, time.monotonic() + seconds

        def ask(number):
            while time.monotonic() < end:
                managers[number].ask({"Explain": {"job": job, "group": number + askers * asked[number] % groups}})
                asked[number] += 1

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(askers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        spent.append((time.monotonic(), fabric.node_counters()["leaf0"].get("questions_ns", 0) / 1e9))
        return sum(asked)

    figures = phases(fabric, seconds, attack, 0xFFFF_FFFE, tenant.job, None)
    for one in (*managers, *ranks, tenant):
        one.close()
    (since, before), (until, after) = spent
    return {**figures, "share": (after - before) / (until - since)}


def create_groups(ranks, count):
    """The ranks of a job create so many groups, each of all of them."""
    body = speaker.join_body(0, [(0, len(ranks), 1)])
    heard = [threading.Thread(target=hear_ready, args=(rank, count)) for rank in ranks]
    for thread in heard:
        thread.start()
    for rank in ranks:
        rank.stream.sendall(b"".join(
            rank.frame(speaker.JOIN, body[:48] + struct.pack("<Q", tag) + body[56:]) for tag in range(count)))
    for thread in heard:
        thread.join()


def hear_ready(rank, count):
    while count > 0:
        kind, _, body = rank.hear()
        if kind == speaker.REFUSED:
            raise PermissionError(body)
        count -= kind == speaker.READY


def datagram_burst(fabric, count=4000):
    """A rank sends many datagrams while its node, which serves another job, too, does not look. Returns
    how many far ends got a queue of their own."""
    tenant = speaker.Tenant(fabric.manager, 2)
    rank = speaker.Rank(tenant, 0)
    probe, node = rank.frame(speaker.PROBE), leaf_of(fabric)
    before = fabric.node_counters()["leaf0"]["datagram_queues_apart"]
    with Victim(fabric, ("attack",), 1) as victim, victim.phase("attack") as seconds:
        os.kill(node, signal.SIGSTOP)
        for _ in range(count):
            rank.datagrams.sendto(probe, rank.node_address)
        os.kill(node, signal.SIGCONT)
        time.sleep(seconds)
    apart = fabric.node_counters()["leaf0"]["datagram_queues_apart"] - before
    rank.close()
    tenant.close()
    return {"sent": count, "queues_apart": apart}


def time_to_join(fabric):
    """How long the manager takes to admit a job, in seconds."""
    began = time.monotonic()
    speaker.Tenant(fabric.manager, 2).close()
    return time.monotonic() - began


def address_of(fabric):
    parts = urllib.parse.urlsplit(fabric.manager)
    return parts.hostname, parts.port


def silent_connections(fabric, seconds=5, rate=1000):
    """A stranger opens connections to the manager and says nothing."""
    over, opened = threading.Event(), []

    def open_them():
        began = time.monotonic()
        while not over.is_set():
            if len(opened) > rate * (time.monotonic() - began):
                time.sleep(0.001)
                continue
            with contextlib.suppress(OSError):
                opened.append(socket.create_connection(address_of(fabric), timeout=5))
            if len(opened) > 4 * rate:
                opened.pop(0).close()

    thread = threading.Thread(target=open_them)
    thread.start()
    try:
        time.sleep(1)
        spans, end = [], time.monotonic() + seconds
        while time.monotonic() < end:
            spans.append(time_to_join(fabric))
    finally:
        over.set()
        thread.join()
        for stream in opened:
            stream.close()
    return {"joined": len(spans), "join_s": statistics.median(spans), "longest_s": max(spans)}


def places_taken(fabric, count=2500):
    """A user opens as many connections as it can, and asks nothing."""
    taken = []
    with contextlib.suppress(OSError, ConnectionError):
        while len(taken) < count:
            taken.append(speaker.Manager(fabric.manager))
    span = time_to_join(fabric)
    for one in taken:
        one.close()
    return {"places": len(taken), "join_s": span}


def half_sent(fabric, count=60):
    """A user begins requests of 16 MiB and ends none of them."""
    managers = [speaker.Manager(fabric.manager) for _ in range(count)]
    half = struct.pack("<I", 16 * MIB) + bytes(16 * MIB - 1024)
    sent = 0
    with Peak(fabric.processes()["manager"]) as peak:
        for one in managers:
            with contextlib.suppress(OSError, ConnectionError):
                one.socket.settimeout(10)
                one.socket.sendall(half)
                sent += 1
        span = time_to_join(fabric)
    for one in managers:
        one.close()
    return {"sent": sent, "manager_mib": peak.grown / MIB, "join_s": span}


def empty_names(fabric):
    """A user asks for a job whose hosts are as many empty names as a message has room for."""
    manager = speaker.Manager(fabric.manager)
    text = b'{"RequestJob":{"hosts":[' + b'"",' * ((16 * MIB - 200) // 3) + b'""],"ask":{},"name":"","user":""}}'
    with Peak(fabric.processes()["manager"]) as peak, contextlib.suppress(OSError, ConnectionError):
        manager.socket.sendall(struct.pack("<I", len(text)) + text)
        manager.hear()
    manager.close()
    return {"manager_mib": peak.grown / MIB, "join_s": time_to_join(fabric)}
