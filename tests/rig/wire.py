"""A network of packets that are late, lost, doubled, out of order or damaged: what netem would do.

Nodes get a second address; what they send there is read from a TUN device, and given to the other
node's when its time has come. Any thread may change the faults of a way; what they strike
is counted.
"""
import fcntl
import heapq
import os
import random
import select
import struct
import threading
import time
from dataclasses import dataclass

from place import CannotRun

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 1, 0x1000
DEVICE = "wire"
PACKET = 65536
QUEUE_SECONDS = 1.0  # what waits longer for its turn on a slow link is dropped


@dataclass
class Way:
    """Of the packets from one node to another."""
    delay: float = 0.0  # seconds
    jitter: float = 0.0  # added or taken away, at random; packets then overtake each other
    loss: float = 0.0  # shares of all packets
    double: float = 0.0
    damage: float = 0.0  # one bit of it is another
    rate: float = 0.0  # bytes a second; 0: any
    cut: bool = False
    free_at: float = 0.0


class Wire:
    """Of these nodes; runs until close()."""

    def __init__(self, place, nodes, seed):
        place.need_nodes()
        self.place, self.draw = place, random.Random(seed)
        self.tuns, self.ways, self.queue, self.number = {}, {}, [], 0
        self.struck = {"lost": 0, "doubled": 0, "damaged": 0, "overtaken": 0, "cut": 0}
        self.passed, self.stopping = 0, False
        for node in nodes:
            self.tuns[node] = place.inside(node, open_tun)
            place.ip(node, "address", "add", f"{self.address(node)}/24", "dev", DEVICE)
            place.ip(node, "link", "set", DEVICE, "up")
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    @staticmethod
    def address(node):
        return f"10.81.0.{node}"

    def way(self, source, target):
        return self.ways.setdefault((source, target), Way())

    def all_ways(self, **faults):
        for source in self.tuns:
            for target in self.tuns:
                if source != target:
                    self.set_way(source, target, **faults)

    def set_way(self, source, target, **faults):
        for name, value in faults.items():
            setattr(self.way(source, target), name, value)

    def run(self):
        of = {tun: node for node, tun in self.tuns.items()}
        while not self.stopping:
            wait = min(self.queue[0][0] - time.monotonic(), 0.05) if self.queue else 0.05
            ready, _, _ = select.select(list(of), [], [], max(0, wait))
            for tun in ready:
                self.take(of[tun], os.read(tun, PACKET))
            self.give()

    def take(self, source, packet):
        if packet[0] >> 4 != 4 or packet[19] not in self.tuns:
            return
        target = packet[19]  # the last number of its address
        way = self.way(source, target)
        if self.strikes("cut", float(way.cut)) or self.strikes("lost", way.loss):
            return
        if self.strikes("damaged", way.damage):
            packet = bytearray(packet)
            packet[self.draw.randrange(20, len(packet))] ^= 1 << self.draw.randrange(8)
        for _ in range(1 + self.strikes("doubled", way.double)):
            self.schedule(way, target, bytes(packet))

    def strikes(self, what, share):
        struck = share > 0 and self.draw.random() < share
        self.struck[what] += struck
        return struck

    def schedule(self, way, target, packet):
        now = time.monotonic()
        if way.rate:
            way.free_at = max(way.free_at, now) + len(packet) / way.rate
            if way.free_at > now + QUEUE_SECONDS:
                self.struck["lost"] += 1
                way.free_at -= len(packet) / way.rate
                return
            now = way.free_at
        due = now + max(0.0, way.delay + self.draw.uniform(-way.jitter, way.jitter))
        self.struck["overtaken"] += any(due < other[0] and other[2] == target
                                        for other in self.queue[-1:])
        self.number += 1
        heapq.heappush(self.queue, (due, self.number, target, packet))

    def give(self):
        now = time.monotonic()
        while self.queue and self.queue[0][0] <= now:
            _, _, target, packet = heapq.heappop(self.queue)
            os.write(self.tuns[target], packet)
            self.passed += 1

    def close(self):
        self.stopping = True
        self.thread.join()
        for tun in self.tuns.values():
            os.close(tun)  # the device goes with it


def open_tun():
    try:
        tun = os.open("/dev/net/tun", os.O_RDWR)
        fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH", DEVICE.encode(), IFF_TUN | IFF_NO_PI))
    except OSError as error:
        raise CannotRun(f"no TUN devices: {error}") from error
    return tun
