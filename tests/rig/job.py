"""One job of real processes in a place's nodes: Redis in 1, masters in 2 and 3, workers behind."""
import json
import os
import pathlib
import signal
import stat
import subprocess
import time
from collections import Counter
from dataclasses import dataclass, field

from place import ROOT
from job_processes import COUNTED, Node, NoSign, Redis, Watcher, counted, free_port

REDIS, MASTER, OTHER_MASTER, FIRST_WORKER = 1, 2, 3, 4
WORKER_TIMEOUT = 2
PASSWORD = "rig"
REDIS_LINKS_MAX = 6  # of a master
EVENT_FD, GATE_EVENTS = "anon_inode:[eventfd]", 1
COUNTING = ROOT / "tests" / "support" / "counting_solver.prototxt"
KILLED = -signal.SIGKILL
HANDED_OVER = "worker", "master"  # what the names of records that they hand each other begin with


class Wrong(Exception):
    """Something that must not happen did."""


def require(condition, what):
    if not condition:
        raise Wrong(what)


def resident(pid):
    """Bytes of memory that the process has."""
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@dataclass
class Options:
    """What a job is, where it is not the usual."""
    workers: int = 3  # processes
    members: int = 1  # workers of each
    asked: str = ""  # --workers, if that is not their number
    flags: tuple = ("--sync",)  # of the master
    worker_flags: tuple = ()
    master_before: tuple = ()  # before the master's command
    first_worker_before: tuple = ()  # before that of the first worker
    append_only: bool = False  # Redis keeps its data when it dies
    redis_lines: tuple = ()  # more arguments of redis-server
    net: str = ""  # a solver's text, in place of the net that counts
    rows: int = 16  # of the counting net: 64 weights each
    solver: str = ""  # more fields of it
    quiet: bool = False  # no lines of progress in the logs
    redis_via: object = None  # a Proxy in the workers' node, which then are all in one
    master_via: object = None  # the same
    wire: object = None  # a Wire that all of them use
    timeout: int = WORKER_TIMEOUT
    shared_memory: bool = False  # master and workers are then in one node


@dataclass
class Leaks:
    """What was there after all had ended, or after the faults more than before them."""
    fds: int = 0
    keys: int = 0
    files: int = 0
    segments: int = 0

    def any(self):
        return self.fds or self.keys or self.files or self.segments


@dataclass
class Job:
    """start() starts it; finish() ends it and looks at what it should have left, and no more."""
    place: object
    folder: pathlib.Path
    binaries: pathlib.Path
    options: Options = field(default_factory=Options)

    def __post_init__(self):
        self.snapshots, self.temporary = self.folder / "snapshots", self.folder / "temporary"
        os.makedirs(self.temporary)
        self.nodes, self.workers, self.master = [], [], None
        self.fds, self.left_fds = None, {}
        self.net = self.options.wire or self.place
        self.master_address = self.net.address(MASTER)  # that workers are told
        self.watcher = None
        self.password, self.token = self.folder / "password", self.folder / "token"
        self.password.write_text(f"{PASSWORD}\n")
        self.password.chmod(stat.S_IRUSR | stat.S_IWUSR)
        subprocess.run([self.binaries / "speedo", "token", "create", self.token], check=True,
                       capture_output=True)
        self.solver = self.folder / "solver.prototxt"
        self.port = free_port()
        self.redis = Redis(str(self.folder), self.place.command(REDIS), self.redis_arguments(),
                           PASSWORD)

    def redis_arguments(self):
        asked = ["--bind", "127.0.0.1", self.net.address(REDIS)]
        if self.options.append_only:
            asked += ["--appendonly", "yes", "--appendfsync", "everysec"]
        return [*asked, *self.options.redis_lines]

    def write_solver(self):
        os.makedirs(self.snapshots, exist_ok=True)
        if self.options.net:
            prefix = f'snapshot_prefix: "{self.snapshots}/s"'
            self.solver.write_text(f"{self.options.net} {prefix} {self.options.solver}\n")
            return
        net = COUNTING.read_text().replace("num_output: ROWS", f"num_output: {self.options.rows}")
        if self.options.quiet:
            net = net.replace("display: 100", "display: 0")
        self.solver.write_text(f'{net} max_iter: 100000000 snapshot_prefix: "{self.snapshots}/s" '
                               f"{self.options.solver}\n")

    def start(self):
        """Returns when the training has begun, with some merges behind it."""
        self.write_solver()
        self.start_master()
        self.start_workers()
        self.master.says("training starts")
        self.all_alive(0)
        self.watcher = self.watch()
        self.merges_on(5 if self.options.net else 20)
        self.fds = self.open_fds()
        return self

    def start_workers(self):
        for _ in range(self.options.workers):
            self.start_worker()

    def watch(self):
        return Watcher(self.redis, self.name(), 0.004)

    def launch(self, node, command, before=()):
        started = Node([*self.place.command(node), *before, *map(str, command)],
                       str(self.folder / f"log{len(self.nodes)}"),
                       {**os.environ, "TMPDIR": str(self.temporary)})
        self.nodes.append(started)
        return started

    def start_master(self, extra=(), node=MASTER):
        """In that node, at the address that workers are told."""
        self.master = self.launch(node, self.master_command(extra), self.options.master_before)
        return self.master

    def master_command(self, extra=()):
        return [self.binaries / "speedo-master", "--no-config", "--solver", self.solver,
                "--redis", self.redis_addresses(),
                "--redis-password-file", self.password, "--token-file", self.token,
                "--bind", self.master_address, "--port", self.port, "--json",
                "--worker-timeout", self.options.timeout,
                "--workers", self.options.asked or self.count(),
                *self.memory_flags(), "--threads", 1, *self.options.flags, *extra]

    def redis_addresses(self):
        return f"{self.net.address(REDIS)}:{self.redis.port}"

    def redis_ports(self):
        return [self.redis.port]

    def memory_flags(self):
        return [] if self.options.shared_memory else ["--no-shared-memory"]

    def count(self):
        """Of all workers."""
        return self.options.workers * self.options.members

    def worker_node(self, index):
        if self.options.shared_memory:
            return MASTER
        shared = self.options.redis_via or self.options.master_via
        if self.options.wire:
            return FIRST_WORKER + index % 2
        return FIRST_WORKER if shared else FIRST_WORKER + index % 4

    def start_worker(self, extra=(), before=(), index=None):
        index = len(self.workers) if index is None else index
        command = [self.binaries / "speedo-worker", "--no-config", "--token-file", self.token,
                   "--redis-password-file", self.password, *self.memory_flags(),
                   *self.members_of_a_worker(), *self.options.worker_flags, *extra]
        via = self.options.master_via
        command += ["--master", via.address() if via else
                    f"{self.master_address}:{self.port}"]
        if self.options.redis_via:
            command += ["--redis", self.options.redis_via.address()]
        if not self.workers:
            before = before or self.options.first_worker_before
        worker = self.launch(self.worker_node(index), command, before)
        self.workers.append(worker)
        return worker

    def members_of_a_worker(self):
        """More than there are processors are forced upon them: they hardly compute."""
        if self.options.members == 1:
            return ["--threads", 1]
        return ["--workers", self.options.members, "--force"]

    def replace_worker(self, gone):
        """A new worker in the place of one that ended."""
        gone.wait()
        self.workers.remove(gone)
        return self.start_worker()

    def counted(self):
        with self.redis.link() as link:
            count = counted(link)
        return count or 0

    def merges_on(self, merges=3, patience=60):
        """Waits until so many merges more are in the store; returns how long that took."""
        start, before = time.time(), self.watcher.version()
        while self.watcher.version() < before + merges:
            if time.time() > start + patience:
                raise NoSign(f"no {merges} merges in {patience} s; the master's log ends so:\n" +
                             self.master.text()[-1500:])
            time.sleep(0.005)
        return time.time() - start

    def all_alive(self, after):
        return self.master.says(f"{self.count()} alive", after)

    def open_fds(self):
        """Of the master, how many of each kind or file, without its connections to Redis and the
        descriptor that wakes each one's thread: it opens them when it needs them, and keeps
        them."""
        process = pathlib.Path(f"/proc/{self.master.process.pid}")
        links = set()
        for line in (process / "net" / "tcp").read_text().splitlines()[1:]:
            fields = line.split()
            if int(fields[2].split(":")[1], 16) in self.redis_ports():
                links.add(f"socket:[{fields[9]}]")
        opened = [os.readlink(each) for each in (process / "fd").iterdir()]
        to_redis = [each for each in opened if each in links]
        wakes = opened.count(EVENT_FD)
        most = REDIS_LINKS_MAX * len(self.redis_ports())
        require(len(to_redis) <= most and wakes <= most + GATE_EVENTS,
                f"{len(to_redis)} connections to Redis, {wakes} descriptors of events")
        return Counter(each if each.startswith("/") else each.partition(":")[0]
                       for each in opened if each not in links and each != EVENT_FD)

    def leaked_fds(self):
        """More than before the faults; those of a connection that just ended go within seconds."""
        for _ in range(50):
            more = self.open_fds().total() - self.fds.total()
            if more <= 0:
                return 0
            time.sleep(0.1)
        self.left_fds = dict(self.open_fds() - self.fds)
        return more

    def result(self):
        """What a master that ended well said on standard output."""
        lines = pathlib.Path(self.master.output).read_text().strip().splitlines()
        require(lines, f"the master said nothing: {self.master.text()[-1000:]}")
        return json.loads(lines[-1])

    def finish(self, may_be_killed=()):
        """Ends the training by SIGTERM. Raises Wrong unless all ended well and the weights hold
        each merge once; returns what is left."""
        leaks = Leaks(fds=self.leaked_fds())
        self.master.kill(signal.SIGTERM)
        code = self.master.wait(60)
        require(code == 0, f"the master ended with {code}: {self.master.text()[-1500:]}")
        for worker in self.workers:
            code = worker.wait(60)
            require(code == 0 or worker in may_be_killed and code == KILLED,
                    f"a worker ended with {code}: {worker.text()[-1000:]}")
        self.check_count(self.result()["iterations"])
        leaks.keys = len(self.left_keys())
        leaks.files = len(self.left_files())
        leaks.segments = self.segments()
        return leaks

    def check_count(self, merged):
        count = self.counted()
        require(merged == count, f"{merged} iterations, but the weights hold {count}")

    def left_keys(self):
        """Of what workers and master hand each other. Whose name a flipped bit has made another
        job's, nobody can know; they expire."""
        return [key for of in HANDED_OVER
                for key in self.redis.ask("KEYS", f"speedo:{{{self.name()}}}:{of}/*")]

    def name(self):
        return "LeNet" if self.options.net else COUNTED

    def left_files(self):
        """Temporary ones, and beside snapshots what is no whole checkpoint's."""
        left = list(self.temporary.iterdir())
        if self.snapshots.exists():
            whole = (".caffemodel", ".solverstate", ".speedo", ".training")
            left += [each for each in self.snapshots.iterdir() if each.suffix not in whole]
        return left

    def segments(self):
        if self.place.why_not:
            return 0
        shm = pathlib.Path(f"/run/speedo-{os.getpid()}-rig").glob("*.shm/*")
        return len(list(shm))

    def close(self):
        if self.watcher:
            self.watcher.stopping = True
        for node in self.nodes:
            if node.process.poll() is None:
                node.kill()
                node.wait()
        self.redis.kill()
