"""An attacker on the path: a proxy in the middle of the TCP edge between a rank and its node, who reads
what passes, and changes it. Nothing here comes from the product's code, and the attacker has no key.

The kernel's packet filter (nft) leads connections to the node's port to the proxy, so this wants a network
namespace of its own: `with apart(): ...` before the fabric is made.
"""

import ctypes
import select
import socket
import struct
import subprocess
import threading

HEADER_LEN, SHORT_LEN, SEAL_LEN = 104, 16, 24
MAGIC, MAGIC_SHORT = 0x7254, 0x7273
CONTRIBUTION, RESULT = 1, 2
FLAG_SEALED = 16
CLONE_NEWNET = 0x40000000
SO_MARK, MARK = 36, 7


def apart():
    """Gives this process, and what it starts, a loopback interface of its own."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "a network namespace cannot be made")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


class Frames:
    """Cuts one direction of an edge into its frames (2.2, 2.6, 3.3), which takes no key. `handle` gets the
    header of each frame and the bytes that travel with it, and returns those that go on."""

    def __init__(self, opening, handle):
        self.opening, self.handle = list(opening), handle
        self.held, self.last = bytearray(), None

    def feed(self, data):
        self.held += data
        out = bytearray()
        while (length := self.next_length()) and len(self.held) >= length:
            piece, self.held = bytes(self.held[:length]), self.held[length:]
            if self.opening:
                self.opening.pop(0)
                out += piece
            else:
                out += self.frame(piece)
        return bytes(out)

    def next_length(self):
        """The bytes of what comes next, or None while too few are there to tell."""
        held = self.held
        if self.opening:
            length = self.opening[0]
            if length == 40 and len(held) >= 24 and held[5] == 1:
                length += 4 * struct.unpack_from("<H", held, 22)[0]
            return length
        if len(held) < SHORT_LEN:
            return None
        if struct.unpack_from("<H", held)[0] == MAGIC_SHORT:
            _, flags, length = self.last
            return SHORT_LEN + (SEAL_LEN if flags & FLAG_SEALED else 0) + length
        if len(held) < HEADER_LEN:
            return None
        flags, = struct.unpack_from("<H", held, 24)
        length, = struct.unpack_from("<I", held, 80)
        return HEADER_LEN + (SEAL_LEN if flags & FLAG_SEALED else 0) + length

    def frame(self, piece):
        if struct.unpack_from("<H", piece)[0] == MAGIC:
            kind, flags, length = piece[3], *struct.unpack_from("<H", piece, 24), *struct.unpack_from("<I", piece, 80)
            if kind in (CONTRIBUTION, RESULT):
                self.last = (kind, flags, length)
        else:
            kind, flags, length = self.last
        head = len(piece) - length
        return self.handle(kind, piece[:head], piece[head:])


class OnPath:
    """The proxy in front of a port of 127.0.0.1. `change` is what becomes of frames on their way up: it gets
    (kind, head, payload) and returns the bytes that go on. All payloads that pass are kept in `seen`."""

    def __init__(self, port, change=None):
        self.change = change or (lambda kind, head, payload: head + payload)
        self.seen, self.over, self.changed = [], threading.Event(), 0
        self.door = socket.create_server(("127.0.0.1", 0))
        own = self.door.getsockname()[1]
        self.port = port
        rules = (f"table ip on_path {{\nchain output {{\ntype nat hook output priority -100\n"
                 f"tcp dport {port} meta mark != {MARK} redirect to :{own}\n}}\n}}\n")
        subprocess.run(["nft", "-f", "-"], input=rules, text=True, check=True)
        self.threads = [threading.Thread(target=self.accept, daemon=True)]
        self.threads[0].start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over.set()
        subprocess.run(["nft", "delete", "table", "ip", "on_path"], check=True)
        self.door.close()

    def accept(self):
        while not self.over.is_set():
            ready, _, _ = select.select([self.door], [], [], 0.2)
            if not ready:
                continue
            try:
                rank, _ = self.door.accept()
            except OSError:
                return
            node = socket.socket()
            node.setsockopt(socket.SOL_SOCKET, SO_MARK, MARK)
            node.connect(("127.0.0.1", self.port))
            for one in (rank, node):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.carry, args=(rank, node), daemon=True).start()

    def carry(self, rank, node):
        """Both directions of one connection, until it ends."""
        up = Frames([40, 40], self.note_up)
        down = Frames([32, 56], self.note_down)
        try:
            while not self.over.is_set():
                ready, _, _ = select.select([rank, node], [], [], 0.2)
                for source, target, frames in ((rank, node, up), (node, rank, down)):
                    if source in ready:
                        data = source.recv(1 << 18)
                        if not data:
                            return
                        target.sendall(frames.feed(data))
        except OSError:
            pass
        finally:
            rank.close()
            node.close()

    def note_up(self, kind, head, payload):
        self.seen.append((kind, payload))
        return self.change(kind, head, payload)

    def note_down(self, kind, head, payload):
        self.seen.append((kind, payload))
        return head + payload

    def read(self):
        """All payloads of vector data that have passed, one behind the other."""
        return b"".join(payload for kind, payload in list(self.seen) if kind in (CONTRIBUTION, RESULT))


class Flip:
    """Flips the lowest bit of one byte of the n-th vector payload on its way up, and of nothing else."""

    def __init__(self, number=5, at=1024):
        self.number, self.at, self.count, self.done = number, at, 0, False

    def __call__(self, kind, head, payload):
        if kind == CONTRIBUTION and len(payload) > self.at:
            self.count += 1
            if self.count == self.number:
                self.done = True
                changed = bytearray(payload)
                changed[self.at] ^= 1
                return head + bytes(changed)
        return head + payload


class Replay:
    """Puts the n-th vector payload, as it was recorded, in the place of the next one."""

    def __init__(self, number=5):
        self.number, self.count, self.done, self.kept = number, 0, False, None

    def __call__(self, kind, head, payload):
        if kind == CONTRIBUTION and payload:
            self.count += 1
            if self.count == self.number:
                self.kept = payload
            elif self.count == self.number + 1 and len(self.kept) == len(payload):
                self.done = True
                return head + self.kept
        return head + payload


def port_of(fabric, node):
    """The port at which a node takes streams."""
    address = next(entry["address"] for entry in fabric.status()["nodes"] if entry["name"] == node)
    return int(address.rsplit(":", 1)[1])


#: The environment of ranks whose edges all go over the network.
OVER_NETWORK = {"TRIB_SHARED_MEMORY": "off"}
#: What each rank's vector consists of, so that it can be looked for on the wire.
TEXT = b"the vector, as rank 0 has given it in clear text"

