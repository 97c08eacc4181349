"""`speedo run`, whose processes are all killed at once, and the one that clears up behind them."""
import os
import pathlib
import signal
import time

import round_view
import shared_boards
from job import MASTER, require
from job_processes import NoSign
from trial import scenario

STRIKES = 4
ROWS = 9000  # three chunks of weights
WORKERS = 2
PATIENCE = 60


class Started:
    """A process that another one started; as a Node, as far as round_view looks."""

    def __init__(self, folder):
        self.pid, self.process = int(folder.name), self
        self.name = (folder / "comm").read_text().strip()

    def poll(self):
        """None as long as it is there."""
        return 0 if round_view.is_gone(self.pid) else None

    def kill(self, number=signal.SIGKILL):
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            pass


def processes_of(job):
    """All whose environment, or command, names the folder of this job's temporary files."""
    mark, found = os.fsencode(job.temporary), []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            # Redis writes its title over its environment.
            if any(mark in (folder / each).read_bytes() for each in ("environ", "cmdline")):
                found.append(Started(folder))
        except OSError:
            continue  # gone meanwhile
    return found


def kill_in_a_round(trial, job):
    deadline = time.time() + PATIENCE
    while time.time() < deadline:
        trial.pause(0, 0.05)
        all_of_it = processes_of(job)
        masters, workers = ([each.pid for each in all_of_it if each.name == name]
                            for name in ("speedo-master", "speedo-worker"))
        if len(masters) != 1 or len(workers) != WORKERS:
            continue
        with round_view.standing_still(all_of_it):
            stage = shared_boards.in_memory(masters[0], workers).stage(WORKERS)
            if stage:
                for each in all_of_it:
                    each.kill()
                trial.struck += 1
                trial.stages[stage] += 1
                return all_of_it
    raise NoSign(f"no moment in the middle of a round in {PATIENCE} s")


def wait_until_gone(processes):
    deadline = time.time() + PATIENCE
    while any(each.poll() is None for each in processes):
        require(time.time() < deadline, "a process that was killed stays")
        time.sleep(0.01)


@scenario(37, "speedo run: all killed at once, its guardian too")
def run_killed(trial):
    job = trial.job(start=False, rows=ROWS)
    job.write_solver()
    command = [job.binaries / "speedo", "run", "--no-config", "--solver", job.solver, "--workers",
               WORKERS, "--force", "--sync", "--max-restarts", 0]
    for _ in range(STRIKES):
        run = job.launch(MASTER, command)
        killed = kill_in_a_round(trial, job)
        names = sorted(each.name for each in killed)
        require("speedo-guardian" in names and "redis-server" in names, f"only {names} are there")
        run.wait()
        wait_until_gone(killed)
        left = job.left_files()
        require(len(left) == 1, f"{len(left)} folders after a kill: {left}")
        require(not job.segments(), "segments in /dev/shm")
    start = time.time()
    run = job.launch(MASTER, command)
    trial.recover.append(run.says("Iteration 100 ", start) - start)
    require(len(job.left_files()) == 1 and job.left_files() != left,
            "the next start removed nothing")
    run.kill(signal.SIGTERM)
    require(run.wait(60) == 0, f"it ended with {run.process.returncode}: {run.text()[-1000:]}")
    trial.leaks.files, trial.leaks.segments = len(job.left_files()), job.segments()
    require(not trial.leaks.any(), f"left behind: {trial.leaks}, {job.left_files()}")
