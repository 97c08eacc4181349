#!/usr/bin/env python3
"""`speedo net --json` on nets of the form that Caffe's model zoo has: V0, V1 and current syntax, TRAIN and TEST.

    tests/zoo/zoo.py --bin BUILD/bin [NAME...]

Shapes are those that Caffe's rules give (rounding up in pooling among them), numbers of parameters those that the nets
are published with; BatchNorm's statistics, which Caffe counts as parameters, are left out of them. Exit code 0: all are.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import zoo_nets as zoo

ALEXNET = {"conv1": [96, 55, 55], "pool1": [96, 27, 27], "conv2": [256, 27, 27], "pool2": [256, 13, 13],
           "conv5": [256, 13, 13], "pool5": [256, 6, 6], "fc6": [4096], "fc8": [1000]}
VGG = {"conv1_1": [64, 224, 224], "pool1": [64, 112, 112], "pool3": [256, 28, 28], "pool5": [512, 7, 7], "fc8": [1000]}
GOOGLENET = {"conv1": [64, 112, 112], "pool1": [64, 56, 56], "pool2": [192, 28, 28], "3a/output": [256, 28, 28],
             "3b/output": [480, 28, 28], "pool3": [480, 14, 14], "4e/output": [832, 14, 14], "pool4": [832, 7, 7],
             "5b/output": [1024, 7, 7], "pool5": [1024, 1, 1], "classifier": [1000]}
RUNS = []


def deploy(name, make, shape, blobs, parameters, versions=(2,), *more):
    """A net for asking, in these syntaxes. `shape`: of its input."""
    for version in versions:
        net = zoo.Net(name)
        blob = make(net, net.input("data", *shape), *more)
        net.add("Softmax", "prob", blob)
        RUNS.append((f"{name}, V{version}", net.text(version), "TEST",
                     {key: [shape[0], *dims] for key, dims in blobs.items()}, parameters))


def train(name, make, shape, blobs, parameters, versions=(2,), *more):
    """A training net, whose loss has no top, in both phases."""
    for version in versions:
        net = zoo.Net(name)
        zoo.dummy(net, shape, shape[:1])
        zoo.classify(net, make(net, "data", *more))
        for phase in ["TRAIN", "TEST"]:
            expected = {key: [shape[0], *dims] for key, dims in blobs.items()}
            if phase == "TEST":
                expected["accuracy"] = []
            RUNS.append((f"{name} {phase}, V{version}", net.text(version), phase, expected, parameters))


def whole(name, make, blobs, parameters, phases=("TRAIN", "TEST"), versions=(2,)):
    """A net with data and losses of its own."""
    for version in versions:
        net = zoo.Net(name)
        make(net)
        RUNS.extend((f"{name} {phase}, V{version}", net.text(version), phase, blobs, parameters) for phase in phases)


def collect():
    deploy("AlexNet", zoo.alexnet, (10, 3, 227, 227), ALEXNET, 60965224, (0, 1, 2), True)
    deploy("CaffeNet", zoo.alexnet, (10, 3, 227, 227), ALEXNET, 60965224, (0, 1, 2), False)
    train("AlexNet", zoo.alexnet, (256, 3, 227, 227), ALEXNET, 60965224, (1, 2), True)
    deploy("VGG-16", zoo.vgg, (10, 3, 224, 224), VGG, 138357544, (1, 2), [2, 2, 3, 3, 3])
    deploy("VGG-19", zoo.vgg, (10, 3, 224, 224), VGG, 143667240, (1, 2), [2, 2, 4, 4, 4])
    deploy("GoogLeNet", zoo.googlenet, (10, 3, 224, 224), GOOGLENET, 6998552, (1, 2), False)
    train("GoogLeNet", zoo.googlenet, (32, 3, 224, 224),
          {**GOOGLENET, "loss_4a/ave_pool": [512, 4, 4], "loss_4d/conv": [128, 4, 4]}, 13378280, (1, 2), True)
    deploy("NiN", zoo.nin, (10, 3, 224, 224),
           {"conv1": [96, 54, 54], "pool1": [96, 27, 27], "pool2": [256, 13, 13], "pool3": [384, 6, 6],
            "cccp4_2": [1000, 6, 6], "pool4": [1000, 1, 1]}, 7595176, (1, 2))
    resnet = {"conv1": [64, 112, 112], "pool1": [64, 56, 56], "res2c": [256, 56, 56], "res3d": [512, 28, 28],
              "res4f": [1024, 14, 14], "res5c": [2048, 7, 7], "pool5": [2048, 1, 1], "fc1000": [1000]}
    deploy("ResNet-50", zoo.resnet50, (1, 3, 224, 224), resnet, 25557032)
    train("ResNet-50", zoo.resnet50, (8, 3, 224, 224), resnet, 25557032)
    deploy("SqueezeNet", zoo.squeezenet, (10, 3, 227, 227),
           {"conv1": [96, 111, 111], "pool1": [96, 55, 55], "pool4": [256, 27, 27], "pool8": [512, 13, 13],
            "conv10": [1000, 13, 13], "pool10": [1000, 1, 1]}, 1248424, (1, 2))
    deploy("MobileNet", zoo.mobilenet, (1, 3, 224, 224),
           {"conv1": [32, 112, 112], "conv7/sep": [512, 14, 14], "conv14/sep": [1024, 7, 7], "fc7": [1000, 1, 1]},
           4231976)
    deploy("FCN-32s", zoo.fcn32s, (1, 3, 500, 500),
           {"conv1_1": [64, 698, 698], "pool1": [64, 349, 349], "pool2": [128, 175, 175], "pool3": [256, 88, 88],
            "pool4": [512, 44, 44], "pool5": [512, 22, 22], "fc6": [4096, 16, 16], "upscore": [21, 544, 544],
            "score": [21, 500, 500]}, 134346581 + 21 * 21 * 64 * 64)
    whole("siamese", zoo.siamese, {"data": [64, 1, 28, 28], "pool2_p": [64, 50, 4, 4], "feat": [64, 2], "loss": []},
          431102, versions=(1, 2))
    whole("autoencoder", zoo.autoencoder, {"flatdata": [100, 784], "code4": [100, 30], "decoden": [100, 784],
                                           "l2_error": []}, 2837314, versions=(1, 2))


def learned(shown):
    """Parameters without BatchNorm's statistics."""
    statistics = {layer["name"] for layer in shown["layers"] if layer["type"] == "BatchNorm"}
    kept = 0
    for name, shapes in shown["params"].items():
        for shape in shapes if name in statistics else []:
            count = 1
            for size in shape:
                count *= size
            kept += count
    return shown["parameter_count"] - kept


def show(program, folder, text, phase):
    path = folder / "net.prototxt"
    path.write_text(text)
    return subprocess.run([program, "net", "--model", path, "--phase", phase, "--json"], capture_output=True, text=True)


def faults_of(program, folder, run):
    _, text, phase, blobs, parameters = run
    done = show(program, folder, text, phase)
    if done.returncode != 0:
        return [done.stderr.strip()[-300:]]
    shown = json.loads(done.stdout)
    faults = [f"{blob}: {shown['blobs'].get(blob)}, not {dims}" for blob, dims in blobs.items()
              if shown["blobs"].get(blob) != dims]
    if learned(shown) != parameters:
        faults.append(f"{learned(shown)} parameters, not {parameters}")
    return faults


def python_fault(program, folder):
    """Layers in Python are refused by name."""
    net = zoo.Net("python")
    net.add("Python", "crop_and_flip", net.input("data", 1, 3, 8, 8), module='"augment"', layer='"Crop"')
    done = show(program, folder, net.text(), "TEST")
    named = "crop_and_flip" in done.stderr and "augment" in done.stderr
    return [] if done.returncode == 64 and named else [f"exit code {done.returncode}: {done.stderr.strip()[-300:]}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    collect()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        found = [("Python layer", python_fault(options.bin / "speedo", place))]
        found += [(run[0], faults_of(options.bin / "speedo", place, run)) for run in RUNS
                  if not options.names or run[0].split(",")[0].split(" ")[0] in options.names]
    for name, faults in found:
        print(f"{name}: {'; '.join(faults) if faults else 'as published'}", flush=True)
        wrong += bool(faults)
    print(f"{len(found) - wrong} of {len(found)} nets as published")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
