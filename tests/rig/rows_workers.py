"""Rows whose fault is a worker's: it dies, freezes, leaves, comes back."""
import signal
import time

from job import FIRST_WORKER, MASTER, REDIS, WORKER_TIMEOUT, require
from proxy import DOWN, UP, Proxy
from trial import scenario


@scenario(1, "worker SIGKILL while computing", short=True)
def killed(trial):
    job = trial.job()
    dead = []
    for _ in range(3):
        trial.pause()
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


def cut_at(trial, job, proxy, after):
    """Cuts the connection whose bytes come after so many more, and waits for merges again."""
    struck, start = proxy.struck["cut"], time.time()
    proxy.strike("cut", trial.random.choice([UP, DOWN]), after)
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
