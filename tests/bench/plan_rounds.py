#!/usr/bin/env python3
"""What the planner says of synchronous rounds of two workers on this machine, and what they are.

    tests/bench/plan_rounds.py --build build [--nets lenet,cifar10_quick,caffenet] [--rounds 3]

Each turn, for every net: `speedo simulate --calibrate` measures this machine, with two threads, and
plans two workers; then real local clusters of two workers of one thread each (`speedo run`, which
exchange in memory, as their data are) train, full deltas and gradients. So the plan and what it is
compared with are made one after the other. A real rate is taken from two runs of different length,
so that starting and stopping do not count. The table has medians over the turns, in images a second,
and the speed-up over one process of one thread; the nets are round_cost.py's.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import tomllib

from round_cost import KINDS, NETS, call, round_ms, step_ms, write_solver


def plan(build, file, kind):
    """Images a second of two workers."""
    report = call([f"{build}/bin/speedo", "simulate", "--cluster", file, "--strategy", "sync",
                   "--workers", "2", "--json", *KINDS[kind]])
    return report["plans"][0]["images_per_second"]


def planned_step_seconds(file):
    with open(file, "rb") as source:
        return tomllib.load(source)["machine"][0]["step_seconds"][0]


def calibrate(build, solver, file):
    """What the planner measures of this machine goes into `file`."""
    done = subprocess.run([f"{build}/bin/speedo", "simulate", "--calibrate", "--solver", solver,
                           "--threads", "2", "--strategy", "sync", "--workers", "1", "--json",
                           "--write", file], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"calibrating {solver}: exit code {done.returncode}: {done.stderr[-500:]}")
    json.loads(done.stdout)


def turn(build, net, folder, add):
    solver = write_solver(net, folder)
    file = os.path.join(folder, f"{net}.toml")
    _, shape, short, long = NETS[net]
    calibrate(build, solver, file)
    alone = 1e3 * shape[0] / step_ms(build, solver, long)
    for kind in KINDS:
        rate = plan(build, file, kind)
        speed_up = rate * planned_step_seconds(file) / shape[0]
        real = 1e3 * 2 * shape[0] / round_ms(build, solver, kind, short, long)
        add((net, kind), {"planned": rate, "real": real, "ratio": rate / real,
                          "planned_speed_up": speed_up, "real_speed_up": real / alone})
        print(f"{net}, {kind}: planned {rate:.1f}, real {real:.1f} images/s, "
              f"load average {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--nets", default="lenet,cifar10_quick,caffenet")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    rows = {}

    def add(key, figures):
        for name, value in figures.items():
            rows.setdefault(key, {}).setdefault(name, []).append(value)

    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.rounds):
            for net in options.nets.split(","):
                turn(options.build, net, folder, add)
    print(f"load average {os.getloadavg()[0]:.1f}, {options.rounds} turns, medians\n")
    print("| net | update | planned images/s | real | planned / real | of each turn | "
          "planned speed-up | real |")
    print("|---|---|---|---|---|---|---|---|")
    for (net, kind), figures in rows.items():
        middle = {name: statistics.median(values) for name, values in figures.items()}
        turns = ", ".join(f"{ratio:.2f}" for ratio in figures["ratio"])
        print(f"| {net} | {kind} | {middle['planned']:.1f} | {middle['real']:.1f} | "
              f"{middle['ratio']:.2f} | {turns} | {middle['planned_speed_up']:.2f} | "
              f"{middle['real_speed_up']:.2f} |")


if __name__ == "__main__":
    main()
