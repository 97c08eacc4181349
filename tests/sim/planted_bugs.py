"""Plants bugs in production code, one after the other, and sees each found by the check of the
simulator that is named for it:

    tests/sim/planted_bugs.py --scratch FOLDER [--seeds N] [--only NAME] [--jobs N]

FOLDER gets a copy of the sources and a build of them, which the next run goes on with. First the
copy is simulated as it is: nothing may be found there. Exit code 0: all bugs were found by their
checks. 1: one was not, or by others only; or its text is not in the sources any more, or what it is
replaced by does not compile.
"""

import argparse
import collections
import dataclasses
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import planting

SIMULATION_TIMEOUT_S = 900
SEEDS_AT_ONCE = 50


@dataclasses.dataclass(frozen=True)
class Bug:
    name: str
    file: str      # below the project's folder
    text: str      # found there exactly once
    planted: str   # what it is replaced by
    check: str     # of src/sim/violations.hpp, which has to find it


BUGS = [
    Bug("worker that died is waited for", "strategies/sync.cpp",
        "  const bool last = awaited_.erase(worker) == 1 && awaited_.empty();\n"
        "  return last ? end_round() : Commands{};",
        "  return Commands{};",
        "schedule"),
    Bug("fence left out", "src/train/job/master_run.cpp",
        "  store->fence(config.term);\n", "",
        "lease"),
    Bug("lease of another not waited for", "src/train/job/master_lease.cpp",
        "  lease->claim_.force = options.take_over;",
        "  lease->claim_.force = true;",
        "lease"),
    Bug("work without a lease", "src/train/job/master_lease.cpp",
        "  if (!answer.granted) SPEEDO_TRY(lease->wait_for_end(answer, options));\n", "",
        "lease"),
    Bug("lease kept after its end", "src/train/job/master_lease.cpp",
        "  if (!held_ && answer.error().code == ErrorCode::kSuperseded) return answer.error();\n",
        "",
        "lease"),
    Bug("files before a newer store", "src/train/job/job_start.cpp",
        "  const bool files_are_newer = files.is_newer_than(store);",
        "  const bool files_are_newer = !files.is_newer_than(store);",
        "start"),
    Bug("files of another training", "src/checkpoint/resume.cpp",
        "  if (training) leave_out_other_trainings(*training, all);\n",
        "  static_cast<void>(&leave_out_other_trainings);\n",
        "start"),
    Bug("older files than the newest", "src/checkpoint/checkpoint_file.cpp",
        "    return std::pair(a.record.sequence(), a.record.iteration()) >\n",
        "    return std::pair(a.record.sequence(), a.record.iteration()) <\n",
        "start"),
    Bug("damaged files not told from whole ones", "src/checkpoint/checkpoint_file.cpp",
        "  if (checksum_of(content) == part.checksum()) return {};\n",
        "  if (!content.empty()) return {};\n",
        "start"),
    Bug("contribution of another run merged", "src/train/merge/merger_merge.cpp",
        "  if (info.version != contribution.run.value) {",
        "  if (info.version == UINT64_MAX) {",
        "weights"),
    Bug("weight of a contribution left out", "src/train/merge/merge_deltas.cpp",
        "averages_ ? contribution.weight : contribution.weight / factor",
        "averages_ ? contribution.weight : 1.0F / factor",
        "weights"),
    Bug("staleness without weight", "src/train/session/contribution.cpp",
        "    weight /= 1.0 + static_cast<double>(staleness_of(contribution, newest));\n",
        "    weight /= 1.0 + 0.0 * static_cast<double>(staleness_of(contribution, newest));\n",
        "merges"),
    Bug("publication fails silently", "src/train/merge/merger_merge.cpp",
        "  if (!fault) SPEEDO_TRY(merge->finish(job.state));\n  return fault;",
        '  if (!fault) merge->finish(job.state).ignore("planted");\n  return fault;',
        "publication"),
    Bug("manifest of chunks that are not there", "src/store/chunk_put.cpp",
        "  operation->key = where.names.chunk(where.term, where.slot, chunk);\n",
        "  operation->key = where.names.chunk(where.term, where.slot + 1, chunk);\n",
        "publication"),
    Bug("memory overwritten without a word", "src/store/shared/record_memory.cpp",
        "  store(*board_, generation_at(slot), ++generation_);\n",
        "  store(*board_, generation_at(slot), generation_ == 0 ? ++generation_ : generation_);\n",
        "weights"),
    Bug("last merge left in memory", "src/train/merge/merger_merge.cpp",
        "    is_published_with_merge_ = job.is_last || record_.memory() == nullptr ||\n",
        "    is_published_with_merge_ = record_.memory() == nullptr ||\n",
        "publication"),
    Bug("weights kept from who reads the store", "src/train/merge/merger_merge.cpp",
        "                               comes_through_store(job.contributions);\n",
        "                               job.contributions.empty();\n",
        "publication"),
    Bug("run from weights that are too old", "src/train/trainer/trainer_exchange.cpp",
        "  if (info.version < version) {\n", "  if (version == 0 && info.version < version) {\n",
        "orders"),
    Bug("worker not told that it was merged", "src/train/session/runs.cpp",
        "  found->second.merged_run = run.value;\n",
        "  if (run.value == kNoRun) found->second.merged_run = run.value;\n",
        "orders"),
    Bug("shards of a worker that is gone", "src/train/session/shard_leases.cpp",
        "  insert(free_, held->second.current);\n  insert(free_, held->second.next);\n", "",
        "once"),
    Bug("data of slow workers lost as runs change", "src/train/session/shard_leases.cpp",
        "  for (const StepRange& each : open) cut(each, steps);\n", "",
        "once"),
    Bug("state with a run that is not merged", "src/train/session/master_session_states.cpp",
        "leases_.has_begun_open(id) ? last.run.value : kNoRun", "kNoRun",
        "once"),
    Bug("shards merged again after a take-over",
        "src/train/session/master_session_state.cpp",
        "    for (const Contribution& each : merged->contributions) used.push_back(each.data);\n",
        "",
        "once"),
    Bug("contribution of a worker that died dropped",
        "src/train/session/master_session_work.cpp",
        "  for (const Contribution& each : merge.contributions) {\n"
        "    command.contributions.push_back(",
        "  for (const Contribution& each : merge.contributions) {\n"
        "    if (merge.contributions.size() > 1 && !members_.find(each.worker)) continue;\n"
        "    command.contributions.push_back(",
        "merges"),
    Bug("records never erased", "src/train/job/job_master.cpp",
        "    const auto erased = erase_records(worker);\n",
        "    const auto erased = Result<void>();\n",
        "erasure"),
    Bug("records left at the end", "src/train/job/master_run.cpp",
        "  job_->erase_contributions();\n", "",
        "erasure"),
    Bug("contribution of a run that was given up left", "src/train/trainer/trainer_exchange.cpp",
        "  const auto erased = options_.store->erase(options_.contribution, count);\n",
        "  static_cast<void>(count);\n  const auto erased = Result<void>();\n",
        "erasure"),
    Bug("manifest with a part of the version before", "src/train/parts/joined_engine.cpp",
        "      auto put = put_manifest(next, job.state, round.written);\n",
        "      auto written = round.written;\n"
        "      written.front() = written_.front();\n"
        "      auto put = put_manifest(next, job.state, written);\n",
        "publication"),
    Bug("manifest without an answer left", "src/train/parts/joined_engine.cpp",
        "    if (in_doubt_) SPEEDO_TRY(restore_manifest());\n", "",
        "publication"),
    Bug("copies of all mergers of a part in the same slots", "src/train/parts/neighbor_copies.cpp",
        "                            {clip_.part, slot});\n",
        "                            {clip_.part, slot % kRecordSlots});\n",
        "publication"),
    Bug("pause without an end", "src/train/session/master_session.cpp",
        "  if (change == WorkerShortage::Change::kGoesOn) work_.go_on();\n",
        "  static_cast<void>(change);\n",
        "progress"),
]


class Simulations:
    """Of a copy of the sources, by the program that simulates."""

    def __init__(self, scratch, jobs):
        self.copy = planting.Copy(scratch, jobs)

    def make(self):
        self.copy.make(["proof_runner"])

    def simulate(self, seeds, check=None):
        """How often each check found something, and of each the first finding; no longer than
        until `check` found something."""
        counts, first = collections.Counter(), {}
        for begin in range(1, seeds + 1, SEEDS_AT_ONCE):
            self.simulate_some(begin, min(SEEDS_AT_ONCE, seeds + 1 - begin), counts, first)
            if check in counts or "(ended)" in counts:
                break
        return counts, first

    def simulate_some(self, begin, seeds, counts, first):
        done = subprocess.run(
            [self.copy.build / "tests" / "proof_runner", str(seeds), str(begin)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            timeout=SIMULATION_TIMEOUT_S)
        for line in done.stdout.splitlines():
            check, seed, text = line.split("\t", 2)
            counts[check] += 1
            first.setdefault(check, f"seed {seed}: {text}")
        if done.returncode != 0:
            counts["(ended)"] += 1
            first["(ended)"] = f"exit code {done.returncode}: {done.stderr.strip()[-300:]}"


def look(bug, simulations, seeds):
    """Whether it was found as it should be, and a line about it."""
    simulations.make()
    counts, first = simulations.simulate(seeds, bug.check)
    others = ", ".join(f"{check} {count}" for check, count in counts.most_common()
                       if check != bug.check)
    also = f" (also: {others})" if others else ""
    if counts[bug.check] == 0:
        return False, "not found by its check" + also
    return True, f"{counts[bug.check]} seeds{also}; {first[bug.check]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--scratch", type=pathlib.Path, required=True)
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--only", help="bugs whose names contain this")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    simulations = Simulations(options.scratch, options.jobs)
    simulations.make()
    counts, first = simulations.simulate(options.seeds)
    print(f"nothing planted: {sum(counts.values())} violations in {options.seeds} seeds",
          flush=True)
    if counts:
        print("\n".join(f"  {check}: {text}" for check, text in first.items()))
        return False
    chosen = [bug for bug in BUGS if options.only is None or options.only in bug.name]
    print(f"{'':5}{'planted bug':<46}{'check':<13}found by it in")
    return planting.try_each(
        simulations.copy, chosen, lambda bug: look(bug, simulations, options.seeds),
        lambda bug: f"{bug.name:<46}{bug.check:<13}")


if __name__ == "__main__":
    sys.exit(planting.exit_code_of(main))
