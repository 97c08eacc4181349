#!/usr/bin/env python3
"""Forward and backward of whole nets beside published timings of BVLC Caffe.

    tests/bench/compare_caffe.py FOLDER [--threads T] [NET...]

FOLDER holds NET.prototxt, made for timing (constant input). The reference was taken on a machine
whose sgemm is known; sgemm is measured here in the same run, and the reference is scaled by the
ratio. Prints a Markdown table and, last, one JSON object.
"""
import argparse
import json
import os
import re
import subprocess
import sys

# Caffe 9b891540, OpenBLAS 0.3.21 with AVX2 kernels: best forward-backward ms by threads, and the
# sgemm rate (1024^3, GFLOP/s) of the machine it ran on.
CAFFE_MS = {
    "lenet": {1: 14.2, 2: 11.7},
    "cifar10_quick": {1: 120.2, 2: 94.1},
    "cifar10_full": {1: 139.6, 2: 112.7},
    "alexnet": {1: 1448.0, 2: 937.8},
    "caffenet": {1: 1362.7, 2: 840.2},
    "googlenet": {1: 3743.7, 2: 2664.7},
}
CAFFE_SGEMM = 132.8
ITERATIONS = {"lenet": 100, "cifar10_quick": 20, "cifar10_full": 20}


def run(command, threads):
    environment = dict(os.environ, OPENBLAS_NUM_THREADS=str(threads))
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return done.stdout


def sgemm_rate(build):
    text = run([f"{build}/tests/bench_layers", "1", "sgemm"], 1)
    return float(re.search(r"sgemm 1024\^3: ([0-9.]+)", text).group(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("nets", nargs="*", default=list(CAFFE_MS))
    parser.add_argument("--threads", type=int, default=1, choices=[1, 2])
    parser.add_argument("--build", default="build")
    options = parser.parse_args()

    ratios = {}
    print("| net | threads | sgemm GFLOP/s | ms here | Caffe ms, scaled by sgemm | Caffe / here |")
    print("|---|---|---|---|---|---|")
    for net in options.nets:
        rate = sgemm_rate(options.build)
        command = [f"{options.build}/bin/speedo", "time", "-model", f"{options.folder}/{net}.prototxt",
                   "-iterations", str(ITERATIONS.get(net, 3)), "--json"]
        here = json.loads(run(command, options.threads))["forward_backward_ms"]
        caffe = CAFFE_MS[net][options.threads] * CAFFE_SGEMM / rate
        ratios[net] = round(caffe / here, 2)
        print(f"| {net} | {options.threads} | {rate:.1f} | {here:.1f} | {caffe:.1f} | {ratios[net]} |",
              flush=True)
    print(json.dumps({"threads": options.threads, "ratios": ratios}))


if __name__ == "__main__":
    sys.exit(main())
