#!/usr/bin/env python3
"""Training steps of whole nets beside PyTorch on the CPU, in turns in one run.

    tests/bench/compare_torch.py [--threads T] [--json] [--memory] [--rounds N] [--build DIR]
                                 [NET...]

A step is forward, backward and SGD with momentum and weight decay, on noise. Both programs get the
same prototxt (bench_nets.py, torch_step.py). PyTorch is the one that this python3 finds, in the
better of its memory formats and with the better of its SGD forms, which is found by trying. Each
round runs one process of each program; figures are medians over the rounds of the median step.

Prints a Markdown table (with --json none; with --memory also peak memory) and, last, one line:
{"torch": VERSION, "threads": T, "ratios": {NET: images/s here / images/s there}}. With --memory
that line has "peak_mib" too: {NET: [here, there]}.
"""
import argparse
import importlib.util
import itertools
import json
import os
import pathlib
import sys
import tempfile

import bench_nets
from bench_nets import EVERY_NET, NETS, median

STEP = pathlib.Path(__file__).resolve().parent / "torch_step.py"
TRIAL_STEPS = 2


def torch_step(prototxt, threads, steps, *flags):
    # Debian's PyTorch leaves matrix products to OpenBLAS, which has threads of its own.
    names = ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"]
    return bench_nets.run_json([sys.executable, STEP, prototxt, "--threads", threads, "--steps",
                                steps, *flags], dict.fromkeys(names, str(threads)))


def has_fused_sgd():
    """Whether this PyTorch's SGD has a fused form for the CPU."""
    import torch
    weight = torch.nn.Parameter(torch.zeros(4))
    try:
        optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9, fused=True)
        weight.grad = torch.ones(4)
        optimizer.step()
    except (TypeError, RuntimeError):
        return False
    return True


def best_flags(prototxt, threads):
    """The flags of torch_step.py that give the shortest step."""
    formats = [["--format", "nchw"], ["--format", "channels_last"]]
    optimizers = [[], ["--fused"]] if has_fused_sgd() else [[]]
    trials = [a + b for a, b in itertools.product(formats, optimizers)]
    return min(trials, key=lambda flags: median(
        torch_step(prototxt, threads, TRIAL_STEPS, *flags)["step_ms"]))


def compare(name, prototxt, options):
    """Milliseconds a step and peak bytes of both, and PyTorch's version and flags."""
    flags = best_flags(prototxt, options.threads)
    steps = EVERY_NET[name].steps
    here, there = [], []
    for _ in range(options.rounds):
        here.append(bench_nets.speedo_time(options.build, prototxt, options.threads, steps,
                                           "--train"))
        there.append(torch_step(prototxt, options.threads, steps, *flags))
    return {"here_ms": median(run["step_ms"] for run in here),
            "there_ms": median(median(run["step_ms"]) for run in there),
            "here_bytes": max(run["peak_memory_bytes"] for run in here),
            "there_bytes": max(run["peak_bytes"] for run in there),
            "share": median(run["share_of_sgemm"] or 0.0 for run in here),
            "torch": there[0]["torch"], "flags": " ".join(flags).replace("--", "")}


def row(name, found):
    batch = EVERY_NET[name].batch
    mib = 1 << 20
    return [name, f"{batch}", f"{found['here_ms']:.1f}", f"{found['there_ms']:.1f}",
            f"{batch * 1e3 / found['here_ms']:.1f}", f"{batch * 1e3 / found['there_ms']:.1f}",
            f"**{found['there_ms'] / found['here_ms']:.2f}**", f"{100 * found['share']:.0f} %",
            f"{found['here_bytes'] / mib:.0f}", f"{found['there_bytes'] / mib:.0f}",
            found["flags"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nets", nargs="*", metavar="NET", help=f"of {', '.join(EVERY_NET)}; default: {', '.join(NETS)}")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--build", default=str(bench_nets.ROOT / "build"))
    parser.add_argument("--json", action="store_true", help="print the last line only")
    parser.add_argument("--memory", action="store_true", help="compare peak memory too")
    options = parser.parse_args()
    unknown = [name for name in options.nets if name not in EVERY_NET]
    if unknown:
        bench_nets.fail(f"no net '{unknown[0]}'; there are {', '.join(EVERY_NET)}")
    if not 1 <= options.threads <= len(os.sched_getaffinity(0)):
        bench_nets.fail(f"--threads {options.threads}: this machine gives this process "
                        f"{len(os.sched_getaffinity(0))} processors")
    if options.rounds < 1:
        bench_nets.fail("--rounds takes a number from 1")
    if importlib.util.find_spec("torch") is None:
        bench_nets.fail(f"{sys.executable} finds no torch: 'pip install torch' for this python3, "
                        "or 'apt-get install python3-torch' and run with /usr/bin/python3")
    bench_nets.built(options.build, "bin/speedo")

    def say(text):
        print(text, flush=True, file=sys.stderr if options.json else sys.stdout)

    say(f"{bench_nets.load_now()}, {options.threads} thread(s), {options.rounds} rounds\n")
    columns = ["net", "batch", "ms here", "ms PyTorch", "images/s here", "images/s PyTorch",
               "ratio", "of sgemm", "peak MiB here", "peak MiB PyTorch", "PyTorch with"]
    shown = [i for i, name in enumerate(columns) if options.memory or "MiB" not in name]

    def table_line(cells):
        return "| " + " | ".join(cells[i] for i in shown) + " |"

    say(table_line(columns))
    say("|" + "---|" * len(shown))
    names = options.nets or list(NETS)
    ratios, peaks, version = {}, {}, ""
    with tempfile.TemporaryDirectory() as folder:
        for name, prototxt in bench_nets.write_nets(names, folder).items():
            found = compare(name, prototxt, options)
            version = found["torch"]
            ratios[name] = round(found["there_ms"] / found["here_ms"], 3)
            peaks[name] = [found["here_bytes"] >> 20, found["there_bytes"] >> 20]
            say(table_line(row(name, found)))
    result = {"torch": version, "threads": options.threads, "ratios": ratios}
    if options.memory:
        result["peak_mib"] = peaks
    print(json.dumps(result))


if __name__ == "__main__":
    main()
