"""The tiers of the exchange, and a job of real processes in one of them."""
import os
import time
from collections import Counter
from dataclasses import dataclass

import round_view
import shared_boards
from job import HANDED_OVER, MASTER, REDIS, Job, Options, Wrong, require
from job_processes import COUNTED_STEP, NoSign, Redis, Watcher
from place import CannotRun

SHARDS = 3
SHARD_NODES = (REDIS, 7, 8)  # a server, and its merger beside it
WORKERS = 3
ROWS = 9000  # three chunks of weights
STEPS_HELD = 4  # of a worker's updates by the threshold
REPLICATED = ("--sync", "--gradient-only", "--replicated")
MERGER_COMES = " is merged by "


@dataclass(frozen=True)
class Tier:
    """How contributions and weights travel."""
    name: str
    flags: tuple = ("--sync",)  # of the master
    shared: bool = False
    servers: int = 1
    mergers: int = 0  # beside servers; the other parts are merged with the master
    behind: bool = False  # the store follows the merges: a master that dies loses what it lacks
    lossy: bool = False


MEMORY = Tier("shared memory", shared=True, behind=True)
BESIDE = Tier("shards, mergers beside them", ("--sync", "--shards", SHARDS), servers=SHARDS,
              mergers=SHARDS)
TIERS = (
    Tier("one store"),
    MEMORY,
    BESIDE,
    Tier("shards, merged with the master", ("--sync", "--shards", SHARDS), servers=SHARDS),
    Tier("replicated, factors", REPLICATED, behind=True),
    Tier("replicated, dense", (*REPLICATED, "--no-factors"), behind=True),
    Tier("codec bf16", ("--sync", "--codec", "bf16")),
    Tier("codec threshold", ("--sync", "--codec", f"threshold:{STEPS_HELD * COUNTED_STEP}"),
         lossy=True),
)
# Each contribution is an iteration of its own: one that is merged twice is seen.
ASYNC_TIERS = (
    Tier("one store, async", ()),
    Tier("shared memory, async", (), shared=True, behind=True),
    Tier("shards, mergers beside them, async", ("--shards", SHARDS), servers=SHARDS,
         mergers=SHARDS),
)


class TierWatcher(Watcher):
    """Keeps of each version the term of the master that made it, too."""

    def __init__(self, job):
        self.job, self.of_terms = job, []  # time, term, version
        super().__init__(job.redis, "", 0.002)

    def run(self):
        link = None
        while not self.stopping:
            try:
                link = link or self.redis.link(1)
                self.note(*self.newest(link))
            except (OSError, ValueError, IndexError):
                if link:
                    link.close()
                link = None
            time.sleep(self.pause)

    def newest(self, link):
        if self.job.tier.shared:
            return shared_boards.boards(self.job.master.process.pid)[0].newest()
        return round_view.newest(link)

    def note(self, term, version):
        last = self.of_terms[-1] if self.of_terms else (0, 0, 0)
        if (term, version) > last[1:]:
            self.of_terms.append((time.time(), term, version))
            # Versions of a master that went on from earlier weights are counted on.
            self.seen.append((time.time(), self.version() + 1))

    def term(self):
        return self.of_terms[-1][1] if self.of_terms else 0

    def seen_at(self, term, version):
        """When that version of that master, or a later one, was seen first."""
        return next(when for when, of, seen in self.of_terms if of == term and seen >= version)

    def merge_after_term(self, term, begun, patience=60):
        """When the first merge of a later master was seen, which began to train at that time;
        before it comes what it starts from."""
        deadline = time.time() + patience
        while time.time() < deadline:
            later = [when for when, of, _ in self.of_terms if of > term]
            merges = [when for when in later[1:] if when > begun]
            if merges:
                return merges[0]
            time.sleep(0.002)
        raise NoSign(f"no merge of a master after term {term} for {patience} s")


class TierJob(Job):
    """Three workers of the net that counts, in rounds; `tier` says how they exchange."""

    def __init__(self, place, folder, binaries, tier, append_only=False):
        self.tier, self.others, self.mergers, self.changes = tier, [], [], 0
        super().__init__(place, folder, binaries,
                         Options(workers=WORKERS, flags=tier.flags, rows=ROWS, quiet=True,
                                 timeout=10, append_only=append_only, shared_memory=tier.shared))
        for number in range(1, tier.servers):
            own = folder / f"server{number}"
            os.makedirs(own)
            arguments = [self.net.address(SHARD_NODES[number]) if each == self.net.address(REDIS)
                         else each for each in self.redis_arguments()]
            self.others.append(Redis(str(own), place.command(SHARD_NODES[number]),
                                     list(dict.fromkeys(arguments)), self.redis.password))

    def start(self):
        super().start()
        if self.tier.mergers:
            require(self.master.text().count(MERGER_COMES) >= self.tier.mergers,
                    "training began without mergers")
        return self

    def start_workers(self):
        """Mergers before them, so that they have come when training begins."""
        for number in range(self.tier.mergers):
            self.mergers.append(self.start_merger(number))
        if self.tier.mergers:
            self.wait_for_mergers()
        super().start_workers()

    def start_merger(self, number):
        return self.launch(SHARD_NODES[number],
                           [self.binaries / "speedo-worker", "--no-config", "--token-file",
                            self.token, "--redis-password-file", self.password,
                            f"--shard={number + 1}", "--master",
                            f"{self.master_address}:{self.port}"])

    def wait_for_mergers(self, patience=60):
        """Until the master that there is now has said of each that it has come."""
        deadline = time.time() + patience
        while self.master.text().count(MERGER_COMES) < self.tier.mergers:
            if time.time() > deadline:
                raise NoSign(f"not all mergers came: {self.master.text()[-1500:]}")
            time.sleep(0.01)

    def servers(self):
        return [self.redis, *self.others]

    def redis_addresses(self):
        return ",".join(f"{self.net.address(node)}:{server.port}"
                        for node, server in zip(SHARD_NODES, self.servers()))

    def redis_ports(self):
        return [each.port for each in self.servers()]

    def watch(self):
        return TierWatcher(self)

    def processes(self):
        return [self.master, *self.workers, *self.mergers]

    def round(self):
        """Of processes that stand still."""
        if self.tier.shared:
            return shared_boards.in_memory(self.master.process.pid,
                                        [each.process.pid for each in self.workers])
        links = [each.link() for each in self.servers()]
        try:
            return round_view.in_servers(links)
        finally:
            for link in links:
                link.close()

    def counted(self):
        """What the store has."""
        links = [each.link() for each in self.servers()]
        try:
            return round_view.counted_in_servers(links, ROWS)
        finally:
            for link in links:
                link.close()

    def merged(self):
        """Iterations that all see; the processes stand still."""
        if self.tier.shared:
            return shared_boards.counted_in_memory(self.master.process.pid, ROWS)
        with self.redis.link() as link:
            return max(round_view.iteration_after_step(link), self.counted())

    def check_count(self, merged):
        count = self.counted()
        if not self.tier.lossy:
            require(merged == count, f"{merged} iterations, but the weights hold {count}")
            return
        # Each worker holds less than the threshold back, and takes it along when it goes; a mean of
        # fewer gives what one has held back for rounds more weight, and the next mean less again.
        fewer = sum(node.text().count("; left out") for node in self.nodes)
        most = STEPS_HELD * (1 + self.changes + 2 * fewer)
        require(-most <= merged - count <= most,
                f"{merged} iterations, {count} in the weights: more than {most} between them")

    def finish(self, may_be_killed=()):
        for each in self.mergers:
            require(each.process.poll() is None, f"a merger ended: {each.text()[-1000:]}")
        leaks = super().finish(may_be_killed)
        for each in self.mergers:
            code = each.wait(60)
            require(code == 0, f"a merger ended with {code}: {each.text()[-1000:]}")
        contributions = self.result()["contributions"]
        require(contributions <= WORKERS * self.result()["iterations"],
                f"{contributions} contributions in {self.result()['iterations']} rounds")
        return leaks

    def left_keys(self, term=""):
        """What workers and master have left, of a master of that term only if one is given."""
        rest = f"{term}/*" if term else "*"
        return [key for server in self.servers() for of in HANDED_OVER
                for key in server.ask("KEYS", f"speedo:{{count*}}:{of}/{rest}")]

    def kinds_of_keys(self):
        """How many of each kind the servers have: without numbers of terms, slots and workers."""
        found = Counter()
        for number, server in enumerate(self.servers()):
            for key in server.ask("KEYS", "*"):
                parts = key.decode().split(":")
                found[f"{number} " + ":".join(each for each in parts if not (
                    each[:1] in "ts" and each[1:].isdigit()))] += 1
        return found

    def close(self):
        super().close()
        for each in self.others:
            each.kill()


def tier_job(trial, tier, append_only=False):
    """Started, with merges behind it; the trial ends it."""
    if tier.servers > 1:
        trial.place.need_nodes()
    job = TierJob(trial.place, trial.folder / f"job{len(trial.jobs)}", trial.settings.binaries,
                  tier, append_only)
    trial.jobs.append(job)
    return job.start()
