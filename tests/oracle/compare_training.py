"""The comparisons of oracle.py, in its environment."""

import argparse
import collections
import math
import os
import pathlib
import random
import shutil
import subprocess
import sys
import time

import torch

from comparison import are_steady, compare, compare_learned
from drawing import Unfit
from job import drawn_job, read_job, write_job
from random_net import generate
from solver import Solver

# They run first; together they have most of the layers, solvers and ways to share a parameter.
KEPT_SEEDS = [12, 13, 24, 25, 39, 55, 90, 93]
PROCESS_SECONDS = 120
CARRIES_STATE = ("LSTM", "RNN")  # from pass to pass, each worker its own
WRONG = ("differs", "refused", "hangs")
# What Filter leaves of a batch is known when it has run, so that some nets with it are refused.
REFUSED_LATE = (" in the weights and ", "must have", "must agree", "cannot be cut")


def fit_for(job, workers):
    """Leaves out of the solver what the net or a cluster cannot have."""
    solver = job.solver
    if workers or "Filter" in job.types:
        solver.ClearField("test_interval")
        solver.ClearField("test_iter")
    if workers and solver.clip_gradients >= 0:
        solver.iter_size = 1  # What is clipped in a cluster is the mean of an iteration's passes.


def train(options, folder):
    """Runs the program on the job in `folder`."""
    command = [options.speedo, "train", "--threads", "1", "--parser-process", "off"]
    if options.workers:
        command = [options.speedo, "run", "--sync", "--gradient-only", "--workers",
                   str(options.workers), "--threads", str(options.workers)]  # fmt: skip
    files = ["--solver", "solver.prototxt", "--weights", "init.caffemodel", "--no-config"]
    return subprocess.run(
        [*command, *files], cwd=folder, capture_output=True, text=True, timeout=PROCESS_SECONDS
    )


def judge(options, job, folder):
    """What came of a job, and what differs."""
    passes = options.workers or 1
    oracle = Solver(job, passes=passes).train()
    if not all(math.isfinite(loss) and abs(loss) < 1e4 for loss in oracle.losses):
        return "diverges", []
    try:
        done = train(options, folder)
    except subprocess.TimeoutExpired:
        return "hangs", [f"no end within {PROCESS_SECONDS} s"]
    text = done.stdout + done.stderr
    (folder / "log").write_text(text)
    if done.returncode != 0:
        if "Filter" in job.types and any(each in text for each in REFUSED_LATE):
            return "shape known late", []
        lines = [line for line in text.splitlines() if line.strip()] or ["nothing said"]
        return "refused", [f"exit code {done.returncode}: {lines[-1]}"]
    if options.workers:
        wrong = compare_learned(oracle, folder)
    else:
        wrong = compare(oracle, folder, text)
    if wrong and not are_steady(oracle, Solver(job, torch.float32, passes).train()):
        return "unsteady", wrong
    return ("differs" if wrong else "agrees"), wrong


class Check:
    """Counts what came of each net, and keeps those that are wrong."""

    def __init__(self, options):
        self.options = options
        self.tally, self.types = collections.Counter(), collections.Counter()

    def seed(self, seed):
        """Draws the net of a seed and compares it."""
        try:
            job = drawn_job(generate(seed))
        except Unfit:
            self.tally["not drawn"] += 1
            return
        left_out = {*self.options.without, *(CARRIES_STATE if self.options.workers else ())}
        if job.types & left_out:
            self.tally["left out"] += 1
            return
        folder = self.options.scratch / f"work{os.getpid()}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        fit_for(job, self.options.workers)
        write_job(job, folder)
        if self.job(f"seed {seed}", job, folder) in WRONG:
            kept = self.options.scratch / "found" / str(seed)
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(folder, kept)
            print(f"kept in {kept}", flush=True)
        shutil.rmtree(folder)

    def job(self, name, job, folder):
        verdict, notes = judge(self.options, job, folder)
        self.tally[verdict] += 1
        if verdict == "agrees":
            self.types.update(job.types)
        if verdict in WRONG:
            print(f"{name}: {verdict}")
            print("\n".join(f"  {note}" for note in notes[:6]))
            for file in ("net.prototxt", "solver.prototxt"):
                print(f"{file}:\n{(folder / file).read_text()}", flush=True)
        return verdict

    def is_good(self):
        """Prints the counts. Few nets may be such that rounding decides: others are drawn badly."""
        counts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(self.tally.items()))
        print(f"nets: {counts}")
        layers = " ".join(f"{name} {count}" for name, count in sorted(self.types.items()))
        print(f"layers of those that agree: {layers}")
        passed_over = self.tally["not drawn"] + self.tally["left out"]
        total = sum(self.tally.values()) - passed_over
        if total >= 20 and self.tally["unsteady"] > total / 10:
            print("WRONG: too many are unsteady")
            return False
        return self.tally["agrees"] > 0 and not any(self.tally[verdict] for verdict in WRONG)


def fresh_seed():
    """As tests/support/random_seed.hpp."""
    seed = int(os.environ.get("SPEEDO_TEST_SEED") or random.SystemRandom().randrange(2**32))
    print(f"fresh seed: SPEEDO_TEST_SEED={seed} repeats this run", flush=True)
    return seed


def seeds(options):
    """Until the time is over, or as many as wanted."""
    end = time.monotonic() + options.seconds
    first = options.seed
    if first is None:
        yield from KEPT_SEEDS
        first = fresh_seed()
    for seed in range(first, first + options.count):
        if time.monotonic() > end:
            return
        yield seed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--speedo", required=True, type=pathlib.Path)
    parser.add_argument("--scratch", required=True, type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--count", type=int, default=10**9)
    parser.add_argument("--without", type=lambda words: words.split(","), default=[])
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--folder", type=pathlib.Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    check = Check(options)
    if options.folder:
        check.job(str(options.folder), read_job(options.folder), options.folder)
    else:
        for seed in seeds(options):
            check.seed(seed)
    sys.exit(0 if check.is_good() else 1)


if __name__ == "__main__":
    main()
