"""Rows whose fault is a worker's: it dies, freezes, leaves, comes back."""
import re
import signal
import time

from job import FIRST_WORKER, MASTER, REDIS, WORKER_TIMEOUT, require
from proxy import DOWN, UP, Proxy
from trial import scenario


@scenario(1, "worker SIGKILL while computing", short=True)
def killed(trial):
    job = trial.job(timeout=10)  # so that it is the kill that is noticed, on a busy machine too
    dead = []
    for _ in range(trial.settings.deaths):
        trial.pause(0.01, 0.2)
        victim = trial.random.choice(job.workers)
        start = time.time()
        victim.kill()
        trial.struck += 1
        notice = job.master.says("is gone", start)
        trial.detect.append(notice - start)
        trial.recover.append(job.watcher.first_after(notice) - start)
        dead.append(victim)
        job.replace_worker(victim)
        job.all_alive(notice)
    trial.finish(job)


def proxied(trial, target, **options):
    """A job whose workers reach the target through a proxy; nothing passes before `open_to`."""
    proxy = Proxy(trial.place, FIRST_WORKER, None)
    trial.closing.append(proxy.close)
    job = trial.job(start=False, rows=1, **{target: proxy}, **options)
    proxy.target = ((trial.place.address(REDIS), job.redis.port) if target == "redis_via"
                    else (trial.place.address(MASTER), job.port))
    return job.start(), proxy


def cut_at(trial, job, proxy, after, way=None, pattern=None):
    """Cuts the connection whose bytes come after so many more, and waits for merges again."""
    struck, start = proxy.struck["cut"], time.time()
    proxy.strike("cut", trial.random.choice([UP, DOWN]) if way is None else way, after, pattern)
    while proxy.struck["cut"] == struck:
        require(time.time() < start + 30, f"nothing passed the proxy to be cut after {after} bytes")
        time.sleep(0.001)
    cut = time.time()
    trial.struck += 1
    trial.recover.append(job.merges_on(3))
    return cut


@scenario(2, "worker's Redis connection cut at a byte", short=True)
def cut_from_redis(trial):
    job, proxy = proxied(trial, "redis_via", workers=2)
    passed, version = proxy.passed[UP], job.watcher.version()
    job.merges_on(50)
    contribution = 2 * (proxy.passed[UP] - passed) // (job.watcher.version() - version)
    for after in range(trial.random.randrange(trial.settings.sweep), contribution,
                       trial.settings.sweep):
        cut_at(trial, job, proxy, after)
    trial.notes.append(f"every {trial.settings.sweep} bytes of {contribution}")
    trial.finish(job)


# How a worker tells Redis a contribution: its only chunk, and then its manifest.
CHUNK = re.compile(rb"\*4\r\n\$5\r\nSETEX\r\n\$\d+\r\nspeedo:\{\w+\}:worker/[\d/]+:s\d+:c0\r\n")
MANIFEST = re.compile(rb"\*4\r\n\$5\r\nSETEX\r\n\$\d+\r\nspeedo:\{\w+\}:worker/[\d/]+:m\r\n"
                      rb"\$\d+\r\n\d+\r\n\$(\d+)\r\n")


def contribution_bytes(job, proxy):
    """From the first byte of its chunk's order to the last one of its manifest's."""
    proxy.tap = bytearray()
    job.merges_on(20)
    passed, proxy.tap = bytes(proxy.tap), None
    chunk = CHUNK.search(passed)
    require(chunk, "no contribution passes the proxy")
    manifest = MANIFEST.search(passed, chunk.end())
    require(manifest, "no manifest of a contribution passes the proxy")
    return manifest.end() + int(manifest[1]) + len(b"\r\n") - chunk.start()


@scenario(2, "contribution cut at a byte of its own")
def contribution_cut(trial):
    job, proxy = proxied(trial, "redis_via", workers=1, flags=())
    step, size = trial.settings.sweep, contribution_bytes(job, proxy)
    for after in range(trial.random.randrange(step), size, step):
        cut_at(trial, job, proxy, after, UP, CHUNK)
    trial.notes.append(f"{'each byte' if step == 1 else f'every {step} bytes'} of {size}")
    trial.finish(job)


@scenario(2, "worker's control connection cut at a byte")
def cut_from_master(trial):
    job, proxy = proxied(trial, "master_via", workers=2)
    for _ in range(8):
        cut = cut_at(trial, job, proxy, trial.random.randrange(3000))
        job.all_alive(cut)
    trial.finish(job)


@scenario(2, "worker SIGKILL with half a contribution sent")
def killed_while_sending(trial):
    job, proxy = proxied(trial, "redis_via", workers=1, flags=())
    for _ in range(6):
        victim = job.workers[0]
        proxy.on_cut = victim.kill
        cut_at_death(trial, job, proxy)
        job.replace_worker(victim)
        job.merges_on(3)
    trial.finish(job)


def cut_at_death(trial, job, proxy):
    struck = proxy.struck["cut"]
    start = time.time()
    proxy.strike("cut", UP, trial.random.randrange(600))
    trial.detect.append(job.master.says("is gone", start) - start)
    require(proxy.struck["cut"] == struck + 1, "the worker died without a cut")
    trial.struck += 1


@scenario(3, "worker SIGSTOP for longer than --worker-timeout")
def frozen(trial):
    job = trial.job()
    victim = trial.random.choice(job.workers)
    trial.pause()
    start = time.time()
    victim.kill(signal.SIGSTOP)
    trial.struck += 1
    notice = job.master.says("not been heard of", start)
    trial.detect.append(notice - start)
    trial.recover.append(job.watcher.first_after(notice) - start)
    trial.pause(0.5, 5 - WORKER_TIMEOUT)
    woken = time.time()
    victim.kill(signal.SIGCONT)
    job.all_alive(woken)
    trial.finish(job)


@scenario(3, "worker SIGSTOP for less than --worker-timeout")
def straggling(trial):
    job = trial.job(timeout=6)
    for _ in range(2):
        victim = trial.random.choice(job.workers)
        start = time.time()
        victim.kill(signal.SIGSTOP)
        trial.struck += 1
        time.sleep(trial.random.uniform(0.2, 1))
        victim.kill(signal.SIGCONT)
        trial.recover.append(job.watcher.first_after(time.time()) - start)
        job.merges_on()
    require("not been heard of" not in job.master.text(), "a worker was given up too early")
    trial.finish(job)


@scenario(5, "worker leaves and rejoins again and again")
def flapping(trial):
    job = trial.job(workers=2, flags=())
    times = trial.settings.joins
    for _ in range(times):
        victim, start = job.workers[-1], time.time()
        number = trial.random.choice([signal.SIGTERM, signal.SIGKILL])
        victim.kill(number)
        trial.struck += 1
        ended = victim.wait(30)
        require(ended == (0 if number == signal.SIGTERM else -number),
                f"a worker that left ended with {ended}")
        job.replace_worker(victim)
        trial.recover.append(job.all_alive(start) - start)
    trial.finish(job)


MEMBERS = 50  # workers of a process


@scenario(5, "processes of many workers leave and rejoin", minutes=True)
def flapping_processes(trial):
    job = trial.job(workers=2, members=MEMBERS, flags=(), timeout=20)
    for _ in range(-(-trial.settings.joins // MEMBERS)):
        victim, start = job.workers[-1], time.time()
        number = trial.random.choice([signal.SIGTERM, signal.SIGKILL])
        victim.kill(number)
        ended = victim.wait(60)
        require(ended == (0 if number == signal.SIGTERM else -number),
                f"workers that left ended with {ended}")
        trial.struck += MEMBERS
        job.replace_worker(victim)
        trial.recover.append(job.all_alive(start) - start)
        job.merges_on(2 * MEMBERS)
    trial.notes.append(f"processes of {MEMBERS} workers")
    trial.finish(job)
