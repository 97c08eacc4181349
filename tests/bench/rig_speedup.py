#!/usr/bin/env python3
"""Speed-up of synchronous training on N nodes with links of a given rate, beside PyTorch DDP.

    tests/bench/rig_speedup.py [--build build] [--python PYTHON] [--net caffenet] [--step MS]
                               [--nodes 2,4] [--rates 1gbit,10gbit] [--rounds 1]
                               [--variant "NAME[:MASTER'S FLAGS[:WORKERS' FLAGS]]"]... [--real]

Needs root: the nodes are net_rig.sh's. On node 1 run the master, Redis and a worker, on each other
one a worker, and each worker sleeps MS milliseconds a step instead of computing
(--emulate-compute), or with --real computes with one thread. Variants are run in turns, full delta
and gradient only unless told. DDP runs in the same nodes, with as many floats and steps of the same length
(ddp_emulated.py), where --python finds PyTorch; not with --real.

Speed-up is over one node that exchanges nothing: N * step / round. Bytes are those of a node's link
in a step, each way, by the interface's counters, and what they must be: with one store all but node
1 send and receive the net once, node 1 N-1 times; with a shard beside each worker (--shard among
the flags), and by DDP's all-reduce, each node 2 (N-1) / N of it. A rate comes from two runs of
different length, DDP's from the steps after the first. The last line is one JSON object.
"""
import argparse
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time

import bench_nets
import rig as rigs
import round_cost

HERE = pathlib.Path(__file__).resolve().parent
STORE_PORT, MASTER_PORT, DDP_PORT = 6379, 6400, 29500
JOIN_SECONDS = 120
DEFAULT_VARIANTS = ["full delta", "gradient only:--gradient-only"]


class Variant:
    def __init__(self, word):
        self.name, _, flags = word.partition(":")
        master, _, worker = flags.partition(":")
        self.master, self.worker = shlex.split(master), shlex.split(worker)
        self.sharded = "--shard" in self.worker or "--shards" in self.master


class Job:
    """What is trained: its files, its floats, how long a step of it takes."""

    def __init__(self, options, folder):
        self.options, self.folder = options, pathlib.Path(folder)
        self.solver = round_cost.write_solver(options.net, folder)
        net = bench_nets.run_json([bench_nets.built(options.build, "bin/speedo"), "net", "--model",
                                   self.solver.replace("_solver.prototxt", ".prototxt"), "--json"])
        self.bytes = 4 * net["parameter_count"]
        self.layers = self.folder / "layers.json"
        self.layers.write_text(json.dumps(layers_of(net)))
        self.step_ms = options.step
        if options.real:
            self.step_ms = round_cost.step_ms(options.build, self.solver, 2 * options.short)


def layers_of(net):
    """(sizes of its parameters, its part of the arithmetic) of each layer, as --emulate-compute has
    it: an output value takes as many multiplications as one output has weights."""
    tops = {layer["name"]: layer["tops"] for layer in net["layers"]}
    work = {name: size_of(shapes[0]) / shapes[0][0] * size_of(net["blobs"][tops[name][0]])
            if len(shapes[0]) > 1 else 0.0 for name, shapes in net["params"].items()}
    return [([size_of(shape) for shape in shapes], work[name] / sum(work.values()))
            for name, shapes in net["params"].items()]


def size_of(shape):
    size = 1
    for extent in shape:
        size *= extent
    return size


class Processes:
    """What was started in the nodes; it is ended when the context is left."""

    def __init__(self, rig, folder):
        self.rig, self.folder, self.all = rig, folder, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.all:
            process.kill()
        for process in self.all:
            process.wait()

    def start(self, node, command, name, **options):
        """Its standard error goes to a file, whose end is shown if it fails."""
        log = self.folder / f"{name}.log"
        with open(log, "w") as file:
            process = self.rig.start(node, command, stderr=file, text=True, **options)
        process.name, process.log = name, log
        self.all.append(process)
        return process

    def finish(self, process, seconds):
        try:
            said = process.communicate(timeout=seconds)[0]
        except subprocess.TimeoutExpired:
            bench_nets.fail(f"{process.name} does not end within {seconds} s")
        if process.returncode != 0:
            lines = process.log.read_text().strip().splitlines() or ["it says nothing"]
            bench_nets.fail(f"{process.name} ended with {process.returncode}: {lines[-1]}")
        return said


def await_store(rig):
    """Redis answers a connection from node 1."""
    probe = ("import socket; "
             f"socket.create_connection(('{rigs.address(1)}', {STORE_PORT}), 1)")
    for _ in range(100):
        if subprocess.run(rig.command(1, [sys.executable, "-c", probe]),
                          stderr=subprocess.DEVNULL).returncode == 0:
            return
        time.sleep(0.1)
    bench_nets.fail("Redis does not listen on node 1")


def train(rig, job, variant, rounds):
    """Seconds of a training and the bytes that the nodes' links carried meanwhile."""
    options, count = job.options, len(rig.nodes)
    store, master = (f"{rigs.address(1)}:{port}" for port in (STORE_PORT, MASTER_PORT))
    computing = [] if options.real else ["--emulate-compute", f"{job.step_ms:g}"]
    with tempfile.TemporaryDirectory() as folder, Processes(rig, pathlib.Path(folder)) as processes:
        processes.start(1, ["redis-server", "--port", STORE_PORT, "--bind", "0.0.0.0",
                            "--protected-mode", "no", "--save", "", "--dir", folder], "redis",
                        stdout=subprocess.DEVNULL)
        await_store(rig)
        before = rig.bytes()
        leader = processes.start(
            1, [bench_nets.built(options.build, "bin/speedo-master"), "--solver", job.solver,
                "--bind", rigs.address(1), "--host", rigs.address(1), "--port", MASTER_PORT,
                "--insecure", "--redis", store, "--workers", count, "--strategy", "sync",
                "--max-iter", rounds, "--test-interval", "0", "--join-timeout", JOIN_SECONDS,
                "--json", *variant.master], "master", stdout=subprocess.PIPE)
        workers = [processes.start(
            node, [bench_nets.built(options.build, "bin/speedo-worker"), "--threads", "1",
                   "--master", master, "--host", f"node{node}", *computing, *variant.worker],
            f"worker{node}", stdout=subprocess.DEVNULL) for node in rig.nodes]
        report = json.loads(processes.finish(leader, options.limit))
        for worker in workers:
            processes.finish(worker, 60)
        return report["seconds"], counted(before, rig.bytes())


def counted(before, after):
    return [[b - a for a, b in zip(old, new)] for old, new in zip(before, after)]


def measure_here(rig, job, variant):
    """Milliseconds of a round, and each node's (received, sent) bytes in it."""
    short, long = job.options.short, job.options.long
    (short_s, short_bytes), (long_s, long_bytes) = (train(rig, job, variant, rounds)
                                                    for rounds in (short, long))
    if long_s <= short_s:
        bench_nets.fail("the longer run took less time: the machine is too busy to measure on")
    a_round = [[each / (long - short) for each in node]
               for node in counted(short_bytes, long_bytes)]
    return {"ms": 1e3 * (long_s - short_s) / (long - short), "bytes": a_round}


def measure_ddp(rig, job):
    options, count = job.options, len(rig.nodes)
    environment = dict(os.environ, OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="eth0")
    with tempfile.TemporaryDirectory() as folder, Processes(rig, pathlib.Path(folder)) as processes:
        ranks = [processes.start(
            node, [options.python, HERE / "ddp_emulated.py", "--rank", node - 1, "--processes",
                   count, "--meet", f"tcp://{rigs.address(1)}:{DDP_PORT}", "--layers", job.layers,
                   "--step", job.step_ms, "--steps", options.long - options.short],
            f"rank{node - 1}", env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for node in rig.nodes]
        if ranks[0].stdout.readline().strip() != "ready":
            processes.finish(ranks[0], 60)
            bench_nets.fail("DDP's first process does not begin")
        before = rig.bytes()
        ranks[0].stdin.write("go\n")
        ranks[0].stdin.flush()
        report = json.loads(ranks[0].stdout.readline() or "{}")
        after = rig.bytes()
        for rank in ranks:
            processes.finish(rank, 60)
    steps = options.long - options.short
    return {"ms": report["step_ms"],
            "bytes": [[each / steps for each in node] for node in counted(before, after)]}


def formula(job, count, balanced):
    """Bytes each way that node 1's link and another's must carry in a step."""
    if balanced:
        return [2 * job.bytes * (count - 1) / count] * 2
    return [job.bytes * (count - 1), job.bytes if count > 1 else 0]


def row(job, rig, name, turns, balanced):
    count = len(rig.nodes)
    milliseconds = bench_nets.median(turn["ms"] for turn in turns)
    links = turns[-1]["bytes"]
    first, others = links[0], links[1:] or [[0, 0]]
    mean = [sum(each[way] for each in others) / len(others) for way in (0, 1)]
    due = formula(job, count, balanced)
    cells = [job.options.net, rig.rate, f"{count}", name, f"{job.step_ms:.0f}",
             f"{milliseconds:.0f}", f"**{count * job.step_ms / milliseconds:.2f}**",
             f"{first[0] / 1e6:.1f} / {first[1] / 1e6:.1f}",
             f"{mean[0] / 1e6:.1f} / {mean[1] / 1e6:.1f}", f"{due[0] / 1e6:.1f}, {due[1] / 1e6:.1f}"]
    off = max((abs(carried / must - 1) for carried, must in
               zip([*first, *mean], [due[0], due[0], due[1], due[1]]) if must), default=0.0)
    return "| " + " | ".join([*cells, f"{100 * off:.1f} %"]) + " |"


def has_torch(python):
    done = subprocess.run([python, "-c", "import torch"], stderr=subprocess.DEVNULL)
    return done.returncode == 0


def on_rig(job, variants, with_ddp, count, rate):
    """Measures in turns, prints the table's rows, returns the turns by name."""
    turns = {}
    with rigs.Rig(count, rate) as rig:
        for _ in range(job.options.rounds):
            for variant in variants:
                turns.setdefault(variant.name, []).append(measure_here(rig, job, variant))
            if with_ddp:
                turns.setdefault("DDP", []).append(measure_ddp(rig, job))
        balanced = {variant.name: variant.sharded for variant in variants} | {"DDP": True}
        for name, found in turns.items():
            print(row(job, rig, name, found, balanced[name]), flush=True)
    return turns


def read_options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(bench_nets.ROOT / "build"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--net", default="caffenet", choices=round_cost.NETS)
    parser.add_argument("--step", type=float, help="milliseconds of an emulated step")
    parser.add_argument("--real", action="store_true", help="compute instead")
    parser.add_argument("--nodes", default="2,4")
    parser.add_argument("--rates", default="1gbit,10gbit")
    parser.add_argument("--variant", action="append", type=Variant)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--short", type=int, default=3, help="rounds of the shorter training")
    parser.add_argument("--long", type=int, default=9, help="rounds of the longer one")
    parser.add_argument("--limit", type=float, default=900, help="seconds of a training at most")
    options = parser.parse_args()
    if options.real == (options.step is not None):
        bench_nets.fail("either --step MS or --real")
    if options.step is not None and options.step <= 0:
        bench_nets.fail("--step takes milliseconds above 0")
    if not 0 < options.short < options.long:
        bench_nets.fail("--short takes a number above 0 and below --long")
    options.variant = options.variant or [Variant(word) for word in DEFAULT_VARIANTS]
    return options


def main():
    options = read_options()
    with_ddp = not options.real and has_torch(options.python)
    if not with_ddp:
        print("without DDP: " + ("it only sleeps, and here is computed" if options.real else
                                 f"{options.python} finds no PyTorch") + "\n")
    loads, result = [bench_nets.load_now()], []
    with tempfile.TemporaryDirectory() as folder:
        job = Job(options, folder)
        columns = ["net", "rate", "nodes", "what", "step, ms", "round", "speed-up",
                   "node 1, MB in / out", "others", "formula, node 1, others", "off by"]
        print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns), flush=True)
        for rate in options.rates.split(","):
            for count in map(int, options.nodes.split(",")):
                turns = on_rig(job, options.variant, with_ddp, count, rate)
                result.append({"net": options.net, "rate": rate, "nodes": count,
                               "step_ms": job.step_ms, "turns": turns})
    print(f"\n{loads[0]} before, {bench_nets.load_now()} after, {options.rounds} turns\n")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
