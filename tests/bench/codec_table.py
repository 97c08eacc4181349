#!/usr/bin/env python3
"""What codecs cost in accuracy, on a real local cluster, as a Markdown table.

    tests/bench/codec_table.py SOLVER [--build build] [--workers 4] [--merges 1000] [--lr-factor 1]
                               [--codecs "none;bf16;fp16;int8;threshold;topk;onebit"]

Each row is one run of `speedo run --sync --no-shared-memory`, with the same data in the same order
and the solver's rate times --lr-factor. Codecs after the first also run without error feedback
where they leave out much. 
"""
import argparse
import json
import sys

import schedule_table

WITHOUT = ("threshold", "topk", "onebit")


def variants(codecs):
    for codec in codecs:
        yield codec, ["--codec", codec]
        if codec.startswith(WITHOUT):
            yield f"{codec}, no feedback", ["--codec", codec, "--no-error-feedback"]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("solver")
    parser.add_argument("--build", default="build")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--merges", type=int, default=1000)
    parser.add_argument("--lr-factor", type=float, default=1.0)
    parser.add_argument("--codecs", default="none;bf16;fp16;int8;threshold;topk;onebit")
    options = parser.parse_args()
    rate = options.lr_factor * schedule_table.base_rate(options.solver)
    print("| codec | accuracy | to none, points | loss | s |\n|---|---|---|---|---|", flush=True)
    results = {}
    for name, flags in variants(options.codecs.split(";")):
        found = schedule_table.train(
            options, ["--sync", "--no-shared-memory", "--lr", str(rate), "--seed", "1", *flags],
            options.workers, options.merges)
        results[name] = found
        first = next(iter(results.values()))["accuracy"]
        print(f"| {name} | {found['accuracy']:.4f} | {100 * (found['accuracy'] - first):+.2f} | "
              f"{found['loss']:.4f} | {found['seconds']:.1f} |", flush=True)
    print("\n" + json.dumps(results))


if __name__ == "__main__":
    sys.exit(main())
