#include "main/cluster_job.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <memory>
#include <utility>

#include <speedo/base/digest.hpp>
#include <speedo/base/remote_files.hpp>
#include <speedo/core/solver.hpp>
#include <speedo/core/update_rule.hpp>
#include <speedo/store/memory_store.hpp>

#include "base/log.hpp"
#include "base/random_bits.hpp"
#include "checkpoint/resume.hpp"
#include "checkpoint/snapshot.hpp"
#include "cli/flags/shard_by.hpp"
#include "cli/options/read_options.hpp"
#include "cli/solver_file.hpp"
#include "cli/stages.hpp"
#include "core/prototxt.hpp"
#include "main/parts.hpp"
#include "train/job/job_nets.hpp"
#include "train/job/job_solver.hpp"
#include "train/job/job_start.hpp"
#include "train/parts/joined_engine.hpp"

namespace speedo {
namespace {

constexpr std::int64_t kStallTimeouts = 10;  // --worker-timeouts that a computation may stand still
constexpr float kEamsgdMomentum = 0.9F;
constexpr std::size_t kDigestLetters = 16;  // of a name that was cut, in hexadecimal digits

// Of --weights, else of the solver where nothing else says what to start from. A checkpoint that
// --resume=auto finds goes before them.
std::string first_weights(const ClusterFlags& flags, const caffe::SolverParameter& solver) {
  if (!flags.weights.empty()) return flags.weights;
  if (!flags.snapshot.empty()) return "";
  if (!flags.resume.empty() && flags.resume != kResumeNewest) return "";
  return weights_of(solver);
}

bool starts_from_state(const ClusterFlags& flags) {
  return !flags.snapshot.empty() && !is_model_file(flags.snapshot);
}

Result<void> read_start(const ClusterFlags& flags, const caffe::SolverParameter& solver,
                        MasterOptions& options) {
  if (const std::string files = first_weights(flags, solver); !files.empty()) {
    // With --resume=auto it is said later whether this is what training begins with.
    if (flags.resume != kResumeNewest) SPEEDO_INFO("Finetuning from {}", shown_name(files));
    options.given_start = shown_name(files);
    SPEEDO_ASSIGN(caffe::NetParameter weights, read_weights(files));
    options.initial_weights = std::make_shared<caffe::NetParameter>(std::move(weights));
  } else if (is_model_file(flags.snapshot)) {
    options.given_start = shown_name(flags.snapshot);
    SPEEDO_ASSIGN(caffe::NetParameter weights, read_weights(flags.snapshot));
    options.initial_weights = std::make_shared<caffe::NetParameter>(std::move(weights));
  } else if (starts_from_state(flags)) {
    options.given_start = shown_name(flags.snapshot);
    SPEEDO_ASSIGN(SavedState saved, read_saved_state(flags.snapshot));
    options.session.start_iteration = static_cast<std::uint64_t>(saved.state.iter());
    if (master_keeps_history(options.session.stages)) {
      SPEEDO_TRY(check_state_type(flags.snapshot, solver.type()));
    } else if (saved.state.history_size() > 0) {
      SPEEDO_WARN("The solver history in '{}' is not used: with full updates each worker keeps its "
                  "own; --gradient-only or --save-updater average go on exactly",
                  flags.snapshot);
    }
    options.initial_weights = std::make_shared<caffe::NetParameter>(std::move(saved.model));
    options.initial_state = std::make_shared<caffe::SolverState>(std::move(saved.state));
  }
  return {};
}

// Beside --resume=auto the start may be gone when it is needed no more.
Result<void> set_start(const ClusterFlags& flags, const caffe::SolverParameter& solver,
                       MasterOptions& options) {
  if (flags.start_iter) {
    options.session.start_iteration = static_cast<std::uint64_t>(*flags.start_iter);
  }
  auto read = read_start(flags, solver, options);
  if (read || flags.resume != kResumeNewest) return read;
  options.start_fault = std::move(read).error();
  return {};
}

Result<void> set_iterations(const ClusterFlags& flags, const caffe::SolverParameter& solver,
                            MasterConfig& session) {
  session.max_iteration = static_cast<std::uint64_t>(std::max(0, solver.max_iter()));
  if (flags.schedule.max_iter == 0) {
    return Error{ErrorCode::kUsage, "--max-iter 0 leaves nothing to train: give 1 or more"};
  }
  if (session.max_iteration == 0) {
    return config_error("'" + shown_name(flags.solver) + "' has " +
                        (solver.has_max_iter() ? "max_iter 0: raise it" : "no max_iter: add it") +
                        ", or give --max-iter");
  }
  if (session.start_iteration >= session.max_iteration) {
    return Error{ErrorCode::kUsage,
                 "training would start at iteration " + std::to_string(session.start_iteration) +
                     ", which is not below max_iter " + std::to_string(session.max_iteration) +
                     ": raise --max-iter"};
  }
  return {};
}

Result<void> check_keep_best(const MasterConfig& session) {
  for (const Schedule& stage : session.stages) {
    const std::uint64_t tests = stage.test_interval.value_or(session.test_interval);
    const bool is_tested =
        tests != 0 && session.snapshot_interval != 0 && session.snapshot_interval % tests == 0;
    if (is_tested) continue;
    return Error{ErrorCode::kUsage,
                 fmt::format("--keep-best needs checkpoints that are tested: make "
                             "--snapshot-interval ({}) a multiple of --test-interval ({}{})",
                             session.snapshot_interval, tests,
                             stage.test_interval ? ", of a stage" : "")};
  }
  return {};
}

// Nets that are tested are refused without an interval; that of a test at the end is max_iter.
void give_test_interval(const ClusterFlags& flags, caffe::SolverParameter& solver) {
  if (solver.test_iter_size() == 0) return;
  const std::int64_t wanted = flags.schedule.test_interval.value_or(0);
  if (wanted > 0) {
    solver.set_test_interval(static_cast<std::int32_t>(wanted));
  } else if (solver.test_interval() == 0) {
    solver.set_test_interval(std::max(1, solver.max_iter()));
  }
}

// Tests and checkpoints.
Result<void> set_intervals(const ClusterFlags& flags, const caffe::SolverParameter& solver,
                           MasterConfig& session) {
  const std::int64_t solver_interval =
      solver.test_interval() > 0 ? solver.test_interval() : solver.max_iter();
  session.test_interval =
      static_cast<std::uint64_t>(flags.schedule.test_interval.value_or(solver_interval));
  if (solver.test_iter_size() == 0) {
    session.test_interval = 0;
    for (Schedule& stage : session.stages) stage.test_interval.reset();
  }
  // Caffe tests before training unless told not to; here that must be asked for, as it delays the
  // first merge.
  session.test_at_start = solver.has_test_initialization() && solver.test_initialization();
  session.snapshot_interval = flags.snapshot_interval.value_or(
      static_cast<std::uint64_t>(std::max(0, solver.snapshot())));
  session.snapshot_at_end = solver.snapshot_after_train();
  session.snapshot_workers = flags.snapshot_workers;
  session.stop_patience = std::chrono::seconds(flags.grace_period_s) / 2;
  return flags.rotation.keep_best ? check_keep_best(session) : Result<void>();
}

Result<void> set_session(const ClusterFlags& flags, const caffe::SolverParameter& solver,
                         MasterConfig& session) {
  SPEEDO_ASSIGN(const WorkerRange workers, worker_range(flags));
  session.workers_start = workers.start;
  session.workers_min = workers.min;
  session.workers_max = workers.max;
  SPEEDO_TRY(set_iterations(flags, solver, session));
  SPEEDO_TRY(set_intervals(flags, solver, session));
  SPEEDO_ASSIGN(const ShardBy by, parse_shard_by(flags.shard_by));
  session.shard_by_speed = by.speed;
  session.shard_ratios = by.ratios;
  if (!by.is_equal() && any_replicated(session.stages)) {
    return usage_error("--shard-by " + flags.shard_by +
                       " gives workers batches of different sizes, and with --replicated all have "
                       "the same: leave one of them out");
  }
  const auto step = starts_from_state(flags) ? data_step_of_state(flags.snapshot) : std::nullopt;
  session.first_step =
      step.value_or(steps_used(session.stages, session.start_iteration, workers.start));
  session.join_timeout = std::chrono::seconds(flags.join_timeout_s);
  session.below_min_timeout = std::chrono::seconds(flags.below_min_timeout_s);
  session.worker_timeout = std::chrono::seconds(flags.worker_timeout_s);
  session.stall_timeout = std::chrono::seconds(
      flags.stall_timeout_s.value_or(std::min(kCountMax, kStallTimeouts * flags.worker_timeout_s)));
  session.store_timeout = std::chrono::seconds(flags.store_timeout_s);
  session.non_finite_max = flags.non_finite.max;
  session.same_devices = flags.deterministic;
  return {};
}

Result<void> set_spec(const ClusterFlags& flags, const caffe::SolverParameter& solver,
                      const std::filesystem::path& base, JobTerms& spec) {
  SPEEDO_ASSIGN(const WorkerRange workers, worker_range(flags));
  std::error_code code;
  spec.solver_text = to_prototxt(solver);
  spec.base = std::filesystem::absolute(base, code).string();
  spec.offset_shards = flags.shard == "offset";
  spec.expected_workers = workers.expected();
  spec.deterministic = flags.deterministic;
  return {};
}

Result<void> set_parts(const ClusterFlags& flags, const std::vector<RedisAddress>& redis,
                       const caffe::SolverParameter& solver, MasterOptions& options) {
  const bool is_replicated = any_replicated(options.session.stages);
  if (flags.no_shard_copies && (flags.shards == 0 || is_replicated)) {
    SPEEDO_WARN("--no-shard-copies has no effect: {}",
                is_replicated ? "with --replicated there are none" : "there are no --shards");
  }
  if (flags.shards == 0) return {};
  const std::size_t servers = part_count(redis);
  if (redis.front().is_cluster && servers != flags.shards) {
    return Error{ErrorCode::kUsage,
                 fmt::format("--shards {}: a job on a Redis Cluster has {} parts, whatever nodes "
                             "that has: give --shards {}, or leave it out and the master merges",
                             flags.shards, servers, servers)};
  }
  if (servers != flags.shards) {
    return Error{ErrorCode::kUsage,
                 fmt::format("--shards {}: each has a Redis server of its own, and --redis names "
                             "{}: give as many",
                             flags.shards, servers)};
  }
  SPEEDO_TRY(check_parts(updates_of(options.session.stages), solver));
  options.merger.in_parts = true;
  // Replicas have the weights: of steps no copies are needed.
  options.merger.part_copies =
      !flags.no_shard_copies && !is_replicated;
  return {};
}

// The norm of a contribution tells something only of one that is a whole update.
Result<void> set_norm_limits(const ClusterFlags& flags, MasterOptions& options) {
  options.merger.clip_norm = flags.clip_contributions;
  options.merger.outlier_factor = flags.robust;
  if (flags.clip_contributions == 0.0 && flags.robust == 0.0) return {};
  const std::string flag = flags.robust > 0.0 ? "--robust" : "--clip-contributions";
  if (flags.robust > 0.0 && flags.robust <= 1.0) {
    return usage_error(fmt::format("--robust {:g} would leave out half of what is usual: give more "
                                   "than 1, 5 for example", flags.robust));
  }
  if (flags.shards > 0) {
    return usage_error(flag + " needs whole contributions, and with --shards nobody reads one: "
                              "leave one of them out");
  }
  for (const Schedule& stage : options.session.stages) {
    const UpdateSpec& update = stage.update;
    const bool is_whole = update.kind == UpdateKind::kFullDelta ||
                          (update.kind == UpdateKind::kGradientOnly && !update.replicated);
    if (is_whole) continue;
    return usage_error(flag + " is for updates and gradients: with elastic averaging or "
                              "--replicated, contributions have another norm; leave it out");
  }
  return {};
}

// EAMSGD is EASGD whose workers have Nesterov's momentum (Zhang, Choromanska, LeCun 2015). The
// solver is the whole job's.
Result<void> give_eamsgd_momentum(const std::vector<Schedule>& stages,
                                  caffe::SolverParameter& solver) {
  const auto is_eamsgd = [](const Schedule& stage) { return stage.strategy.name == "eamsgd"; };
  if (std::none_of(stages.begin(), stages.end(), is_eamsgd)) return {};
  if (solver.type() == "Nesterov" && solver.has_momentum()) return {};
  if (const auto other = std::find_if_not(stages.begin(), stages.end(), is_eamsgd);
      other != stages.end()) {
    return Error{ErrorCode::kUsage,
                 fmt::format("stage {}: {} would train with the Nesterov solver and the momentum "
                             "that eamsgd of another stage needs: if that is meant, give the "
                             "solver the type \"Nesterov\" and a momentum, or else take easgd",
                             other - stages.begin() + 1, other->strategy.name)};
  }
  if (solver.type() != "SGD" && solver.type() != "Nesterov") {
    return Error{ErrorCode::kUsage, "--strategy eamsgd is EASGD with Nesterov's momentum, but the "
                                    "solver's type is " + solver.type() +
                                    ": use --strategy easgd, or type \"Nesterov\""};
  }
  solver.set_type("Nesterov");
  if (!solver.has_momentum()) solver.set_momentum(kEamsgdMomentum);
  SPEEDO_INFO("eamsgd: the workers' solver is Nesterov with momentum {:g}", solver.momentum());
  return {};
}

// Rounds of elastic averaging take steps that are so much shorter.
void warn_of_elastic_rates(const std::vector<Schedule>& stages, std::uint64_t workers) {
  for (const Schedule& stage : stages) {
    const double whole = static_cast<double>(stage.update.moving_rate) *
                         static_cast<double>(workers);
    if (!is_elastic(stage.update.kind) || !in_rounds(stage) || whole <= 1.0) continue;
    SPEEDO_WARN("--moving-rate {:g} of {} workers is more than the whole way to their mean, beyond "
                "which {} swings: steps of so many are taken as {:g}",
                stage.update.moving_rate, workers, stage.strategy.name,
                1.0 / static_cast<double>(workers));
  }
}

// A stage may give the solver what its type refuses: a momentum, for one. What is wrong with the
// solver itself is found with its nets.
Result<void> check_rules(const std::vector<Schedule>& stages,
                         const caffe::SolverParameter& solver) {
  if (!UpdateRule::history_count(solver)) return {};
  for (const Schedule& stage : stages) {
    SPEEDO_TRY(UpdateRule::history_count(solver_of(solver, stage.update)));
  }
  return {};
}

// The fingerprint of the job's net.
Result<Digest> model_of(const JobSpec& spec, const TrainerParts& parts) {
  JobNetsOptions options;
  options.job = spec;
  SPEEDO_ASSIGN(const std::unique_ptr<JobNets> nets, JobNets::create(parts, std::move(options)));
  return nets->layout().digest();
}

// Of the checkpoint that the solver state of --snapshot belongs to.
std::optional<std::int64_t> seed_of_snapshot(const ClusterFlags& flags) {
  return starts_from_state(flags) ? seed_of_state(flags.snapshot) : std::nullopt;
}

// Drawn if the solver has none, and no solver state that is gone on from belongs to a checkpoint
// that has it. What --resume finds later goes before either, so that nothing is logged here.
void set_seed(const ClusterFlags& flags, ClusterJob& job) {
  job.drew_seed = job.solver.random_seed() < 0;
  if (!job.drew_seed) return;
  const bool is_start = flags.resume != kResumeNewest;
  const auto earlier = is_start ? seed_of_snapshot(flags) : std::nullopt;
  job.solver.set_random_seed(earlier.value_or(draw_seed()));
}

void adopt_seed(std::int64_t seed, ClusterJob& job) {
  if (!job.drew_seed) return;
  job.solver.set_random_seed(seed);
  job.options.spec.solver_text = to_prototxt(job.solver);
}

// Of the job in the store.
std::optional<std::int64_t> seed_in(BlobStore& store) {
  const auto blob = store.get_blob(job_key());
  if (!blob) return std::nullopt;
  const auto spec = decode_job(*blob);
  if (!spec) return std::nullopt;
  const auto solver = parse_solver(*spec);
  if (!solver || solver->random_seed() < 0) return std::nullopt;
  return solver->random_seed();
}

void start_from(SavedCheckpoint saved, ClusterJob& job) {
  if (saved.record.has_random_seed()) adopt_seed(saved.record.random_seed(), job);
  go_on_from(std::move(saved), job.options);
}

}  // namespace

std::string job_name(const std::string& net) {
  std::string name = net.empty() ? "speedo" : net;
  std::replace_if(
      name.begin(), name.end(),
      [](unsigned char c) { return std::isalnum(c) == 0 && c != '-' && c != '_' && c != '.'; },
      '_');
  if (name.size() <= kJobNameMax) return name;
  const std::string digest = to_string(digest_of(net)).substr(0, kDigestLetters);
  return name.substr(0, kJobNameMax - kDigestLetters - 1) + "-" + digest;
}

std::string default_job_name(const caffe::SolverParameter& solver) {
  return job_name(train_net_of(solver).name());
}

std::string job_of(const ClusterFlags& flags, const caffe::SolverParameter& solver) {
  return flags.key_name.empty() ? default_job_name(solver) : flags.key_name;
}

bool master_keeps_history(const std::vector<Schedule>& stages) {
  return std::any_of(stages.begin(), stages.end(),
                     [](const Schedule& stage) { return keeps_histories(stage.update); });
}

Result<ClusterJob> make_cluster_job(const ClusterFlags& flags) {
  ClusterJob job;
  MasterOptions& options = job.options;
  SPEEDO_ASSIGN(options.session.stages, make_stages(flags));
  SPEEDO_ASSIGN(SolverFile file, load_solver(flags.solver));
  job.solver = std::move(file.solver);
  const ScheduleFlags& values = flags.schedule;
  apply({.max_iter = values.max_iter,
         .seed = flags.seed,
         .lr = values.lr,
         .momentum = values.momentum,
         .weight_decay = values.weight_decay},
        job.solver);
  apply(flags.state, job.solver);
  give_test_interval(flags, job.solver);
  SPEEDO_TRY(give_eamsgd_momentum(options.session.stages, job.solver));
  SPEEDO_ASSIGN(const WorkerRange workers, worker_range(flags));
  warn_of_elastic_rates(options.session.stages, workers.expected());
  SPEEDO_TRY(check_rules(options.session.stages, job.solver));
  SPEEDO_ASSIGN(const std::filesystem::path base, inline_nets(job.solver, file.base));
  if (flags.batch) SPEEDO_TRY(set_effective_batch(*flags.batch, job.solver));
  if (flags.deterministic && job.solver.random_seed() < 0) {
    return usage_error("--deterministic needs a seed, the same at each start: give --seed N, or "
                       "random_seed in '" + shown_name(flags.solver) + "'");
  }
  set_seed(flags, job);

  options.bind = bind_address(flags);
  options.port = flags.port;
  options.host = flags.host;
  SPEEDO_ASSIGN(const std::vector<RedisAddress> redis, parse_redis_addresses(flags.redis));
  options.store = StoreAddress(to_string(redis));
  options.job = job_of(flags, job.solver);
  SPEEDO_TRY(set_parts(flags, redis, job.solver, options));
  options.take_over = flags.take_over;
  options.merger.publish_interval = flags.publish_interval.value_or(0);
  SPEEDO_TRY(set_norm_limits(flags, options));
  SPEEDO_TRY(set_start(flags, job.solver, options));
  SPEEDO_TRY(set_session(flags, job.solver, options.session));
  SPEEDO_TRY(set_spec(flags, job.solver, base, options.spec));
  return job;
}

std::string refusal_of(const ClusterFlags& flags) {
  const auto job = make_cluster_job(flags);
  return job ? std::string() : job.error().message;
}

Result<void> set_resume(const ClusterFlags& flags, const TrainerParts& parts,
                        const OpenStore& open_store, ClusterJob& job) {
  MasterOptions& options = job.options;
  if (flags.resume.empty()) return {};
  const bool takes_newest = flags.resume == kResumeNewest;
  std::optional<TrainingId> training;
  if (takes_newest || (flags.resume == kResumeFromStore && job.drew_seed)) {
    SPEEDO_ASSIGN(const std::shared_ptr<ParameterStore> store,
                  open_store(options.store, options.job));
    if (const auto seed = seed_in(*store)) adopt_seed(*seed, job);
    if (takes_newest) training = training_in(*store);
  }
  if (flags.resume == kResumeFromStore) {
    options.resume = MasterOptions::Resume::kStore;
    options.renumber = flags.start_iter.has_value();
    return {};
  }
  SPEEDO_ASSIGN(const Digest model, model_of(job_spec(options), parts));
  CheckpointOwner owner{options.job, model, {}, states_needed(options)};
  if (master_keeps_history(options.session.stages)) owner.solver_type = job.solver.type();
  if (!takes_newest) {
    SPEEDO_ASSIGN(SavedCheckpoint saved, load_checkpoint(flags.resume, owner));
    SPEEDO_INFO("Resuming from {}, iteration {}", flags.resume, saved.record.iteration());
    start_from(std::move(saved), job);
    return {};
  }
  options.resume = MasterOptions::Resume::kNewest;
  const std::string& prefix = job.solver.snapshot_prefix();
  job.choose_files = [prefix, owner, open_store, before = options](MasterOptions& now) {
    const auto store = open_store(now.store, now.job);
    auto newest = newest_of_job(prefix, owner, store ? training_in(**store) : std::nullopt);
    go_on_from_instead(std::move(newest), before, now);
  };
  auto saved = newest_of_job(prefix, owner, training);
  if (saved) {
    if (!options.given_start.empty()) {
      SPEEDO_INFO("--resume=auto: going on with this training, not from {}", options.given_start);
    }
    start_from(std::move(*saved), job);
  } else if (!training && job.drew_seed) {
    if (const auto seed = seed_of_snapshot(flags)) adopt_seed(*seed, job);
  }
  return {};
}

Result<SolverFile> read_job_files(const ClusterFlags& flags) {
  SPEEDO_ASSIGN(SolverFile file, load_solver(flags.solver));
  SPEEDO_TRY(SnapshotWriter(file.solver).check_writable());
  apply(flags.state, file.solver);
  give_test_interval(flags, file.solver);
  SPEEDO_ASSIGN(file.base, inline_nets(file.solver, file.base));
  if (flags.batch) SPEEDO_TRY(set_effective_batch(*flags.batch, file.solver));
  return file;
}

std::vector<std::string> worker_flags(const ClusterFlags& flags, int compute_nice) {
  std::vector<std::string> arguments = to_arguments(flags.compute);
  arguments.push_back("--compute-nice=" + std::to_string(compute_nice));
  arguments.push_back("--store-timeout=" + std::to_string(flags.store_timeout_s));
  arguments.push_back("--grace-period=" + std::to_string(flags.grace_period_s));
  if (flags.force) arguments.emplace_back("--force");
  if (flags.no_shared_memory) arguments.emplace_back("--no-shared-memory");
  if (!flags.emulate_compute.empty()) {
    arguments.push_back("--emulate-compute=" + flags.emulate_compute);
  }
  if (!flags.data_map.empty()) arguments.push_back("--data-map=" + flags.data_map);
  // Who starts workers so has named the net, too.
  arguments.push_back("--data-root=" + (flags.data_root.empty() ? "/" : flags.data_root));
  if (!flags.trace.empty()) arguments.push_back("--trace-file=" + flags.trace);
  arguments.emplace_back(kNoConfig);
  for (std::string& flag : to_arguments(flags.log)) arguments.push_back(std::move(flag));
  for (std::string& flag : to_arguments(flags.remote)) arguments.push_back(std::move(flag));
  for (std::string& flag : to_arguments(flags.parser)) arguments.push_back(std::move(flag));
  return arguments;
}

}  // namespace speedo
