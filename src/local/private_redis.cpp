#include "local/private_redis.hpp"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <utility>

#include <speedo/base/clock.hpp>
#include <speedo/store/redis_store.hpp>

#include "base/log.hpp"
#include "local/local_cluster.hpp"
#include "local/temporary_folder.hpp"

namespace speedo {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::milliseconds kRedisPollInterval{5};
constexpr std::chrono::seconds kRedisStartPatience{20};
constexpr std::chrono::milliseconds kRedisWatchInterval{200};
constexpr std::chrono::milliseconds kRedisDelayFirst{250};
constexpr std::chrono::milliseconds kRedisDelayMax{30000};
constexpr std::chrono::seconds kRedisLivesWell{60};  // after that the delay begins anew
constexpr std::size_t kSocketFolderMax = 80;  // sun_path holds 108 bytes

}  // namespace

RedisPlace private_redis(const fs::path& folder, const std::string& name) {
  const std::string socket = (folder / (name + ".sock")).string();
  ChildCommand command;
  command.arguments = {"redis-server",
                       "--port",
                       "0",
                       "--unixsocket",
                       socket,
                       "--unixsocketperm",
                       "700",
                       "--save",
                       "",
                       "--appendonly",
                       "no",
                       "--dir",
                       folder.string(),
                       "--maxmemory-policy",
                       "noeviction",
                       "--loglevel",
                       "warning"};
  command.output = folder / (name + ".log");
  RedisPlace redis;
  redis.command = std::move(command);
  redis.answers = [socket] {
    RedisAddress address;
    address.unix_path = socket;
    return is_somebody_at(address);
  };
  redis.uri = "unix://" + socket;
  return redis;
}

PrivateRedis::PrivateRedis(fs::path folder, Guardian guardian)
    : folder_(std::move(folder)),
      socket_(folder_ / "redis.sock"),
      children_(std::move(guardian)) {}

Result<std::unique_ptr<PrivateRedis>> PrivateRedis::start() {
  SPEEDO_ASSIGN(const fs::path folder, make_temporary_folder("speedo-redis", kSocketFolderMax));
  auto guardian = Guardian::create(folder);
  if (!guardian) {
    std::error_code code;
    fs::remove_all(folder, code);
    return std::move(guardian).error();
  }
  std::unique_ptr<PrivateRedis> redis(new PrivateRedis(folder, std::move(*guardian)));
  SPEEDO_TRY(redis->launch());
  return redis;
}

void PrivateRedis::keep_up() {
  watcher_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

void PrivateRedis::watch(const std::stop_token& stop) {
  std::chrono::milliseconds delay = kRedisDelayFirst;
  Instant due{}, begun = steady_clock().now();
  while (!stop.stop_requested()) {
    const auto end = children_.wait(kRedisWatchInterval);
    const Instant now = steady_clock().now();
    if (end) {
      if (now - begun > kRedisLivesWell) delay = kRedisDelayFirst;
      due = now + delay;
      SPEEDO_WARN("The private redis-server (pid {}) ended: {}; it is started again in {:.1f} s, "
                  "without its data",
                  end->pid, to_string(*end), std::chrono::duration<double>(delay).count());
    } else if (children_.is_running(pid_) || now < due) {
      continue;
    } else if (const auto launched = launch(); launched) {
      begun = now;
      SPEEDO_INFO("The private redis-server was started again (pid {})", pid_.load());
    } else {
      due = now + delay;
      SPEEDO_ERROR("{}; tried again in {:.1f} s", launched.error().message,
                   std::chrono::duration<double>(delay).count());
    }
    delay = std::min(kRedisDelayMax, 2 * delay);
  }
}

// The socket is there once the server listens.
Result<void> PrivateRedis::launch() {
  std::error_code code;
  fs::remove(socket_, code);  // of one that has ended
  auto started = children_.start(*private_redis(folder_).command);
  if (!started && started.error().code == ErrorCode::kNotFound) {
    return Error{ErrorCode::kUnavailable,
                 "redis-server is not installed (apt-get install redis-server)"};
  }
  SPEEDO_ASSIGN(pid_, std::move(started));
  const Instant end = steady_clock().now() + kRedisStartPatience;
  while (children_.is_running(pid_) && !fs::exists(socket_, code)) {
    if (steady_clock().now() > end) break;
    children_.wait(kRedisPollInterval);
  }
  if (children_.is_running(pid_) && fs::exists(socket_, code)) return {};
  const std::string said = last_line(folder_ / "redis.log");
  return Error{ErrorCode::kUnavailable,
               "redis-server did not start: " +
                   (said.empty() ? "it said nothing; run it by hand to see what is wrong" : said)};
}

// The first number of schedstat: nanoseconds on a processor.
double PrivateRedis::cpu_seconds() const {
  std::ifstream stream("/proc/" + std::to_string(pid_) + "/schedstat");
  double nanoseconds = 0.0;
  return stream >> nanoseconds ? nanoseconds / 1e9 : 0.0;
}

}  // namespace speedo
