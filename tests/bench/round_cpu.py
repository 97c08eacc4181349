#!/usr/bin/env python3
"""Where processors spend a synchronous round of two workers: time of each thread of each process.

    tests/bench/round_cpu.py [--build build] [--nets lenet,caffenet] [--kinds "full delta"]
                             [--rounds 400] [--least 0.05]

Runs `speedo run` with two workers of one thread each, data in memory, and looks once a second at
the times that the kernel counts for each thread. From a quarter of the training to its end it
prints, for each thread with more than --least milliseconds of a round: user and system time, and
how often it waited or was put aside. A thread that computes more than its share shows here though
a profile of one process does not.
"""
import argparse
import glob
import json
import os
import subprocess
import tempfile
import time

import round_cost

TICK_MS = 1e3 / os.sysconf("SC_CLK_TCK")


def family(process):
    """The process and all that it has started."""
    found = [process]
    for path in glob.glob(f"/proc/{process}/task/*/children"):
        try:
            with open(path) as children:
                names = children.read().split()
        except OSError:
            continue
        for child in names:
            found += family(int(child))
    return found


def read_thread(folder):
    """Of one thread: its name, and user ticks, system ticks, waits, times put aside."""
    with open(f"{folder}/stat") as source:
        text = source.read()
    name = text[text.index("(") + 1:text.rindex(")")]
    fields = text[text.rindex(")") + 2:].split()
    with open(f"{folder}/status") as source:
        switches = [int(line.split()[1]) for line in source if "ctxt_switches" in line]
    return name, (int(fields[11]), int(fields[12]), *switches)


def look(process):
    threads = {}
    for member in set(family(process)):
        try:
            with open(f"/proc/{member}/comm") as source:
                program = source.read().strip()
        except OSError:
            continue
        for folder in glob.glob(f"/proc/{member}/task/*"):
            try:
                name, counts = read_thread(folder)
            except (OSError, ValueError):
                continue
            threads[program, member, name, os.path.basename(folder)] = counts
    return time.monotonic(), threads


def measure(build, solver, kind, rounds):
    """Milliseconds of a round, and what each thread had of it."""
    command = [f"{build}/bin/speedo", "run", "--threads", "2", "--json",
               *round_cost.training(solver, kind, rounds)]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               text=True)
    looks = []
    while running.poll() is None:
        looks.append(look(running.pid))
        time.sleep(1)
    round_ms = 1e3 * json.loads(running.stdout.read())["seconds"] / rounds
    looks = looks[:-1]
    if len(looks) < 4:
        raise SystemExit(f"{rounds} rounds are over too soon: give more --rounds")
    (begin, before), (end, after) = looks[len(looks) // 4], looks[-1]
    passed = 1e3 * (end - begin) / round_ms
    shares = {}
    for thread, counts in after.items():
        first = before.get(thread, (0, 0, 0, 0))
        shares[thread] = [(now - then) / passed for now, then in zip(counts, first)]
    return round_ms, shares


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--nets", default="lenet,caffenet")
    parser.add_argument("--kinds", default=",".join(round_cost.KINDS))
    parser.add_argument("--rounds", type=int, default=0, help="0: some 15 s of each net")
    parser.add_argument("--least", type=float, default=0.05)
    options = parser.parse_args()
    usual = {"lenet": 1500, "cifar10_quick": 400, "cifar10_full": 400}
    with tempfile.TemporaryDirectory() as folder:
        for net in options.nets.split(","):
            solver = round_cost.write_solver(net, folder)
            for kind in options.kinds.split(","):
                rounds = options.rounds or usual.get(net, 24)
                round_ms, shares = measure(options.build, solver, kind, rounds)
                print(f"{net}, {kind}: {round_ms:.2f} ms a round")
                print("| process | thread | user, ms | system, ms | waits | put aside |")
                print("|---|---|---|---|---|---|")
                for thread, share in sorted(shares.items(), key=lambda one: -sum(one[1][:2])):
                    user, system = share[0] * TICK_MS, share[1] * TICK_MS
                    if user + system < options.least:
                        continue
                    print(f"| {thread[0]} | {thread[2]} | {user:.2f} | {system:.2f} | "
                          f"{share[2]:.1f} | {share[3]:.1f} |")
                print()


if __name__ == "__main__":
    main()
