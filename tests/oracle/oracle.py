#!/usr/bin/env python3
"""Random nets trained by `speedo train`, and by an interpreter of Caffe's nets in PyTorch.

    tests/oracle/oracle.py --build BUILD --scratch FOLDER [--speedo PROGRAM] [--seconds S]
                           [--seed N] [--count N] [--without TYPE,...] [--workers N] [--folder JOB]

The interpreter shares no code with the program. Losses, outputs, rates, weights, statistics and
histories must agree. Without --seed these are nets of the kept seeds, then of a fresh one and those
after it, for S seconds (240); --seed N --count 1 repeats one. --without passes over nets with a
layer of these types ("MVN*": in place). --workers N trains with `speedo run`, in rounds of N.
--folder compares a net that was kept, in a folder with its data. What differs is printed, and kept
in FOLDER/found. Exit code 0: all agree; 1: some differ; 77: skipped, as the packages could not be
had. The interpreter's packages are those of the python3 that runs this, or come from PyPI into
FOLDER/venv.
"""

import argparse
import importlib.util
import pathlib
import subprocess
import sys

PACKAGES = ["numpy", "torch", "h5py", "protobuf"]
MODULES = ["numpy", "torch", "h5py", "google.protobuf"]


def has_module(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # of the package around it
        return False


def python_with_packages(scratch):
    """An interpreter that has them; None, saying why, if there is none."""
    if all(has_module(name) for name in MODULES):
        return sys.executable
    folder = scratch / "venv"
    python, complete = folder / "bin" / "python", folder / "complete"
    if not complete.exists():
        for what, command in (
            ("no virtual environment", ["/usr/bin/python3", "-m", "venv", "--clear", folder]),
            ("pip cannot install", [python, "-m", "pip", "install", "-q", *PACKAGES]),
        ):
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                lines = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
                print(f"skipped: {what} for {', '.join(PACKAGES)}: {lines[-1]}")
                return None
        complete.touch()
    return python


def main():
    here = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--speedo", type=pathlib.Path)
    parser.add_argument("--scratch", required=True, type=pathlib.Path)
    options, rest = parser.parse_known_args()
    if options.build is None and options.speedo is None:
        parser.error("--build or --speedo says which program is compared")
    options.scratch.mkdir(parents=True, exist_ok=True)
    python = python_with_packages(options.scratch.resolve())
    if python is None:
        sys.exit(77)
    program = (options.speedo or options.build / "bin" / "speedo").resolve()
    command = [python, here / "compare_training.py", "--speedo", program, "--scratch",
               options.scratch.resolve(), *rest]  # fmt: skip
    sys.exit(subprocess.run(command).returncode)


if __name__ == "__main__":
    main()
