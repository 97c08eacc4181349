"""Rows whose fault is the network's, or of strangers in it."""
import socket
import time

from job import FIRST_WORKER, MASTER, REDIS, WORKER_TIMEOUT, require, resident
from proxy import DOWN, UP
from rows_workers import proxied
from trial import scenario
from wire import Wire

STRANGER = 8


def partition(trial, pairs):
    """Loses what goes along the pairs of nodes for longer than --worker-timeout."""
    trial.place.need_nodes()
    job = trial.job()
    trial.pause()
    start = time.time()
    for source, target in pairs:
        trial.place.drop(source, target)
        trial.struck += 1
    try:
        time.sleep(2 * WORKER_TIMEOUT)
        require(job.master.process.poll() is None, "the master ended")
    finally:
        for source, target in pairs:
            trial.place.pass_again(source, target)
    healed = time.time()
    last = job.watcher.version()
    trial.recover.append(job.watcher.first_after(healed, last) - healed)
    return job, start, healed


@scenario(15, "worker and master cannot reach each other")
def worker_from_master(trial):
    pairs = [(FIRST_WORKER, MASTER), (MASTER, FIRST_WORKER)]
    job, start, healed = partition(trial, pairs)
    trial.detect.append(job.master.says("not been heard of", start) - start)
    job.all_alive(healed)
    trial.finish(job)


@scenario(15, "one way only: what the worker sends the master is lost")
def worker_unheard(trial):
    job, start, healed = partition(trial, [(FIRST_WORKER, MASTER)])
    trial.detect.append(job.master.says("not been heard of", start) - start)
    job.all_alive(healed)
    trial.finish(job)


@scenario(15, "one way only: what the master sends the worker is lost")
def worker_untold(trial):
    job, start, healed = partition(trial, [(MASTER, FIRST_WORKER)])
    job.merges_on(20)
    job.master.says("3 alive")
    trial.finish(job)


@scenario(15, "worker and Redis cannot reach each other")
def worker_from_redis(trial):
    job, start, healed = partition(trial, [(FIRST_WORKER, REDIS), (REDIS, FIRST_WORKER)])
    job.merges_on(20)
    trial.finish(job)


@scenario(15, "master and Redis cannot reach each other")
def master_from_redis(trial):
    job, start, healed = partition(trial, [(MASTER, REDIS), (REDIS, MASTER)])
    job.merges_on(20)
    trial.finish(job)


def nobody_died(job):
    deaths = [line for line in job.master.text().splitlines()
              if "is gone" in line or "not been heard of" in line]
    ends = [line for worker in job.workers for line in worker.text().splitlines()
            if "connection lost" in line or "has said nothing" in line]
    require(not deaths, f"{len(deaths)} false deaths: {deaths[:3]}; workers: {ends[:4]}")


def bad_network(trial, seconds, **faults):
    """Merges a second while packets suffer; nobody is taken for dead."""
    nodes = [REDIS, MASTER, *range(FIRST_WORKER, FIRST_WORKER + 2)]
    wire = Wire(trial.place, nodes, trial.random.random())
    trial.closing.append(wire.close)
    job = trial.job(start=False, workers=2, flags=(), timeout=10, wire=wire)
    job.start()
    wire.all_ways(**faults)
    version, start = job.watcher.version(), time.time()
    time.sleep(seconds)
    merges = job.watcher.version() - version
    require(merges > 0, f"no merge in {seconds} s; the master's log ends so:\n"
                        f"{job.master.text()[-1000:]}")
    trial.notes.append(f"{merges / (time.time() - start):.1f} merges/s; packets " + ", ".join(
        f"{count} {what}" for what, count in wire.struck.items() if count))
    trial.struck += sum(wire.struck.values()) + (wire.passed if faults.get("delay") else 0)
    nobody_died(job)
    wire.all_ways(delay=0.0, jitter=0.0, loss=0.0, double=0.0, damage=0.0, rate=0.0)
    job.merges_on(20)
    trial.finish(job)


@scenario(16, "200 ms +- 50, 5 % loss, 10 Mbit/s, doubled, damaged, out of order", minutes=True)
def slow_and_lossy(trial):
    bad_network(trial, trial.settings.minutes * 60, delay=0.2, jitter=0.05, loss=0.05,
                double=0.01, damage=0.01, rate=1.25e6)


@scenario(16, "nothing passes for less than --worker-timeout, and nobody is taken for dead")
def outage(trial):
    wire = Wire(trial.place, [REDIS, MASTER, *range(FIRST_WORKER, FIRST_WORKER + 2)], 0)
    trial.closing.append(wire.close)
    job = trial.job(workers=2, flags=(), timeout=10, wire=wire)
    links = [(MASTER, FIRST_WORKER), (FIRST_WORKER, MASTER)]
    for source, target in links:
        wire.set_way(source, target, cut=True)
    time.sleep(trial.random.uniform(6.5, 7.5))
    for source, target in links:
        wire.set_way(source, target, cut=False)
    trial.struck += wire.struck["cut"]
    job.merges_on(20)
    time.sleep(job.options.timeout)  # until a silence that went on would have been noticed
    nobody_died(job)
    trial.finish(job)


@scenario(16, "packets doubled, damaged and out of order")
def disorder(trial):
    bad_network(trial, 4, delay=0.003, jitter=0.002, double=0.05, damage=0.02, loss=0.01)


@scenario(20, "bits flipped between worker and Redis")
def flipped_records(trial):
    job, proxy = proxied(trial, "redis_via", workers=2, flags=())
    flips(trial, job, proxy)


@scenario(20, "bits flipped between worker and master")
def flipped_messages(trial):
    job, proxy = proxied(trial, "master_via", workers=2, flags=())
    flips(trial, job, proxy)


def flips(trial, job, proxy):
    for _ in range(12):
        before, start = proxy.struck["flip"], time.time()
        proxy.strike("flip", trial.random.choice([UP, DOWN]), trial.random.randrange(3000))
        while proxy.struck["flip"] == before:
            require(time.time() < start + 30, "nothing passed the proxy to be damaged")
            time.sleep(0.002)
        trial.struck += 1
        trial.recover.append(job.merges_on(3))
    trial.finish(job)


def greetings(draw):
    """What strangers send: other protocols, noise, and almost ours."""
    hello = bytes.fromhex("16030100c8010000c40303") + draw.randbytes(200)
    return [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", hello, b"", draw.randbytes(5),
            draw.randbytes(64), draw.randbytes(65), draw.randbytes(100000), bytes(64),
            b"\xff" * 4096, b"SPEEDO" + draw.randbytes(58), b"*1\r\n$4\r\nPING\r\n"]


@scenario(23, "strangers send garbage to the master's port", short=True)
def garbage(trial):
    job = trial.job()
    before = resident(job.master.process.pid)

    def send():
        for _ in range(20):
            for greeting in greetings(trial.random):
                with socket.create_connection((job.master_address, job.port), 5) as link:
                    trial.struck += 1
                    try:
                        link.sendall(greeting)
                        link.shutdown(socket.SHUT_WR)
                        while link.recv(4096):
                            pass
                    except OSError:
                        pass  # reset, as it may be

    trial.place.inside(STRANGER, send)
    trial.recover.append(job.merges_on(10))
    trial.notes.append(f"memory {(resident(job.master.process.pid) - before) / 2**20:+.1f} MiB, "
                       f"{job.master.text().count('Gate: ')} lines of the gate")
    trial.finish(job)


def idle_links(address, count):
    """Connections of strangers who say nothing; fewer if the master takes no more."""
    links = []
    for _ in range(count):
        try:
            links.append(socket.create_connection(address, 5))
        except OSError:
            break
    return links


def drip(links):
    """Sends a byte on each that is still open."""
    for link in links:
        try:
            link.send(b"S")
        except OSError:
            pass


@scenario(24, "300 idle connections, one byte at a time, and a worker that joins")
def idle(trial):
    job = trial.job()
    before = resident(job.master.process.pid)
    links = trial.place.inside(STRANGER,
                               lambda: idle_links((job.master_address, job.port), 300))
    try:
        trial.struck += len(links)
        start = time.time()
        victim = job.workers[0]
        victim.kill()
        job.replace_worker(victim)
        drip(links)
        trial.recover.append(job.all_alive(start) - start)
        for _ in range(10):
            drip(links)
            time.sleep(0.1)
    finally:
        for link in links:
            link.close()
    grown = resident(job.master.process.pid) - before
    trial.notes.append(f"memory {grown / 2**20:+.1f} MiB")
    job.merges_on(10)
    trial.finish(job)
