"""Rows whose fault is the machine's: files, clocks, memory, processor."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

from job import KILLED, require
from job_processes import PATIENCE, end_with_parent
from place import CannotRun, within
from trial import scenario

# The thread of a master that writes snapshots, and the calls of it that neither files nor others
# can tell from none.
SNAPSHOT_THREAD = "nets"
SNAPSHOT_CALLS = ("!futex,mmap,munmap,mremap,brk,madvise,mprotect,sched_yield,clock_nanosleep,"
                  "restart_syscall")
FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"


def need(program, package):
    if not shutil.which(program):
        raise CannotRun(f"no {program}: install Debian's {package}")


def iteration_of(path):
    return int(re.search(r"_iter_(\d+)\.", path.name)[1])


def checkpoints(job, renamed=True):
    """Of each whole checkpoint its iteration: what its record names is there, or without `renamed`
    perhaps by the name that it had until the record was written."""
    def is_there(part):
        drafts = [] if renamed else part.parent.glob(f"{part.name}.new-*")
        return part.exists() or any(drafts)

    found = []
    for record in job.snapshots.glob("*.speedo"):
        if all(is_there(record.with_suffix(end)) for end in (".caffemodel", ".solverstate")):
            found.append(iteration_of(record))
    return sorted(found)


def snapshot_now(job, patience=20):
    """By SIGHUP; returns whether a new checkpoint came."""
    before, start = checkpoints(job), time.time()
    job.master.kill(signal.SIGHUP)
    while checkpoints(job) == before:
        if time.time() > start + patience or job.master.process.poll() is not None:
            return False
        time.sleep(0.01)
    return True


@scenario(28, "disk full while a snapshot is written")
def disk_full(trial):
    job = trial.job(start=False, rows=4096)  # 1 MiB of weights
    trial.place.small_files(job.snapshots, "9m")
    job.start()
    require(snapshot_now(job), "no snapshot although there is room")
    whole = checkpoints(job)
    ballast = job.snapshots / "ballast.caffemodel"
    room = os.statvfs(job.snapshots)
    ballast.write_bytes(bytes(max(0, room.f_bavail * room.f_bsize - 700_000)))
    job.merges_on(1)  # an iteration that has a snapshot gets no other
    start = time.time()
    job.master.kill(signal.SIGHUP)
    trial.struck += 1
    trial.detect.append(job.master.says("No space left", start) - start)
    job.merges_on(5)
    require(checkpoints(job) == whole, "the checkpoint before is not what it was")
    drafts = [each for each in job.left_files() if each.parent == job.snapshots]
    require(not drafts, f"drafts stay: {drafts}")
    ballast.unlink()
    start = time.time()
    require(snapshot_now(job), "no snapshot although there is room again")
    trial.recover.append(time.time() - start)
    trial.finish(job)


def attach(job, *what, log="/dev/null"):
    """strace at the thread of the master that writes snapshots; does `what` to its calls."""
    need("strace", "strace")
    tasks = pathlib.Path(f"/proc/{job.master.process.pid}/task")
    found = [task for task in tasks.iterdir()
             if (task / "comm").read_text().strip() == SNAPSHOT_THREAD]
    require(len(found) == 1, f"{len(found)} threads of the master write snapshots")
    tracer = subprocess.Popen(["strace", "-qq", "-o", log, "-e", f"trace={SNAPSHOT_CALLS}", *what,
                               "-p", found[0].name], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, preexec_fn=end_with_parent)
    while f"TracerPid:\t{tracer.pid}\n" not in (found[0] / "status").read_text():
        require(tracer.poll() is None, "strace cannot attach")
        time.sleep(0.005)
    return tracer


def detach(tracer):
    tracer.terminate()
    tracer.wait()


@scenario(28, "EIO of fsync, EROFS of rename while a snapshot is written")
def failing_calls(trial):
    job = trial.job(quiet=True)
    require(snapshot_now(job), "no snapshot without a fault")
    for call, error in (("fsync", "EIO"), ("rename", "EROFS")):
        whole, start = checkpoints(job), time.time()
        tracer = attach(job, "-e", f"inject={call}:error={error}")
        job.master.kill(signal.SIGHUP)
        trial.struck += 1
        trial.detect.append(job.master.says("the snapshot at iteration", start) - start)
        job.merges_on(3)
        detach(tracer)
        require(checkpoints(job) == whole, f"{call}: the checkpoint before is not what it was")
        start = time.time()
        require(snapshot_now(job), f"{call}: no snapshot after the fault")
        trial.recover.append(time.time() - start)
    trial.finish(job)


def snapshot_calls(job):
    """The calls that write one, in order: the name of each, and how many of it there were."""
    log = job.folder / "calls"
    tracer = attach(job, log=log)
    require(snapshot_now(job), "no snapshot while its calls are listed")
    time.sleep(0.3)
    detach(tracer)
    calls = re.findall(r"^(\w+)\(", log.read_text(), re.MULTILINE)
    require(calls, "a snapshot makes no calls")
    return [(name, calls[:at].count(name) + 1) for at, name in enumerate(calls)]


@scenario(29, "master SIGKILL at each system call of a snapshot", minutes=True)
def killed_in_snapshot(trial):
    job = trial.job(quiet=True)
    require(snapshot_now(job), "no snapshot without a fault")
    calls = snapshot_calls(job)
    first = trial.random.randrange(min(trial.settings.kills, len(calls)))
    chosen = calls[first::trial.settings.kills]
    for name, ordinal in chosen:
        killed_at(trial, job, f"{name}:signal=KILL:when={ordinal}")
    which = "each" if trial.settings.kills == 1 else f"each {trial.settings.kills}."
    trial.notes.append(f"{which} of {len(calls)} calls")
    trial.finish(job)


def killed_at(trial, job, moment):
    """The master is killed at a call for a snapshot, and what it has left in files is gone on from.

    The snapshots before may have had more calls: then it is killed once this one is whole."""
    before = checkpoints(job)
    tracer = attach(job, "-e", f"inject={moment}")
    job.merges_on(1)  # an iteration that has a snapshot gets no other
    start = time.time()
    job.master.kill(signal.SIGHUP)
    while job.master.process.poll() is None and checkpoints(job) == before:
        require(time.time() < start + PATIENCE, "neither a snapshot nor the kill in it comes")
        time.sleep(0.01)
    try:
        job.master.wait(0.5)
        trial.struck += 1
    except subprocess.TimeoutExpired:
        detach(tracer)
        job.master.kill()
    require(job.master.wait() == KILLED, f"the master ended with {job.master.wait()}")
    tracer.wait()
    lost = set(before) - set(checkpoints(job, renamed=False))
    require(not lost, f"checkpoints of iterations {lost} are gone")
    go_on_from_files(trial, job)


def go_on_from_files(trial, job):
    newest, start = checkpoints(job, renamed=False)[-1], time.time()
    job.redis.ask("FLUSHALL")
    job.start_master(("--resume=auto",))
    job.all_alive(start)
    trial.recover.append(time.time() - start)
    require(f"goes on from iteration {newest}" in job.master.text(),
            f"the newest checkpoint, {newest}, is not gone on from: {job.master.text()[-800:]}")
    job.merges_on(3)
    require(snapshot_now(job), "no snapshot after the kill")
    require(not job.left_files(), f"left by the kill: {job.left_files()}")
    job.fds = job.open_fds()


def faked_clock(trial, who):
    """What precedes a command whose wall clock goes as the file says that is returned, too."""
    if not os.path.exists(FAKETIME):
        raise CannotRun("no libfaketime: install Debian's faketime")
    clock = trial.folder / f"clock-{who}"
    os.makedirs(trial.folder, exist_ok=True)
    clock.write_text("+0\n")
    return ["env", f"LD_PRELOAD={FAKETIME}", f"FAKETIME_TIMESTAMP_FILE={clock}",
            "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1"], clock


@scenario(31, "wall clocks of master and a worker jump by an hour, forth and back")
def clock_jumps(trial):
    before, master_clock = faked_clock(trial, "master")
    worker_before, worker_clock = faked_clock(trial, "worker")
    job = trial.job(start=False, master_before=before)
    job.options.first_worker_before = worker_before
    job.start()
    for clock in (master_clock, worker_clock):
        for jump in ("+3600", "-3600", "+0"):
            clock.write_text(f"{jump}\n")
            trial.struck += 1
            time.sleep(1)
            trial.recover.append(job.merges_on(5))
    log = job.master.text()
    hours = {line[10:12] for line in log.splitlines() if re.match(r"[IW]\d{8} ", line)}
    require(len(hours) >= 3, f"the master's clock did not jump: its log is of the hours {hours}")
    for sign in ("is gone", "not been heard of", "left:"):
        require(sign not in log, f"a false death: '{sign}'")
    trial.finish(job)


@scenario(4, "a worker with 10 % of a processor", minutes=True)
def slow_worker(trial):
    group = trial.place.group("cpu", cpu_cfs_period_us=100000, cpu_cfs_quota_us=10000)
    rates = {}
    for strategy in ("sync", "async", "ssp", "partial-sync", "weedout", "easgd"):
        job = trial.job(start=False, rows=1024, flags=("--strategy", strategy), timeout=20)
        job.options.first_worker_before = within(group)
        job.start()
        version, start = job.watcher.version(), time.time()
        time.sleep(4)
        rates[strategy] = (job.watcher.version() - version) / (time.time() - start)
        job.close()
    used = int((group / "cpu.stat").read_text().split("nr_throttled")[1].split()[0])
    trial.struck += used
    trial.notes.append("merges/s: " + ", ".join(f"{name} {rate:.1f}"
                                                for name, rate in rates.items()))




@scenario(33, "master that the limit of its group cannot hold")
def small_memory(trial):
    group = trial.place.group("memory", memory_limit_in_bytes=48 << 20)
    job = trial.job(start=False, rows=65536, master_before=within(group))  # 16 MiB of weights
    job.write_solver()
    master = job.start_master()
    code = master.wait(60)
    trial.struck += 1
    require(code == 64, f"the master ended with {code}: {master.text()[-800:]}")
    require("--force" in master.text(), "the way past the refusal is not named")


@scenario(33, "worker killed by the kernel at the limit of its group")
def out_of_memory(trial):
    group = trial.place.group("memory", memory_limit_in_bytes=256 << 20)
    job = trial.job(start=False, first_worker_before=within(group)).start()
    victim = job.workers[0]
    # Others in the group take the memory; the worker is what the kernel is to choose.
    pathlib.Path(f"/proc/{victim.process.pid}/oom_score_adj").write_text("1000")
    start = time.time()
    eater = subprocess.Popen([*within(group), "python3", "-c",
                              "b = b'x' * (300 << 20)\nimport time\ntime.sleep(60)"],
                             preexec_fn=end_with_parent)
    trial.closing.append(eater.kill)
    trial.detect.append(job.master.says("is gone", start) - start)
    require(victim.wait(30) == KILLED, "the worker was not killed")
    trial.struck += 1
    eater.kill()
    eater.wait()
    job.options.first_worker_before = ()
    job.replace_worker(victim)
    job.all_alive(start)
    trial.recover.append(time.time() - start)
    job.merges_on(10)
    trial.finish(job)
