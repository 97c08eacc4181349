#!/usr/bin/env python3
"""What a master of many workers does in a second, and what each of them costs it.

    tests/bench/control_plane.py [--build build] [--workers 100,300,1000] [--step 0]
                                 [--strategy async] [--way memory|redis] [--seconds 10]

A real master, a real redis-server and worker processes of 100 workers each, which only emulate
computing (--emulate-compute STEP) a net of 256 weights, so that nothing but control and the round
trips of the exchange takes time. The training is ended by a signal after --seconds of merging. Of
that time: merges a second; the master's processor time for a merge and, over all workers, its
resident memory beyond that of a master without any; the worker processes' memory a worker.
"""
import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import bench_nets

PER_PROCESS = 100
JOIN_SECONDS = 240
NET = """
base_lr: 0.001 lr_policy: "fixed" display: 0 random_seed: 3 max_iter: 100000000
snapshot_after_train: false
net_param { name: "tiny"
  layer { name: "data" type: "DummyData" top: "data" dummy_data_param {
    shape { dim: 1 dim: 16 } data_filler { type: "constant" value: 0.01 } } }
  layer { name: "sum" type: "InnerProduct" bottom: "data" top: "sum" loss_weight: 1
    inner_product_param { num_output: 16 bias_term: false } } }
"""


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid):
    return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Programs:
    """Ends what it started, however the context is left."""

    def __init__(self):
        self.all = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.all:
            process.kill()
        for process in self.all:
            process.wait()

    def start(self, command, log, **options):
        with open(log, "w") as file:
            process = subprocess.Popen([str(word) for word in command], stderr=file, text=True,
                                       preexec_fn=bench_nets.end_with_parent, **options)
        self.all.append(process)
        return process


def await_text(path, process, seconds, test):
    """The file's text, once `test` of it is true."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        text = path.read_text() if path.exists() else ""
        if test(text):
            return text
        if process.poll() is not None:
            bench_nets.fail(f"{process.args[0]} ended with {process.returncode}: {text[-500:]}")
        time.sleep(0.05)
    bench_nets.fail(f"{path} does not say what it should within {seconds} s")


def status(build, address):
    said = subprocess.run([bench_nets.built(build, "bin/speedo"), "status", "--master", address,
                           "--json"], capture_output=True, text=True, check=True).stdout
    return json.loads(said)


def measure(options, count, folder):
    build = options.build
    shares = [] if options.way == "memory" else ["--no-shared-memory"]
    (folder / "solver.prototxt").write_text(NET)
    with Programs() as programs:
        socket = folder / "redis.sock"
        programs.start(["redis-server", "--port", 0, "--unixsocket", socket, "--save", "", "--dir",
                        folder], folder / "redis.log", stdout=subprocess.DEVNULL)
        master = programs.start(
            [bench_nets.built(build, "bin/speedo-master"), "--solver", folder / "solver.prototxt",
             "--redis", f"unix://{socket}", "--workers", count, "--strategy", options.strategy,
             "--address-file", folder / "address", "--test-interval", 0, "--join-timeout",
             JOIN_SECONDS, "--json", *shares], folder / "master.log", stdout=subprocess.PIPE)
        address = await_text(folder / "address", master, 20, lambda text: text.endswith("\n")).strip()
        empty = resident_bytes(master.pid)
        workers = []
        for first in range(0, count, PER_PROCESS):
            some = min(PER_PROCESS, count - first)
            workers.append(programs.start(
                [bench_nets.built(build, "bin/speedo-worker"), "--master", address, "--workers", some,
                 "--emulate-compute", options.step, "--force"], folder / f"worker{first}.log",
                stdout=subprocess.DEVNULL))
        await_text(folder / "master.log", master, JOIN_SECONDS, lambda text: "training starts" in text)
        time.sleep(2)  # All have work.
        before, cpu, start = (status(build, address), processor_seconds(master.pid),
                              time.monotonic())
        time.sleep(options.seconds)
        after, used, seconds = (status(build, address), processor_seconds(master.pid) - cpu,
                                time.monotonic() - start)
        merges = after["merges"] - before["merges"]
        figures = {
            "merges_per_second": merges / seconds,
            "cpu_us_per_merge": 1e6 * used / merges,
            "cores": used / seconds,
            "kib_per_worker": (resident_bytes(master.pid) - empty) / 1024 / count,
            "worker_kib": sum(resident_bytes(worker.pid) for worker in workers) / 1024 / count,
        }
        master.send_signal(signal.SIGTERM)
        master.wait(60)
        return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(bench_nets.ROOT / "build"))
    parser.add_argument("--workers", default="100,300,1000")
    parser.add_argument("--step", default="0", help="milliseconds, as --emulate-compute takes them")
    parser.add_argument("--strategy", default="async")
    parser.add_argument("--way", choices=["memory", "redis"], default="memory")
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    print(f"{bench_nets.load_now()}, {options.strategy}, by way of {options.way}, steps of "
          f"{options.step} ms\n")
    print("| workers | merges/s | master's CPU a merge, us | its cores | its memory a worker, KiB | "
          "worker processes' memory a worker, KiB |\n|---|---|---|---|---|---|", flush=True)
    result = []
    for count in map(int, options.workers.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            figures = measure(options, count, pathlib.Path(folder))
        result.append({"workers": count, **figures})
        print(f"| {count} | {figures['merges_per_second']:,.0f} | {figures['cpu_us_per_merge']:.0f} | "
              f"{figures['cores']:.2f} | {figures['kib_per_worker']:.0f} | "
              f"{figures['worker_kib']:.0f} |", flush=True)
    print("\n" + json.dumps(result))


if __name__ == "__main__":
    sys.exit(main())
