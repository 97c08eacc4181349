#!/usr/bin/env python3
"""What decoding in parser processes costs a training: `speedo train` on JPEGs, --parser-process on against off.

    tests/bench/parser_cost.py [--build build] [--rounds 5] [--threads 2] [--seconds 10] [CASE...]

Both in turns, in one run. Case small: images of 64 x 64 and a net of two convolutions (LeNet's), where decoding is a
large part of the work; case large: images of 256 x 256, cropped to 227 x 227, and CaffeNet's first convolution with a
classifier on it. Images a second are the program's own; the processors' time, of all its processes and from start to
end, is by image. Medians of the rounds, and of the ratios within a round: where others use the machine, those of the
processors' time say more.
"""
import argparse
import json
import math
import pathlib
import random
import resource
import statistics
import subprocess
import tempfile

import bench_nets

CASES = {
    "small": {"side": 64, "crop": 56, "batch": 64, "images": 512, "layers": [(20, 5, 1), (50, 5, 1)]},
    "large": {"side": 256, "crop": 227, "batch": 32, "images": 256, "layers": [(96, 11, 4)]},
}


def picture(side, chance):
    """Waves with noise on them, as rows of red, green, blue."""
    a, b = chance.uniform(0.02, 0.1), chance.uniform(0.02, 0.1)
    noise = chance.randbytes(3 * side * side)
    pixels = bytearray()
    for y in range(side):
        row = math.cos(b * y)
        for x in range(3 * side):
            pixels.append(int(128 + 80 * math.sin(a * x) * row + noise[len(pixels)] % 40 - 20))
    return bytes(pixels)


def write_data(build, folder, case):
    chance = random.Random(1)
    lines = []
    for number in range(case["images"]):
        name = f"{number}.ppm"
        (folder / name).write_bytes(b"P6 %d %d 255\n" % (case["side"], case["side"])
                                    + picture(case["side"], chance))
        lines.append(f"{name} {number % 10}\n")
    (folder / "list.txt").write_text("".join(lines))
    subprocess.run([bench_nets.built(build, "bin/speedo"), "convert_imageset", "--encode-type=jpg", f"{folder}/",
                    folder / "list.txt", folder / "lmdb"], check=True, stderr=subprocess.DEVNULL)


def write_solver(folder, case):
    text = (f"layer {{ name: 'data' type: 'Data' top: 'data' top: 'label' data_param {{ source: '{folder}/lmdb' "
            f"batch_size: {case['batch']} }} transform_param {{ mirror: true crop_size: {case['crop']} "
            "scale: 0.004 } }\n")
    bottom = "data"
    for number, (outputs, kernel, stride) in enumerate(case["layers"]):
        text += (f"layer {{ name: 'c{number}' type: 'Convolution' bottom: '{bottom}' top: 'c{number}' "
                 f"convolution_param {{ num_output: {outputs} kernel_size: {kernel} stride: {stride} "
                 "weight_filler { type: 'xavier' } } }\n"
                 f"layer {{ name: 'p{number}' type: 'Pooling' bottom: 'c{number}' top: 'p{number}' "
                 "pooling_param { pool: MAX kernel_size: 3 stride: 2 } }\n")
        bottom = f"p{number}"
    text += (f"layer {{ name: 'ip' type: 'InnerProduct' bottom: '{bottom}' top: 'ip' inner_product_param {{ "
             "num_output: 10 weight_filler { type: 'xavier' } } }\n"
             "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }\n")
    (folder / "net.prototxt").write_text(text)
    (folder / "solver.prototxt").write_text(
        f"net: '{folder}/net.prototxt' base_lr: 0.0001 lr_policy: 'fixed' max_iter: 100 display: 0 "
        "random_seed: 1 snapshot_after_train: false\n")


def cpu_seconds():
    """Of the processes that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(options, folder, use, iterations):
    """Images a second, and seconds of processors."""
    begin = cpu_seconds()
    ended = subprocess.run(
        [bench_nets.built(options.build, "bin/speedo"), "train", "--solver", folder / "solver.prototxt", "--max-iter",
         str(iterations), "--threads", str(options.threads), "--parser-process", use, "--json"],
        check=True, capture_output=True, text=True)
    report = json.loads(ended.stdout.splitlines()[-1])
    if report["parser_deaths"] != 0:
        raise SystemExit("parser processes died")
    return report["images_per_second"], cpu_seconds() - begin


def shown(values):
    return f"{statistics.median(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def compare(options, name):
    case = CASES[name]
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        write_data(options.build, folder, case)
        write_solver(folder, case)
        speed, _ = measure(options, folder, "off", 20)
        iterations = max(20, int(options.seconds * speed / case["batch"]))
        here, there = [], []
        for number in range(options.rounds):
            for use in (("off", "on") if number % 2 == 0 else ("on", "off")):
                (here if use == "off" else there).append(measure(options, folder, use, iterations))
        cells = [name, options.threads]
        for what, unit in ((0, 1), (1, 1e6 / (iterations * case["batch"]))):
            cells += [f"{unit * statistics.median(each[what] for each in side):.0f}" for side in (here, there)]
            cells.append(shown([b[what] / a[what] for a, b in zip(here, there)]))
        print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(bench_nets.ROOT / "build"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("cases", nargs="*", metavar="CASE", default=list(CASES))
    options = parser.parse_args()
    print("| images | threads | here, images/s | in parsers | ratio | here, CPU us an image | in parsers | ratio |\n"
          "|---|---|---|---|---|---|---|---|")
    for name in options.cases:
        compare(options, name)


if __name__ == "__main__":
    main()
