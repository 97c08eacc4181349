#!/usr/bin/env python3
"""What the planner says of synchronous rounds on nodes with links of a rate, and what they are.

    tests/bench/plan_rig.py --build build --cluster FILE [--net googlenet] [--step 400] [--nodes 4]
                            [--rates 1gbit,10gbit] [--short 3] [--long 9]

FILE is what `speedo simulate --calibrate --solver S --write FILE` measured of the net on this
machine. Here it becomes as many machines as there are nodes, of one worker each, whose steps take
--step and whose links carry what TCP leaves of the rate. Measured is what rig_speedup.py measures:
it needs root, and all nodes share this machine's processors, which the plan does not know. One
store, and a shard on each node, each with and without a codec; and replicated updates.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import bench_nets

HERE = pathlib.Path(__file__).resolve().parent
OF_RATE = 1448 / 1514  # TCP's bytes in an Ethernet frame of 1500
LATENCY_SECONDS = 50e-6
# Name, the flags of the plan, those of rig_speedup.py's variant.
VARIANTS = [("one store", [], ""),
            ("one store, bf16", ["--codec", "bf16"], "--codec bf16"),
            ("shards", ["--shards", "{nodes}"], "--shards {nodes}"),
            ("shards, bf16", ["--shards", "{nodes}", "--codec", "bf16"],
             "--shards {nodes} --codec bf16"),
            ("factors", ["--gradient-only", "--replicated"], "--gradient-only --replicated")]


def bytes_per_second(rate):
    number, unit = re.fullmatch(r"(\d+)([mg])bit", rate).groups()
    return int(number) * {"m": 1e6, "g": 1e9}[unit] / 8 * OF_RATE


def description(text, nodes, step_ms, rate):
    """The calibrated description, of so many nodes."""
    for key, value in [("count", nodes), ("workers_max", 1), ("threads", 1),
                       ("step_seconds", f"[{step_ms / 1e3}]"), ("step_spread", 0),
                       ("sharing", "[1.0, 1.0]"), ("mixed", 1), ("run_seconds", 0),
                       ("bytes_per_second", bytes_per_second(rate)),
                       ("latency_seconds", LATENCY_SECONDS)]:
        text, count = re.subn(rf"(?m)^{key} = .*$", f"{key} = {value}", text)
        if count != 1:
            bench_nets.fail(f"the description has {count} times '{key}'")
    return text


def planned_ms(options, file, flags):
    done = subprocess.run([bench_nets.built(options.build, "bin/speedo"), "simulate", "--cluster",
                           file, "--strategy", "sync", "--workers", str(options.nodes),
                           "--iterations", "40", "--json",
                           *(flag.format(nodes=options.nodes) for flag in flags)],
                          capture_output=True, text=True)
    if done.returncode != 0:
        bench_nets.fail(done.stderr.strip().splitlines()[-1])
    return 1e3 / json.loads(done.stdout)["plans"][0]["iterations_per_second"]


def measured_rows(options, rate):
    """The table's rows of rig_speedup.py, by variant."""
    variants = [word for name, _, flags in VARIANTS
                for word in ("--variant", f"{name}:{flags.format(nodes=options.nodes)}")]
    done = subprocess.run([sys.executable, HERE / "rig_speedup.py", "--build", options.build,
                           "--python", "/bin/false", "--net", options.net, "--step",
                           str(options.step), "--nodes", str(options.nodes), "--rates", rate,
                           "--short", str(options.short), "--long", str(options.long), *variants],
                          stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        bench_nets.fail(f"rig_speedup.py ended with {done.returncode}")
    cells = [[cell.strip() for cell in line.strip("|").split("|")]
             for line in done.stdout.splitlines() if line.startswith("|")]
    return {row[3]: row for row in cells}


def read_options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(bench_nets.ROOT / "build"))
    parser.add_argument("--cluster", required=True, metavar="FILE", type=pathlib.Path)
    parser.add_argument("--net", default="googlenet")
    parser.add_argument("--step", type=float, default=400, metavar="MS")
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--rates", default="1gbit,10gbit")
    parser.add_argument("--short", type=int, default=3)
    parser.add_argument("--long", type=int, default=9)
    return parser.parse_args()


def main():
    options = read_options()
    text = options.cluster.read_text()
    print("| rate | exchange | planned, ms a round | measured | planned / measured | busy |")
    print("|---|---|---|---|---|---|")
    for rate in options.rates.split(","):
        measured = measured_rows(options, rate)
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(description(text, options.nodes, options.step, rate))
            file.flush()
            for name, flags, _ in VARIANTS:
                planned = planned_ms(options, file.name, flags)
                real, busy = float(measured[name][5]), measured[name][7]
                print(f"| {rate} | {name} | {planned:.0f} | {real:.0f} | {planned / real:.2f} | "
                      f"{busy} |", flush=True)


if __name__ == "__main__":
    main()
