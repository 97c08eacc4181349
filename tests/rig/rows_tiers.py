"""Faults in the middle of a round, in each tier of the exchange; what is left of it."""
import os
import pathlib
import re
import signal
import time

import shared_boards
from job import KILLED, require
from job_processes import NoSign
from round_view import standing_still
from tier import ASYNC_TIERS, BESIDE, MEMORY, TIERS, WORKERS, tier_job
from trial import scenario

ROW = 37
STRIKES = 4  # of a repetition
ATTEMPTS = 2000  # to find a moment in the middle of a round
MERGES = 5  # that must follow each fault
RESUMED = "goes on from iteration "
RECORD_SLOTS = 3  # copies of a chunk of weights: include/speedo/store/layout.hpp
USUAL_KEYS = {}  # of a tier: what a training without faults leaves


class Strike:
    """A fault in the middle of a round: strikes while all stand still, having looked."""

    def __init__(self, trial, job, act):
        for _ in range(ATTEMPTS):
            trial.pause(0, 0.05)
            with standing_still(job.processes()):
                self.round = job.round()
                self.stage = self.round.stage(WORKERS)
                if self.stage is None:
                    continue
                self.merged, self.term = job.merged(), job.watcher.term()
                self.at = time.time()
                act()
                trial.struck += 1
                break
        else:
            raise NoSign(f"no moment in the middle of a round in {ATTEMPTS} tries")
        trial.stages[self.stage] += 1


def dead(node):
    node.kill()
    require(node.wait() == KILLED, "a process was not killed")


def end(trial, job, may_be_killed=()):
    """As all trials end, and the servers keep no more than of a training without faults."""
    trial.finish(job, may_be_killed)
    kinds = job.kinds_of_keys()
    if job.tier.name not in USUAL_KEYS:
        plain = tier_job(trial, job.tier)
        plain.merges_on(MERGES)
        plain.finish()
        USUAL_KEYS[job.tier.name] = plain.kinds_of_keys()
    more = kinds - USUAL_KEYS[job.tier.name]
    for kind in list(more):
        if ":weights:c" in kind and kinds[kind] <= RECORD_SLOTS:
            del more[kind]  # a short training has not come round to all of them
    require(not more, f"keys more than without faults: {dict(more)}")


def worker_killed(trial, job):
    strike_at = trial.random.randrange(WORKERS)
    victim = job.workers[strike_at]
    strike = Strike(trial, job, lambda: dead(victim))
    notice = job.master.says("is gone", strike.at - 0.001)
    trial.detect.append(notice - strike.at)
    trial.recover.append(job.watcher.first_after(notice) - strike.at)
    job.changes += 2
    job.replace_worker(victim)
    job.all_alive(notice)


def goes_on_from(trial, job, strike, start):
    """The iteration that the new master begins with; measures until its first merge."""
    begun = job.master.says(RESUMED)
    trial.recover.append(job.watcher.merge_after_term(strike.term, begun) - start)
    return int(re.search(RESUMED + r"(\d+)", job.master.text())[1])


def check_lost(trial, job, strike, stored, resumed):
    """`stored` iterations were in the store when the master died."""
    job.changes += 2 * WORKERS
    if job.tier.lossy:
        return
    require(resumed == stored, f"{stored} iterations were stored, it goes on from {resumed}")
    lost = strike.merged - resumed
    require(lost >= 0 and (job.tier.behind or lost == 0),
            f"{strike.merged} iterations were merged, it goes on from {resumed}")
    trial.lost += int(lost)
    if lost:
        first = job.watcher.seen_at(strike.term, strike.round.version - int(lost) + 1)
        trial.lost_seconds = max(trial.lost_seconds, strike.at - first)


def check_left(job, strike, patience=20):
    """The master after the dead one removes what that one's workers have left in the servers."""
    deadline = time.time() + patience
    while left := job.left_keys(strike.term):
        require(time.time() < deadline, f"{len(left)} keys of the term before stay, as {left[0]}")
        time.sleep(0.05)


def master_killed(trial, job):
    stored = []

    def act():
        dead(job.master)
        stored.append(job.counted())

    strike = Strike(trial, job, act)
    trial.pause(0, 1)
    start = time.time()
    job.start_master(("--resume",))
    check_lost(trial, job, strike, stored[0], goes_on_from(trial, job, strike, start))
    job.all_alive(strike.at)
    check_left(job, strike)
    if job.tier.mergers:
        job.wait_for_mergers()


def server_killed(trial, job):
    """One of its redis-servers, with the merger beside it left alone."""
    server = trial.random.choice(job.servers())
    Strike(trial, job, server.kill)
    trial.pause(0.1, 1)
    server.start()
    answers = time.time()
    trial.recover.append(job.watcher.first_after(answers) - answers)


def all_killed(trial, job):
    """Master, workers, mergers and redis-servers; then all are started anew."""
    stored = []

    def act():
        stored.append(job.counted())
        for each in job.processes():
            each.kill()
        for server in job.servers():
            server.kill()
        for each in job.processes():
            require(each.wait() == KILLED, "a process was not killed")

    strike = Strike(trial, job, act)
    require(not job.segments(), "segments in /dev/shm that nobody has any more")
    trial.pause(0, 0.3)
    for server in job.servers():
        server.start()
    job.workers, job.mergers = [], []
    start = time.time()
    job.start_master(("--resume",))
    job.start_workers()
    check_lost(trial, job, strike, stored[0], goes_on_from(trial, job, strike, start))
    job.all_alive(start)
    check_left(job, strike)


def merger_killed(trial, job):
    number = trial.random.randrange(job.tier.mergers)
    victim = job.mergers[number]
    strike = Strike(trial, job, lambda: dead(victim))
    notice = job.master.says("; the part is merged here", strike.at - 0.001)
    trial.detect.append(notice - strike.at)
    trial.recover.append(job.watcher.first_after(notice) - strike.at)
    job.merges_on(MERGES)
    came = time.time()
    job.mergers[number] = job.start_merger(number)
    job.master.says(" is merged by ", came)


def shard_killed(trial, job):
    """A server with all that it holds and the merger beside it."""
    number = trial.random.randrange(job.tier.mergers)

    def act():
        dead(job.mergers[number])
        job.servers()[number].kill()

    strike = Strike(trial, job, act)
    notice = job.master.says("; the part is merged here", strike.at - 0.001)
    trial.detect.append(notice - strike.at)
    trial.pause(0.1, 1)
    job.servers()[number].start()
    answers = time.time()
    trial.recover.append(job.watcher.first_after(answers) - answers)
    came = time.time()
    job.mergers[number] = job.start_merger(number)
    job.master.says(" is merged by ", came)


FAULTS = (("worker killed", worker_killed, False), ("master killed", master_killed, False),
          ("a Redis killed, data lost", server_killed, False),
          ("a Redis killed, data kept", server_killed, True),
          ("all killed at once, Redis' data kept", all_killed, True))


def struck_again_and_again(trial, tier, fault, append_only):
    job = tier_job(trial, tier, append_only)
    mapped = mappings(job)
    for _ in range(STRIKES):
        fault(trial, job)
        job.merges_on(MERGES)
    require(mappings(job) == mapped, f"{mappings(job)} mappings of shared memory, {mapped} before")
    job.fds = job.fds if fault not in (master_killed, all_killed) else job.open_fds()
    end(trial, job)


def mappings(job):
    """How many of shared memory the master has; of the dead ones none is to be left soon."""
    seen = None
    for _ in range(100):
        text = pathlib.Path(f"/proc/{job.master.process.pid}/maps").read_text()
        if text.count("/memfd:speedo") == seen:
            break
        seen = text.count("/memfd:speedo")
        time.sleep(0.1)
    return seen


def add(tier, name, fault, append_only=False):
    scenario(ROW, f"{tier.name}: {name}")(
        lambda trial: struck_again_and_again(trial, tier, fault, append_only))


for _tier in (*TIERS, *ASYNC_TIERS):
    for _name, _fault, _append_only in FAULTS:
        add(_tier, _name, _fault, _append_only)
add(BESIDE, "a merger killed", merger_killed)
add(BESIDE, "a Redis and its merger killed, data lost", shard_killed)


def refused(act):
    try:
        act()
    except OSError:
        return True
    return False


def removed_by_hand(trial, job):
    """There is no name to remove; what a hand can reach by /proc it can neither cut nor unlink."""
    def act():
        for node in (job.master, *job.workers):
            pid = node.process.pid
            found = shared_boards.descriptors_of_memory(pid)
            require(found, "a process has no shared memory")
            for path in (f"/proc/{pid}/fd/{each}" for each in found):
                require(refused(lambda: os.truncate(path, 0)), "shared memory can be cut short")
                require(refused(lambda: os.unlink(path)), "shared memory can be unlinked")
            require(not list(pathlib.Path(f"/proc/{pid}/root/dev/shm").iterdir()),
                    "it has a name in /dev/shm")

    strike = Strike(trial, job, act)
    trial.recover.append(job.watcher.first_after(strike.at) - strike.at)


add(MEMORY, "segments removed by hand", removed_by_hand)
