"""A job's real processes, for programs in Python that start, kill and watch them."""
import ctypes
import re
import signal
import socket
import struct
import subprocess
import threading
import time

PATIENCE = 60
MANIFEST = b"SPEEDOM"  # what manifests begin with; what others wrote there does not
CHUNK_HEAD = 32  # bytes before a chunk's values: include/speedo/store/layout.hpp
COUNTED = "count"  # the job of counting_solver.prototxt
COUNTED_STEP = 0.00390625 / 4  # by which one contribution changes each of its weights


class NoSign(Exception):
    """What was waited for did not come."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def end_with_parent():
    """For Popen's preexec_fn: the kernel ends the program when the one that started it ends."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def varint(data, at):
    value, shift = 0, 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields_of(data, at=0):
    """Number and value of each field of a message of proto/speedo.proto; bytes stay as they are."""
    while at < len(data):
        tag, at = varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind in (1, 5):
            size = 8 if kind == 1 else 4
            value, at = data[at:at + size], at + size
        else:
            value, at = varint(data, at)
            if kind == 2:
                value, at = data[at:at + value], at + value
        yield number, value


def manifest_fields(manifest):
    """The fields of a stored manifest: see proto/speedo.proto and store/layout.hpp."""
    return dict(fields_of(manifest, 16))


def stamp(line):
    """When a log's line was written, in seconds since 1970; 0 of a line that does not say."""
    found = re.match(r"\w(\d{8} \d\d:\d\d:\d\d)\.(\d{6}) ", line)
    if not found:
        return 0.0
    return time.mktime(time.strptime(found[1], "%Y%m%d %H:%M:%S")) + int(found[2]) / 1e6


class RedisLink:
    """One connection that asks; `address` is a path or (host, port)."""

    def __init__(self, address, timeout=5.0, password=None):
        kind = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.link, self.rest = socket.socket(kind), b""
        self.link.settimeout(timeout)
        try:
            self.link.connect(address)
            if password:
                self.ask("AUTH", password)
        except OSError:
            self.link.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.link.close()

    def ask(self, *words):
        """The answer: a number, bytes, None, a list, or an OSError of an error."""
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.link.sendall(b"*%d\r\n" % len(words) +
                          b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
        return self.answer()

    def answer(self):
        head = self.until(b"\r\n")
        kind, text = head[:1], head[1:]
        if kind == b"-":
            raise OSError(text.decode())
        if kind == b":":
            return int(text)
        if kind == b"$":
            return None if int(text) < 0 else self.take(int(text))
        if kind == b"*":
            return [self.answer() for _ in range(int(text))]
        return text

    def receive(self):
        data = self.link.recv(65536)
        if not data:
            raise OSError("closed")
        self.rest += data

    def until(self, end):
        while end not in self.rest:
            self.receive()
        head, self.rest = self.rest.split(end, 1)
        return head

    def take(self, size):
        while len(self.rest) < size + 2:
            self.receive()
        value, self.rest = self.rest[:size], self.rest[size + 2:]
        return value


class Redis:
    """A redis-server that keeps nothing, unless `arguments` say otherwise."""

    def __init__(self, folder, command=(), arguments=(), password=None):
        self.port, self.process, self.password = free_port(), None, password
        self.socket = f"{folder}/redis.sock"
        self.command = [*command, "redis-server", "--port", str(self.port), "--dir", folder,
                        "--unixsocket", self.socket, "--save", "", "--appendonly", "no",
                        *(arguments or ("--bind", "127.0.0.1"))]
        if password:
            self.command += ["--requirepass", password]
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, preexec_fn=end_with_parent)
        end = time.monotonic() + PATIENCE
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > end:
                raise NoSign("redis-server does not start")
            time.sleep(0.002)

    def link(self, timeout=5.0):
        return RedisLink(self.socket, timeout, self.password)

    def answers(self):
        try:
            return self.ask("PING") == b"PONG"
        except OSError:
            return False

    def ask(self, *words):
        with self.link() as link:
            return link.ask(*words)

    def kill(self):
        self.process.kill()
        self.process.wait()


class Watcher(threading.Thread):
    """Asks for the version of a job's weights all the time; keeps when each was first seen."""

    def __init__(self, redis, job, pause=0.001):
        super().__init__(daemon=True)
        self.redis, self.key, self.pause = redis, f"speedo:{{{job}}}:weights:m", pause
        self.seen, self.stopping = [], False
        self.start()

    def run(self):
        link = None
        while not self.stopping:
            try:
                link = link or self.redis.link(1)
                manifest = link.ask("GET", self.key)
                is_ours = bool(manifest) and manifest.startswith(MANIFEST)
                version = manifest_fields(manifest).get(3, 0) if is_ours else 0
                if is_ours and (not self.seen or self.seen[-1][1] != version):
                    self.seen.append((time.time(), version))
            except OSError:
                if link:
                    link.close()
                link = None
            time.sleep(self.pause)

    def version(self):
        return self.seen[-1][1] if self.seen else 0

    def first_after(self, moment, above=0):
        """When the first version was seen that is newer than `moment` and above `above`."""
        deadline = time.time() + PATIENCE
        at = 0
        while time.time() < deadline:
            for when, version in self.seen[at:]:
                at += 1
                if when > moment and version > above:
                    return when
            time.sleep(0.002)
        raise NoSign(f"no merge for {PATIENCE} s")


class Node:
    """A program whose standard error is a log."""

    def __init__(self, command, log, environment=None):
        self.log, self.output = log, f"{log}.out"
        with open(log, "wb") as errors, open(self.output, "wb") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=errors,
                                            preexec_fn=end_with_parent, env=environment)

    def kill(self, number=signal.SIGKILL):
        self.process.send_signal(number)

    def wait(self, patience=None):
        return self.process.wait(patience)

    def text(self):
        with open(self.log, errors="replace") as file:
            return file.read()

    def says(self, text, after=0.0, patience=PATIENCE):
        """The time stamp of the first line from then on that contains `text`."""
        deadline = time.time() + patience
        rest = ""
        with open(self.log, errors="replace") as log:
            while True:
                lines = (rest + log.read()).split("\n")
                rest = lines.pop()
                for line in lines:
                    if text in line and stamp(line) >= after:
                        return stamp(line)
                if time.time() > deadline or self.process.poll() is not None and not log.read(1):
                    break
                time.sleep(0.005)
        raise NoSign(f"'{text}' is not in the log:\n{self.text()[-2000:]}")


def counted(link):
    """Contributions that the stored weights of counting_solver.prototxt hold; None: no weights.

    Raises ValueError if a part of the weights holds another number of them than the rest."""
    for _ in range(1000):
        manifest = link.ask("GET", f"speedo:{{{COUNTED}}}:weights:m")
        if manifest is None:
            return None
        values = chunk_values(link, manifest_fields(manifest))
        if values is None:
            continue  # overwritten by a newer version
        if values.count(values[0]) != len(values):
            raise ValueError("parts of the weights hold different numbers of contributions")
        count = -values[0] / COUNTED_STEP
        if count != int(count):
            raise ValueError(f"the weights hold {count} contributions")
        return int(count)
    raise ValueError("no version of the weights stays long enough to be read")


def chunk_values(link, fields):
    """The values of a record's first chunk; None if it is no longer of that version."""
    key = f"speedo:{{{COUNTED}}}:weights:t{fields[10]}:s{fields.get(9, 0)}:c0"
    chunk = link.ask("GET", key)
    if chunk is None or struct.unpack_from("<Q", chunk, 8)[0] != fields[3]:
        return None
    return struct.unpack(f"<{(len(chunk) - CHUNK_HEAD) // 4}f", chunk[CHUNK_HEAD:])
