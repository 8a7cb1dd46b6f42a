"""A peer that speaks another version of the protocol is told so: which two versions met, and
what to do."""

import json
import pathlib
import socket
import ssl
import struct
import unittest
from urllib.parse import parse_qs, urlsplit

from harness import Fabric


def receive(connection):
    def exactly(count):
        data = b""
        while len(data) < count:
            more = connection.recv(count - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    return json.loads(exactly(struct.unpack("<I", exactly(4))[0]))


class Versions(unittest.TestCase):
    def test_the_manager_names_its_version_and_closes(self):
        with Fabric() as fabric:
            url = urlsplit(fabric.manager)
            folder = pathlib.Path(parse_qs(url.query)["credentials"][0])
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.load_verify_locations(folder / "ca.pem")
            certificate = next(folder.glob("user*.pem"))
            key = next((k for k in folder.glob("user*key*")), certificate)
            context.load_cert_chain(certificate, key)
            with socket.create_connection((url.hostname, url.port), timeout=10) as plain:
                with context.wrap_socket(plain) as connection:
                    hello = receive(connection)
                    self.assertIn("version", hello)
                    mine = {**hello, "version": hello["version"] + 1, "role": "User", "software": "tomorrow's"}
                    text = json.dumps(mine).encode()
                    connection.sendall(struct.pack("<I", len(text)) + text)
                    ask = json.dumps("Status").encode()
                    with self.assertRaises((EOFError, OSError)):
                        connection.sendall(struct.pack("<I", len(ask)) + ask)
                        receive(connection)

    def test_a_node_names_its_version(self):
        with Fabric() as fabric:
            address = next(n["address"] for n in fabric.status()["nodes"] if n["name"] == "leaf0")
            host, port = address.rsplit(":", 1)
            before = fabric.node_counters()["leaf0"]["handshakes_version"]
            with socket.create_connection((host, int(port)), timeout=10) as connection:
                # A hello begins with the magic number and the version; the rest does not matter.
                connection.sendall(struct.pack("<IB", 0x6F4C7254, 99) + bytes(200))
                connection.settimeout(10)
                connection.recv(1000)
            self.assertEqual(fabric.node_counters()["leaf0"]["handshakes_version"], before + 1)


if __name__ == "__main__":
    unittest.main()
