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
#include "local/private_redis.hpp"
#include "local/temporary_folder.hpp"

namespace speedo {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kStartPollInterval{2};  // while something starts
constexpr milliseconds kLookInterval{1000};   // while a worker is missing at the start
constexpr milliseconds kWatchInterval{
    100};  // while training runs; the end of a child comes at once
constexpr std::chrono::seconds kStartPatience{20};
constexpr milliseconds kLeavePatience{500};  // for workers to end by themselves
constexpr std::chrono::seconds kDrainPatience{5};
constexpr milliseconds kRestartDelayFirst{250};
constexpr milliseconds kRestartDelayMax{30000};
constexpr const char* kResultFile = "result";
constexpr std::size_t kSocketPathMax = 90;  // sun_path holds 108 bytes

// Calls `done` every few milliseconds until it is true or patience runs out.
template <class Done>
bool poll_until(Done done) {
  const Instant end = steady_clock().now() + kStartPatience;
  while (!done()) {
    if (steady_clock().now() > end) return false;
    std::this_thread::sleep_for(kStartPollInterval);
  }
  return true;
}

std::string all_ended(std::uint64_t workers) {
  if (workers == 1) return "the only worker ended with ";
  return fmt::format("all {} workers ended, the last one with ", workers);
}

// A worker that ended for a reason that lies outside it may do better the next time.
bool can_help_to_restart(const ChildEnd& end) {
  if (end.signal != 0) return true;
  const ErrorCode code = error_code_of_exit(end.exit_code);
  return is_transient(code) || code == ErrorCode::kInternal;
}

class LocalCluster {
 public:
  LocalCluster(const LocalClusterOptions& options, fs::path folder, Guardian guardian)
      : options_(options),
        folder_(std::move(folder)),
        log_dir_(options.log_dir.empty() ? folder_ : options.log_dir),
        children_(std::move(guardian)) {}

  Result<int> run();

 private:
  struct Worker {
    pid_t pid = 0;
    std::uint64_t number = 0;
    std::uint64_t restarts = 0;
    fs::path log;
    Instant due{};  // waiting: when it is started again
  };

  Result<void> start_redis();
  Result<void> start_redis_at(const RedisPlace& place);
  std::uint64_t count_training(const std::vector<Worker>& workers) const;
  Result<void> start_master();
  Result<void> start_workers();
  Result<void> start_worker(Worker worker);
  void restart_due_workers();
  void watch();
  void handle_end(const ChildEnd& end);
  void handle_worker_end(Worker worker, const ChildEnd& end);
  std::string plan_restart(Worker worker, const ChildEnd& end);
  void look_whether_it_begins();
  void print_result() const;
  void stop_master();
  void drain_workers();
  void keep_logs();

  const LocalClusterOptions options_;
  const fs::path folder_;
  const fs::path log_dir_;
  Children children_;
  pid_t master_ = 0;
  std::vector<pid_t> redis_;
  std::vector<RedisPlace> places_;
  MasterPlace place_;
  std::vector<Worker> workers_;  // alive
  std::vector<Worker> waiting_;  // to be started again
  std::uint64_t restarts_ = 0;
  std::uint64_t peak_memory_bytes_ = 0;  // of the largest worker that has ended
  std::optional<int> master_exit_code_;
  std::optional<Error> failure_;
  // Of the last worker that ended and is not started again, while training may not have begun.
  std::optional<Error> lost_;
  Instant next_look_{};
  bool can_go_on_ = false;  // from a checkpoint file, after such a failure
  bool stopping_ = false;
};

Result<int> LocalCluster::run() {
  place_.token_file = options_.token_file;
  if (place_.token_file.empty()) {
    place_.token_file = folder_ / "token";
    SPEEDO_TRY(create_token_file(place_.token_file));
  }
  SPEEDO_TRY(start_redis());
  SPEEDO_TRY(start_master());
  if (!master_exit_code_) {
    SPEEDO_TRY(start_workers());
    watch();
    drain_workers();
    print_result();
    if (failure_ || *master_exit_code_ != 0) keep_logs();
  }
  if (failure_ && can_go_on_) failure_->message += way_on(options_.snapshot_prefix, options_.job);
  if (failure_) return *std::move(failure_);
  return *master_exit_code_;
}

Result<void> LocalCluster::start_redis() {
  SPEEDO_ASSIGN(places_, options_.redis(folder_));
  for (const RedisPlace& place : places_) SPEEDO_TRY(start_redis_at(place));
  return {};
}

Result<void> LocalCluster::start_redis_at(const RedisPlace& place) {
  if (!place.command) return {};
  auto started = children_.start(*place.command);
  if (!started && started.error().code == ErrorCode::kNotFound) {
    return Error{ErrorCode::kUnavailable,
                 "redis-server is not installed (apt-get install redis-server)"};
  }
  SPEEDO_ASSIGN(const pid_t pid, std::move(started));
  redis_.push_back(pid);
  std::string how = "it does not answer";
  const bool ready = poll_until([&] {
    if (const auto end = children_.wait(milliseconds(0))) how = "it ended with " + to_string(*end);
    return !children_.is_running(pid) || place.answers();
  });
  if (ready && children_.is_running(pid)) return {};
  const std::string quote = last_line(place.command->output);
  return Error{ErrorCode::kUnavailable,
               "redis-server did not start: " + how + (quote.empty() ? "" : ": " + quote)};
}

Result<void> LocalCluster::start_master() {
  const fs::path address_file = folder_ / "address";
  ChildCommand command;
  command.arguments = {own_program("speedo-master"), "--address-file=" + address_file.string(),
                       "--token-file=" + place_.token_file.string()};
  std::string uris;
  for (const RedisPlace& place : places_) uris += (uris.empty() ? "" : ",") + place.uri;
  command.arguments.push_back("--redis=" + uris);
  const RedisPlace& first = places_.front();
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
  std::vector<Worker> due;
  std::erase_if(waiting_, [&](const Worker& worker) {
    if (worker.due <= now) due.push_back(worker);
    return worker.due <= now;
  });
  for (Worker& worker : due) {
    ++restarts_;
    const std::uint64_t number = worker.number;
    if (auto started = start_worker(std::move(worker)); !started) {
      SPEEDO_ERROR("Worker process {} cannot be started again: {}", options_.workers[number].name,
                   started.error().message);
    } else {
      SPEEDO_INFO("Worker process {} started again (pid {})", options_.workers[number].name,
                  workers_.back().pid);
    }
  }
}

// Until the master has ended.
void LocalCluster::watch() {
  while (!master_exit_code_) {
    if (stop_requested()) stop_master();
    if (const int signal = take_snapshot_signal()) children_.send(master_, signal);
    restart_due_workers();
    if (auto end = children_.wait(kWatchInterval)) handle_end(*end);
    if (lost_) look_whether_it_begins();
  }
}

// Too few workers to begin with would be waited for without end.
void LocalCluster::look_whether_it_begins() {
  const Instant now = steady_clock().now();
  if (stopping_ || master_exit_code_ || now < next_look_) return;
  next_look_ = now + kLookInterval;
  const std::uint64_t left = count_training(workers_) + count_training(waiting_);
  const auto begun = left < options_.needed_workers ? options_.has_begun(place_) : true;
  if (!begun) return;
  if (!*begun) {
    failure_ = Error{lost_->code,
                     fmt::format("training waits for {} workers, and no more than {} can come: {}",
                                 options_.needed_workers, left, lost_->message)};
    stop_master();
  }
  lost_.reset();
}

void LocalCluster::handle_end(const ChildEnd& end) {
  if (end.pid == master_) {
    master_exit_code_ = end.exit_code;
    if (end.signal != 0 && !stopping_) {  // Else it was asked to before it could end cleanly.
      failure_ = Error{ErrorCode::kInternal, "the master ended with " + to_string(end)};
      can_go_on_ = true;
    }
    return;
  }
  if (std::ranges::find(redis_, end.pid) != redis_.end()) {
    if (master_ == 0 || stopping_ || master_exit_code_) return;
    // It is nobody's but this cluster's: it will not come back. The master still has the weights.
    failure_ = Error{ErrorCode::kUnavailable, "redis-server ended with " + to_string(end)};
    can_go_on_ = true;
    stop_master();
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

// What becomes of a worker that ended, as the end of a log line.
std::string LocalCluster::plan_restart(Worker worker, const ChildEnd& end) {
  if (options_.max_restarts == 0) return "";
  if (!can_help_to_restart(end)) return "; not started again, as that would not help";
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
  return static_cast<std::uint64_t>(std::ranges::count_if(
      workers, [this](const Worker& each) { return options_.workers[each.number].trains; }));
}

void LocalCluster::handle_worker_end(Worker worker, const ChildEnd& end) {
  // At the end of training workers leave by themselves, some before the master does.
  if (end.exit_code == 0 || stopping_ || master_exit_code_) return;
  const std::string plan = plan_restart(worker, end);
  const std::string quote = end.signal == 0 ? last_line(worker.log) : "";
  const std::string said = quote.empty() ? "" : "; it said: " + quote;
  if (!options_.workers[worker.number].trains) {
    SPEEDO_WARN("The merger {} (pid {}) ended: {}; the master merges instead{}{}",
                options_.workers[worker.number].name, worker.pid, to_string(end), plan, said);
    return;
  }
  const auto training = static_cast<std::size_t>(
      std::ranges::count_if(options_.workers, [](const auto& each) { return each.trains; }));
  SPEEDO_WARN("Worker process {} (pid {}) ended: {}; {} of {} go on{}{}",
              options_.workers[worker.number].name, worker.pid, to_string(end),
              count_training(workers_), training, plan, said);
  if (failure_) return;
  const ErrorCode code =
      end.signal == 0 ? error_code_of_exit(end.exit_code) : ErrorCode::kUnavailable;
  const std::string how = to_string(end) + (quote.empty() ? "" : ": " + quote);
  if (count_training(workers_) + count_training(waiting_) > 0) {
    if (options_.has_begun) {
      lost_ = Error{code, options_.workers[worker.number].name + " ended with " + how};
    }
    return;
  }
  failure_ = Error{code, all_ended(training) + how};
  stop_master();
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

void LocalCluster::keep_logs() {
  if (options_.log_dir.empty()) children_.guardian().keep_folder();
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
