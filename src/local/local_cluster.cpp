#include "local/local_cluster.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <optional>
#include <thread>
#include <utility>

#include <unistd.h>

#include <speedo/base/clock.hpp>
#include <speedo/base/file.hpp>

#include "base/log.hpp"
#include "checkpoint/resume.hpp"
#include "cli/exit_code.hpp"
#include "cli/process_secrets.hpp"
#include "cli/report/report.hpp"
#include "cli/signals.hpp"
#include "gate/token_file.hpp"
#include "local/children.hpp"
#include "local/cluster_redis.hpp"
#include "local/temporary_folder.hpp"

namespace speedo {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kStartPollInterval{2};  // while something starts
constexpr milliseconds kLookInterval{1000};  // while it matters how far training is
constexpr milliseconds kWatchInterval{100};  // while training runs; a child's end comes at once
constexpr milliseconds kLeavePatience{500};  // for workers to end by themselves
constexpr std::chrono::seconds kDrainPatience{5};
constexpr milliseconds kRestartDelayFirst{250};
constexpr milliseconds kRestartDelayMax{30000};
constexpr const char* kResultFile = "result";
constexpr std::size_t kSocketPathMax = 90;  // sun_path holds 108 bytes

std::string all_ended(std::uint64_t workers) {
  if (workers == 1) return "the only worker ended ";
  return fmt::format("all {} workers ended, the last one ", workers);
}

// A worker that ended for a reason that lies outside it may do better the next time.
bool can_help_to_restart(const ChildEnd& end) {
  if (end.signal != 0) return true;
  const ErrorCode code = error_code_of_exit(end.exit_code);
  return is_transient(code) || code == ErrorCode::kInternal;
}

// What cannot be removed stays.
void remove_all_but_logs(const fs::path& folder) {
  std::error_code code;
  std::vector<fs::path> others;
  for (fs::directory_iterator entry(folder, code), end; !code && entry != end;
       entry.increment(code)) {
    const fs::path& path = entry->path();
    if (path.extension() != ".log" && path.filename() != kFolderInUse) others.push_back(path);
  }
  for (const fs::path& path : others) fs::remove_all(path, code);
}

class LocalCluster {
 public:
  LocalCluster(const LocalClusterOptions& options, fs::path folder, Guardian guardian)
      : options_(options),
        folder_(std::move(folder)),
        log_dir_(options.log_dir.empty() ? folder_ : options.log_dir),
        children_(std::move(guardian)),
        redis_(children_) {}

  Result<int> run();

 private:
  struct Worker {
    pid_t pid = 0;
    std::uint64_t number = 0;
    std::uint64_t restarts = 0;
    fs::path log;
    Instant due{};  // waiting: when it is started again
  };
  struct Left {
    Worker worker;
    ChildEnd end;
  };

  std::uint64_t count_training(const std::vector<Worker>& workers) const;
  std::uint64_t count_all() const;
  std::uint64_t workers_at_first() const;
  Result<void> start_master();
  Result<void> start_workers();
  Result<void> start_worker(Worker worker);
  void restart_due_workers();
  void watch();
  void handle_end(const ChildEnd& end);
  void keep_redis(const Result<void>& kept);
  void handle_worker_end(const Worker& worker, const ChildEnd& end);
  void handle_leave(const Left& left, TrainingState state);
  void report_end(const Worker& worker, const ChildEnd& end, const std::string& plan);
  void go_on_without(const Worker& worker, const Error& how);
  std::string plan_restart(Worker worker, bool helps);
  void look_how_far_it_is();
  void print_result() const;
  void stop_master();
  void drain_workers();
  void keep_logs();

  const LocalClusterOptions options_;
  const fs::path folder_;
  const fs::path log_dir_;
  Children children_;
  ClusterRedis redis_;
  pid_t master_ = 0;
  MasterPlace place_;
  std::vector<Worker> workers_;  // alive
  std::vector<Worker> waiting_;  // to be started again
  std::uint64_t restarts_ = 0;
  std::uint64_t peak_memory_bytes_ = 0;  // of the largest worker that has ended
  std::optional<int> master_exit_code_;
  std::optional<Error> failure_;
  // Of the last worker that ended and is not started again, while training may not have begun.
  std::optional<Error> lost_;
  std::vector<Left> left_;  // ended with 0, which is right only once training is over
  Instant next_look_{};
  bool can_go_on_ = false;  // after such a failure, if there is a checkpoint file
  bool stopping_ = false;
};

Result<int> LocalCluster::run() {
  place_.token_file = options_.token_file;
  if (place_.token_file.empty()) {
    place_.token_file = folder_ / "token";
    SPEEDO_TRY(create_token_file(place_.token_file));
  }
  SPEEDO_ASSIGN(std::vector<RedisPlace> places, options_.redis(folder_));
  SPEEDO_TRY(redis_.start(std::move(places)));
  SPEEDO_TRY(start_master());
  if (!master_exit_code_) {
    SPEEDO_TRY(start_workers());
    watch();
    drain_workers();
    print_result();
    if (failure_ || *master_exit_code_ != 0) keep_logs();
  }
  if (failure_ && can_go_on_) {
    failure_->message += way_on(options_.snapshot_prefix, options_.job);
  }
  if (failure_) return *std::move(failure_);
  return *master_exit_code_;
}

Result<void> LocalCluster::start_master() {
  const fs::path address_file = folder_ / "address";
  ChildCommand command;
  command.arguments = {own_program("speedo-master"), "--address-file=" + address_file.string(),
                       "--token-file=" + place_.token_file.string()};
  command.arguments.push_back("--redis=" + redis_.uris());
  const RedisPlace& first = redis_.first();
  if (!first.password_file.empty()) {
    command.arguments.push_back("--redis-password-file=" + first.password_file.string());
  }
  if (!first.user.empty()) command.environment.emplace_back(kUsernameVariable, first.user);
  command.arguments.insert(command.arguments.end(), options_.master_flags.begin(),
                           options_.master_flags.end());
  command.result = folder_ / kResultFile;
  SPEEDO_ASSIGN(master_, children_.start(command));
  while (!master_exit_code_) {
    std::error_code code;
    if (fs::exists(address_file, code)) break;
    if (stop_requested()) stop_master();
    keep_redis(redis_.restart_due());
    if (auto end = children_.wait(kStartPollInterval)) handle_end(*end);
  }
  place_.address = last_line(address_file);
  return {};
}

Result<void> LocalCluster::start_workers() {
  for (std::size_t number = 0; number < options_.workers.size(); ++number) {
    Worker worker;
    worker.number = number;
    SPEEDO_TRY(start_worker(std::move(worker)));
  }
  SPEEDO_INFO("Started {} worker process{}, logs in {}{}", options_.workers.size(),
              options_.workers.size() == 1 ? "" : "es", log_dir_.string(),
              options_.log_dir.empty()
                  ? " (removed at the end, kept after a failure; --log-dir keeps them elsewhere)"
                  : "");
  return {};
}

Result<void> LocalCluster::start_worker(Worker worker) {
  const WorkerProcess& process = options_.workers[worker.number];
  worker.log = log_dir_ / (worker.restarts == 0
                               ? process.name + ".log"
                               : fmt::format("{}.restart{}.log", process.name, worker.restarts));
  SPEEDO_ASSIGN(ChildCommand command, process.command(place_));
  command.output = worker.log;
  SPEEDO_ASSIGN(worker.pid, children_.start(command));
  workers_.push_back(std::move(worker));
  return {};
}

void LocalCluster::restart_due_workers() {
  if (stopping_ || master_exit_code_) return;
  const Instant now = steady_clock().now();
  while (true) {
    const auto due = std::ranges::find_if(waiting_, [&](const Worker& w) { return w.due <= now; });
    if (due == waiting_.end()) return;
    const Worker worker = *due;
    waiting_.erase(due);
    const std::string& name = options_.workers[worker.number].name;
    if (auto started = start_worker(worker); !started) {
      const std::string plan = plan_restart(worker, true);
      SPEEDO_ERROR("Worker process {} cannot be started again: {}{}", name,
                   started.error().message, plan);
      go_on_without(worker, {started.error().code, "for good, as it cannot be started again: " +
                                                       started.error().message});
    } else {
      ++restarts_;
      SPEEDO_INFO("Worker process {} started again (pid {})", name, workers_.back().pid);
    }
  }
}

// Until the master has ended.
void LocalCluster::watch() {
  while (!master_exit_code_) {
    if (stop_requested()) stop_master();
    if (const int signal = take_snapshot_signal()) children_.send(master_, signal);
    restart_due_workers();
    keep_redis(redis_.restart_due());
    if (auto end = children_.wait(kWatchInterval)) handle_end(*end);
    look_how_far_it_is();
  }
}

// Too few workers to begin with would be waited for without end; so would others in place of those
// that have left before training is over.
void LocalCluster::look_how_far_it_is() {
  if (lost_ && count_all() >= options_.needed_workers) lost_.reset();
  const Instant now = steady_clock().now();
  if (stopping_ || master_exit_code_ || now < next_look_ || (!lost_ && left_.empty())) return;
  next_look_ = now + kLookInterval;
  const std::optional<TrainingState> state = options_.state(place_);
  if (!state) return;
  for (const Left& left : std::exchange(left_, {})) handle_leave(left, *state);
  const std::optional<Error> lost = std::exchange(lost_, std::nullopt);
  if (!lost || *state != TrainingState::kAwaited || failure_) return;
  const std::uint64_t left = count_all();
  if (left >= options_.needed_workers) return;
  failure_ = Error{lost->code,
                   fmt::format("training waits for {} workers, and no more than {} can come: {}",
                               options_.needed_workers, left, lost->message)};
  stop_master();
}

void LocalCluster::handle_end(const ChildEnd& end) {
  if (end.pid == master_) {
    master_exit_code_ = end.exit_code;
    if (stopping_ && end.signal != 0 && end.signal == stop_signal_number()) {
      // It was still being loaded: a signal that is obeyed does not end it so.
      SPEEDO_INFO("{}: the master had not begun", *stop_requested());
      master_exit_code_ = 0;
    }
    if (end.signal != 0 && !stopping_) {  // Else it was asked to before it could end cleanly.
      failure_ = Error{ErrorCode::kInternal, "the master ended with " + to_string(end)};
      can_go_on_ = true;
    }
    return;
  }
  if (redis_.has(end.pid)) {
    if (!master_exit_code_) keep_redis(redis_.take_end(end));
    return;
  }
  const auto place = std::find_if(workers_.begin(), workers_.end(),
                                  [&](const Worker& worker) { return worker.pid == end.pid; });
  if (place == workers_.end()) return;
  const Worker worker = *place;
  workers_.erase(place);
  peak_memory_bytes_ = std::max(peak_memory_bytes_, end.peak_memory_bytes);
  handle_worker_end(worker, end);
}

// `kept`: whether a server that has ended is there again, or will be. Else the master may still
// have the weights.
void LocalCluster::keep_redis(const Result<void>& kept) {
  if (kept || stopping_) return;
  failure_ = kept.error();
  can_go_on_ = true;
  stop_master();
}

// What becomes of a worker that ended, as the end of a log line.
std::string LocalCluster::plan_restart(Worker worker, bool helps) {
  if (options_.max_restarts == 0) return "";
  if (!helps) return "; not started again, as that would not help";
  if (worker.restarts == options_.max_restarts) {
    return fmt::format("; not started again: its restarts (--max-restarts {}) are used up",
                       options_.max_restarts);
  }
  const milliseconds delay = std::min(
      kRestartDelayMax, kRestartDelayFirst * (1 << std::min<std::uint64_t>(worker.restarts, 10)));
  ++worker.restarts;
  worker.due = steady_clock().now() + delay;
  const std::string plan =
      fmt::format("; starts again in {:.1f} s (restart {} of {})",
                  std::chrono::duration<double>(delay).count(), worker.restarts,
                  options_.max_restarts);
  waiting_.push_back(std::move(worker));
  return plan;
}

std::uint64_t LocalCluster::count_training(const std::vector<Worker>& workers) const {
  std::uint64_t count = 0;
  for (const Worker& each : workers) {
    const WorkerProcess& process = options_.workers[each.number];
    if (process.trains) count += process.workers;
  }
  return count;
}

// Those that train and those that will again.
std::uint64_t LocalCluster::count_all() const {
  return count_training(workers_) + count_training(waiting_);
}

std::uint64_t LocalCluster::workers_at_first() const {
  std::uint64_t count = 0;
  for (const WorkerProcess& each : options_.workers) count += each.trains ? each.workers : 0;
  return count;
}

void LocalCluster::handle_worker_end(const Worker& worker, const ChildEnd& end) {
  if (stopping_ || master_exit_code_) return;
  if (end.exit_code != 0) {
    report_end(worker, end, plan_restart(worker, can_help_to_restart(end)));
  } else if (options_.state) {
    // At the end of training workers leave by themselves, some before the master does.
    left_.push_back({worker, end});
    next_look_ = steady_clock().now() + kLookInterval;
  }
}

// A worker that leaves while others train was asked to, by whoever wants fewer of them.
void LocalCluster::handle_leave(const Left& left, TrainingState state) {
  if (state == TrainingState::kOver || stopping_) return;
  const bool is_missed = options_.workers[left.worker.number].trains &&
                         (state == TrainingState::kAwaited || count_all() == 0);
  report_end(left.worker, left.end, is_missed ? plan_restart(left.worker, true) : "");
}

// `plan`: what becomes of it, as the end of a line.
void LocalCluster::report_end(const Worker& worker, const ChildEnd& end, const std::string& plan) {
  const std::string& name = options_.workers[worker.number].name;
  const std::string quote = end.signal == 0 && end.exit_code != 0 ? last_line(worker.log) : "";
  const std::string said = quote.empty() ? "" : "; it said: " + quote;
  const std::string how =
      to_string(end) + (end.exit_code == 0 ? " before training is over" : "");
  if (!options_.workers[worker.number].trains) {
    SPEEDO_WARN("The merger {} (pid {}) ended: {}; the master merges instead{}{}", name, worker.pid,
                how, plan, said);
    return;
  }
  SPEEDO_WARN("Worker process {} (pid {}) ended: {}; {} of {} go on{}{}", name, worker.pid, how,
              count_training(workers_), workers_at_first(), plan, said);
  const bool is_told = end.signal == 0 && end.exit_code != 0;
  const ErrorCode code = is_told ? error_code_of_exit(end.exit_code) : ErrorCode::kUnavailable;
  go_on_without(worker, {code, "with " + how + (quote.empty() ? "" : ": " + quote)});
}

// `how` it ended: "with SIGKILL".
void LocalCluster::go_on_without(const Worker& worker, const Error& how) {
  const WorkerProcess& process = options_.workers[worker.number];
  if (failure_ || !process.trains) return;
  if (count_all() == 0) {
    failure_ = Error{how.code, all_ended(workers_at_first()) + how.message};
    can_go_on_ = options_.state && options_.state(place_) > TrainingState::kAwaited;
    stop_master();
  } else if (options_.state) {
    lost_ = Error{how.code, process.name + " ended " + how.message};
  }
}

void LocalCluster::stop_master() {
  if (std::exchange(stopping_, true)) return;
  const int signal = stop_signal_number();
  if (signal == 0) {
    SPEEDO_INFO("The master is stopped, with SIGTERM: {}",
                failure_ ? failure_->message : stop_requested().value_or("its workers have ended"));
  }
  // A signal that was sent here has the same effect there, and its name in the master's log.
  children_.send(master_, signal == 0 ? SIGTERM : signal);
}

// The master has told its workers to stop, but not those that had not joined yet; they, and all of
// them after a crash, would look for it for ever.
void LocalCluster::drain_workers() {
  const Instant now = steady_clock().now();
  const Instant ask = *master_exit_code_ == 0 ? now + kLeavePatience : now;
  const Instant end = now + kDrainPatience;
  bool asked = false;
  while (!workers_.empty() && steady_clock().now() < end) {
    if (!asked && steady_clock().now() >= ask) {
      for (const Worker& worker : workers_) {
        children_.close_input(worker.pid);  // what it speaks with elsewhere is to end, too
        children_.send(worker.pid, SIGTERM);
      }
      asked = true;
    }
    if (auto ended = children_.wait(kWatchInterval)) handle_end(*ended);
  }
}

// The master's result, which it left in a file, so that figures of the workers can be added. After
// a failure before anything was trained there is none.
void LocalCluster::print_result() const {
  const std::string result = last_line(folder_ / kResultFile);
  if (result.empty() || (failure_ && !shows_training(result, options_.json))) return;
  const WorkerFigures figures{.restarts = restarts_,
                              .predicted_memory_bytes = options_.predicted_memory_bytes,
                              .peak_memory_bytes = peak_memory_bytes_};
  std::printf("%s\n", with_workers(result, options_.json, figures).c_str());
  std::fflush(stdout);
}

// Nothing but logs: beside them lie passwords, perhaps of the user's own Redis, and the token.
void LocalCluster::keep_logs() {
  if (options_.log_dir.empty()) {
    remove_all_but_logs(folder_);
    children_.guardian().keep_folder();
  }
  SPEEDO_ERROR("The logs of the workers are in {}", log_dir_.string());
}

}  // namespace

std::string own_program(const char* name) {
  std::error_code code;
  return (fs::read_symlink("/proc/self/exe", code).parent_path() / name).string();
}

std::string worker_name(std::uint64_t number) { return "worker" + std::to_string(number); }

std::string last_line(const fs::path& file) {
  std::ifstream stream(file);
  std::string last;
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty()) last = line;
  }
  return last;
}

Result<int> run_local_cluster(const LocalClusterOptions& options) {
  if (!options.log_dir.empty()) {
    std::error_code code;
    fs::create_directories(options.log_dir, code);
    if (code) {
      return Error{ErrorCode::kCannotWrite,
                   "--log-dir: cannot create '" + options.log_dir.string() +
                       "': " + code.message()};
    }
  }
  SPEEDO_ASSIGN(const fs::path folder, make_temporary_folder("speedo-run", kSocketPathMax));
  auto guardian = Guardian::create(folder);
  if (!guardian) {
    std::error_code code;
    fs::remove_all(folder, code);
    return std::move(guardian).error();
  }
  return LocalCluster(options, folder, std::move(*guardian)).run();
}

}  // namespace speedo
