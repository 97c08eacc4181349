"""The nets that are measured, and how: shared by compare_torch.py, compare_caffe.py, torch_step.py.

A net is its example's training prototxt with the Data layers replaced by one batch in memory: noise
for the images (an Input layer, which `speedo time` fills), one label for all. Those of nets/ have such
a batch themselves.
"""
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
from job_processes import end_with_parent  # noqa: E402, F401 (for those that start programs)

NETS_FOLDER = pathlib.Path(__file__).resolve().parent / "nets"
LABEL = 3


class BenchNet(NamedTuple):
    prototxt: str  # below examples/, or of nets/
    batch: int
    image: tuple  # channels, height, width
    steps: int  # measured steps a turn


NETS = {
    "lenet": BenchNet("mnist/lenet_train_test.prototxt", 64, (1, 28, 28), 60),
    "cifar10_quick": BenchNet("cifar10/cifar10_quick_train_test.prototxt", 100, (3, 32, 32), 15),
    "cifar10_full": BenchNet("cifar10/cifar10_full_train_test.prototxt", 100, (3, 32, 32), 15),
    "alexnet": BenchNet("imagenet/alexnet_train_val.prototxt", 32, (3, 227, 227), 4),
    "caffenet": BenchNet("imagenet/caffenet_train_val.prototxt", 32, (3, 227, 227), 4),
    "googlenet": BenchNet("imagenet/googlenet_train_val.prototxt", 32, (3, 224, 224), 2),
    "resnet50": BenchNet("imagenet/resnet50_train_val.prototxt", 16, (3, 224, 224), 3),
    "vgg16": BenchNet("imagenet/vgg16_train_val.prototxt", 8, (3, 224, 224), 2),
}
# Not among those that are measured unless they are named, as are the next ones.
MORE_NETS = {
    "autoencoder": BenchNet("autoencoder/mnist_autoencoder_train_test.prototxt", 100, (1, 28, 28),
                            60),
}
# The batch of sequences is all their steps.
OWN_NETS = {
    "lrcn": BenchNet("lrcn.prototxt", 16 * 24, (4096,), 20),
    "words": BenchNet("words.prototxt", 20 * 32, (512,), 10),
    "segmentation": BenchNet("segmentation.prototxt", 4, (3, 128, 128), 10),
    "dcgan": BenchNet("dcgan.prototxt", 16, (100, 1, 1), 10),
}
EVERY_NET = {**NETS, **MORE_NETS, **OWN_NETS}


class Message:
    """A message of protobuf's text format: fields in order, values as written or Messages."""

    def __init__(self):
        self.fields = []

    def all(self, name):
        return [value for field, value in self.fields if field == name]

    def get(self, name, default=None):
        values = self.all(name)
        return values[-1] if values else default

    def text(self, name, default=""):
        value = self.get(name)
        return default if value is None else value.strip("\"'")

    def texts(self, name):
        return [value.strip("\"'") for value in self.all(name)]

    def write(self, indent=""):
        lines = []
        for name, value in self.fields:
            if isinstance(value, Message):
                lines.append(f"{indent}{name} {{\n{value.write(indent + '  ')}{indent}}}\n")
            else:
                lines.append(f"{indent}{name}: {value}\n")
        return "".join(lines)


def parse(text):
    """The Message of a prototxt that protobuf itself would accept."""
    tokens = re.findall(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|[{}:]|[^\s{}:"\'#]+',
                        re.sub(r"#.*", "", text))
    top = Message()
    open_messages, at = [top], 0
    while at < len(tokens):
        if tokens[at] == "}":
            open_messages.pop()
            at += 1
            continue
        name = tokens[at]
        at += 2 if tokens[at + 1] == ":" else 1
        if tokens[at] == "{":
            message = Message()
            open_messages[-1].fields.append((name, message))
            open_messages.append(message)
        else:
            open_messages[-1].fields.append((name, tokens[at]))
        at += 1
    return top


def timing_prototxt(name, batch=None):
    """The text of a net that needs no files, with its own batch or another."""
    if name in OWN_NETS:
        return (NETS_FOLDER / OWN_NETS[name].prototxt).read_text()
    net = EVERY_NET[name]
    batch = batch or net.batch
    shape = " ".join(f"dim: {size}" for size in (batch, *net.image))
    inputs = parse(f'''
        layer {{ name: "data" type: "Input" top: "data" input_param {{ shape {{ {shape} }} }} }}
        layer {{ name: "label" type: "DummyData" top: "label" dummy_data_param {{
          shape {{ dim: {batch} }} data_filler {{ type: "constant" value: {LABEL} }} }} }}''')
    message = parse((ROOT / "examples" / net.prototxt).read_text())
    kept = [field for field in message.fields
            if not (field[0] == "layer" and field[1].text("type") == "Data")]
    first_layer = next(i for i, field in enumerate(kept) if field[0] == "layer")
    message.fields = kept[:first_layer] + inputs.fields + kept[first_layer:]
    return message.write()


def write_nets(names, folder, batches=None):
    """Writes NAME.prototxt for each into `folder`; returns their paths by name.

    `batches`: by name, of those that have another one.
    """
    paths = {}
    for name in names:
        paths[name] = pathlib.Path(folder) / f"{name}.prototxt"
        paths[name].write_text(timing_prototxt(name, (batches or {}).get(name)))
    return paths


def fail(message):
    """Ends the program with one line that names it."""
    sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {message}")


def built(build, program):
    path = pathlib.Path(build) / program
    if not os.access(path, os.X_OK):
        fail(f"no program '{path}': build it (cmake --build {build} --target {path.name}), or name "
             "the build's folder with --build")
    return str(path)


def run_json(command, environment=None):
    """Runs a program, whose last line of standard output is a JSON object; returns that.

    OpenBLAS settings of the caller's environment are for neither side of a comparison.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS_")}
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                          env={**kept, **(environment or {})})
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        fail(f"{pathlib.Path(str(command[0])).name} ended with {done.returncode}: {last}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def speedo_time(build, prototxt, threads, iterations, *flags):
    """What `speedo time --json` says of a net."""
    return run_json([built(build, "bin/speedo"), "time", "--model", prototxt, "--threads", threads,
                     "--iterations", iterations, "--json", *flags])


def median(values):
    return statistics.median(values)


class Processors:
    """How busy they are from now on, and with others than this program and what it waited for."""

    def __init__(self):
        self.start, self.busy, self.own = time.monotonic(), self.busy_now(), self.own_now()

    @staticmethod
    def busy_now():
        """Seconds of all processors, also those that the machine's host kept for itself."""
        user, nice, system, _, _, irq, softirq, steal = map(
            int, pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9])
        ticks = user + nice + system + irq + softirq + steal
        return ticks / os.sysconf("SC_CLK_TCK")

    @staticmethod
    def own_now():
        times = os.times()
        return times.user + times.system + times.children_user + times.children_system

    def busy_since(self):
        """How many were busy since this object was made, in the mean."""
        return (self.busy_now() - self.busy) / (time.monotonic() - self.start)

    def of_others(self):
        """How many of them with others."""
        own = (self.own_now() - self.own) / (time.monotonic() - self.start)
        return max(0.0, self.busy_since() - own)


def load_now():
    return "load " + " ".join(f"{value:.1f}" for value in os.getloadavg())
