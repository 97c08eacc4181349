#!/usr/bin/env python3
"""What a synchronous round of two workers costs beyond computing, for several builds in turns.

    tests/bench/round_cost.py --build build [--build OTHER ...] [--nets lenet,caffenet] [--rounds 3]
        [--ways "shared memory,unix socket,TCP"]

Each turn runs, for every net, kind of update, way and build, two workers of one thread each, data in
memory; the same net's training step in one process of one thread; and two such processes at once,
which do not exchange at all. In shared memory and over Redis' unix socket the workers are a local
cluster (`speedo run`); over TCP, programs of their own beside a Redis of this script. A rate is taken
from two runs of different length, so that starting and stopping do not count. The table has medians
over the turns: a step, a step beside another process, a round, what of the round is not computing,
and the ratios of images per second.
"""
import argparse
import itertools
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(HERE, "..", "..", "examples")

# net: prototxt, shape of a batch, runs of a short and of a long training
NETS = {
    "lenet": ("mnist/lenet_train_test.prototxt", (64, 1, 28, 28), 100, 400),
    "cifar10_quick": ("cifar10/cifar10_quick_train_test.prototxt", (100, 3, 32, 32), 20, 80),
    "cifar10_full": ("cifar10/cifar10_full_train_test.prototxt", (100, 3, 32, 32), 20, 80),
    "googlenet": ("imagenet/googlenet_train_val.prototxt", (16, 3, 224, 224), 4, 12),
    "caffenet": ("imagenet/caffenet_train_val.prototxt", (16, 3, 227, 227), 4, 14),
    "vgg16": ("imagenet/vgg16_train_val.prototxt", (8, 3, 224, 224), 2, 6),
}
KINDS = {"full delta": [], "gradient only": ["--gradient-only"]}


def blocks(text):
    """The prototxt's top-level pieces; a layer is one of them."""
    piece, depth = [], 0
    for line in text.splitlines(keepends=True):
        code = line.split("#")[0]
        piece.append(line)
        depth += code.count("{") - code.count("}")
        if depth == 0:
            yield "".join(piece)
            piece = []


def write_solver(name, folder, batch=None):
    prototxt, shape, _, _ = NETS[name]
    shape = (batch or shape[0], *shape[1:])
    with open(os.path.join(EXAMPLES, prototxt)) as source:
        kept = [each for each in blocks(source.read()) if not re.search(r'type:\s*"Data"', each)]
    dims = " ".join(f"dim: {size}" for size in shape)
    net = os.path.join(folder, f"{name}.prototxt")
    with open(net, "w") as target:
        target.write(f'''layer {{ name: "data" type: "DummyData" top: "data" top: "label"
          dummy_data_param {{ shape {{ {dims} }} shape {{ dim: {shape[0]} }}
                             data_filler {{ type: "constant" value: 0.5 }}
                             data_filler {{ type: "constant" value: 1 }} }} }}\n''')
        target.writelines(kept)
    solver = os.path.join(folder, f"{name}_solver.prototxt")
    with open(solver, "w") as target:
        target.write(f'net: "{net}" base_lr: 0.0001 lr_policy: "fixed" momentum: 0.9 '
                     f'random_seed: 1 max_iter: 100 snapshot_after_train: false '
                     f'snapshot_prefix: "{folder}/{name}"\n')
    return solver


def call(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr[-500:]}")
    return json.loads(done.stdout)


def training(solver, kind, rounds):
    return ["--solver", solver, "--workers", "2", "--strategy", "sync", "--max-iter", str(rounds),
            "--test-interval", "0", *KINDS[kind]]


def shared_memory_seconds(build, solver, kind, rounds):
    return call([f"{build}/bin/speedo", "run", "--threads", "2", "--json",
                 *training(solver, kind, rounds)])["seconds"]


def unix_socket_seconds(build, solver, kind, rounds):
    return call([f"{build}/bin/speedo", "run", "--threads", "2", "--json", "--no-shared-memory",
                 *training(solver, kind, rounds)])["seconds"]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def await_port(port):
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    sys.exit(f"nobody listens on port {port}")


def tcp_seconds(build, solver, kind, rounds):
    store, control = free_port(), free_port()
    with tempfile.TemporaryDirectory() as folder:
        redis = subprocess.Popen(["redis-server", "--port", str(store), "--bind", "127.0.0.1",
                                  "--save", "", "--dir", folder], stdout=subprocess.DEVNULL)
        worker = None
        try:
            await_port(store)
            worker = subprocess.Popen([f"{build}/bin/speedo-worker", "--threads", "2", "--workers",
                                       "2", "--master", f"127.0.0.1:{control}"],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            report = call([f"{build}/bin/speedo-master", "--host", "127.0.0.1", "--port",
                           str(control), "--redis", f"127.0.0.1:{store}", "--json",
                           "--no-shared-memory",
                           *training(solver, kind, rounds)])
            worker.wait(60)
            return report["seconds"]
        finally:
            for process in filter(None, (worker, redis)):
                process.terminate()
                process.wait()


WAYS = {"shared memory": shared_memory_seconds, "unix socket": unix_socket_seconds,
        "TCP": tcp_seconds}


def round_ms(build, solver, kind, short, long, way="unix socket"):
    seconds = [WAYS[way](build, solver, kind, rounds) for rounds in (long, short)]
    return 1e3 * (seconds[0] - seconds[1]) / (long - short)


def step_command(build, solver, steps):
    return [f"{build}/bin/speedo", "time", "--solver", solver, "--threads", "1", "--iterations",
            str(steps), "--json"]


def step_ms(build, solver, steps):
    return call(step_command(build, solver, steps))["step_ms"]


def step_beside_another_ms(build, solver, steps):
    other = subprocess.Popen(step_command(build, solver, 10 * steps), stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    try:
        time.sleep(1)
        return step_ms(build, solver, steps)
    finally:
        if other.poll() is not None:
            sys.exit("the other process ended before the measurement")
        other.kill()
        other.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", action="append", required=True)
    parser.add_argument("--nets", default="lenet,cifar10_quick,googlenet,caffenet")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ways", default=",".join(WAYS))
    options = parser.parse_args()
    rounds, steps, beside = {}, {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.rounds):
            for net in options.nets.split(","):
                solver = write_solver(net, folder)
                _, _, short, long = NETS[net]
                for build in options.build:
                    steps.setdefault((net, build), []).append(step_ms(build, solver, long))
                    beside.setdefault((net, build), []).append(
                        step_beside_another_ms(build, solver, long))
                for kind, way, build in itertools.product(KINDS, options.ways.split(","),
                                                          options.build):
                    rounds.setdefault((net, kind, way, build), []).append(
                        round_ms(build, solver, kind, short, long, way))
    print(f"load average {os.getloadavg()[0]:.1f}, {options.rounds} turns, medians in ms\n")
    print("| net | update | way | build | step | beside another | round | beyond the step | "
          "2 workers / 1 process | 2 workers / 2 that do not exchange |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for (net, kind, way, build), times in rounds.items():
        step, whole = statistics.median(steps[net, build]), statistics.median(times)
        alone = statistics.median(beside[net, build])
        print(f"| {net} | {kind} | {way} | {build} | {step:.1f} | {alone:.1f} | {whole:.1f} | "
              f"{whole - step:.1f} | {2 * step / whole:.2f} | {alone / whole:.2f} |")


if __name__ == "__main__":
    main()
