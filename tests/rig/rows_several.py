"""Rows of several faults at once or one after another, and what faults cost in accuracy."""
import signal
import statistics
import time

import lenet
from job import KILLED, resident, require
from rows_master import new_master
from trial import scenario

STRATEGIES = ("sync", "async", "partial-sync", "ssp", "weedout", "grouping", "easgd", "sync-easgd",
              "averaging")


@scenario(6, "two of three workers die at once, below MIN, each schedule", minutes=True)
def double_fault(trial):
    for strategy in STRATEGIES:
        job = trial.job(flags=("--strategy", strategy), asked="2:3")
        start = time.time()
        dead = trial.random.sample(job.workers, 2)
        for each in dead:
            each.kill()
            trial.struck += 1
            time.sleep(trial.random.choice([0, 0.001, 0.01]))
        job.master.says("training pauses", start)
        for each in dead:
            job.replace_worker(each)
        job.all_alive(start)
        trial.recover.append(time.time() - start)
        job.merges_on(10)
        end(trial, job, strategy)


def end(trial, job, strategy):
    """Elastic and averaging schedules do not count contributions one by one."""
    if strategy in ("easgd", "sync-easgd", "averaging"):
        job.master.kill(signal.SIGTERM)
        require(job.master.wait(60) == 0, f"{strategy}: {job.master.text()[-1000:]}")
        return
    trial.finish(job)


def kill_worker(trial, job):
    victim, start = trial.random.choice(job.workers[1:]), time.time()
    victim.kill()
    job.replace_worker(victim)
    job.all_alive(start)


def freeze_worker(trial, job):
    victim = trial.random.choice(job.workers)
    victim.kill(signal.SIGSTOP)
    time.sleep(trial.random.uniform(0.1, 2 * job.options.timeout))
    victim.kill(signal.SIGCONT)
    time.sleep(1)


def kill_master(trial, job):
    job.master.kill()
    require(job.master.wait() == KILLED, "the master was not killed")
    trial.pause(0, 1)
    new_master(trial, job)
    job.master.says("3 alive")


def restart_redis(trial, job):
    job.redis.kill()
    trial.pause(0.1, 1)
    job.redis.start()


def cut_connections(trial, job):
    for _ in range(10):
        job.redis.ask("CLIENT", "KILL", "TYPE", "normal")
        time.sleep(0.05)


def hang_redis(trial, job):
    job.redis.process.send_signal(signal.SIGSTOP)
    time.sleep(trial.random.uniform(0.2, 3))
    job.redis.process.send_signal(signal.SIGCONT)


def flush(trial, job):
    job.redis.ask("FLUSHALL")


FAULTS = (kill_worker, freeze_worker, kill_master, restart_redis, cut_connections, hang_redis,
          flush)


class Memory:
    """Resident memory of processes, seen now and then, and how fast it grows."""

    def __init__(self, **nodes):
        self.nodes, self.start = nodes, time.time()
        self.seen = {name: [] for name in nodes}
        self.look()

    def look(self):
        for name, node in self.nodes.items():
            self.seen[name].append(((time.time() - self.start) / 3600,
                                    resident(node.process.pid) / 2**20))

    def slope(self, name):
        """MiB an hour, by least squares."""
        hours, sizes = zip(*self.seen[name])
        return statistics.linear_regression(hours, sizes).slope

    def __str__(self):
        return ", ".join(f"{name} {seen[0][1]:.2f} to {seen[-1][1]:.2f} MiB, "
                         f"{self.slope(name):+.2f} MiB/h" for name, seen in self.seen.items())


def one_fault(trial, job, faults, counts):
    fault, before = trial.random.choice(faults), time.time()
    fault(trial, job)
    trial.struck += 1
    counts[fault.__name__] = counts.get(fault.__name__, 0) + 1
    job.merges_on(20)
    trial.recover.append(time.time() - before)
    trial.pause(0.1, 1)


@scenario(36, "soak: a mix of faults, one after another", minutes=True)
def soak(trial):
    """Masters die in its first third; then one stays, and the first worker with it all the time, so
    that it is seen how their memory grows."""
    job, counts = trial.job(), {}
    start, seconds = time.time(), 60 * trial.settings.minutes
    while time.time() < start + seconds / 3:
        one_fault(trial, job, FAULTS, counts)
    job.fds = job.open_fds()
    lasting = [fault for fault in FAULTS if fault is not kill_master]
    memory = Memory(master=job.master, worker=job.workers[0])
    while time.time() < start + seconds:
        one_fault(trial, job, lasting, counts)
        memory.look()
    trial.notes.append(f"{trial.settings.minutes:g} minutes: " +
                       ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) +
                       f"; memory in the last two thirds: {memory}; "
                       f"{job.watcher.version()} versions")
    trial.finish(job)


ITERATIONS = 150


def accuracy(trial, strikes):
    """Of LeNet after ITERATIONS rounds of two workers, each strike at a moment of its own."""
    text = lenet.solver(lenet.data(trial.settings.binaries, trial.settings.build), ITERATIONS)
    job = trial.job(net=text, workers=2, timeout=10)
    for number, strike in enumerate(strikes):
        goal = (number + 1) * ITERATIONS // (len(strikes) + 1)
        while job.watcher.version() < goal:
            require(job.master.process.poll() is None, "training ended before the fault")
            time.sleep(0.01)
        strike(trial, job)
        trial.struck += 1
    code = job.master.wait(300)
    require(code == 0, f"the master ended with {code}: {job.master.text()[-1000:]}")
    require(job.result()["iterations"] == ITERATIONS, "not all iterations were done")
    return 100 * job.result()["accuracy"]


def master_dies(trial, job):
    job.master.kill()
    require(job.master.wait() == KILLED, "the master was not killed")
    job.start_master(("--resume",))


def worker_dies(trial, job):
    victim = trial.random.choice(job.workers)
    victim.kill()
    job.replace_worker(victim)


def gap(trial, strikes):
    plain = accuracy(trial, [])
    struck = accuracy(trial, strikes)
    trial.gap = plain - struck
    trial.notes.append(f"LeNet, {ITERATIONS} rounds: {plain:.2f} % without, {struck:.2f} % with")


@scenario(1, "accuracy after deaths of workers", minutes=True)
def accuracy_of_workers(trial):
    gap(trial, [worker_dies] * 3)


@scenario(7, "accuracy after deaths of masters", minutes=True)
def accuracy_of_masters(trial):
    gap(trial, [master_dies] * 3)


@scenario(9, "accuracy after losses of Redis with all data", minutes=True)
def accuracy_of_redis(trial):
    gap(trial, [restart_redis] * 3)
