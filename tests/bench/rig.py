#!/usr/bin/env python3
"""The nodes that net_rig.sh builds, for programs in Python; run by itself, what their links carry.

    tests/bench/rig.py [--rates 100mbit,1gbit,10gbit] [--seconds 2]

Needs root. Copies bytes through a TCP socket from node 1 to node 2, then both ways at once, and
prints the rates that arrive. The rate is that of whole frames, of which 1448 / 1514 are payload;
a link of 10 Gbit/s needs two processors that have nothing else to do.
"""
import argparse
import pathlib
import re
import socket
import subprocess
import sys
import threading
import time

import bench_nets

SCRIPT = pathlib.Path(__file__).resolve().parent / "net_rig.sh"
PAYLOAD = 1448 / 1514  # of a full frame of TCP with time stamps
PORT = 5001
PIECE = 1 << 20
UNITS = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}


def bits_per_second(rate):
    """What net_rig.sh means by `rate`."""
    number, unit = re.fullmatch(r"([0-9.]+)([kmg]bit)", rate.lower()).groups()
    return float(number) * UNITS[unit]


def address(node):
    return f"10.79.0.{node}"


class Rig:
    """Nodes 1 to `count`; leaving the context ends what runs in them and removes them."""

    def __init__(self, count, rate):
        self.nodes = range(1, count + 1)
        self.rate = rate

    def __enter__(self):
        done = subprocess.run([SCRIPT, "up", str(len(self.nodes)), self.rate], text=True,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if done.returncode != 0:
            sys.exit(done.stderr.strip() or f"{SCRIPT.name} up ended with {done.returncode}")
        return self

    def __exit__(self, *_):
        subprocess.run([SCRIPT, "down"], check=True)

    def command(self, node, command):
        return [str(SCRIPT), "in", str(node), *(str(part) for part in command)]

    def start(self, node, command, **options):
        """Starts a program in a node; it does not outlive this one."""
        return subprocess.Popen(self.command(node, command),
                                preexec_fn=bench_nets.end_with_parent, **options)

    def bytes(self):
        """(received, sent) by each node's link so far, node 1 first."""
        said = subprocess.run([SCRIPT, "bytes"], check=True, capture_output=True, text=True).stdout
        return [tuple(int(word) for word in line.split()[1:]) for line in said.splitlines()]


def receive(connection, seconds):
    """Payload in bits a second, a fifth of the time at the start and the end left out."""
    connection.settimeout(10)
    buffer, count, marks = bytearray(PIECE), 0, []
    start = time.monotonic()
    while got := connection.recv_into(buffer):
        count += got
        marks.append((time.monotonic() - start, count))
    kept = [mark for mark in marks if 0.2 * seconds < mark[0] < 0.8 * seconds]
    if len(kept) < 2:
        sys.exit("too little arrived to tell a rate")
    return 8 * (kept[-1][1] - kept[0][1]) / (kept[-1][0] - kept[0][0])


def send(connection, seconds):
    piece, end = bytes(PIECE), time.monotonic() + seconds
    while time.monotonic() < end:
        connection.sendall(piece)
    connection.shutdown(socket.SHUT_WR)


def accept_copy(both, seconds):
    """Node 2's part: prints what it received."""
    with socket.create_server(("", PORT)) as server:
        print("listening", flush=True)
        server.settimeout(10)
        connection, _ = server.accept()
    with connection:
        back = threading.Thread(target=send, args=(connection, seconds))
        if both:
            back.start()
        print(receive(connection, seconds), flush=True)
        if both:
            back.join()


def open_copy(both, seconds):
    """Node 1's part: prints what it received, if bytes go both ways."""
    with socket.create_connection((address(2), PORT), timeout=10) as connection:
        out = threading.Thread(target=send, args=(connection, seconds))
        out.start()
        if both:
            print(receive(connection, seconds), flush=True)
        out.join()


def measured(rig, seconds, both=False):
    """Payload that arrives from node 1 to node 2, in bits a second; with `both` also the other way
    at the same time."""
    flags = ["--seconds", seconds, *(["--both"] if both else [])]
    me = [sys.executable, pathlib.Path(__file__).resolve()]
    there = rig.start(2, [*me, "--part", "accept", *flags], stdout=subprocess.PIPE, text=True)
    there.stdout.readline()
    here = rig.start(1, [*me, "--part", "open", *flags], stdout=subprocess.PIPE, text=True)
    said = there.communicate()[0] + here.communicate()[0]
    if there.returncode or here.returncode:
        bench_nets.fail("a copy over the rig ended early")
    return [float(line) for line in said.split()]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", default="100mbit,1gbit,10gbit")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--part", choices=["accept", "open"], help=argparse.SUPPRESS)
    parser.add_argument("--both", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        part = {"accept": accept_copy, "open": open_copy}[options.part]
        return part(options.both, options.seconds)
    print(f"{bench_nets.load_now()}, {options.seconds:g} s a copy\n")
    print("| rate | payload there can be, Mbit/s | 1 to 2 | of it | both ways at once | of it |")
    print("|---|---|---|---|---|---|")
    for rate in options.rates.split(","):
        with Rig(2, rate) as rig:
            full = PAYLOAD * bits_per_second(rate)
            one = measured(rig, options.seconds)[0]
            both = measured(rig, options.seconds, both=True)
        print(f"| {rate} | {full / 1e6:.1f} | {one / 1e6:.1f} | {one / full:.2f} | "
              + ", ".join(f"{each / 1e6:.1f}" for each in both) + " | "
              + ", ".join(f"{each / full:.2f}" for each in both) + " |", flush=True)
    return None


if __name__ == "__main__":
    main()
