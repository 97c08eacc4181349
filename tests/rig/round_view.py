"""How far the round under way is in a job whose processes stand still: what servers hold of it."""
import contextlib
import pathlib
import signal
import struct
import time
from dataclasses import dataclass

from job_processes import (CHUNK_HEAD, COUNTED, COUNTED_STEP, MANIFEST, fields_of,
                           manifest_fields, varint)

INPUTS = 64  # of the net that counts: a row of its weights
WEIGHTS_HALF, HALF, ALL, SOME = ("new weights half written", "a contribution half written",
                                 "all contributed, not merged", "some contributed")


@dataclass(frozen=True)
class Round:
    """From one version of the weights to the next."""
    version: int  # that all see
    whole: int  # contributions made of it, and not merged
    half: int  # being written, a part of it is there
    parts: int  # chunks of the next version's weights

    def stage(self, workers):
        """What is there of it, in words; None: nothing, so no round is under way yet."""
        if self.parts:
            return WEIGHTS_HALF
        if self.half:
            return HALF
        if self.whole >= workers:
            return ALL
        return SOME if self.whole else None


def state_of(folder):
    """Of the process or thread that has this folder in /proc."""
    return (folder / "stat").read_text().rpartition(")")[2].split()[0]


def is_gone(pid):
    try:
        return state_of(pathlib.Path(f"/proc/{pid}")) in "ZX"
    except OSError:
        return True


def stands_still(pid):
    """Whether each thread of the process is stopped, or it is gone."""
    try:
        return all(state_of(task) in "TtZX" for task in
                   pathlib.Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return is_gone(pid)


@contextlib.contextmanager
def standing_still(nodes):
    """Those that are not killed meanwhile go on afterwards."""
    for node in nodes:
        node.kill(signal.SIGSTOP)
    try:
        for node in nodes:
            while not stands_still(node.process.pid):
                time.sleep(0.0005)
        yield
    finally:
        for node in nodes:
            if node.process.poll() is None:
                node.kill(signal.SIGCONT)


def tag(server):
    return f"speedo:{{{COUNTED}}}" if server == 0 else f"speedo:{{{COUNTED}:{server}}}"


def fields_at(link, key):
    """Of the manifest there; none if there is none."""
    manifest = link.ask("GET", key)
    return manifest_fields(manifest) if manifest and manifest.startswith(MANIFEST) else {}


def newest(link):
    """Term and version of what all see: the weights, or a step that leads from some to others."""
    weights = fields_at(link, f"{tag(0)}:weights:m")
    term = int(link.ask("GET", f"{tag(0)[:-1]}}}/term") or 0)
    step = fields_at(link, f"{tag(0)}:master/{term}/step:m")
    return max((each.get(10, 0), each.get(3, 0)) for each in (weights, step))


def iteration_after_step(link):
    """The newest step of replicated updates included; 0: there is none."""
    term = int(link.ask("GET", f"{tag(0)[:-1]}}}/term") or 0)
    step = fields_at(link, f"{tag(0)}:master/{term}/step:m")
    return dict(fields_of(step[11])).get(1, 0) + 1 if step else 0


def chunk_versions(links, pattern):
    """Of each chunk whose key is so: the key without slot and chunk, and its version."""
    for server, link in enumerate(links):
        for key in link.ask("KEYS", f"{tag(server)}:{pattern}:c*"):
            head = link.ask("GETRANGE", key, 0, CHUNK_HEAD - 1)
            if len(head) == CHUNK_HEAD:
                name = key.decode().partition("}")[2].split(":")[1]
                yield name, struct.unpack_from("<Q", head, 8)[0]


def look_at_servers(links):
    term, version = newest(links[0])
    runs, whole = {}, 0
    for key in links[0].ask("KEYS", f"{tag(0)}:worker/{term}/*:m"):
        name = key.decode().split(":")[-2]
        fields = fields_at(links[0], key)
        if name.count("/") == 2:
            runs[name] = fields.get(3, 0)
            whole += fields.get(4, 0) == version
    half, parts = set(), 0
    for name, of in chunk_versions(links, f"worker/{term}/*"):
        if of > runs.get(name, 0):
            half.add(name)
    parts += sum(of > version for _, of in chunk_versions(links, f"master/{term}/step:*"))
    parts += sum(of == version + 1 for _, of in chunk_versions(links, f"weights:t{term}:*"))
    return Round(version, whole, len(half), parts)


def in_servers(links):
    """What had been sent before all stopped is still coming in: until nothing more does."""
    seen = None
    while True:
        now = look_at_servers(links)
        if now == seen:
            return now
        seen = now
        time.sleep(0.001)


def in_whole_steps(values):
    """How many steps all of these weights have made. Raises ValueError if not all as many."""
    if values.count(values[0]) != len(values):
        raise ValueError("parts of the weights hold different numbers of contributions")
    return -values[0] / COUNTED_STEP


def slots_of(packed):
    at, slots = 0, []
    while at < len(packed):
        slot, at = varint(packed, at)
        slots.append(slot)
    return slots


def counted_in_servers(links, rows):
    """What the stored weights count, on however many servers they lie; 0: there are none."""
    for _ in range(1000):
        fields = fields_at(links[0], f"{tag(0)}:weights:m")
        if not fields:
            return 0
        values = stored_values(links, fields, INPUTS * rows)
        if values:
            return in_whole_steps(values)
    raise ValueError("no version of the weights stays long enough to be read")


def stored_values(links, fields, count):
    """The record's first values; None if it was overwritten meanwhile."""
    slots = slots_of(fields.get(14, b""))
    values, chunk = [], 0
    while len(values) < count:
        server = chunk % len(links)
        slot = slots[server] if slots else fields.get(9, 0)
        data = links[server].ask("GET", f"{tag(server)}:weights:t{fields[10]}:s{slot}:c{chunk}")
        if data is None or struct.unpack_from("<Q", data, 8)[0] != fields[3]:
            return None
        values += struct.unpack(f"<{(len(data) - CHUNK_HEAD) // 4}f", data[CHUNK_HEAD:])
        chunk += 1
    return values[:count]
