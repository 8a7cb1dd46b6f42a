"""The protocol of docs/protocol.md, spoken by hand: what a hostile tenant, who has valid keys of a job of
its own, can send. Nothing here comes from the product's code.

A `Tenant` asks the manager for a job and gets a ticket. A `Rank` of it opens its edge to a node and sends
frames, right and wrong ones.
"""

import hashlib
import hmac
import json
import os
import pathlib
import socket
import ssl
import struct
import urllib.parse

VERSION = 1
MAGIC = 0x7254
HELLO_MAGIC = 0x6F4C7254
HEADER = struct.Struct("<HBBIIHHIIHHBBBBIIQQQQIIIIQ")
HEADER_LEN = 104

#: Kinds of frames (2.4).
CONTRIBUTION, PROBE, JOIN, READY, REFUSED, LEAVE = 1, 3, 16, 17, 18, 19
INTENT, GRANT, STOP_AT, LEASE_END, HEARTBEAT, MARK = 24, 25, 28, 29, 33, 37
FLAG_CRC, FLAG_STREAM = 1, 2


def hkdf(key, label, what, length):
    """HKDF-SHA256 without salt (3.1): `what` is named behind the label."""
    pseudo = hmac.new(bytes(32), key, hashlib.sha256).digest()
    info, block, out = label + b"\0" + what, b"", b""
    for count in range(1, 2 + length // 32):
        block = hmac.new(pseudo, block + info + bytes([count]), hashlib.sha256).digest()
        out += block
    return out[:length]


def siphash(key, data):
    """SipHash-2-4 (Aumasson and Bernstein, Indocrypt 2012)."""
    mask = (1 << 64) - 1
    k0, k1 = struct.unpack("<QQ", key)
    v0, v1, v2, v3 = k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573

    def turned(value, bits):
        return (value << bits | value >> (64 - bits)) & mask

    def rounds(count):
        nonlocal v0, v1, v2, v3
        for _ in range(count):
            v0 = (v0 + v1) & mask
            v1 = turned(v1, 13) ^ v0
            v0 = turned(v0, 32)
            v2 = (v2 + v3) & mask
            v3 = turned(v3, 16) ^ v2
            v0 = (v0 + v3) & mask
            v3 = turned(v3, 21) ^ v0
            v2 = (v2 + v1) & mask
            v1 = turned(v1, 17) ^ v2
            v2 = turned(v2, 32)

    whole = len(data) // 8 * 8
    last = int.from_bytes(data[whole:], "little") | (len(data) & 0xFF) << 56
    for word in (*struct.unpack(f"<{whole // 8}Q", data[:whole]), last):
        v3 ^= word
        rounds(2)
        v0 ^= word
    v2 ^= 0xFF
    rounds(4)
    return v0 ^ v1 ^ v2 ^ v3


def crc32c_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


CRC_TABLE = crc32c_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def key_body(tag, ranks, creation=0):
    """A group's key (2.5); `ranks` are (first, count, stride)."""
    runs = b"".join(struct.pack("<IIi", *run) for run in ranks)
    return struct.pack("<QII", tag, creation, len(ranks)) + runs


def join_body(tag, ranks):
    """A join without a fault, of a new group without a name, below which no node folds."""
    standing = struct.pack("<IQQ", 0, 0, 0)
    return bytes(48) + key_body(tag, ranks) + standing + struct.pack("<I", 0) + struct.pack("<H", 0)


def exactly(stream, length):
    """The next bytes that come, as many as are wanted."""
    got = b""
    while len(got) < length:
        more = stream.recv(length - len(got))
        if not more:
            raise ConnectionError("the other side has closed the connection")
        got += more
    return got


class Manager:
    """The authenticated channel (11): messages of JSON, each behind its length. It comes from the address
    `host`, if that is given."""

    def __init__(self, url, credentials=None, host=""):
        parts = urllib.parse.urlparse(url)
        folder = pathlib.Path(credentials or urllib.parse.parse_qs(parts.query)["credentials"][0])
        trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        trust.load_verify_locations(folder / "ca.pem")
        trust.load_cert_chain(folder / "user.pem", folder / "user.key")
        bare = socket.create_connection((parts.hostname, parts.port), timeout=30, source_address=(host, 0))
        self.socket = trust.wrap_socket(bare, server_hostname="manager.tributary")
        self.hear()
        self.say({"version": VERSION, "software": "hostile", "role": "user"})

    def say(self, message):
        text = json.dumps(message).encode()
        self.socket.sendall(struct.pack("<I", len(text)) + text)

    def hear(self):
        (length,) = struct.unpack("<I", exactly(self.socket, 4))
        return json.loads(exactly(self.socket, length))

    def ask(self, message):
        self.say(message)
        return self.hear()

    def close(self):
        self.socket.close()


class Tenant:
    """A job of `size` ranks on this host, and its ticket."""

    def __init__(self, url, size, ask=None, credentials=None):
        self.manager = Manager(url, credentials)
        host = socket.gethostname()
        answer = self.manager.ask({"RequestJob": {
            "hosts": [host] * size, "pids": [os.getpid()] * size, "ask": ask or {}, "name": "hostile", "user": "nobody"}})
        if "Granted" not in answer:
            raise PermissionError(answer)
        self.ticket = answer["Granted"]["ticket"] if "ticket" in answer["Granted"] else answer["Granted"]
        self.secret = bytes(self.ticket["key"])
        self.job, self.epoch = self.ticket["job"], self.ticket["epoch"]

    def close(self):
        self.manager.close()


class Rank:
    """One rank, with its edge open."""

    def __init__(self, tenant, rank):
        self.tenant, self.rank = tenant, rank
        seat = tenant.ticket["lanes"][0]["leaves"][rank]
        self.node, self.child = seat["node"], seat["child"]
        home = next(node for node in tenant.ticket["nodes"] if node["node"] == self.node)["candidates"][0]
        host, port = home["stream"].rsplit(":", 1)
        placement = struct.pack("<H", 0)
        node_key = hkdf(tenant.secret, b"tributary v1 node", struct.pack("<IHH", tenant.job, self.node, 0), 32)
        edge = hkdf(node_key, b"tributary v1 edge", struct.pack("<HH", self.child, 0), 32)
        self.up = hkdf(edge, b"tributary v1 frame up", placement, 16)
        hello_key = hkdf(edge, b"tributary v1 hello", placement, 32)
        self.datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.datagrams.bind((host if host.startswith("127.") else "", 0))
        self.stream = socket.create_connection((host.strip("[]"), int(port)), timeout=30)
        self.stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._open(hello_key, host)
        self.send(HEARTBEAT)

    def _open(self, key, host):
        head = struct.pack("<IBBHIIHHHH", HELLO_MAGIC, VERSION, 1, 0, self.tenant.job, self.tenant.epoch, self.node,
                           self.child, self.datagrams.getsockname()[1], 0)
        hello = head + os.urandom(16)
        self.stream.sendall(hello)
        challenge = exactly(self.stream, 32)
        status, = struct.unpack_from("<H", challenge, 6)
        if status != 0:
            raise ConnectionError(f"challenge: status {status}")
        port, = struct.unpack_from("<H", challenge, 12)
        self.node_address = (host, port)
        proof = struct.pack("<IBBH", HELLO_MAGIC, VERSION, 3, 0)
        self.stream.sendall(proof + hmac.new(key, b"child" + hello + challenge, hashlib.sha256).digest())
        welcome = exactly(self.stream, 56)
        status, = struct.unpack_from("<H", welcome, 6)
        if status != 0:
            raise ConnectionError(f"welcome: status {status}")

    def frame(self, kind, body=b"", *, group=0, generation=0, seq=0, op_seq=0, flags=0, job=None, epoch=None, mark=0,
              signature=(1, 0, 0, 0), root=0, witness=None, count=0, first=0, elements=0, is_data=False):
        """A frame with its tag. A body that is no vector data has its checksum."""
        crc = 0
        if body and not is_data:
            flags, crc = flags | FLAG_CRC, crc32c(body)
        head = HEADER.pack(
            MAGIC, VERSION, kind, self.tenant.job if job is None else job, self.tenant.epoch if epoch is None else epoch,
            self.node, self.child, group, generation, flags, 0, *signature, root,
            self.rank if witness is None else witness, count, op_seq, seq, first, elements, 0, len(body), crc, mark)
        return head + struct.pack("<Q", siphash(self.up, head)) + body

    def send(self, kind, body=b"", **fields):
        self.stream.sendall(self.frame(kind, body, **fields))

    def hear(self):
        """The next frame that comes by stream: (kind, seq, body); heartbeats too."""
        head = exactly(self.stream, HEADER_LEN)
        kind, = struct.unpack_from("<B", head, 3)
        seq, = struct.unpack_from("<Q", head, 56)
        length, = struct.unpack_from("<I", head, 80)
        return kind, seq, exactly(self.stream, length)

    def close(self):
        self.stream.close()
        self.datagrams.close()
