"""Rows whose fault is the master's: it dies, sleeps, is told to end, finds its port taken."""
import signal
import subprocess
import time

from job import KILLED, MASTER, OTHER_MASTER, require
from trial import scenario

RESUMED = "goes on from iteration "


def new_master(trial, job, node=MASTER, flags=("--resume",)):
    """Starts one in place of one that is dead; returns how long it took to its first merge."""
    merged, last = job.counted(), job.watcher.version()
    start = time.time()
    job.start_master(flags, node)
    # The first new version is what workers start from, the second one a merge.
    recovered = job.watcher.first_after(start, last + 1) - start
    text = job.master.text()
    require(RESUMED in text, "the new master does not say where it goes on")
    resumed = int(text.rpartition(RESUMED)[2].split()[0].rstrip(".,;"))
    trial.lost += merged - resumed
    require(merged == resumed, f"{merged} iterations were in the store, it goes on from {resumed}")
    return recovered


@scenario(7, "master SIGKILL and restart", short=True)
def killed(trial):
    job = trial.job()
    for _ in range(2):
        trial.pause()
        job.master.kill()
        require(job.master.wait() == KILLED, "the master was not killed")
        trial.struck += 1
        trial.pause(0, 2)
        trial.recover.append(new_master(trial, job))
        job.master.says("3 alive")
        job.merges_on(10)
    job.fds = job.open_fds()
    trial.finish(job)


@scenario(7, "master SIGKILL, new one on another host at once")
def elsewhere(trial):
    trial.place.need_nodes()
    job = trial.job()
    trial.pause()
    job.master.kill()
    job.master.wait()
    trial.struck += 1
    # The address moves with it, as that of a service does.
    address = f"{trial.place.address(MASTER)}/24"
    trial.place.ip(MASTER, "address", "del", address, "dev", "eth0")
    trial.place.ip(OTHER_MASTER, "address", "add", address, "dev", "eth0")
    trial.place.forget_neighbours()
    try:
        start = time.time()
        job.start_master(("--resume",), OTHER_MASTER)
        job.all_alive(start)
        trial.recover.append(time.time() - start)
        job.merges_on(20)
        job.fds = job.open_fds()
        trial.finish(job)
    finally:
        trial.place.ip(OTHER_MASTER, "address", "del", address, "dev", "eth0")
        trial.place.ip(MASTER, "address", "add", address, "dev", "eth0")
        trial.place.forget_neighbours()


@scenario(8, "two masters: old one stopped, new one started, old one continued")
def two_masters(trial):
    job = trial.job()
    trial.pause()
    old, start = job.master, time.time()
    old.kill(signal.SIGSTOP)
    trial.struck += 1
    job.master_address = trial.place.address(OTHER_MASTER)
    job.start_master(("--resume", "--take-over"), OTHER_MASTER)
    job.master.says(RESUMED)
    workers = [job.start_worker() for _ in range(job.options.workers)]
    trial.recover.append(job.all_alive(start) - start)
    job.merges_on(5)
    woken = time.time()
    old.kill(signal.SIGCONT)
    code = old.wait(30)
    trial.detect.append(time.time() - woken)
    require(code == 75, f"the old master ended with {code}: {old.text()[-1000:]}")
    job.merges_on(20)
    for each in [each for each in job.workers if each not in workers]:
        each.kill()
        each.wait()
    job.workers = workers
    job.fds = job.open_fds()
    trial.finish(job)


def told_to_end(trial, number):
    """A signal to a worker, then to the master, which ends the training."""
    job = trial.job()
    victim, start = job.workers[0], time.time()
    victim.kill(number)
    trial.struck += 1
    require(victim.wait(30) == 0, f"the worker ended with {victim.process.returncode}")
    trial.recover.append(time.time() - start)
    job.replace_worker(victim)
    job.all_alive(start)
    start = time.time()
    job.master.kill(number)
    trial.struck += 1
    require(job.master.wait(60) == 0, f"the master ended with {job.master.process.returncode}")
    trial.recover.append(time.time() - start)
    merged, count = job.result()["iterations"], job.counted()
    require(merged == count, f"{merged} iterations, but the weights hold {count}")
    require((job.snapshots / f"s_iter_{merged}.speedo").exists(), "the end has no snapshot")
    for worker in job.workers:
        require(worker.wait(30) == 0, f"a worker ended with {worker.process.returncode}")
    left = job.left_keys(), job.left_files()
    require(left == ([], []), f"left behind: {left}")


@scenario(30, "SIGTERM to worker and master")
def terminated(trial):
    told_to_end(trial, signal.SIGTERM)


@scenario(30, "SIGINT to worker and master")
def interrupted(trial):
    told_to_end(trial, signal.SIGINT)


@scenario(30, "SIGHUP to the master: a snapshot, and on")
def hung_up(trial):
    job = trial.job()
    for _ in range(3):
        trial.pause()
        before = len(list(job.snapshots.glob("*.speedo")))
        start = time.time()
        job.master.kill(signal.SIGHUP)
        trial.struck += 1
        while len(list(job.snapshots.glob("*.speedo"))) == before:
            require(time.time() < start + 30, "SIGHUP brings no snapshot")
            time.sleep(0.01)
        trial.recover.append(time.time() - start)
        job.merges_on()
    trial.finish(job)


@scenario(30, "second signal while the first one hangs")
def told_twice(trial):
    job = trial.job()
    job.redis.process.send_signal(signal.SIGSTOP)
    try:
        trial.pause(0.2, 0.5)
        job.master.kill(signal.SIGTERM)
        time.sleep(0.5)
        require(job.master.process.poll() is None, "nothing hangs that a second signal could end")
        start = time.time()
        job.master.kill(signal.SIGTERM)
        trial.struck += 1
        code = job.master.wait(30)
        trial.recover.append(time.time() - start)
        require(code == 128 + signal.SIGTERM, f"the second SIGTERM ended the master with {code}")
    finally:
        job.redis.process.send_signal(signal.SIGCONT)


@scenario(32, "port in use")
def port_taken(trial):
    job = trial.job(workers=1)
    command = [*trial.place.command(MASTER), *map(str, job.master_command(("--job", "other")))]
    start = time.time()
    second = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    trial.detect.append(time.time() - start)
    trial.struck += 1
    require(second.returncode == 69, f"the second master ended with {second.returncode}: "
                                     f"{second.stderr[-500:]}")
    last = second.stderr.strip().splitlines()[-1]
    require(str(job.port) in last, f"its last line does not name the port: {last}")
    require(not job.redis.ask("KEYS", "speedo:{other}:*"), "it has left keys")
    trial.finish(job)
