#!/usr/bin/env python3
"""What the gate's proof and encryption cost: a master with --token-file against one that lets everybody in.

    tests/bench/gate_cost.py [--build build] [--rounds 5] [--seconds 6] [--solver FILE]

Both in turns, in one run, on the loopback. Control: 100 workers in one process and 20 in as many, which only
emulate computing a net of 256 weights, async, in shared memory: messages are all that there is. Computing: two
workers of one thread each train the solver's net (LeNet on MNIST; without --solver the digits), sync. Medians of
the rounds, and of the ratios within a round. Processor time is the master's and all workers': where others use
the machine, look at that.
"""
import argparse
import pathlib
import signal
import statistics
import subprocess
import tempfile
import time

import bench_nets
import control_plane


def start_workers(programs, build, folder, processes, flags):
    return [programs.start([bench_nets.built(build, "bin/speedo-worker"), *flags], folder / f"worker{number}.log",
                           stdout=subprocess.DEVNULL) for number in range(processes)]


def seconds_of_all(processes):
    return sum(control_plane.processor_seconds(process.pid) for process in processes)


def status(build, address, proof):
    said = subprocess.run([bench_nets.built(build, "bin/speedo"), "status", "--master", address, "--json",
                           *proof], capture_output=True, text=True, check=True).stdout
    return control_plane.json.loads(said)


def measure(options, case, gate, folder):
    """Of one training: merges and samples a second, and the processor time for a merge."""
    build, token = options.build, folder / "token"
    proof = []
    if gate == "token":
        subprocess.run([bench_nets.built(build, "bin/speedo"), "token", "create", token], check=True,
                       stderr=subprocess.DEVNULL)
        proof = ["--token-file", token]
    solver = case["solver"] or folder / "solver.prototxt"
    if not case["solver"]:
        solver.write_text(control_plane.NET)
    with control_plane.Programs() as programs:
        socket = folder / "redis.sock"
        programs.start(["redis-server", "--port", 0, "--unixsocket", socket, "--save", "", "--dir", folder],
                       folder / "redis.log", stdout=subprocess.DEVNULL)
        master = programs.start(
            [bench_nets.built(build, "bin/speedo-master"), "--solver", solver, "--redis", f"unix://{socket}",
             "--workers", case["processes"] * case["each"], "--strategy", case["strategy"], "--max-iter", 100000000,
             "--address-file", folder / "address", "--test-interval", 0, "--snapshot-interval", 0, "--threads", 1,
             *proof], folder / "master.log", stdout=subprocess.DEVNULL)
        address = control_plane.await_text(folder / "address", master, 30, lambda text: text.endswith("\n")).strip()
        workers = start_workers(programs, build, folder, case["processes"],
                                ["--master", address, "--workers", case["each"], "--force", *case["flags"], *proof])
        control_plane.await_text(folder / "master.log", master, 120, lambda text: "training starts" in text)
        time.sleep(2)
        before, cpu, start = (status(build, address, proof), seconds_of_all([master, *workers]), time.monotonic())
        time.sleep(options.seconds)
        after, used, seconds = (status(build, address, proof), seconds_of_all([master, *workers]) - cpu,
                                time.monotonic() - start)
        merges = after["merges"] - before["merges"]
        master.send_signal(signal.SIGTERM)
        master.wait(60)
        return {"merges": merges / seconds, "samples": (after["samples"] - before["samples"]) / seconds,
                "cpu": 1e6 * used / max(1, merges)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(bench_nets.ROOT / "build"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--solver", default="examples/digits/digits_solver.prototxt")
    options = parser.parse_args()
    emulated = {"solver": None, "strategy": "async", "flags": ["--emulate-compute", "0"]}
    cases = {
        "control, 100 workers in a process": {**emulated, "processes": 1, "each": 100},
        "control, 20 processes": {**emulated, "processes": 20, "each": 1},
        f"{pathlib.Path(options.solver).stem}, 2 workers": {
            "solver": options.solver, "strategy": "sync", "processes": 2, "each": 1, "flags": ["--threads", 1]},
    }
    print(f"{bench_nets.load_now()}, {options.rounds} rounds of {options.seconds:g} s\n")
    print("| | merges/s, open | merges/s, token | ratio | images/s, open | images/s, token | "
          "CPU a merge, open, us | token, us | ratio |\n|---|---|---|---|---|---|---|---|---|", flush=True)
    for name, case in cases.items():
        found = {"open": [], "token": []}
        for number in range(options.rounds):
            turn = list(found.items())
            for gate, figures in turn if number % 2 == 0 else reversed(turn):
                with tempfile.TemporaryDirectory() as folder:
                    figures.append(measure(options, case, gate, pathlib.Path(folder)))

        def middle(gate, key):
            return statistics.median(each[key] for each in found[gate])

        def ratio(key):
            return statistics.median(token[key] / plain[key] for plain, token in zip(found["open"], found["token"]))
        print(f"| {name} | {middle('open', 'merges'):,.0f} | {middle('token', 'merges'):,.0f} | "
              f"{ratio('merges'):.3f} | {middle('open', 'samples'):,.0f} | {middle('token', 'samples'):,.0f} | "
              f"{middle('open', 'cpu'):.0f} | {middle('token', 'cpu'):.0f} | {ratio('cpu'):.3f} |", flush=True)


if __name__ == "__main__":
    main()
