#!/usr/bin/env python3
"""Measures how well `speedo simulate --calibrate` predicts this machine.

    tests/bench/plan_accuracy.py SOLVER [--merges 200] [--rounds 3] [--build build]

Each round calibrates once, then runs a real local cluster with every schedule and number of workers;
the table compares the medians. The load average is printed beside it: on a busy machine both sides
are disturbed, and not alike. A rate is taken from two runs of different length, so that starting and
stopping do not count.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

SCHEDULES = ["sync", "async", "easgd"]
WORKERS = [1, 2, 4]


def call(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr[-500:]}")
    return json.loads(done.stdout)


def quiet_solver(solver, folder):
    """The solver without tests and snapshots of its own."""
    path = os.path.join(os.path.dirname(solver), f".plan_accuracy_{os.getpid()}")
    with open(solver) as source, open(path, "w") as target:
        target.writelines(line for line in source
                          if not any(word in line for word in ("snapshot", "test_i")))
        target.write(f'test_iter: 1\ntest_interval: 1000000\ntest_initialization: false\n'
                     f'snapshot_after_train: false\nsnapshot_prefix: "{folder}/model"\n')
    return path


def seconds_of(options, solver, schedule, workers, merges):
    result = call([f"{options.build}/bin/speedo", "run", "--solver", solver, "--workers",
                   str(workers), "--strategy", schedule, "--max-iter", str(merges),
                   "--test-interval", "0", "--json"])
    return result["seconds"]


def measure(options, solver, schedule, workers):
    merges = options.merges if schedule != "sync" else max(20, options.merges // workers)
    short = max(5, merges // 4)
    fast = seconds_of(options, solver, schedule, workers, short)
    slow = seconds_of(options, solver, schedule, workers, merges)
    return (merges - short) / max(slow - fast, 1e-9)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("solver")
    parser.add_argument("--merges", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--build", default="build")
    options = parser.parse_args()
    predicted, measured, loads = {}, {}, []
    with tempfile.TemporaryDirectory() as folder:
        solver = quiet_solver(options.solver, folder)
        try:
            for _ in range(options.rounds):
                loads.append(os.getloadavg()[0])
                plan = call([f"{options.build}/bin/speedo", "simulate", "--calibrate", "--solver",
                             solver, "--strategy", ",".join(SCHEDULES), "--workers",
                             ",".join(map(str, WORKERS)), "--json"])
                for row in plan["plans"]:
                    key = row["schedule"], row["workers"]
                    predicted.setdefault(key, []).append(row["iterations_per_second"])
                for key in predicted:
                    measured.setdefault(key, []).append(measure(options, solver, *key))
                    print(f"{key}: measured {measured[key][-1]:.2f}/s, predicted "
                          f"{predicted[key][-1]:.2f}/s", file=sys.stderr, flush=True)
        finally:
            os.remove(solver)

    print("| schedule | workers | measured merges/s | predicted | error |")
    print("|---|---|---|---|---|")
    for key in predicted:
        real, plan = statistics.median(measured[key]), statistics.median(predicted[key])
        print(f"| {key[0]} | {key[1]} | {real:.2f} | {plan:.2f} | {100 * (plan / real - 1):+.0f} % |")
    print(f"\n{options.rounds} rounds; load average before each: "
          f"{', '.join(f'{load:.1f}' for load in loads)}")


if __name__ == "__main__":
    main()
