#include <algorithm>
#include <cstdio>
#include <memory>
#include <thread>

#include <speedo/base/clock.hpp>
#include <speedo/base/file.hpp>

#include "actors/node.hpp"
#include "base/log.hpp"
#include "base/memory_limit.hpp"
#include "base/trace.hpp"
#include "checkpoint/checkpoint_writer.hpp"
#include "checkpoint/resume.hpp"
#include "checkpoint/snapshot_room.hpp"
#include "cli/flags/compute_flags.hpp"
#include "cli/flags/redis_tls_flags.hpp"
#include "cli/flags/speedo_flags.hpp"
#include "cli/grace_period.hpp"
#include "cli/make_schedule.hpp"
#include "cli/password_source.hpp"
#include "cli/report/console.hpp"
#include "cli/report/curve_file.hpp"
#include "cli/report/curves.hpp"
#include "cli/report/master_reporter.hpp"
#include "cli/signals.hpp"
#include "cli/traffic_rate.hpp"
#include "data/parser/parser_processes.hpp"
#include "local/stand_in_redis.hpp"
#include "main/cluster_job.hpp"
#include "main/examine.hpp"
#include "main/job_page.hpp"
#include "main/node_programs.hpp"
#include "main/parts.hpp"
#include "main/program_options.hpp"
#include "main/store_room.hpp"
#include "measure/memory_guard.hpp"
#include "monitor/status_text.hpp"
#include "store/shared/memory_door.hpp"
#include "train/note_text.hpp"

namespace speedo {

namespace {

// Written whole or not at all: whoever polls for the file may read it once it exists.
Result<void> write_address(const std::string& file, const std::string& address) {
  const std::string line = address + "\n";
  return write_file_atomically(file, line);
}

// What others must give to be let in; the token's file is where it is on this machine.
std::string proof_flags(const GateFlags& gate) {
  if (!gate.token_file.empty()) return " --token-file " + gate.token_file;
  return gate.any() ? " --tls-cert FILE --tls-key FILE --tls-ca FILE" : "";
}

void announce(const ClusterFlags& flags, const std::string& address, bool with_password) {
  SPEEDO_INFO("Master listens at {}", address);
  SPEEDO_INFO("Add workers with: speedo-worker --master {}{}{}", address, proof_flags(flags.gate),
              with_password ? " --redis-password-file FILE" : "");
  SPEEDO_INFO("See how it goes with: speedo status --master {}{}", address,
              proof_flags(flags.gate));
  if (is_open_to_others(flags)) {
    SPEEDO_WARN("--insecure: whoever reaches that address can join, and read along");
  }
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

// `time`: nothing, until a signal comes, which ends it in any case.
void stay(std::optional<std::chrono::seconds> time) {
  SPEEDO_INFO("Finished; waiting {} (--sleep-after-finish)",
              time ? fmt::format("{} s or for a signal", time->count()) : "for a signal");
  const Instant end = steady_clock().now() + time.value_or(std::chrono::seconds(0));
  while (!stop_requested() && (!time || steady_clock().now() < end)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

// What the workers' states add to a checkpoint, with as many workers as training starts with.
Result<std::int64_t> state_bytes(const ClusterJob& job, std::int64_t weight_bytes) {
  const MasterConfig& session = job.options.session;
  if (!session.snapshot_workers) return 0;
  SPEEDO_ASSIGN(const std::uint64_t arrays,
                arrays_of_a_worker(updates_of(session.stages), job.solver));
  if (arrays == 0) {
    SPEEDO_INFO("--snapshot-workers: in this job workers have nothing alone");
  }
  const std::int64_t each = static_cast<std::int64_t>(arrays) * weight_bytes;
  const std::int64_t all = static_cast<std::int64_t>(session.workers_start) * each;
  SPEEDO_INFO("The states of workers take {} each, with {} {} of a snapshot, and as much in the "
              "store while it is written",
              format_bytes(each), count_workers(session.workers_start), format_bytes(all));
  return all;
}

// The room that the job's checkpoints need.
Result<void> check_snapshots(const ClusterFlags& flags, const ClusterJob& job,
                             std::int64_t weight_bytes) {
  const MasterConfig& session = job.options.session;
  SPEEDO_ASSIGN(const std::int64_t bytes, snapshot_bytes(weight_bytes, job.solver));
  SPEEDO_ASSIGN(const std::int64_t states, state_bytes(job, weight_bytes));
  return check_snapshot_room(
      job.solver.snapshot_prefix(),
      {.bytes = bytes + states,
       .count = snapshots_at_once(static_cast<std::int64_t>(session.start_iteration),
                                  static_cast<std::int64_t>(session.max_iteration),
                                  static_cast<std::int64_t>(session.snapshot_interval),
                                  flags.rotation)});
}

// --dry-run. A master that is named no Redis may start one of its own.
Result<int> examine_master_flags(const ClusterFlags& flags, bool names_redis,
                                 const ProcessSecrets& secrets) {
  Examination examination;
  examination.solver = flags.solver;
  examination.state = flags.state;
  examination.refusal = refusal_of(flags);
  if (names_redis) examination.redis = flags.redis;
  SPEEDO_ASSIGN(examination.credentials, redis_credentials(flags.redis_password_file, secrets));
  SPEEDO_ASSIGN(const WorkerRange workers, worker_range(flags));
  examination.redis_tls = flags.redis_tls;
  if (!flags.iface.empty()) examination.source = flags.host;
  examination.workers = workers.expected();
  examination.trains_here = false;
  examination.listening =
      Examination::Listening{.bind = bind_address(flags), .host = flags.host, .port = flags.port};
  examination.compute = flags.compute;
  examination.json = flags.json;
  return examine(examination);
}

// What starting again can help with. `is_private`: the Redis, whose data are gone by then.
Error with_way_on(Error error, const ClusterJob& job, bool is_private) {
  const bool superseded = error.code == ErrorCode::kSuperseded;
  if (another_follows(error) && !superseded) {
    error.message += way_on(job.solver.snapshot_prefix(), job.options.job, is_private);
  }
  return error;
}

// What the hooks of a training use; they outlive it.
struct Training {
  const ClusterFlags& flags;
  const StoreTerms& terms;
  const ClusterJob& job;
  MasterReporter& reporter;
  CheckpointWriter& checkpoints;
  Curves& curves;
  JobPage* page;  // null: none
  JobStatus& last;  // for the thread of reports alone until training is over
};

void add_progress(const MasterProgress& progress, Curves& curves) {
  if (!progress.last_loss) return;
  const auto contributions =
      static_cast<double>(std::max<std::uint64_t>(1, progress.contributions));
  curves.add(progress.iteration,
             {{"loss", *progress.last_loss},
              {"workers", static_cast<float>(progress.workers_alive)},
              {"staleness", static_cast<float>(progress.staleness_sum / contributions)}});
}

MasterHooks make_hooks(const Training& all, bool with_password) {
  MasterHooks hooks;
  hooks.admit = [all](std::int64_t weight_bytes) -> Result<void> {
    SPEEDO_TRY(check_store_room(all.job, all.terms, weight_bytes, all.flags.force));
    return check_snapshots(all.flags, all.job, weight_bytes);
  };
  hooks.choose_files = all.job.choose_files;
  hooks.on_listening = [all, with_password](const std::string& address) {
    announce(all.flags, address, with_password);
  };
  hooks.on_progress = [all](const MasterProgress& progress, const std::vector<TestScores>* scores) {
    all.reporter.on_progress(progress, scores);
    if (scores == nullptr) {
      add_progress(progress, all.curves);
    } else if (!scores->empty()) {
      all.curves.add_tests(progress.iteration, *scores);
    }
  };
  hooks.on_status = [all](JobStatus status) {
    all.last = status;
    if (all.page != nullptr) all.page->take(std::move(status));
  };
  hooks.on_training = [all](const TrainingId& training, bool is_new, std::uint64_t iteration) {
    if (is_new) SPEEDO_INFO("Training {} begins", short_name(training));
    if (iteration > 0) all.curves.go_on(iteration);
    return all.checkpoints.begin(training);
  };
  hooks.poll_stop = stop_requested;
  hooks.stop_wants_snapshot = stop_wants_snapshot;
  hooks.poll_snapshot = take_snapshot_request;
  hooks.snapshot = [all](const SnapshotParts& snapshot) {
    return all.checkpoints.write_or_rescue(snapshot);
  };
  hooks.on_tested = [all](std::uint64_t iteration, const std::vector<TestScores>& scores) {
    if (!scores.empty()) all.checkpoints.on_tested(iteration, scores.front());
  };
  return hooks;
}

// The report of a training that has ended, and the wait that was asked for.
Result<void> tell(Report report, const ClusterFlags& flags) {
  add_peak_memory(report);
  if (const std::string phases = phases_text(report); !phases.empty()) SPEEDO_INFO("{}", phases);
  print(report, flags.json);
  if (flags.sleep_after_finish.empty()) return {};
  SPEEDO_ASSIGN(const std::optional<std::chrono::seconds> time,
                sleep_time(flags.sleep_after_finish));
  stay(time);
  return {};
}

// `is_private`: the Redis, which asks for nothing.
Result<StoreTerms> store_terms(const ClusterFlags& flags, const ProcessSecrets& secrets,
                               bool is_private, const std::string& source) {
  StoreTerms terms{.source = is_private ? "" : source,
                   .tls = flags.redis_tls,
                   .may_be_open = flags.insecure_redis};
  if (!is_private) {
    SPEEDO_ASSIGN(terms.credentials, redis_credentials(flags.redis_password_file, secrets));
  }
  SPEEDO_ASSIGN(terms.limit, traffic_limit(flags.max_rate));
  // Who waits for the store tries again, and looks for signals meanwhile; who does not, ends.
  terms.opening_attempts_max = 1;
  return terms;
}

// A store that a master goes on from is waited for as that of a new job is.
OpenStore opener_for_resume(const OpenStore& open_store, const ClusterJob& job) {
  return waiting_opener(open_store, {.store_timeout = job.options.session.store_timeout,
                                     .poll_stop = stop_requested});
}

}  // namespace

Result<int> master_program(const std::vector<std::string>& arguments,
                           const ProcessSecrets& secrets) {
  SPEEDO_TRY(refuse_speedo_flags(arguments, SpeedoProgram::kMaster));
  OptionValues values(Program::kMaster);
  SPEEDO_ASSIGN(const Parsed parsed, read_program_options(fold_speedo(arguments), values));
  if (parsed == Parsed::kDone) return 0;
  ClusterFlags flags = cluster_flags(values);
  SPEEDO_ASSIGN(const std::string source, settle_interface(flags));
  SPEEDO_ASSIGN(flags.redis_tls, redis_tls_files(values));
  SPEEDO_TRY(check(flags, ClusterRole::kMaster));

  set_up_console(flags.log);
  if (flags.dry_run) return examine_master_flags(flags, values.given("redis"), secrets);
  if (!flags.address_file.empty()) SPEEDO_TRY(check_file_writable(flags.address_file));
  install_signal_handlers(flags.signals);
  note_what_has_no_effect(flags);
  SPEEDO_ASSIGN(const std::unique_ptr<OutputRoot> outputs, confine_outputs(flags.output_root));
  SPEEDO_ASSIGN(const std::unique_ptr<JobPage> page, JobPage::open(flags.metrics_addr));
  SPEEDO_ASSIGN(const std::unique_ptr<Trace> trace, Trace::start(flags.trace, "speedo-master"));
  SPEEDO_ASSIGN(const std::unique_ptr<PrivateRedis> redis,
                find_redis(flags, values.given("redis"), secrets));
  warn_of_redis_out_of_reach(flags.redis, bind_address(flags));
  const GracePeriod grace(std::chrono::seconds(flags.grace_period_s), "speedo-master");
  SPEEDO_ASSIGN(const StoreTerms terms, store_terms(flags, secrets, redis != nullptr, source));
  const OpenStore open_store = store_opener(terms);
  SPEEDO_ASSIGN(const ComputeOptions compute, settle(flags));
  TrainerParts parts = trainer_parts(compute);
  if (!flags.no_shared_memory) parts.open_door = open_memory_door;
  SPEEDO_ASSIGN(ClusterJob job, make_cluster_job(flags));
  job.options.session.device = device_text(compute);
  SPEEDO_ASSIGN(const std::int64_t memory,
                admit_master(job.options, job.solver, trainer_parts(for_plans(compute)),
                             memory_policy(compute, flags.force)));
  SPEEDO_TRY(set_resume(flags, parts, opener_for_resume(open_store, job), job));
  CheckpointWriter checkpoints(job.solver, job.options.job, flags.rotation);
  SPEEDO_TRY(checkpoints.check_writable());
  if (job.drew_seed) SPEEDO_INFO("random_seed: {}", job.solver.random_seed());
  announce_stages(job);

  SPEEDO_ASSIGN(const std::unique_ptr<CurveFile> curve,
                CurveFile::create(curve_options(flags.curve, job.solver)));
  MasterReporter reporter(job.solver, job.options.session.stages, steady_clock(), curve.get());
  SPEEDO_ASSIGN(const std::unique_ptr<Curves> curves, Curves::create(flags.tensorboard));
  JobStatus last;
  const Training training{flags, terms, job, reporter, checkpoints, *curves, page.get(), last};
  const MasterHooks hooks = make_hooks(training, !terms.credentials.password.empty());
  const MasterGate gate{.files = gate_files(flags.gate), .warns = is_open_to_others(flags)};
  if (redis) redis->keep_up();
  const auto ended = run_master(job.options, hooks, parts, open_store, gate);
  for (const std::string& line : phase_lines(last)) SPEEDO_INFO("{}", line);
  if (!ended) return with_way_on(ended.error(), job, redis != nullptr);
  Report report = reporter.report(*ended, checkpoints.last_model());
  *report.parser_deaths += static_cast<std::uint64_t>(parser_totals().died);  // its own, of tests
  if (memory > 0) report.predicted_memory_bytes = static_cast<std::uint64_t>(memory);
  SPEEDO_TRY(tell(std::move(report), flags));
  return 0;
}

}  // namespace speedo
