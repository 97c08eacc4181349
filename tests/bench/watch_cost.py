#!/usr/bin/env python3
"""What it costs to look at a training: images a second of a local cluster with and without.

    tests/bench/watch_cost.py --build build [--nets lenet,cifar10_quick] [--turns 5]

In turns: nothing; all at once (--metrics-addr, asked for /metrics, /status.json and /curves.json once a
second, as Prometheus and a page do, --trace, --tensorboard, and `speedo status --watch`); and the
trace alone. Two synchronous workers of one thread each. A rate is taken from two runs of different
length, so that starting and stopping do not count.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import tempfile
import threading
import urllib.error
import urllib.request

import round_cost


def processor_seconds():
    """Of all programs that were waited for: both cores are full, so what is added here is lost there."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def look(port, stop):
    """What a browser and Prometheus ask for."""
    while not stop.is_set():
        for page in ("metrics", "status.json", "curves.json"):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=5).read()
            except (urllib.error.URLError, OSError):
                pass
        stop.wait(1)


def watch(build, log):
    """`speedo status --watch` of the master that the log names, once it does."""
    return subprocess.Popen(
        ["sh", "-c", f'while ! address=$(grep -om1 "speedo://[0-9.:]*" {log}); do sleep 0.05; done; '
         f'exec {build}/bin/speedo status --watch --master "$address"'],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def measure(build, solver, rounds, mode, folder):
    """Seconds of one training, and of processors."""
    port, log = round_cost.free_port(), f"{folder}/log"
    command = [f"{build}/bin/speedo", "run", "--threads", "2", "--json",
               *round_cost.training(solver, "full delta", rounds)]
    if mode in ("all", "trace"):
        command += ["--trace", f"{folder}/trace.json"]
    if mode == "all":
        command += ["--metrics-addr", str(port), "--tensorboard", f"{folder}/curves"]
    with open(log, "w") as errors:
        training = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    stop = threading.Event()
    lookers, used = [], processor_seconds()
    if mode == "all":
        lookers = [threading.Thread(target=look, args=(port, stop))]
        lookers[0].start()
        watcher = watch(build, log)
    output, _ = training.communicate()
    stop.set()
    for looker in lookers:
        looker.join()
        watcher.terminate()
        watcher.wait()
    if training.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit code {training.returncode}, see {log}")
    return json.loads(output)["seconds"], processor_seconds() - used


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--nets", default="lenet,cifar10_quick")
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    modes = ("nothing", "all", "trace")
    times = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.turns):
            for net in options.nets.split(","):
                solver = round_cost.write_solver(net, folder)
                _, _, short, long = round_cost.NETS[net]
                for mode in modes:
                    whole, start = (measure(options.build, solver, rounds, mode, folder)
                                    for rounds in (long, short))
                    times.setdefault((net, mode), []).append(
                        [1e3 * (a - b) / (long - short) for a, b in zip(whole, start)])
    print(f"load average {os.getloadavg()[0]:.1f}, {options.turns} turns\n")
    print("| net | looked at by | ms a round | to nothing (least, most) | processors' ms | to nothing |")
    print("|---|---|---|---|---|---|")
    for (net, mode), values in times.items():
        plain = times[net, "nothing"]
        ratios, processors = ([value[i] / before[i] for value, before in zip(values, plain)]
                              for i in (0, 1))
        medians = [statistics.median(value[i] for value in values) for i in (0, 1)]
        print(f"| {net} | {mode} | {medians[0]:.2f} | {statistics.median(ratios):.3f} "
              f"({min(ratios):.3f}, {max(ratios):.3f}) | {medians[1]:.2f} | "
              f"{statistics.median(processors):.3f} |")


if __name__ == "__main__":
    main()
