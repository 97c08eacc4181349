"""What a row's scenario works with, and the table of all scenarios."""
import os
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import time
from collections import Counter
from dataclasses import dataclass, field

from job import Job, Leaks, Options, Wrong, require
from job_processes import NoSign
from place import ROOT, CannotRun

SCENARIOS = []
SLOW = 5  # seconds that nothing usually takes to recover


@dataclass(frozen=True)
class Scenario:
    row: int  # of the fault matrix
    name: str
    run: object  # called with a Trial
    short: bool  # seconds; part of the ordinary tests
    minutes: bool  # takes minutes


def scenario(row, name, short=False, minutes=False):
    """Of the function below: one line of the table."""
    def add(run):
        SCENARIOS.append(Scenario(row, name, run, short, minutes))
        return run
    return add


@dataclass(frozen=True)
class Settings:
    """Of the whole run."""
    binaries: pathlib.Path
    build: pathlib.Path
    seed: int
    minutes: float  # of row 36
    sweep: int  # bytes between two cuts of row 2
    kills: int  # system calls between two kills of row 29
    joins: int  # of row 5
    deaths: int  # of row 1
    cuts: int  # of row 10
    keep: pathlib.Path = None  # where the logs of repetitions go that failed or were slow


@dataclass
class Trial:
    """One repetition of a scenario: its place and random numbers, and what it measured."""
    place: object
    settings: Settings
    random: random.Random
    folder: pathlib.Path
    detect: list = field(default_factory=list)  # seconds
    recover: list = field(default_factory=list)  # seconds
    lost: int = 0  # iterations
    lost_seconds: float = 0  # that the oldest of them was old
    gap: float = None  # of accuracy, percentage points
    struck: int = 0  # faults that took place
    leaks: Leaks = field(default_factory=Leaks)
    notes: list = field(default_factory=list)
    stages: Counter = field(default_factory=Counter)  # that faults struck in
    jobs: list = field(default_factory=list)
    closing: list = field(default_factory=list)  # called at the end

    def job(self, start=True, **options):
        folder = self.folder / f"job{len(self.jobs)}"
        job = Job(self.place, folder, self.settings.binaries, Options(**options))
        self.jobs.append(job)
        return job.start() if start else job

    def pause(self, least=0.05, most=0.5):
        time.sleep(self.random.uniform(least, most))

    def goes_on(self, job, since, above=0, merges=10):
        """Measures from `since` to the next merge, of a version above; then more must follow."""
        self.recover.append(job.watcher.first_after(since, above) - since)
        job.merges_on(merges)

    def finish(self, job, may_be_killed=()):
        left = job.finish(may_be_killed)
        for name in ("fds", "keys", "files", "segments"):
            setattr(self.leaks, name, getattr(self.leaks, name) + getattr(left, name))
        require(not left.any(), f"left behind: {left}; descriptors: {job.left_fds}; files: "
                                f"{job.left_files()}; keys: {job.left_keys()}")

    def close(self):
        for job in self.jobs:
            job.close()
        for end in self.closing:
            end()

    def by_cases(self, program, *cases):
        """Runs these cases of a test program: the fault is struck, and judged, by them."""
        path = self.settings.build / "tests" / program
        if not path.exists():
            raise CannotRun(f"'{path}' is not built")
        done = subprocess.run([path, ",".join(case.replace(",", "\\,") for case in cases)],
                              capture_output=True, text=True, check=False, cwd=ROOT)
        require(done.returncode == 0, f"{program}: {done.stdout[-3000:]}")
        passed = re.search(r"in (\d+) test cases?\)", done.stdout)
        require(passed, f"{program} says nothing of passed cases: {done.stdout[-500:]}")
        require(int(passed[1]) >= len(cases), f"{program}: {passed[1]} of {len(cases)} cases ran")
        self.struck += int(passed[1])
        self.notes.append(f"{passed[1]} of the cases of `{program}`")


@dataclass
class Line:
    """What all repetitions of a scenario gave."""
    scenario: Scenario
    trials: list = field(default_factory=list)
    failure: str = None
    why_not: str = None

    def verdict(self):
        if self.why_not:
            return "cannot run"
        return "FAILED" if self.failure else "passed"


def keep_logs(trial, folder):
    for job in trial.jobs:
        kept = folder / job.folder.name
        os.makedirs(kept)
        for node in job.nodes:
            shutil.copy(node.log, kept)


def repeat(one, place, settings, times):
    line = Line(one)
    for repetition in range(times):
        seed = f"{settings.seed}/{one.name}/{repetition}"
        folder = pathlib.Path(place.folder) / f"{SCENARIOS.index(one)}-{repetition}"
        trial = Trial(place, settings, random.Random(seed), folder)
        line.trials.append(trial)
        try:
            one.run(trial)
            require(trial.struck > 0, "the fault did not strike")
        except CannotRun as reason:
            line.why_not = str(reason)
        except (Wrong, NoSign, OSError, ValueError, subprocess.SubprocessError) as error:
            line.failure = f"repetition {repetition}: {type(error).__name__}: {error}"
        finally:
            trial.close()
        if settings.keep and (line.failure or max(trial.recover, default=0) > SLOW):
            keep_logs(trial, settings.keep / f"{one.row}-{one.name}-{repetition}")
        if line.failure or line.why_not:
            break
    return line


HEADER = """\
| # | fault | repeated | struck | detect, s | recover, s | lost | gap, pp | left behind | |
|---|---|---|---|---|---|---|---|---|---|"""


def seconds(values):
    """Median and maximum."""
    if not values:
        return "-"
    return f"{statistics.median(values):.2f} / {max(values):.2f}"


def table_line(line):
    """Of the table of the fault matrix, B.3."""
    trials = line.trials
    gaps = [trial.gap for trial in trials if trial.gap is not None]
    leaks = [sum(getattr(trial.leaks, name) for trial in trials)
             for name in ("fds", "keys", "files", "segments")]
    stages = sum((trial.stages for trial in trials), Counter()).most_common()
    notes = [note for trial in trials for note in trial.notes]
    notes += [", ".join(f"{count} {stage}" for stage, count in stages)] if stages else []
    oldest = max(trial.lost_seconds for trial in trials)
    notes += [f"lost: of the last {oldest:.2f} s"] if oldest else []
    notes = "; ".join(dict.fromkeys(notes))
    cells = [line.scenario.row, line.scenario.name, len(trials), sum(t.struck for t in trials),
             seconds([value for trial in trials for value in trial.detect]),
             seconds([value for trial in trials for value in trial.recover]),
             sum(trial.lost for trial in trials),
             f"{max(gaps):.2f}" if gaps else "-", ", ".join(map(str, leaks)),
             line.verdict() + (f"; {notes}" if notes else "")]
    if line.why_not:
        cells[2:-1] = ["-"] * len(cells[2:-1])
    return "| " + " | ".join(map(str, cells)) + " |"
