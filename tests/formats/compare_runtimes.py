"""The comparisons of runtimes.py, in its environment."""
import argparse
import pathlib
import re
import subprocess
import sys

import numpy
import onnx
import onnxruntime
from safetensors.numpy import load_file

import layer_nets

ROOT = pathlib.Path(__file__).resolve().parents[2]
ONNX_LIMIT, OPENCV_LIMIT = 1e-5, 1e-4
# Nets of the examples, with what OpenCV is asked about them; sides that a machine without
# accelerator computes in seconds.
EXAMPLES = {
    "lenet": ("examples/mnist/lenet_train_test.prototxt", "4,1,28,28"),
    "cifar10_full": ("examples/cifar10/cifar10_full_train_test.prototxt", "4,3,32,32"),
    "alexnet": ("examples/imagenet/alexnet_train_val.prototxt", "2,3,227,227"),
    "caffenet": ("examples/imagenet/caffenet_train_val.prototxt", "2,3,227,227"),
    "googlenet": ("examples/imagenet/googlenet_train_val.prototxt", "2,3,224,224"),
    "resnet50": ("examples/imagenet/resnet50_train_val.prototxt", "1,3,224,224"),
    "vgg16": ("examples/imagenet/vgg16_train_val.prototxt", "1,3,224,224"),
}


class Place:
    """Where a net's files are, and the programs."""

    def __init__(self, options, name):
        self.bin = options.build / "bin" / "speedo"
        self.cases = options.build / "tests" / "format_cases"
        self.folder = options.scratch / name
        self.folder.mkdir(parents=True, exist_ok=True)

    def file(self, name):
        return str(self.folder / name)

    def run(self, *command):
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{command[0]} {command[1]}: {done.stderr.strip()[-400:]}")
        return done.stdout


def difference(wanted, found):
    """Relative to the largest value; infinite for another shape."""
    if wanted.shape != found.shape:
        return float("inf")
    scale = max(numpy.abs(wanted).max(), 1e-30)
    apart = numpy.abs(wanted.astype(numpy.float64) - found).max()
    return float("inf") if numpy.isnan(apart) else apart / scale


def export(place, model, shape, seed):
    """A net in all forms, and what it computes: inputs and outputs by blob."""
    shapes = ["--shape", shape] if shape else []
    deploy = place.file("deploy.prototxt")
    place.run(place.bin, "export", "--format", "deploy", "--model", model, "--output", deploy, *shapes)
    place.run(place.cases, "weights", deploy, place.file("random.caffemodel"), seed)
    weights = ["--weights", place.file("random.caffemodel")]
    place.run(place.bin, "export", "--format", "deploy", "--model", model, "--output", deploy,
              *shapes, *weights)
    place.run(place.bin, "export", "--format", "onnx", "--model", model, "--output",
              place.file("net.onnx"), *shapes, *weights)
    place.run(place.cases, "run", deploy, place.file("deploy.caffemodel"),
              place.file("values.safetensors"), seed)
    return {name[:-2]: value for name, value in load_file(place.file("values.safetensors")).items()}


def compare_onnx(place, values):
    """The largest difference of onnxruntime's outputs, and whether all are there."""
    file = place.file("net.onnx")
    onnx.checker.check_model(file, full_check=True)
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 3
    settings.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(file, settings, providers=["CPUExecutionProvider"])
    inputs = {value.name: values[value.name] for value in session.get_inputs()}
    names = [value.name for value in session.get_outputs()]
    worst = 0.0
    for name, found in zip(names, session.run(names, inputs)):
        blob = name if name in values else re.sub("@.*", "", name)
        if blob in inputs:
            continue
        worst = max(worst, difference(values[blob], found))
    return worst


def compare_opencv(place, values):
    import cv2
    net = cv2.dnn.readNetFromCaffe(place.file("deploy.prototxt"), place.file("deploy.caffemodel"))
    net.setPreferableBackend(cv2.dnn.DNN_BACKEND_OPENCV)
    session = onnx.load(place.file("net.onnx"))
    inputs = {value.name for value in session.graph.input}
    for name in inputs:
        net.setInput(values[name], name)
    names = [name for name in net.getUnconnectedOutLayersNames()]
    worst = 0.0
    outputs = [value for name, value in values.items() if name not in inputs]
    for name, found in zip(names, net.forward(names)):
        worst = max(worst, min(difference(value, found.reshape(value.shape))
                               for value in outputs if value.size == found.size))
    return worst


def check_safetensors(place, model, shape):
    """Exported, read by the library, imported again: the same arrays. Returns their number."""
    shapes = ["--shape", shape] if shape else []
    place.run(place.bin, "export", "--format", "safetensors", "--weights",
              place.file("deploy.caffemodel"), "--output", place.file("net.safetensors"))
    place.run(place.bin, "import", "--model", model, *shapes, "--weights",
              place.file("net.safetensors"), "--output", place.file("back.caffemodel"))
    place.run(place.bin, "export", "--format", "h5", "--weights", place.file("back.caffemodel"),
              "--output", place.file("back.caffemodel.h5"))
    place.run(place.bin, "export", "--format", "safetensors", "--model", model, *shapes, "--weights",
              place.file("back.caffemodel.h5"), "--output", place.file("back.safetensors"))
    arrays = load_file(place.file("net.safetensors"))
    back = load_file(place.file("back.safetensors"))
    if arrays.keys() != back.keys():
        raise RuntimeError(f"names differ: {arrays.keys() ^ back.keys()}")
    initializers = {each.name: onnx.numpy_helper.to_array(each)
                    for each in onnx.load(place.file("net.onnx")).graph.initializer}
    for name, array in arrays.items():
        if not numpy.array_equal(array, back[name]):
            raise RuntimeError(f"{name} came back changed")
        if name in initializers and not numpy.array_equal(array, initializers[name]):
            raise RuntimeError(f"{name} is another array in the ONNX file")
    return len(arrays)


def compare(options, name, model, shape, opencv):
    """One line of the table; True if all is within the limits."""
    place = Place(options, name)
    try:
        values = export(place, model, shape, options.seed)
        in_onnx = compare_onnx(place, values)
        in_opencv = compare_opencv(place, values) if opencv else 0.0
        arrays = check_safetensors(place, model, shape)
    except Exception as error:  # pylint: disable=broad-except
        print(f"| {name} | WRONG: {str(error)[:300]} |", flush=True)
        return False
    good = in_onnx <= ONNX_LIMIT and in_opencv <= OPENCV_LIMIT
    shown = f"{in_opencv:.1e}" if opencv else "-"
    print(f"| {name} | {in_onnx:.1e} | {shown} | {arrays} |{'' if good else ' WRONG |'}", flush=True)
    return good


def compare_small(options, name, text, limit=ONNX_LIMIT):
    """A net of a few layers in onnxruntime: the difference, or what went wrong."""
    place = Place(options, "small")
    (place.folder / "net.prototxt").write_text(text)
    try:
        found = compare_onnx(place, export(place, place.file("net.prototxt"), "", options.seed))
    except Exception as error:  # pylint: disable=broad-except
        print(f"WRONG {name}: {str(error)[:300]}\n{text}", flush=True)
        return float("inf")
    if not found <= limit:
        print(f"WRONG {name}: {found:.1e}\n{text}", flush=True)
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--scratch", required=True, type=pathlib.Path)
    parser.add_argument("--random", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    good = True
    print("| net | onnxruntime | OpenCV | arrays |\n|---|---|---|---|")
    for name, (model, shape) in EXAMPLES.items():
        if not options.names or name in options.names:
            good &= compare(options, name, ROOT / model, shape, True)
    for name, (text, opencv) in layer_nets.NETS.items():
        if not options.names or name in options.names:
            place = Place(options, name)
            (place.folder / "net.prototxt").write_text(text)
            good &= compare(options, name, place.file("net.prototxt"), "", opencv)
    print("\n| layer | forms | onnxruntime |\n|---|---|---|")
    for layer, texts in layer_nets.layers().items():
        if options.names and layer not in options.names:
            continue
        found = [compare_small(options, layer, text) for text in texts]
        good &= max(found) <= ONNX_LIMIT
        print(f"| {layer} | {len(found)} | {max(found):.1e} |", flush=True)
    found = []
    for seed in range(options.seed, options.seed + options.random):
        text = Place(options, "small").run(Place(options, "small").cases, "draw", seed)
        found.append(compare_small(options, f"random net {seed}", text))
    if found:
        within = sum(each <= ONNX_LIMIT for each in found)
        print(f"\nrandom nets {options.seed} to {options.seed + options.random - 1}: {within} of "
              f"{len(found)} within {ONNX_LIMIT}, the largest difference {max(found):.1e}")
        good &= within == len(found)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
