"""Where a job's processes run: nodes of net_rig.sh, control groups and small file systems.

All carry the number of the process that made them, so that several rigs may stand on one machine,
and a later rig removes what one that was killed has left.
"""
import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

SCRIPT = ROOT / "tests" / "bench" / "net_rig.sh"
GROUPS = pathlib.Path("/sys/fs/cgroup")
CLONE_NEWNET = 0x40000000
NODES = 8
RATE = "1gbit"


class CannotRun(Exception):
    """Why something cannot be tried on this machine."""


def started_at(pid):
    """When that process began, in ticks since the boot; None if there is none."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return stat.rpartition(")")[2].split()[19]


def mark():
    """Of this process: no other has or will have it before the next boot."""
    return f"{os.getpid()}-{started_at(os.getpid())}"


def is_left(name):
    """Whether something of that name was made by a rig that has ended."""
    found = re.fullmatch(r"speedo-rig-(\d+)-(\d+)(-.*)?", name)
    return bool(found) and started_at(found[1]) != found[2]


def remove_left():
    """Removes what rigs that have ended left; returns how many things that were."""
    count = 0
    for folder in pathlib.Path(tempfile.gettempdir()).glob("speedo-rig-*"):
        if is_left(folder.name):
            shutil.rmtree(folder, ignore_errors=True)
            count += 1
    for group in GROUPS.glob("*/speedo-rig-*"):
        if is_left(group.name):
            remove_group(group)
            count += 1
    for state in pathlib.Path("/run").glob("speedo-*-rig"):
        number = state.name.split("-")[1]
        if started_at(number) is None and call_script(number, "down").returncode == 0:
            count += 1
    return count


def remove_group(group):
    for inner in sorted(group.glob("**/"), reverse=True):
        try:
            inner.rmdir()
        except OSError as error:
            print(f"rig: {inner} stays: {error}", file=sys.stderr)


def call_script(number, *arguments):
    return subprocess.run([SCRIPT, *arguments], text=True, capture_output=True, check=False,
                          env={**os.environ, "SPEEDO_RIG": str(number)})


class Place:
    """Nodes 1 to NODES for programs, and a folder; leaving the context removes all of it."""

    def __init__(self):
        self.folder, self.groups, self.mounts, self.why_not = None, [], [], None

    def __enter__(self):
        left = remove_left()
        if left:
            print(f"rig: removed {left} things that a killed rig had left", file=sys.stderr)
        self.folder = tempfile.mkdtemp(prefix=f"speedo-rig-{mark()}-")
        done = call_script(os.getpid(), "up", str(NODES), RATE)
        if done.returncode:
            self.why_not = done.stderr.strip() or f"{SCRIPT.name}: {done.returncode}"
        return self

    def __exit__(self, *_):
        if not self.why_not:
            done = call_script(os.getpid(), "down")
            if done.returncode:
                print(done.stderr, file=sys.stderr)
        for mount in self.mounts:
            subprocess.run(["umount", "--lazy", mount], check=False)
        for group in self.groups:
            remove_group(group)
        shutil.rmtree(self.folder, ignore_errors=True)

    def need_nodes(self):
        if self.why_not:
            raise CannotRun(f"no network namespaces: {self.why_not}")

    def address(self, node):
        """Of that node; without namespaces all are the loopback."""
        return "127.0.0.1" if self.why_not else f"10.79.0.{node}"

    def command(self, node):
        """What precedes a command that is to run in that node; its process is the program's."""
        if self.why_not:
            return []
        return ["env", f"SPEEDO_RIG={os.getpid()}", str(SCRIPT), "in", str(node)]

    def network(self, node):
        return f"speedo-{os.getpid()}-rig-{node}"

    def ip(self, node, *words):
        """Changes that node's network."""
        subprocess.run(["ip", "-n", self.network(node), *words], check=True, capture_output=True)

    def enter(self, node):
        """Moves this thread, and the sockets that it makes from now on, into that node."""
        if not self.why_not:
            with open(f"/run/netns/{self.network(node)}") as network:
                if ctypes.CDLL(None, use_errno=True).setns(network.fileno(), CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), "setns")

    def inside(self, node, work):
        """What work() returns when a thread in that node calls it."""
        box = []

        def call():
            try:
                self.enter(node)
                box.append((work(), None))
            except BaseException as error:  # noqa: BLE001 (raised again where it was asked for)
                box.append((None, error))

        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
        value, error = box[0]
        if error:
            raise error
        return value

    def forget_neighbours(self):
        """What a host says to all that takes an address over."""
        for node in range(1, NODES + 1):
            self.ip(node, "neigh", "flush", "dev", "eth0")

    def drop(self, source, target):
        """From now on what `source` sends to `target` is lost on the way; the other way is not."""
        self.need_nodes()
        self.ip(source, "neigh", "replace", self.address(target), "lladdr", "02:00:00:00:ff:ff",
                "nud", "permanent", "dev", "eth0")

    def pass_again(self, source, target):
        self.ip(source, "neigh", "del", self.address(target), "dev", "eth0")

    def group(self, controller, **values):
        """A new control group; `values`: of its files, with _ for the first dot."""
        group = GROUPS / controller / f"speedo-rig-{mark()}" / str(len(self.groups))
        try:
            group.mkdir(parents=True)
            for name, value in values.items():
                (group / name.replace("_", ".", 1)).write_text(str(value))
        except OSError as error:
            raise CannotRun(f"no control groups of kind '{controller}' (version 1): {error}") \
                from error
        self.groups.append(group.parent)
        return group

    def small_files(self, folder, size):
        """Mounts a file system of so many bytes there."""
        os.makedirs(folder)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "speedo-rig", folder],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            raise CannotRun(f"no small file system: {done.stderr.strip()}")
        self.mounts.append(folder)


def within(group):
    """What precedes a command that is to run in that control group."""
    return ["sh", "-c", f'echo $$ >"{group}/cgroup.procs" && exec "$@"', "sh"]
