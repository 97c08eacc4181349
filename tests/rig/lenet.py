"""LeNet on MNIST, for rows that say what a fault costs in accuracy."""
import os
import pathlib
import re
import shutil
import subprocess

from place import ROOT, CannotRun

SHARED = ROOT.parent / "shared" / "data"
FILES = {"train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
         "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")}
EXAMPLE = ROOT / "examples" / "mnist" / "lenet_train_test.prototxt"
TEST_BATCHES = 100  # of 100 images: all of them


def data(binaries, build):
    """The folder of both databases, made once a build."""
    folder = build / "rig_mnist"
    if (folder / "test" / "data.mdb").exists():
        return folder
    source = pathlib.Path(os.environ.get("SPEEDO_DATA_DIR", SHARED)) / "mnist"
    if not source.exists():
        raise CannotRun(f"no MNIST in '{source}': set SPEEDO_DATA_DIR")
    draft = pathlib.Path(f"{folder}.{os.getpid()}")
    shutil.rmtree(draft, ignore_errors=True)
    os.makedirs(draft)
    for name, parts in FILES.items():
        for part in parts:
            with open(draft / part, "wb") as plain:
                subprocess.run(["gzip", "-dc", source / f"{part}.gz"], stdout=plain, check=True)
        subprocess.run([binaries / "speedo", "convert", "idx", *(draft / part for part in parts),
                        draft / name], check=True, capture_output=True)
    shutil.rmtree(folder, ignore_errors=True)
    draft.rename(folder)
    return folder


def solver(folder, iterations):
    """The text of LeNet's solver with its net inside, on the databases in `folder`."""
    net = re.sub(r"examples/mnist/mnist_(train|test)_lmdb", rf"{folder}/\1", EXAMPLE.read_text())
    return (f"net_param {{ {net} }} test_iter: {TEST_BATCHES} test_interval: {iterations} "
            f"test_initialization: false base_lr: 0.01 momentum: 0.9 weight_decay: 0.0005 "
            f'lr_policy: "fixed" random_seed: 2 max_iter: {iterations} display: 50\n')
