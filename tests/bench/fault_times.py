#!/usr/bin/env python3
"""What faults cost: real speedo-master, speedo-worker and redis-server processes, this machine.

Usage: fault_times.py BIN_DIR [--repeat N] [--only NAME]

Prints a markdown table of medians and maxima for RESULTS.md. What the master notices is read from
the time stamps of its log, merges from the version in the store, asked for every millisecond.
"""

import argparse
import os
import random
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

SOLVER = """
base_lr: 0.01 lr_policy: "fixed" display: 0 random_seed: 3 max_iter: 100000000
snapshot_after_train: false
net_param { name: "faults"
  layer { name: "data" type: "DummyData" top: "data" top: "target"
          dummy_data_param { shape { dim: 64 dim: 256 } shape { dim: 64 dim: 8 }
                             data_filler { type: "gaussian" std: 1 }
                             data_filler { type: "constant" value: 0.5 } } }
  layer { name: "ip1" type: "InnerProduct" bottom: "data" top: "ip1"
          inner_product_param { num_output: 256 weight_filler { type: "xavier" } } }
  layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
          inner_product_param { num_output: 8 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "EuclideanLoss" bottom: "ip2" bottom: "target" top: "loss" } }
"""
WEIGHTS = b"speedo:{faults}:weights:m"
WORKER_TIMEOUT = 2
PATIENCE = 60


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def version_of(manifest):
    """The version field of a stored manifest: see proto/speedo.proto and store/layout.hpp."""
    at, fields = 16, {}
    while at < len(manifest):
        tag = manifest[at]
        at += 1
        number, kind = tag >> 3, tag & 7
        if kind == 1:
            value, at = manifest[at:at + 8], at + 8
        else:
            value, shift = 0, 0
            while True:
                byte = manifest[at]
                at += 1
                value |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    break
            if kind == 2:
                at += value
        fields[number] = value
    return fields.get(3, 0)


class Redis:
    def __init__(self, folder):
        self.folder, self.port, self.process = folder, free_port(), None
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
             "--appendonly", "no", "--dir", self.folder],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not self.answers():
            time.sleep(0.001)

    def answers(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as link:
                link.sendall(b"PING\r\n")
                return link.recv(16).startswith(b"+PONG")
        except OSError:
            return False

    def kill(self):
        self.process.kill()
        self.process.wait()


class Watcher(threading.Thread):
    """Asks for the weights' version all the time; keeps when each version was first seen."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.seen, self.stopping = port, [], False
        self.start()

    def run(self):
        link, rest = None, b""
        while not self.stopping:
            try:
                if link is None:
                    link, rest = socket.create_connection(("127.0.0.1", self.port), 1), b""
                link.sendall(b"*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n" % (len(WEIGHTS), WEIGHTS))
                while b"\r\n" not in rest:
                    rest += self.receive(link)
                head, rest = rest.split(b"\r\n", 1)
                size = int(head[1:])
                if size >= 0:
                    while len(rest) < size + 2:
                        rest += self.receive(link)
                    version, rest = version_of(rest[:size]), rest[size + 2:]
                    if not self.seen or self.seen[-1][1] != version:
                        self.seen.append((time.time(), version))
            except OSError:
                link = None
            time.sleep(0.001)

    @staticmethod
    def receive(link):
        data = link.recv(65536)
        if not data:
            raise OSError("closed")
        return data

    def version(self):
        return self.seen[-1][1] if self.seen else 0

    def first_after(self, moment, above=0):
        """When the first version was seen that is newer than `moment` and above `above`."""
        deadline = time.time() + PATIENCE
        at = 0
        while time.time() < deadline:
            for when, version in self.seen[at:]:
                at += 1
                if when > moment and version > above:
                    return when
            time.sleep(0.002)
        sys.exit("fault_times: no merge for a minute")


class Node:
    def __init__(self, command, log):
        self.log = log
        with open(log, "wb") as errors:
            self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)

    def kill(self, number=signal.SIGKILL):
        self.process.send_signal(number)

    def wait(self):
        return self.process.wait()

    def says(self, text, after=0.0):
        """The time stamp of the first line from then on that contains `text`."""
        deadline = time.time() + PATIENCE
        while time.time() < deadline:
            with open(self.log, errors="replace") as lines:
                for line in lines:
                    if text in line and line.endswith("\n") and stamp(line) >= after:
                        return stamp(line)
            time.sleep(0.002)
        sys.exit(f"fault_times: '{text}' is not in {self.log}:\n{open(self.log).read()[-3000:]}")


def stamp(line):
    found = re.match(r"\w(\d{8} \d\d:\d\d:\d\d)\.(\d{6}) ", line)
    if not found:
        return 0.0
    return time.mktime(time.strptime(found[1], "%Y%m%d %H:%M:%S")) + int(found[2]) / 1e6


class Cluster:
    def __init__(self, programs, flags, workers, port=None):
        self.programs, self.flags, self.port = programs, flags, port or free_port()
        self.folder = tempfile.mkdtemp(prefix="speedo-faults-")
        self.solver = os.path.join(self.folder, "solver.prototxt")
        with open(self.solver, "w") as file:
            file.write(SOLVER)
        self.redis, self.nodes = Redis(self.folder), []
        self.master = self.start_master()
        self.workers = [self.start_worker() for _ in range(workers)]
        self.master.says("training starts")
        self.watcher = Watcher(self.redis.port)

    def start(self, program, arguments, before=()):
        log = os.path.join(self.folder, f"log{len(self.nodes)}")
        node = Node([*before, os.path.join(self.programs, program), *arguments], log)
        self.nodes.append(node)
        return node

    def start_master(self, extra=(), before=()):
        return self.start("speedo-master",
                          ["--solver", self.solver, "--redis", f"127.0.0.1:{self.redis.port}",
                           "--port", str(self.port), *self.flags, *extra], before)

    def start_worker(self):
        return self.start("speedo-worker", ["--master", f"127.0.0.1:{self.port}"])

    def close(self):
        self.watcher.stopping = True
        for node in self.nodes:
            node.kill()
            node.wait()
        self.redis.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def some_time(most=0.3):
    time.sleep(random.uniform(0.05, most))


def worker_deaths(programs, repeat):
    cluster = Cluster(programs, ["--sync", "--workers", "3"], 3)
    noticed, merged = [], []
    for _ in range(repeat):
        some_time()
        victim = cluster.workers.pop(0)
        start = time.time()
        victim.kill()
        notice = cluster.master.says("is gone", start)
        noticed.append(notice - start)
        merged.append(cluster.watcher.first_after(notice) - start)
        victim.wait()
        cluster.workers.append(cluster.start_worker())
        cluster.master.says("3 alive", notice)
    cluster.close()
    return {"worker killed: until the master notices": noticed,
            "worker killed: until the next merge (sync)": merged}


def freezes(programs, repeat):
    cluster = Cluster(programs, ["--sync", "--workers", "3", "--worker-timeout",
                                 str(WORKER_TIMEOUT)], 3)
    noticed, merged, back = [], [], []
    for _ in range(repeat):
        some_time()
        victim = random.choice(cluster.workers)
        start = time.time()
        victim.kill(signal.SIGSTOP)
        notice = cluster.master.says("not been heard of", start)
        noticed.append(notice - start)
        merged.append(cluster.watcher.first_after(notice) - start)
        some_time()
        woken = time.time()
        victim.kill(signal.SIGCONT)
        back.append(cluster.master.says("3 alive", woken) - woken)
    cluster.close()
    name = f"worker frozen, --worker-timeout {WORKER_TIMEOUT} s"
    return {f"{name}: until the master notices": noticed,
            f"{name}: until the next merge (sync)": merged,
            "frozen worker goes on: until it is back as a new incarnation": back}


def new_masters(programs, repeat, before=(), where="the same machine"):
    cluster = Cluster(programs, ["--sync", "--workers", "3"], 3)
    merged, outage = [], []
    for _ in range(repeat):
        some_time()
        died = time.time()
        cluster.master.kill()
        cluster.master.wait()
        some_time(4.0 if not before else 0.2)
        last = cluster.watcher.version()
        start = time.time()
        cluster.master = cluster.start_master(["--resume"], before)
        # The first new version is what workers start from, the second one a merge.
        merge = cluster.watcher.first_after(start, last + 1)
        merged.append(merge - start)
        outage.append(merge - died)
    cluster.close()
    return {f"new master on {where}: from its start to its first merge": merged}


def elsewhere(programs, repeat):
    """As a process of another machine looks: its predecessor cannot be seen to be dead."""
    alone = ("unshare", "--pid", "--fork", "--kill-child=KILL")
    if subprocess.run([*alone, "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        return {}
    return new_masters(programs, repeat, alone, "another machine, at once after the death")


def redis_restarts(programs, repeat):
    cluster = Cluster(programs, ["--sync", "--workers", "3"], 3)
    merged = []
    for _ in range(repeat):
        some_time()
        last = cluster.watcher.version()
        cluster.redis.kill()
        last = max(last, cluster.watcher.version())
        time.sleep(1.0)
        cluster.redis.start()
        answers = time.time()
        merged.append(cluster.watcher.first_after(answers, last) - answers)
    cluster.close()
    return {"redis-server dead for 1 s, data lost: from its first answer to the next merge": merged}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("programs", metavar="BIN_DIR")
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    parts = [worker_deaths, freezes, new_masters, elsewhere, redis_restarts]
    print(f"| {options.repeat} times each, {os.cpu_count()} cores | median | maximum |")
    print("|---|---|---|")
    for part in parts:
        if options.only and options.only not in part.__name__:
            continue
        for name, times in part(options.programs, options.repeat).items():
            print(f"| {name} | {statistics.median(times):.3f} s | {max(times):.3f} s |", flush=True)


if __name__ == "__main__":
    main()
