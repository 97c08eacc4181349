#include <cstdio>
#include <thread>

#include <CLI/CLI.hpp>

#include <speedo/base/clock.hpp>
#include <speedo/base/file.hpp>

#include "base/log.hpp"
#include "main/checkpoint_writer.hpp"
#include "main/cluster_job.hpp"
#include "main/command_line.hpp"
#include "main/console.hpp"
#include "main/hybrid.hpp"
#include "main/later_flags.hpp"
#include "main/make_schedule.hpp"
#include "main/master_reporter.hpp"
#include "main/node_programs.hpp"
#include "main/parts.hpp"
#include "main/signals.hpp"

namespace speedo {

namespace {

constexpr const char* kFooter =
    "Flags may be written with one or two dashes, as --max-iter, --max_iter or --maxIter.\n"
    "SIGINT or SIGTERM: end with a snapshot; the second one ends at once.\n"
    "Not built yet: --hdfs, --gpu.\n\n"
    "Examples:\n"
    "  speedo-master --solver examples/mnist/lenet_solver.prototxt --workers 2 --sync\n"
    "  speedo-master --solver S.prototxt --workers 2:8 --strategy easgd --train 10 --resume=auto\n"
    "  speedo-master --solver S.prototxt --workers 4 --maxIter 800 \\\n"
    "                --hybrid =maxIter 100 =sync == =maxIter 300 =drop 3";

// Written whole or not at all: whoever polls for the file may read it once it exists.
Result<void> write_address(const std::string& file, const std::string& address) {
  const std::string line = address + "\n";
  return write_file_atomically(file, std::as_bytes(std::span(line)));
}

void announce(const ClusterFlags& flags, const std::string& address) {
  SPEEDO_INFO("Master listens at {}", address);
  SPEEDO_INFO("Add workers with: speedo-worker --master {}", address);
  if (flags.address_file.empty()) return;
  if (auto written = write_address(flags.address_file, address); !written) {
    SPEEDO_ERROR("{}", written.error().message);
  }
}

void note_what_has_no_effect(const ClusterFlags& flags) {
  if (flags.cpu_db_actor) SPEEDO_INFO("--cpu-db-actor: merging is always done on the CPU");
}

void announce_stages(const ClusterJob& job) {
  const std::vector<Schedule>& stages = job.options.session.stages;
  std::uint64_t begins = 0;  // the iteration with which a stage does
  for (std::size_t i = 0; i < stages.size(); ++i) {
    SPEEDO_INFO("{}: {}", stages.size() == 1 ? "Schedule" : fmt::format("Stage {}", i + 1),
                describe(stages[i]));
    if (begins >= job.options.session.max_iteration) {
      SPEEDO_WARN("Stage {} never begins: training ends at iteration {} (--max-iter)", i + 1,
                  job.options.session.max_iteration);
    }
    begins += stages[i].iterations;
  }
}

void sleep_until_signal() {
  SPEEDO_INFO("Finished; waiting for a signal (--sleep-after-finish)");
  while (!stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(100));
}

}  // namespace

Result<void> master_program(const std::vector<std::string>& arguments) {
  CLI::App app("Master of a SpeeDO cluster: schedules workers and merges what they learn",
               "speedo-master");
  ClusterFlags flags;
  add_cluster_flags(app, flags, ClusterRole::kMaster);
  app.footer(kFooter);
  SPEEDO_TRY(refuse_later_flags(arguments));
  SPEEDO_ASSIGN(const Parsed parsed, parse(app, fold_hybrid(arguments)));
  if (parsed == Parsed::kDone) return {};
  SPEEDO_TRY(check(flags, ClusterRole::kMaster));

  set_up_console(flags.debug);
  install_signal_handlers(SignalEffect::kSnapshotAndStop, SignalEffect::kSnapshotAndStop);
  note_what_has_no_effect(flags);
  SPEEDO_ASSIGN(const ComputeOptions compute, settle(flags.compute));
  const TrainerParts parts = trainer_parts(compute);
  SPEEDO_ASSIGN(ClusterJob job, make_cluster_job(flags));
  SPEEDO_TRY(set_resume(flags, parts, job));
  CheckpointWriter checkpoints(job.solver, job.options.job,
                               {flags.keep_snapshots, flags.keep_best});
  SPEEDO_TRY(checkpoints.check_writable());
  announce_stages(job);

  MasterReporter reporter(job.solver, job.options.session.stages.size(), steady_clock());
  MasterHooks hooks;
  hooks.on_listening = [&](const std::string& address) { announce(flags, address); };
  hooks.on_progress = [&](const MasterProgress& progress, const std::vector<TestScores>* scores) {
    reporter.on_progress(progress, scores);
    if (scores != nullptr && !scores->empty()) {
      checkpoints.on_tested(progress.iteration, scores->front());
    }
  };
  hooks.poll_stop = stop_requested;
  hooks.snapshot = [&](const SnapshotParts& snapshot) { return checkpoints.write(snapshot); };
  SPEEDO_ASSIGN(const MasterProgress last,
                run_master(job.options, hooks, parts, open_store));
  Report report = reporter.report(last, checkpoints.last_model());
  add_peak_memory(report);
  if (const std::string phases = phases_text(report); !phases.empty()) SPEEDO_INFO("{}", phases);
  print(report, flags.json);
  if (flags.sleep_after_finish) sleep_until_signal();
  return {};
}

}  // namespace speedo
