"""Rows whose fault is Redis': it restarts, hangs, drops connections, is full, is flushed."""
import signal
import time

from job import REDIS, require
from job_processes import COUNTED
from trial import scenario


def restarted(trial, append_only):
    job = trial.job(append_only=append_only)
    for _ in range(2):
        trial.pause()
        last = job.watcher.version()
        job.redis.kill()
        trial.struck += 1
        last = max(last, job.watcher.version())
        trial.pause(0.2, 1.5)
        job.redis.start()
        answers = time.time()
        trial.goes_on(job, answers, last)
    trial.finish(job)


@scenario(9, "Redis killed and restarted, AOF off", short=True)
def restarted_empty(trial):
    restarted(trial, False)


@scenario(9, "Redis killed and restarted, AOF on")
def restarted_with_data(trial):
    restarted(trial, True)


@scenario(9, "Redis away for longer, master alive", minutes=True)
def away(trial):
    job = trial.job()
    job.redis.kill()
    trial.struck += 1
    time.sleep(20)
    last = job.watcher.version()
    job.redis.start()
    answers = time.time()
    trial.goes_on(job, answers, last)
    trial.finish(job)


@scenario(10, "CLIENT KILL of all connections each 100 ms")
def killed_connections(trial):
    job = trial.job(flags=())
    with job.redis.link() as link:
        for _ in range(40):
            killed = link.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            trial.struck += killed
            time.sleep(0.1)
    trial.recover.append(job.merges_on(10))
    trial.finish(job)


@scenario(10, "connections to Redis cut as fast as they are made", minutes=True)
def cut_without_end(trial):
    job = trial.job(workers=2, members=50, flags=(), timeout=20)
    address = f"{job.net.address(REDIS)}:{job.redis.port}"  # none of the rig's come there
    with job.redis.link() as link:
        while trial.struck < trial.settings.cuts:
            goal, last = min(trial.struck + 1000, trial.settings.cuts), job.watcher.version()
            while trial.struck < goal:
                trial.struck += link.ask("CLIENT", "KILL", "LADDR", address)
                time.sleep(trial.random.uniform(0, 0.04))
            start = time.time()
            trial.recover.append(job.watcher.first_after(start, last) - start)
    job.merges_on(10)
    trial.finish(job)


@scenario(10, "CLIENT PAUSE for a second, of all and of writes")
def paused(trial):
    job = trial.job()
    for what in ("ALL", "WRITE"):
        start = time.time()
        job.redis.ask("CLIENT", "PAUSE", "1000", what)
        trial.struck += 1
        time.sleep(1)
        trial.recover.append(job.watcher.first_after(start + 1) - start - 1)
        job.merges_on()
    trial.finish(job)


@scenario(11, "Redis hangs (SIGSTOP) for 8 s")
def hangs(trial):
    job = trial.job()
    job.redis.process.send_signal(signal.SIGSTOP)
    trial.struck += 1
    start = time.time()
    try:
        trial.detect.append(job.master.says("Redis", start, 30) - start)
        time.sleep(8)
    finally:
        job.redis.process.send_signal(signal.SIGCONT)
    woken = time.time()
    trial.goes_on(job, woken)
    trial.finish(job)


@scenario(13, "Redis full (maxmemory), then room again")
def full(trial):
    job = trial.job()
    start = time.time()
    job.redis.ask("CONFIG", "SET", "maxmemory", "1mb")
    trial.struck += 1
    trial.detect.append(job.master.says("OOM", start) - start)
    trial.pause(1, 3)
    require(job.master.process.poll() is None, "the master ended")
    freed = time.time()
    job.redis.ask("CONFIG", "SET", "maxmemory", "0")
    trial.goes_on(job, freed)
    trial.finish(job)


@scenario(35, "FLUSHALL while training")
def flushed(trial):
    job = trial.job()
    for _ in range(3):
        trial.pause()
        last, start = job.watcher.version(), time.time()
        job.redis.ask("FLUSHALL")
        trial.struck += 1
        trial.goes_on(job, start, last)
    trial.finish(job)


@scenario(35, "keys deleted and overwritten by others")
def changed(trial):
    job = trial.job()
    for _ in range(6):
        trial.pause(0.05, 0.2)
        keys = [key for key in job.redis.ask("KEYS", f"speedo:{{{COUNTED}}}:*") if b"/" not in key]
        last, start = job.watcher.version(), time.time()
        key = trial.random.choice(sorted(keys))
        if trial.random.random() < 0.5:
            job.redis.ask("DEL", key)
        else:
            job.redis.ask("SET", key, trial.random.randbytes(200))
        trial.struck += 1
        trial.goes_on(job, start, last, merges=5)
    trial.finish(job)
