#!/usr/bin/env python3
"""Forward and backward of whole nets beside published timings of BVLC Caffe.

    tests/bench/compare_caffe.py [--threads T] [--json] [--kernels avx512|avx2] [--rounds N]
                                 [--build DIR] [NET...]

The reference is the best of several runs of `caffe time` (no update, constant input, which makes
its maximum pooling fast) on a machine whose sgemm rate is known. The sgemm of the same kernels is
measured here in the same run, and the reference is scaled by the ratio. Each round measures sgemm,
then the net; figures are medians over the rounds. Prints a Markdown table (with --json none) and,
last, one line: {"kernels": K, "threads": T, "ratios": {NET: Caffe's ms, scaled / ms here}}.
"""
import argparse
import json
import sys
import tempfile

import bench_nets
from bench_nets import NETS, median

# Caffe 9b891540 with OpenBLAS 0.3.21: best forward-backward ms by kernels, net and threads.
CAFFE_MS = {
    "avx2": {
        "lenet": {1: 14.2, 2: 11.7},
        "cifar10_quick": {1: 120.2, 2: 94.1},
        "cifar10_full": {1: 139.6, 2: 112.7},
        "alexnet": {1: 1448.0, 2: 937.8},
        "caffenet": {1: 1362.7, 2: 840.2},
        "googlenet": {1: 3743.7, 2: 2664.7},
    },
    "avx512": {
        "lenet": {1: 10.5, 2: 9.5},
        "cifar10_quick": {1: 99.7, 2: 107.2},
        "cifar10_full": {1: 119.0, 2: 134.3},
        "alexnet": {1: 975.8, 2: 785.8},
        "caffenet": {1: 900.7, 2: 716.8},
        "googlenet": {1: 2557.7, 2: 2046.0},
    },
}
# The machine's sgemm (1024^3, GFLOP/s) with those kernels, and what makes OpenBLAS take them.
CAFFE_SGEMM = {"avx2": {1: 132.8, 2: 265.3}, "avx512": {1: 254.9, 2: 511.4}}
CORE_TYPE = {"avx2": "Haswell", "avx512": "SkylakeX"}


def sgemm_rate(options):
    ceilings = bench_nets.built(options.build, "tests/ceilings")
    rates = bench_nets.run_json([ceilings, "sgemm", "--threads", options.threads, "--json"],
                                {"OPENBLAS_CORETYPE": CORE_TYPE[options.kernels]})
    return rates["sgemm_gflops"]


def compare(name, prototxt, options):
    rates, here = [], []
    for _ in range(options.rounds):
        rates.append(sgemm_rate(options))
        here.append(bench_nets.speedo_time(options.build, prototxt, options.threads,
                                           NETS[name].steps)["forward_backward_ms"])
    rate, here = median(rates), median(here)
    scale = CAFFE_SGEMM[options.kernels][options.threads] / rate
    return rate, here, CAFFE_MS[options.kernels][name][options.threads] * scale


def main():
    nets = CAFFE_MS["avx512"]
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nets", nargs="*", metavar="NET", help=f"of {', '.join(nets)}; default all")
    parser.add_argument("--threads", type=int, default=1, choices=[1, 2])
    parser.add_argument("--kernels", default="avx512", choices=["avx512", "avx2"],
                        help="OpenBLAS kernels of the reference")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--build", default=str(bench_nets.ROOT / "build"))
    parser.add_argument("--json", action="store_true", help="print the last line only")
    options = parser.parse_args()
    unknown = [name for name in options.nets if name not in nets]
    if unknown:
        bench_nets.fail(f"no published timing of '{unknown[0]}'; there are {', '.join(nets)}")

    def say(text):
        print(text, flush=True, file=sys.stderr if options.json else sys.stdout)

    say(f"{bench_nets.load_now()}, {options.threads} thread(s), Caffe with {options.kernels}\n")
    say("| net | batch | sgemm GFLOP/s | ms here | Caffe ms, scaled | Caffe / here |")
    say("|---|---|---|---|---|---|")
    ratios = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, prototxt in bench_nets.write_nets(options.nets or list(nets), folder).items():
            rate, here, caffe = compare(name, prototxt, options)
            ratios[name] = round(caffe / here, 3)
            say(f"| {name} | {NETS[name].batch} | {rate:.1f} | {here:.1f} | {caffe:.1f} | "
                f"**{ratios[name]:.2f}** |")
    print(json.dumps({"kernels": options.kernels, "threads": options.threads, "ratios": ratios}))


if __name__ == "__main__":
    main()
