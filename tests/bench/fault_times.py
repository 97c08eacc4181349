#!/usr/bin/env python3
"""What faults cost: real speedo-master, speedo-worker and redis-server processes, this machine.

Usage: fault_times.py BIN_DIR [--repeat N] [--only NAME]

Prints a markdown table of medians and maxima for RESULTS.md. What the master notices is read from
the time stamps of its log, merges from the version in the store, asked for every millisecond.
"""

import argparse
import os
import pathlib
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job_processes import Node, Redis, Watcher, free_port  # noqa: E402

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
WORKER_TIMEOUT = 2


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
        self.watcher = Watcher(self.redis, "faults")

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
