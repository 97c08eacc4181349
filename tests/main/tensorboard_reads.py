#!/usr/bin/env python3
"""Trains with --tensorboard and reads the curves with PyPI's tensorboard.

    tests/main/tensorboard_reads.py --bin BUILD/bin --scratch FOLDER

FOLDER gets a virtual environment, which the next run goes on with. Exit code 0: all curves are there.
"""
import argparse
import pathlib
import shutil
import subprocess
import sys
import venv

SOLVER = """max_iter: 40 base_lr: 0.05 lr_policy: "fixed" random_seed: 3
test_iter: 2 test_interval: 20 snapshot: 20 snapshot_prefix: "{folder}/snap"
net_param { name: "noise"
  layer { name: "data" type: "DummyData" top: "data" top: "label"
          dummy_data_param { shape { dim: 8 dim: 12 } shape { dim: 8 }
                             data_filler { type: "gaussian" std: 1 }
                             data_filler { type: "constant" value: 0 } } }
  layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
          inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
  layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy"
          include { phase: TEST } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" } }
"""
READ = """
import sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1])
events.Reload()
for tag in events.Tags()["scalars"]:
    points = events.Scalars(tag)
    steps = [point.step for point in points]
    print(tag, len(points), sum(point.value == 0 for point in points), steps == sorted(steps))
"""
# Of --sync staleness is 0, which is a value, too; a loss of 0 would be of no iteration.
EXPECTED = {"train/loss": 40, "train/workers": 40, "train/staleness": 40, "test/accuracy": 2,
            "test/loss": 2}


def points(python, curves, expected):
    """Reads a folder's curves; ends the test if points are missing or go backwards."""
    read = subprocess.run([python, "-c", READ, curves], check=True, capture_output=True, text=True)
    print(read.stdout, end="")
    found = {line.split()[0]: line.split()[1:] for line in read.stdout.splitlines()}
    for tag, count in expected.items():
        number, zeros, in_order = found.get(tag, ["0", "0", ""])
        if int(number) != count or in_order != "True":
            sys.exit(f"{tag}: {number} points, in order: {in_order}; expected {count}")
        if tag.endswith("loss") and zeros != "0":
            sys.exit(f"{tag}: {zeros} points are 0")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--scratch", required=True, type=pathlib.Path)
    options = parser.parse_args()
    options.scratch.mkdir(parents=True, exist_ok=True)
    python = options.scratch / "venv" / "bin" / "python"
    if not python.exists():
        venv.create(options.scratch / "venv", with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "tensorboard"], check=True)
    curves = options.scratch / "curves"
    shutil.rmtree(curves, ignore_errors=True)
    solver = options.scratch / "solver.prototxt"
    solver.write_text(SOLVER.replace("{folder}", str(options.scratch)))
    cluster = [f"{options.bin}/speedo", "run", "--solver", solver, "--workers", "2", "--sync",
               "--tensorboard", curves]
    subprocess.run(cluster, check=True, capture_output=True)
    points(python, curves, EXPECTED)
    # What was there of the iteration that it goes on from stays.
    subprocess.run([*cluster, "--resume=auto", "--max-iter", "45"], check=True,
                   capture_output=True)
    points(python, curves, {"train/loss": 45, "test/accuracy": 3,
                            "test/loss": 3})
    # On from files: 21 to 40 are the second training's.
    shutil.rmtree(curves)
    subprocess.run([*cluster, "--max-iter", "40"], check=True, capture_output=True)
    subprocess.run([*cluster, "--snapshot", options.scratch / "snap_iter_20.solverstate"],
                   check=True, capture_output=True)
    points(python, curves, {"train/loss": 40})
    # On from iteration 20, after 40 were there: 21 to 40 are the second training's.
    shutil.rmtree(curves)
    line = [f"{options.bin}/speedo", "train", "--solver", solver, "--tensorboard", curves]
    subprocess.run(line, check=True, capture_output=True)
    subprocess.run([*line, "--snapshot", options.scratch / "snap_iter_20.solverstate"], check=True,
                   capture_output=True)
    points(python, curves, {"train/loss": 40})


if __name__ == "__main__":
    main()
