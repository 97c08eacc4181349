#!/usr/bin/env python3
"""What other programs make of nets that `speedo export` wrote.

    tests/formats/runtimes.py --build BUILD --scratch FOLDER [--random N] [--seed N] [NAME...]

Each net gets random weights and inputs. onnx' checker must pass, onnxruntime must give our outputs,
OpenCV's DNN module (the nets that it knows the layers of) must load deploy.prototxt and .caffemodel
and give them too, and the safetensors library must read the weights that the .caffemodel has, which
`speedo import` must take back. Then single layers in many forms, and N random nets, in onnxruntime.
Prints a table of the largest differences, relative to the largest value of an output. Exit code 0:
all are within the limits. The packages come from PyPI into FOLDER/venv, OpenCV from Debian.
"""
import argparse
import pathlib
import subprocess
import sys

PACKAGES = ["numpy<2", "onnx", "onnxruntime", "safetensors"]


def main():
    here = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--scratch", required=True, type=pathlib.Path)
    options, rest = parser.parse_known_args()
    options.scratch.mkdir(parents=True, exist_ok=True)
    folder = options.scratch / "venv"
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--system-site-packages", folder],
                       check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES], check=True)
    command = [python, here / "compare_runtimes.py", "--build", options.build, "--scratch",
               options.scratch, *rest]
    sys.exit(subprocess.run(command).returncode)


if __name__ == "__main__":
    main()
