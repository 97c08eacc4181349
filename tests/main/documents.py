#!/usr/bin/env python3
"""The commands of the documents work, and the flags that they name exist.

    tests/main/documents.py --bin BUILD/bin

Every block of commands in a page (fenced as sh, or indented) is run here, in order, in a copy of the examples, or
is run by another test that BLOCKS names; one that is in neither is a failure, as is a line of BLOCKS without its
block. Where a block is run, what a reader would put in (addresses, the name of a solver) is put in here.
"""
import argparse
import ctypes
import gzip
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMANDS = re.compile(r"(\(|sudo |env |build/bin/)*(speedo|docker|cmake|cpack|tests/|examples/|python3|apt|"
                      r"salloc|srun|sbatch|kubectl|export|umask|BASE=)")
DIGITS = "examples/digits/digits_solver.prototxt"
faults = []


class Block:
    def __init__(self, page, lines):
        self.page, self.lines = page, lines

    @property
    def text(self):
        return "\n".join(self.lines)

    def __str__(self):
        return f"{self.page}: {self.lines[0]}"


def pages():
    found = subprocess.run(["git", "-c", "safe.directory=*", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "*.md"],
                           capture_output=True, text=True)
    if found.returncode == 0:
        return sorted(set(found.stdout.split()))
    return sorted(str(path.relative_to(ROOT)) for path in ROOT.rglob("*.md")
                  if "build" not in path.relative_to(ROOT).parts)


def blocks_of(page):
    """Fenced blocks of sh, and indented ones that begin with a command."""
    lines = (ROOT / page).read_text().splitlines()
    at = 0
    while at < len(lines):
        line, block = lines[at], []
        if line.strip() == "```sh":
            at += 1
            while lines[at].strip() != "```":
                block.append(lines[at])
                at += 1
            yield Block(page, block)
        elif line.startswith("```"):
            at += 1
            while not lines[at].startswith("```"):
                at += 1
        elif re.match(r" {4}\S", line) and (at == 0 or not lines[at - 1].strip()):
            while at < len(lines) and lines[at].startswith("    "):
                block.append(lines[at][4:])
                at += 1
            if COMMANDS.match(block[0]):
                yield Block(page, block)
        at += 1


def end_with_parent():
    """The kernel ends a child whose parent is killed."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Place:
    """A copy of what the commands need, with the programs where the README says they are."""

    def __init__(self, bin_folder, folder):
        self.folder, self.bin = folder, bin_folder
        for name in ("examples", "conf"):
            shutil.copytree(ROOT / name, folder / name, symlinks=True,
                            ignore=shutil.ignore_patterns("*_lmdb", "*.caffemodel", "*.solverstate", "*.speedo"))
        (folder / "build").mkdir()
        (folder / "build/bin").symlink_to(bin_folder)
        self.environment = {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}"}
        self.make_digits()

    def make_digits(self):
        """Images that look no more like digits than a pattern of each class does: the same files as of the
        real ones, which are fetched from the network."""
        draw = random.Random(5)
        patterns = [[draw.choice((0, 12)) for _ in range(64)] for _ in range(10)]
        with gzip.open(self.folder / "examples/digits/digits.csv.gz", "wt") as rows:
            for _ in range(1797):
                label = draw.randrange(10)
                pixels = [min(16, value + draw.randrange(5)) for value in patterns[label]]
                rows.write(",".join(map(str, [*pixels, label])) + "\n")
        self.run("speedo convert csv examples/digits/digits.csv.gz examples/digits/digits_train_lmdb --test-output "
                 "examples/digits/digits_test_lmdb --shape 1,8,8 --shuffle 1 --train-count 1200 --force")

    def run(self, text, seconds=400):
        done = subprocess.run(["bash", "-euc", text], cwd=self.folder, env=self.environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds)
        if done.returncode != 0:
            raise RuntimeError(f"exit code {done.returncode}: {text}\n{done.stdout[-2000:]}")
        return done.stdout

    def start(self, text):
        return subprocess.Popen(["bash", "-euc", text], cwd=self.folder, env=self.environment,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                                preexec_fn=end_with_parent)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def commands_of(block):
    """Its commands, lines that go on put together, without the comments behind them."""
    text = re.sub(r"\\\n\s*", "", block.text)
    text = re.sub(r"\|\n\s*", "| ", text)
    return [re.sub(r"\s{2,}#.*", "", line) for line in text.splitlines()]


def run_it(**put_in):
    """Runs the block with words put in for those that are the reader's own."""
    def run(place, block):
        text = "\n".join(commands_of(block))
        for old, new in put_in.get("words", {}).items():
            if old not in text:
                raise RuntimeError(f"'{old}' is not in it")
            text = text.replace(old, new)
        output = place.run(text, put_in.get("seconds", 400))
        expected = put_in.get("says")
        if expected and not re.search(expected, output):
            raise RuntimeError(f"does not say '{expected}': {output[-1500:]}")
    return run


def doctor(place, block):
    redis = free_port()
    server = place.start(f"exec redis-server --port {redis} --bind 127.0.0.1 --save ''")
    try:
        wait_for_port(redis)
        run_it(words={"10.0.0.1": f"127.0.0.1:{redis}", "10.0.0.2": "127.0.0.1"}, says="0 problems")(place, block)
    finally:
        stop(server)


def wait_for_port(port):
    for _ in range(400):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError(f"nobody listens on port {port}")


def stop(process):
    try:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(20)
    except (ProcessLookupError, subprocess.TimeoutExpired):
        pass


def several_machines(place, block):
    """Its five commands: password, token, Redis, the master, two workers, all on this machine."""
    redis, control = free_port(), free_port()
    words = {"10.0.0.1": "127.0.0.1", "S.prototxt": DIGITS, "--redis 127.0.0.1": f"--redis 127.0.0.1:{redis}",
             "--bind 127.0.0.1": f"--bind 127.0.0.1 --port {control}", ":PORT": f":{control}",
             "redis-server -": f"redis-server - --port {redis} --save ''"}
    commands = commands_of(block)
    for old, new in words.items():
        commands = [command.replace(old, new) for command in commands]
    password, token, server, master, worker = commands
    place.run(password)
    place.run(token)
    started = [place.start(server)]
    try:
        wait_for_port(redis)
        started += [place.start(worker), place.start(worker)]
        place.run(master)
        for process in started[1:]:
            if process.wait(30) != 0:
                raise RuntimeError(f"a worker ended with {process.returncode}")
    finally:
        for process in started:
            stop(process)


def elsewhere(test, why=""):
    """Another test runs it."""
    def check(_place, _block):
        if not (ROOT / test).exists():
            raise RuntimeError(f"{test} is not there")
    check.why = why
    return check


def flags_only(why):
    """Not to be run as it stands; its flags are looked at, like all others."""
    def check(_place, _block):
        pass
    check.why = why
    return check


CI = ".ci/run"
BLOCKS = {
    ("README.md", "examples/quickstart.sh"): elsewhere(CI, "tests/run.sh is what CI runs, on a clean machine"),
    ("README.md", "export PATH"): run_it(says=""),
    ("README.md", "speedo run --solver examples/digits/digits_solver.prototxt --workers 2"): run_it(says="accuracy (0.9|1.0)"),
    ("README.md", "speedo run --solver examples/digits/digits_solver.prototxt --workers 3"):
        run_it(words={"127.0.0.1:9464": "127.0.0.1:0", "2000": "900"}, says="goes on from iteration 500"),
    ("README.md", "speedo test"): run_it(words={"iter_2000": "iter_900"}, says="accuracy"),
    ("README.md", "(umask 077"): several_machines,
    ("README.md", "speedo doctor"): doctor,
    ("README.md", "speedo simulate"):
        run_it(words={"1..2000": "1..20", "1,2,4": "1,2,4 --iterations 60", "S.prototxt": f"{DIGITS} --measure-seconds 0.1",
                      "--recommend": "--recommend --workers 4 --iterations 4"}),
    ("README.md", "speedo train"): flags_only("a list of forms"),
    ("README.md", "speedo export"): flags_only("a list of forms"),
    ("README.md", "cmake -DSPEEDO_CUDA_FEW_KERNELS"): elsewhere("tests/install/package.sh"),
    (".github/CONTRIBUTING.md", "tests/run.sh"): elsewhere(CI),
    ("conf/debian/README.md", "cpack"): elsewhere("tests/install/package.sh"),
    ("conf/kubernetes/README.md", "kubectl"): elsewhere("tests/style/kubernetes.py", "no cluster runs here"),
    ("conf/slurm/README.md", "sbatch"): elsewhere("tests/local/slurm.sh"),
    ("conf/slurm/README.md", "salloc"): elsewhere("tests/local/slurm.sh", "the same script in an allocation"),
    ("conf/systemd/README.md", "apt install"): elsewhere("tests/install/package.sh"),
    ("docker/README.md", "docker/build.sh"): elsewhere("docker/try.sh"),
    ("docker/README.md", "(umask 077"): elsewhere("docker/try.sh"),
    ("examples/README.md", "examples/mnist/get_data.sh"): flags_only("fetches MNIST"),
    ("examples/README.md", "speedo-master"): flags_only("as in the README, with MNIST"),
    ("examples/autoencoder/README.md", "examples/autoencoder/get_data.sh"): flags_only("fetches MNIST, trains for minutes"),
    ("examples/cifar10/README.md", "examples/cifar10/get_data.sh"): flags_only("fetches CIFAR-10, trains for minutes"),
    ("examples/digits/README.md", "examples/digits/get_data.sh"): elsewhere("examples/quickstart.sh"),
    ("examples/digits/README.md", "build/bin/speedo run"): run_it(says="accuracy"),
    ("examples/export/README.md", "build/bin/speedo export"): run_it(says=""),
    ("examples/export/README.md", "build/bin/speedo import"): run_it(says="accuracy"),
    ("examples/features/README.md", "examples/features/get_data.sh"): flags_only("fetches the digits"),
    ("examples/finetuning/README.md", "examples/finetuning/get_data.sh"): flags_only("fetches the digits"),
    ("examples/imagenet/README.md", "build/bin/speedo train"): flags_only("needs ImageNet, trains for days"),
    ("examples/imagenet/README.md", "examples/imagenet/prepare_folder.sh"): elsewhere("tests/main/prepare_folder_test.cpp"),
    ("examples/imagenet/README.md", "examples/imagenet/small_set.py"): flags_only("fetches CIFAR-10, trains for hours"),
    ("examples/imagenet/README.md", "build/bin/speedo time"): flags_only("takes minutes"),
    ("examples/imagenet/README.md", "examples/imagenet/imagenet_train_lmdb"): flags_only("names of files"),
    ("examples/library/README.md", "cmake -S examples/library"): elsewhere("tests/install/install.sh"),
    ("examples/mnist/README.md", "examples/mnist/get_data.sh"): flags_only("fetches MNIST"),
    ("examples/sequences/README.md", "examples/sequences/get_data.sh"): flags_only("fetches the digits"),
    ("examples/sequences/README.md", "build/bin/speedo run"):
        run_it(words={"--sync": "--sync --max-iter 400"}, says="accuracy"),
    ("examples/siamese/README.md", "examples/siamese/get_data.sh"): flags_only("fetches MNIST, trains for minutes"),
    ("src/cli/from-speedo.md", "speedo-master"): elsewhere("tests/main/container_entry_test.cpp"),
    ("src/local/launch.md", "speedo launch"): elsewhere("tests/local/launch.sh"),
    ("strategies/ADDING.md", "cmake"): elsewhere(CI),
    ("tests/bench/README.md", "apt-get"): flags_only("installs PyTorch"),
}

# Flags in the pages that are other programs'.
FOREIGN = {"--nodes"}


# Where a flag in the text is one of SpeeDO's.
PAGES_FOR_USERS = {"README.md", "src/core/from-caffe.md", "src/train/when-things-die.md", "src/local/launch.md",
                   "src/cpu/threads-and-memory.md", "src/store/redis/network.md", "src/data/data-of-each-worker.md",
                   ".github/CHANGELOG.md"}


def known_flags(bin_folder):
    words = set()
    programs = [["speedo-master"], ["speedo-worker"]]
    listed = subprocess.run([bin_folder / "speedo", "--help"], capture_output=True, text=True).stdout
    programs += [["speedo", name] for name in re.findall(r"^  ([a-z_]+)  ", listed, re.M)]
    programs.append(["speedo", "simulate", "--cluster", "x"])
    for program in programs:
        shown = subprocess.run([bin_folder / program[0], *program[1:], "--help"], capture_output=True, text=True)
        words |= {squashed(flag) for flag in re.findall(r"--?[A-Za-z][A-Za-z0-9_-]*", shown.stdout)}
    return words


def squashed(flag):
    return re.sub(r"[-_]", "", flag).lower()


def check_flags(bin_folder):
    """Of every page: a flag behind a program's name in a command, and every flag in the README."""
    known, foreign = known_flags(bin_folder), set(FOREIGN)
    for page in pages():
        text = (ROOT / page).read_text()
        shown = re.findall(r"`([^`\n]+)`", text) if page in PAGES_FOR_USERS else []
        shown += [line for block in blocks_of(page) for line in commands_of(block)
                  if re.match(r"(build/bin/)?speedo", line)]
        for span in shown:
            for flag in re.findall(r"(?<![\w-])--[A-Za-z][A-Za-z0-9_-]*", span):
                foreign.discard(flag)
                if squashed(flag) not in known and flag not in FOREIGN:
                    faults.append(f"{page}: {flag} is a flag of no program, in `{span}`")
    for flag in foreign:
        faults.append(f"FOREIGN has {flag}, which no page names")


def check_exit_codes():
    """The table names the codes that the programs end with: 0 and 1 of checks, others of errors."""
    codes = set(re.findall(r"return (\d+);", (ROOT / "src/cli/exit_code.cpp").read_text()))
    codes |= {"0", "1"}
    codes |= set(re.findall(r"Exit = (\d+);", (ROOT / "src/cli/exit_code.hpp").read_text()))
    table = set(re.findall(r"^\| (\d+) \|", (ROOT / "src/cli/README.md").read_text(), re.M))
    for code in sorted(codes ^ table):
        faults.append(f"src/cli/README.md: its table and src/cli/exit_code.cpp differ in exit code {code}")


def check_versions(bin_folder):
    version = re.search(r"project\(SpeeDO VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    for name in ("speedo", "speedo-master", "speedo-worker"):
        shown = subprocess.run([bin_folder / name, "--version"], capture_output=True, text=True).stdout
        if version not in shown.split():
            faults.append(f"{name} --version says '{shown.strip()}', CMakeLists.txt {version}")


def check_changelog():
    version = re.search(r"project\(SpeeDO VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    newest = re.search(r"^## ([0-9.]+)", (ROOT / ".github/CHANGELOG.md").read_text(), re.M)[1]
    if newest != version:
        faults.append(f".github/CHANGELOG.md is of {newest}, CMakeLists.txt of {version}")


def check_links():
    for page in pages():
        text = re.sub(r"```.*?```|`[^`\n]*`", "", (ROOT / page).read_text(), flags=re.S)
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
            if not (ROOT / page).parent.joinpath(target).exists():
                faults.append(f"{page}: links to {target}, which is not there")


def check_blocks(place):
    left = dict(BLOCKS)
    for page in pages():
        for block in blocks_of(page):
            key = next((key for key in BLOCKS if key[0] == page and block.lines[0].startswith(key[1])), None)
            if key is None:
                faults.append(f"{block}: nothing runs it; see BLOCKS in tests/main/documents.py")
                continue
            left.pop(key, None)
            begin = time.monotonic()
            try:
                BLOCKS[key](place, block)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                faults.append(f"{block}: {error}")
            print(f"{time.monotonic() - begin:6.1f} s  {block}", flush=True)
    for page, words in left:
        faults.append(f"BLOCKS has '{words}' of {page}, which is not there")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, type=lambda text: pathlib.Path(text).resolve())
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        check_blocks(Place(options.bin, pathlib.Path(folder)))
    check_flags(options.bin)
    check_exit_codes()
    check_versions(options.bin)
    check_changelog()
    check_links()
    for fault in faults:
        print(f"FAILED: {fault}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
