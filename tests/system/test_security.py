"""Hostile datagrams: replayed, forged or damaged ones. They are counted, none of their bytes is
used, and the sums stay right."""

import ctypes
import os
import random
import socket
import struct
import subprocess
import threading
import time
import unittest

from harness import Fabric, Ranks

MAGIC = bytes([0x54, 0x72])
HEADER = 104
CLONE_NEWNET = 0x40000000


class Sniffer(threading.Thread):
    """Records Tributary's datagrams on loopback: (source, target, payload)."""

    def __init__(self):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.socket.bind(("lo", 0))
        self.socket.settimeout(0.2)
        self.seen, self.on = [], True
        self.start()

    def run(self):
        while self.on:
            try:
                frame, where = self.socket.recvfrom(70_000)
            except TimeoutError:
                continue
            if where[2] == socket.PACKET_OUTGOING or frame[23] != 17:
                continue
            length = (frame[14] & 15) * 4
            udp = frame[14 + length :]
            source, target = struct.unpack("!HH", udp[:4])
            if udp[8:10] == MAGIC:
                self.seen.append((source, target, bytes(udp[8:])))

    def stop(self):
        self.on = False
        self.join()
        self.socket.close()


class Forger:
    """Sends datagrams with any source address."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)

    def send(self, source, target, payload):
        udp = struct.pack("!HHHH", source, target, 8 + len(payload), 0) + payload
        here = socket.inet_aton("127.0.0.1")
        ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, here, here)
        try:
            self.socket.sendto(ip + udp, ("127.0.0.1", 0))
        except OSError:
            pass

    def close(self):
        self.socket.close()


@unittest.skipUnless(os.geteuid() == 0, "raw sockets take root")
class Security(unittest.TestCase):
    ARGUMENT = {"seed": 11, "iterations": 150, "counts": [3, 200, 1500], "pause": 0.02}

    @classmethod
    def setUpClass(cls):
        """Gives the test a loopback interface of its own: on the machine's, the sniffer would
        record other tests' datagrams and send its forgeries to their nodes."""
        if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "a network namespace cannot be made")
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)

    def counts(self, fabric):
        total = {}
        for counters in fabric.node_counters().values():
            for name, value in counters.items():
                total[name] = total.get(name, 0) + value
        return total

    @staticmethod
    def dropped_by_kernel():
        """Datagrams for a port at which no process hears their sender (a rank listens to its
        node alone), and those for which a process of a busy machine came too late."""
        with open("/proc/thread-self/net/snmp", encoding="ascii") as file:
            names, values = (line.split() for line in file if line.startswith("Udp:"))
        return tuple(int(values[names.index(name)]) for name in ("NoPorts", "RcvbufErrors"))

    def test_strangers_change_nothing(self):
        with Fabric() as fabric:
            with Ranks(fabric, 8, "loop_worker", "floats", self.ARGUMENT) as ranks:
                calm = ranks.results()
            before, kernel_before = self.counts(fabric), self.dropped_by_kernel()
            sniffer, forger, dice = Sniffer(), Forger(), random.Random(5)
            stranger = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            try:
                with Ranks(fabric, 8, "loop_worker", "floats", self.ARGUMENT) as ranks:
                    ranks.reach(lambda: ranks.progress(0) > 5, 30, "first operations")
                    sent = {"replayed": 0, "damaged": 0, "other source": 0, "noise": 0}
                    end = time.monotonic() + 20
                    while ranks.progress(0) < self.ARGUMENT["iterations"] - 20 and time.monotonic() < end:
                        for source, target, payload in dice.sample(sniffer.seen, min(20, len(sniffer.seen))):
                            forger.send(source, target, payload)
                            sent["replayed"] += 1
                            damaged = bytearray(payload)
                            damaged[dice.randrange(4, len(damaged))] ^= 1 << dice.randrange(8)
                            forger.send(source, target, bytes(damaged))
                            sent["damaged"] += 1
                            # The tag is right for this frame, but the frame comes from an address
                            # that the job does not know.
                            stranger.sendto(payload, ("127.0.0.1", target))
                            sent["other source"] += 1
                            forged = MAGIC + payload[2:HEADER - 8] + dice.randbytes(8) + dice.randbytes(50)
                            forger.send(source, target, forged)
                            stranger.sendto(dice.randbytes(dice.randrange(1, 300)), ("127.0.0.1", target))
                            sent["noise"] += 2
                        time.sleep(0.02)
                    attacked = ranks.results()
            finally:
                sniffer.stop()
                forger.close()
                stranger.close()
            after = self.counts(fabric)
            refused, late = (now - then for now, then in zip(self.dropped_by_kernel(), kernel_before))
        self.assertGreater(min(sent.values()), 200, sent)
        self.assertEqual([r["digest"] for r in attacked], [r["digest"] for r in calm])
        grown = {n: after[n] - before.get(n, 0) for n in after if after[n] != before.get(n, 0)}
        rejected = sum(v for n, v in grown.items() if n.startswith("rejected"))
        # A genuine frame that came again is no forgery.
        by_ranks = sum(r["counters"]["datagrams_rejected"] + r["counters"]["datagrams_repeated"] for r in attacked)
        hostile = sent["damaged"] + sent["other source"] + sent["noise"]
        # Half of what was recorded went to ranks, and they count what they reject, too.
        self.assertGreater(rejected + by_ranks + refused + late, 0.9 * hostile, (grown, sent))
        self.assertLess(refused, 0.6 * (sent["other source"] + sent["noise"] / 2), (grown, sent))
        for name in ("rejected_tag", "rejected_source", "rejected_malformed"):
            self.assertGreater(grown.get(name, 0), 0, grown)
        # The payload that is counted as taken is that of the undisturbed run: authentic frames that
        # come again are dropped as a whole.
        self.assertGreater(grown.get("duplicates", 0) + grown.get("stale", 0), 0, grown)
        print(f"sent {sent}; rejected by nodes {rejected}, by ranks {by_ranks}, by the kernel {refused} and {late}")


if __name__ == "__main__":
    unittest.main()
