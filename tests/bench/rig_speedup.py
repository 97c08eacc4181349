#!/usr/bin/env python3
"""Speed-up of synchronous training on N nodes with links of a given rate, beside PyTorch DDP.

    tests/bench/rig_speedup.py [--build build] [--python PYTHON] [--net caffenet] [--step MS]
                               [--nodes 2,4] [--rates 1gbit,10gbit] [--rounds 1]
                               [--variant "NAME[:MASTER'S FLAGS[:WORKERS' FLAGS]]"]... [--real]

Needs root: the nodes are net_rig.sh's. On node 1 run the master, Redis and a worker, on each other
one a worker; with "--stores K" among the master's flags also a Redis on nodes 2 to K, with
"--shards K" a Redis and a merger of a shard on nodes 1 to K. Each worker sleeps MS milliseconds a
step instead of computing (--emulate-compute), as long as one thread here takes unless told, or with
--real computes with one thread. Variants are run in turns, full delta and gradient only unless
told. DDP runs in the same nodes, with as many floats and steps of the same length
(ddp_emulated.py), where --python finds PyTorch; not with --real. All nodes share this machine's
processors: how many were busy, also with what others did, is told beside the times; where all were,
it is they that limit, not the links.

Speed-up is over one node that exchanges nothing: N * step / round. Bytes are those of a node's link
in a step, each way, by the interface's counters, and what they must be: with one store all but node
1 send and receive the net once, node 1 N-1 times; with several, what `with_stores` says; with
shards, what `with_shards` says: with one beside each worker 2 (N-1) / N, as by DDP's all-reduce,
and 1 / N more for the copies of parts; with --replicated what `speedo net --exchange` says. A rate comes from two runs of different length, DDP's from
the steps after the first. The last line is one JSON value.
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
STEPS = 4  # of the measurement of one
DEFAULT_VARIANTS = ["full delta", "gradient only:--gradient-only"]


class Variant:
    """A way to train: its name, the flags of master and workers, on how many nodes are stores."""

    def __init__(self, word):
        self.name, _, flags = word.partition(":")
        master, _, worker = flags.partition(":")
        parser = argparse.ArgumentParser(prog="the flags of --variant", add_help=False,
                                         allow_abbrev=False)
        parser.add_argument("--stores", type=int, default=1)
        parser.add_argument("--shards", type=int, default=0)
        parser.add_argument("--no-shard-copies", action="store_true")
        parser.add_argument("--replicated", action="store_true")
        own, self.master = parser.parse_known_args(shlex.split(master))
        self.worker, self.shards = shlex.split(worker), own.shards
        self.copied = self.shards > 1 and not own.no_shard_copies
        if own.no_shard_copies:
            self.master.append("--no-shard-copies")
        self.replicated = own.replicated and "--no-factors" not in self.master
        if own.replicated:
            self.master.append("--replicated")
        self.stores = own.shards or own.stores
        if self.stores < 1 or self.shards < 0:
            bench_nets.fail("--stores and --shards take a number from 1")

    def due(self, job, count):
        """How many times each node's link must carry the net in a step, in and out."""
        stores = min(self.stores, count)
        if self.replicated and self.shards:
            return with_factors_in_parts(job, count, stores)
        if self.replicated:
            return with_factors(job, count)
        if self.shards:
            return with_shards(count, stores, self.copied)
        return with_stores(count, stores)


def factors(job, count):
    """Workers send gradients or their factors, and receive the mean and everybody's factors."""
    plan = job.net("--exchange", count)["exchange"]
    sent = plan["sent_bytes"] / job.bytes
    return sent, plan["chosen_bytes"] / job.bytes - sent


def with_factors(job, count):
    sent, received = factors(job, count)
    return [((count - 1) * sent, (count - 1) * received)] + [(received, sent)] * (count - 1)


def with_factors_in_parts(job, count, shards):
    """Nodes 1 to `shards` take their part of all contributions, and send it of what is made of
    them, to the master on node 1 too. What that writes now and then for newcomers comes on top."""
    sent, received = factors(job, count)
    part = 1 / shards
    shard_in = (count - 1) * part * sent + (1 - part) * received
    shard_out = (1 - part) * sent + (count - 1) * part * received
    first = (shard_in + (1 - part) * received, shard_out)
    others = [(shard_in, shard_out + part * received)] * (shards - 1)
    return [first, *others] + [(received, sent)] * (count - shards)


def all_reduced(count):
    return with_shards(count, count, copied=False)


def with_shards(count, shards, copied):
    """The net lies on nodes 1 to `shards`, in equal parts, and is merged there: each of them takes
    its part of all others' gradients and sends them its part of the weights. With copies each part
    goes to the next of them as well."""
    part = 1 / shards
    shard = (count - 1) * part + (1 - part) + (part if copied else 0)
    return [(shard, shard)] * shards + [(1, 1)] * (count - shards)


def with_stores(count, stores):
    """The net lies on nodes 1 to `stores`, in equal parts. The merger on node 1 reads what the
    other workers gave, and writes weights, which they read; its own worker shares its memory."""
    other, part = count - 1, 1 / stores
    first = (other, (1 - part) + other * part if other else 0)
    store = (max(0, count - 2) * part + part + (1 - part),
             (1 - part) + other * part + max(0, count - 2) * part)
    return [first] + [store] * (stores - 1) + [(1, 1)] * (count - stores)


class Job:
    """What is trained: its files, its floats, how long a step of it takes."""

    def __init__(self, options, folder):
        self.options, self.folder = options, pathlib.Path(folder)
        self.solver = round_cost.write_solver(options.net, folder)
        net = self.net()
        self.bytes = 4 * net["parameter_count"]
        self.layers = self.folder / "layers.json"
        self.layers.write_text(json.dumps(layers_of(net)))
        self.step_ms = options.step or round_cost.step_ms(options.build, self.solver, STEPS)


    def net(self, *flags):
        """What `speedo net` says of it."""
        return bench_nets.run_json([bench_nets.built(self.options.build, "bin/speedo"), "net",
                                    "--model", self.solver.replace("_solver.prototxt", ".prototxt"),
                                    "--json", *map(str, flags)])


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


def start_store(rig, processes, node, folder):
    """Starts Redis on a node; returns when it answers a connection from node 1."""
    processes.start(node, ["redis-server", "--port", STORE_PORT, "--bind", "0.0.0.0",
                           "--protected-mode", "no", "--save", "", "--dir", folder],
                    f"redis{node}", stdout=subprocess.DEVNULL)
    probe = ("import socket; "
             f"socket.create_connection(('{rigs.address(node)}', {STORE_PORT}), 1)")
    for _ in range(100):
        if subprocess.run(rig.command(1, [sys.executable, "-c", probe]),
                          stderr=subprocess.DEVNULL).returncode == 0:
            return
        time.sleep(0.1)
    bench_nets.fail(f"Redis does not listen on node {node}")


def await_word(process, word):
    """Until its log has the word."""
    for _ in range(10 * JOIN_SECONDS):
        if word in process.log.read_text():
            return
        time.sleep(0.1)
    bench_nets.fail(f"{process.name} does not say '{word}'")


def train(rig, job, variant, rounds):
    """Of a training: its seconds, the bytes that the nodes' links carried, and the seconds that
    processors were busy."""
    options, count = job.options, len(rig.nodes)
    stores = rig.nodes[:variant.stores]
    redis = ",".join(f"{rigs.address(node)}:{STORE_PORT}" for node in stores)
    in_shards = ["--shards", len(stores)] if variant.shards else []
    master = f"{rigs.address(1)}:{MASTER_PORT}"
    computing = [] if options.real else ["--emulate-compute", f"{job.step_ms:g}"]
    with tempfile.TemporaryDirectory() as folder, Processes(rig, pathlib.Path(folder)) as processes:
        for node in stores:
            start_store(rig, processes, node, folder)
        before, busy = rig.bytes(), bench_nets.Processors.busy_now()
        leader = processes.start(
            1, [bench_nets.built(options.build, "bin/speedo-master"), "--solver", job.solver,
                "--bind", rigs.address(1), "--host", rigs.address(1), "--port", MASTER_PORT,
                "--insecure", "--redis", redis, "--workers", count, "--strategy", "sync",
                "--max-iter", rounds, "--test-interval", "0", "--join-timeout", JOIN_SECONDS,
                "--json", *in_shards, *variant.master], "master", stdout=subprocess.PIPE)
        joins = [bench_nets.built(options.build, "bin/speedo-worker"), "--threads", "1",
                 "--master", master]
        workers = [processes.start(
            node, [*joins, "--host", f"shard{node}", f"--shard={node}"],
            f"shard{node}", stdout=subprocess.DEVNULL) for node in stores if variant.shards]
        for shard in workers:
            await_word(shard, "admitted")
        workers += [processes.start(
            node, [*joins, "--host", f"node{node}", *computing, *variant.worker],
            f"worker{node}", stdout=subprocess.DEVNULL) for node in rig.nodes]
        report = json.loads(processes.finish(leader, options.limit))
        for worker in workers:
            processes.finish(worker, 60)
        return (report["seconds"], counted(before, rig.bytes()),
                bench_nets.Processors.busy_now() - busy)


def counted(before, after):
    return [[b - a for a, b in zip(old, new)] for old, new in zip(before, after)]


def measure_here(rig, job, variant):
    """Milliseconds of a round, each node's (received, sent) bytes in it, and how many processors
    were busy."""
    short, long = job.options.short, job.options.long
    (short_s, short_bytes, short_busy), (long_s, long_bytes, long_busy) = (
        train(rig, job, variant, rounds) for rounds in (short, long))
    if long_s <= short_s:
        bench_nets.fail("the longer run took less time: the machine is too busy to measure on")
    a_round = [[each / (long - short) for each in node]
               for node in counted(short_bytes, long_bytes)]
    return {"ms": 1e3 * (long_s - short_s) / (long - short), "bytes": a_round,
            "busy": max(0.0, (long_busy - short_busy) / (long_s - short_s))}


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
        before, processors = rig.bytes(), bench_nets.Processors()
        ranks[0].stdin.write("go\n")
        ranks[0].stdin.flush()
        report = json.loads(ranks[0].stdout.readline() or "{}")
        after, busy = rig.bytes(), processors.busy_since()
        for rank in ranks:
            processes.finish(rank, 60)
    steps = options.long - options.short
    return {"ms": report["step_ms"], "busy": busy,
            "bytes": [[each / steps for each in node] for node in counted(before, after)]}


def row(job, rig, name, turns, due):
    """A line of the table; `due` has how many times the net, in and out, of each node."""
    count = len(rig.nodes)
    milliseconds, busy = (bench_nets.median(turn[key] for turn in turns) for key in ("ms", "busy"))
    carried = [bench_nets.median(turn["bytes"][node][way] for turn in turns)
               for node in range(count) for way in (0, 1)]
    must = [job.bytes * times for node in due for times in node]
    off = max((abs(a / b - 1) for a, b in zip(carried, must) if b), default=0.0)
    cells = [job.options.net, rig.rate, f"{count}", name, f"{job.step_ms:.0f}",
             f"{milliseconds:.0f}", f"**{count * job.step_ms / milliseconds:.2f}**", f"{busy:.1f}",
             *map(told, (carried[:2], must[:2], carried[2:], must[2:])), f"{100 * off:.1f} %"]
    return "| " + " | ".join(cells) + " |"


def told(both_ways):
    """Megabytes in and out, the mean over nodes."""
    ways = [both_ways[0::2], both_ways[1::2]]
    return " / ".join(f"{sum(way) / len(way) / 1e6:.1f}" if way else "-" for way in ways)


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
        due = {variant.name: variant.due(job, count) for variant in variants}
        due["DDP"] = all_reduced(count)
        for name, found in turns.items():
            print(row(job, rig, name, found, due[name]), flush=True)
    return turns


def read_options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(bench_nets.ROOT / "build"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--net", default="caffenet", choices=round_cost.NETS)
    parser.add_argument("--step", type=float, metavar="MS", help="of an emulated step")
    parser.add_argument("--real", action="store_true", help="compute instead")
    parser.add_argument("--nodes", default="2,4")
    parser.add_argument("--rates", default="1gbit,10gbit")
    parser.add_argument("--variant", action="append", type=Variant)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--short", type=int, default=3, help="rounds of the shorter training")
    parser.add_argument("--long", type=int, default=9, help="rounds of the longer one")
    parser.add_argument("--limit", type=float, default=900, help="seconds of a training at most")
    options = parser.parse_args()
    if options.real and options.step is not None:
        bench_nets.fail("--step is for emulated steps, not for --real")
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
        columns = ["net", "rate", "nodes", "what", "step, ms", "round", "speed-up", "busy",
                   "node 1, MB in / out", "formula", "others", "formula", "off by at most"]
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
