#!/usr/bin/env python3
"""The fault matrix on real processes: each row a scenario with a seed.

Usage: tests/rig/run.sh [ROW...] [--repeat N] [--seed S] [--build DIR], see README.md

Prints a table. Exit codes: 0 all that could run passed, 1 a row failed, 2 usage, 77 none could run.
"""
import argparse
import pathlib
import random
import subprocess
import sys

from place import ROOT, Place
from trial import HEADER, SCENARIOS, Settings, repeat, table_line
import rows_files  # noqa: F401 (each adds its scenarios)
import rows_lower_tests  # noqa: F401
import rows_master  # noqa: F401
import rows_network  # noqa: F401
import rows_run  # noqa: F401
import rows_several  # noqa: F401
import rows_store  # noqa: F401
import rows_tiers  # noqa: F401
import rows_workers  # noqa: F401

sys.path.insert(0, str(ROOT / "tests" / "bench"))
from bench_nets import load_now  # noqa: E402


MINUTES_SHARE = 6


def options_of(arguments):
    parser = argparse.ArgumentParser(prog="tests/rig/run.sh", description=__doc__.split("\n")[0])
    parser.add_argument("rows", nargs="*", type=int, metavar="ROW",
                        help="rows of the fault matrix; without: all")
    parser.add_argument("--repeat", type=int, default=1, metavar="N",
                        help=f"what takes minutes is repeated N / {MINUTES_SHARE} times")
    parser.add_argument("--seed", type=int, help="without: a fresh one, which is printed")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", metavar="DIR")
    parser.add_argument("--short", action="store_true", help="only what takes seconds")
    parser.add_argument("--only", default="", metavar="TEXT", help="scenarios with it in the name")
    parser.add_argument("--list", action="store_true", help="name the scenarios and end")
    parser.add_argument("--minutes", type=float, default=1, help="of row 36, the soak")
    parser.add_argument("--sweep", type=int, default=97, metavar="BYTES",
                        help="between two cuts of row 2; 1: at every byte of a contribution")
    parser.add_argument("--kills", type=int, default=9, metavar="CALLS",
                        help="between two kills of row 29; 1: at every call of a snapshot")
    parser.add_argument("--joins", type=int, default=20, help="of row 5")
    parser.add_argument("--deaths", type=int, default=3, help="of row 1")
    parser.add_argument("--cuts", type=int, default=200, help="of row 10")
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR",
                        help="the logs of repetitions that failed or were slow")
    options = parser.parse_args(arguments)
    counts = (options.repeat, options.sweep, options.kills, options.joins, options.deaths,
              options.cuts)
    if min(counts) < 1 or options.minutes <= 0:
        parser.error("numbers are above 0")
    return options


def chosen(options):
    found = [each for each in sorted(SCENARIOS, key=lambda each: each.row)
             if (not options.rows or each.row in options.rows)
             and (each.short or not options.short) and options.only in each.name]
    missing = set(options.rows) - {each.row for each in found}
    if missing or not found:
        sys.exit(f"rig: there is no such scenario{f' of row {min(missing)}' if missing else ''}: "
                 "see --list")
    return found


def main():
    options = options_of(sys.argv[1:])
    scenarios = chosen(options)
    if options.list:
        for each in scenarios:
            print(f"{each.row:2}  {each.name}{'  (short)' if each.short else ''}")
        return 0
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**6)
    settings = Settings(options.build.resolve() / "bin", options.build.resolve(), seed,
                        options.minutes, options.sweep, options.kills, options.joins,
                        options.deaths, options.cuts, options.keep)
    commit = subprocess.run(["git", "-c", "safe.directory=*", "-C", ROOT, "describe", "--always",
                             "--dirty"], capture_output=True, text=True, check=False).stdout
    print(f"seed {seed}, commit {commit.strip() or 'unknown'}, {load_now()}\n")
    print(HEADER, flush=True)
    lines = []
    with Place() as place:
        for each in scenarios:
            times = -(-options.repeat // MINUTES_SHARE) if each.minutes else options.repeat
            lines.append(repeat(each, place, settings, times))
            print(table_line(lines[-1]), flush=True)
    print(f"\nat the end {load_now()}")
    for line in lines:
        if line.why_not:
            print(f"row {line.scenario.row}, {line.scenario.name}: skipped: {line.why_not}")
        if line.failure:
            print(f"row {line.scenario.row}, {line.scenario.name}: --seed {seed}: {line.failure}")
    if any(line.failure for line in lines):
        return 1
    return 77 if all(line.why_not for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
