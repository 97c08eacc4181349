#!/usr/bin/env python3
"""Training steps of whole nets on a GPU beside PyTorch, in turns in one run.

    tests/bench/compare_torch_gpu.py [--gpu N] [--precisions f32,tf32,bf16] [--rounds N]
                                     [--seconds S] [--build DIR] [--no-compile | --alone] [--json]
                                     [NET...]

A step is forward, backward and SGD with momentum and weight decay, on noise. Both programs get the
same prototxt (bench_nets.py, torch_step.py, gpu_bench.cpp). PyTorch is the one that this python3
finds, with the best of its settings for each net and precision, which is found by trying: NCHW or
channels last, SGD's fused form or the other; and with the best of these, torch.compile with CUDA
graphs, or as it is. --alone leaves PyTorch out.
Float32 is without TF32 on both sides, bf16 is autocast there. Each round runs one process of each
program; figures are medians over the rounds of the median step.

Prints a Markdown table (with --json none) and, last, one line: {"device": NAME, "torch": VERSION,
"ratios": {NET: {PRECISION: images/s here / images/s there}}, "peak_mib": {NET: {PRECISION: [planned
here, there]}}}. Without a GPU it says so and ends with 77.
"""
import argparse
import importlib.util
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile

import bench_nets
from bench_nets import median

STEP = pathlib.Path(__file__).resolve().parent / "torch_step.py"
SKIPPED = 77
TRIAL_STEPS = 10
BATCHES = {"lenet": 64, "cifar10_full": 256, "alexnet": 256, "googlenet": 128, "resnet50": 128,
           "vgg16": 64}
PRECISIONS = ["f32", "tf32", "bf16"]


def torch_step(prototxt, options, precision, steps, flags):
    """What torch_step.py says; None if it failed, as some settings do on some machines."""
    command = [sys.executable, STEP, prototxt, "--gpu", options.gpu, "--precision", precision,
               "--steps", steps, "--warm-up", TRIAL_STEPS, *flags]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        return None
    return json.loads(done.stdout.strip().splitlines()[-1])


def best_flags(prototxt, options, precision):
    """The flags of torch_step.py that give the shortest step, and that step's milliseconds."""
    formats = [["--format", "nchw"], ["--format", "channels_last"]]
    found = {}

    def attempt(flags):
        said = torch_step(prototxt, options, precision, TRIAL_STEPS, flags)
        if said is not None:
            found[flags] = median(said["step_ms"])

    for trial in itertools.product(formats, [[], ["--fused"]]):
        attempt(tuple(itertools.chain(*trial)))
    # Compiling takes up to minutes.
    if found and not options.no_compile:
        attempt(min(found, key=found.get) + ("--compile", "reduce-overhead"))
    if not found:
        bench_nets.fail(f"PyTorch runs no step of {prototxt} in {precision}: try "
                        f"'{sys.executable} {STEP} {prototxt} --gpu {options.gpu}'")
    return min(found.items(), key=lambda item: item[1])


def gpu_bench(program, prototxt, options, precision):
    return bench_nets.run_json([program, "--gpu", options.gpu, "--precision", precision,
                                "--seconds", options.seconds, prototxt])


def compare(program, prototxt, options, precision):
    """Milliseconds a step and MiB of both, the device, PyTorch's version and flags."""
    flags, step_ms = ((), 0.0) if options.alone else best_flags(prototxt, options, precision)
    here, there = [], []
    for _ in range(options.rounds):
        here.append(gpu_bench(program, prototxt, options, precision))
        if options.alone:
            continue
        steps = max(TRIAL_STEPS, min(500, int(1e3 * options.seconds / step_ms)))
        there.append(torch_step(prototxt, options, precision, steps, flags))
    if None in there:
        bench_nets.fail(f"PyTorch failed in a step of {prototxt} that it had run before")
    found = {"here_ms": median(run["nets"][0]["step_ms"] for run in here),
             "here_mib": here[0]["nets"][0]["planned_mib"],
             "tflops": median(run["nets"][0]["flops_per_second"] for run in here) * 1e-12,
             "device": here[0]["device"], "torch": "", "flags": " ".join(flags).replace("--", "")}
    if there:
        found["there_ms"] = median(median(run["step_ms"]) for run in there)
        found["there_mib"] = max(run["peak_bytes"] for run in there) >> 20
        found["torch"] = there[0]["torch"]
    return found


def row(name, precision, found):
    per_second = BATCHES[name] * 1e3
    cells = [name, precision, f"{BATCHES[name]}", f"{found['here_ms']:.2f}", "",
             f"{per_second / found['here_ms']:.0f}", "", "", f"{found['tflops']:.1f}",
             f"{found['here_mib']}", "", found["flags"]]
    if found["torch"]:
        cells[4] = f"{found['there_ms']:.2f}"
        cells[6] = f"{per_second / found['there_ms']:.0f}"
        cells[7] = f"**{found['there_ms'] / found['here_ms']:.2f}**"
        cells[10] = f"{found['there_mib']}"
    return cells


def read_options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nets", nargs="*", metavar="NET", help=f"of {', '.join(BATCHES)}; default: all")
    parser.add_argument("--gpu", type=int, default=0)
    parser.add_argument("--precisions", default=",".join(PRECISIONS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="of steps, a round and program")
    parser.add_argument("--build", default=str(bench_nets.ROOT / "build"))
    parser.add_argument("--no-compile", action="store_true", help="without torch.compile, which takes minutes")
    parser.add_argument("--alone", action="store_true", help="without PyTorch")
    parser.add_argument("--json", action="store_true", help="print the last line only")
    options = parser.parse_args()
    options.precisions = options.precisions.split(",")
    for kind, words, known in (("net", options.nets, list(BATCHES)),
                               ("precision", options.precisions, PRECISIONS)):
        unknown = [word for word in words if word not in known]
        if unknown:
            bench_nets.fail(f"no {kind} '{unknown[0]}'; there are {', '.join(known)}")
    if options.rounds < 1:
        bench_nets.fail("--rounds takes a number from 1")
    return options


def check_torch():
    if importlib.util.find_spec("torch") is None:
        bench_nets.fail(f"{sys.executable} finds no torch: 'pip install torch' for this python3")
    import torch
    if not torch.cuda.is_available():
        print(f"compare_torch_gpu.py: skipped: PyTorch {torch.__version__} finds no GPU",
              file=sys.stderr)
        sys.exit(SKIPPED)


def main():
    options = read_options()
    program = bench_nets.built(options.build, "tests/gpu_bench")
    if not options.alone:
        check_torch()

    def say(text):
        print(text, flush=True, file=sys.stderr if options.json else sys.stdout)

    say(f"{bench_nets.load_now()}, {options.rounds} rounds\n")
    columns = ["net", "precision", "batch", "ms here", "ms PyTorch", "images/s here",
               "images/s PyTorch", "ratio", "TFLOP/s here", "planned MiB here",
               "peak MiB PyTorch", "PyTorch with"]
    say("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    ratios, peaks, device, version = {}, {}, "", ""
    with tempfile.TemporaryDirectory() as folder:
        paths = bench_nets.write_nets(options.nets or list(BATCHES), folder, BATCHES)
        for name, precision in itertools.product(paths, options.precisions):
            found = compare(program, paths[name], options, precision)
            device, version = found["device"], found["torch"]
            peaks.setdefault(name, {})[precision] = [found["here_mib"], found.get("there_mib")]
            if found["torch"]:
                ratio = round(found["there_ms"] / found["here_ms"], 3)
                ratios.setdefault(name, {})[precision] = ratio
            say("| " + " | ".join(row(name, precision, found)) + " |")
    print(json.dumps({"device": device, "torch": version, "ratios": ratios, "peak_mib": peaks}))


if __name__ == "__main__":
    main()
