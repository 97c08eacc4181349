#!/usr/bin/env python3
"""Trains one net with every schedule on a real local cluster and prints a Markdown table.

    tests/bench/schedule_table.py SOLVER [--workers 2,4] [--merges 600] [--only NAME,...]
    tests/bench/schedule_table.py SOLVER --same-data 4000 [--workers 2] [--only NAME,...]

The first form gives each schedule so many merges; the second so many mini-batches in all, shared by
the workers, at a learning rate times the number of workers, and one worker alone for comparison. Each
row is one run of `speedo run`.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

# Name: flags, local steps of a run, whether an iteration takes a run of every worker.
SCHEDULES = {
    "async": (["--strategy", "async"], 1, False),
    "sync": (["--strategy", "sync"], 1, True),
    "sync, gradient only": (["--strategy", "sync", "--gradient-only"], 1, True),
    "partial-sync 4": (["--max-advance", "4"], 1, False),
    "ssp 3": (["--strategy", "ssp", "--staleness", "3"], 1, False),
    "weedout 4": (["--weedout", "4"], 1, False),
    "easgd, period 1": (["--strategy", "easgd"], 1, False),
    "easgd, period 10": (["--strategy", "easgd", "--train", "10"], 10, False),
    "sync-easgd": (["--strategy", "sync-easgd"], 1, True),
    "averaging, k 5": (["--strategy", "averaging", "--train", "5"], 5, True),
    "grouping": (["--strategy", "grouping"], 1, True),
    "async, 1/Y": (["--strategy", "async", "--staleness-weight"], 1, False),
}
SAME_DATA = ["sync", "sync, gradient only", "easgd, period 1", "easgd, period 10", "averaging, k 5"]


def base_rate(solver):
    with open(solver) as text:
        return float(re.search(r"base_lr:\s*([0-9.eE+-]+)", text.read()).group(1))


def train(options, flags, workers, merges):
    with tempfile.TemporaryDirectory() as folder:
        solver = os.path.join(os.path.dirname(options.solver), f".schedule_table_{os.getpid()}")
        with open(options.solver) as source, open(solver, "w") as target:
            target.writelines(line for line in source if "snapshot" not in line)
            target.write(f'snapshot_prefix: "{folder}/model"\n')
        try:
            command = [f"{options.build}/bin/speedo", "run", "--solver", solver, "--workers",
                       str(workers), "--max-iter", str(merges), "--test-interval", str(merges),
                       "--json", *flags]
            done = subprocess.run(command, capture_output=True, text=True)
        finally:
            os.remove(solver)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr[-500:]}")
    return json.loads(done.stdout)


def row(name, workers, merges, result):
    print(f"| {name} | {workers} | {merges} | {result['accuracy']:.3f} | {result['seconds']:.1f} "
          f"| {result['images_per_second']:.0f} | {result['mean_staleness']:.2f} "
          f"| {result['discarded']} |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("solver")
    parser.add_argument("--workers", default=None)
    parser.add_argument("--merges", type=int, default=600)
    parser.add_argument("--same-data", type=int)
    parser.add_argument("--only", default=None, help="schedules, separated by semicolons")
    parser.add_argument("--build", default="build")
    options = parser.parse_args()
    chosen = SAME_DATA if options.same_data else list(SCHEDULES)
    names = options.only.split(";") if options.only else chosen
    counts = [int(n) for n in (options.workers or ("2" if options.same_data else "2,4")).split(",")]

    print("| schedule | workers | merges | accuracy | s | images/s | staleness | dropped |")
    print("|---|---|---|---|---|---|---|---|")
    if options.same_data and not options.only:
        row("one worker", 1, options.same_data, train(options, [], 1, options.same_data))
    for name in names:
        _, steps, rounds = SCHEDULES[name]
        for workers in counts:
            merges, flags = options.merges, SCHEDULES[name][0]
            if options.same_data:
                merges = options.same_data // steps // (workers if rounds else 1)
                flags = flags + ["--lr", str(base_rate(options.solver) * workers)]
            row(name, workers, merges, train(options, flags, workers, merges))


if __name__ == "__main__":
    main()
