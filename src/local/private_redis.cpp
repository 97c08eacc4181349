#include "local/private_redis.hpp"

#include <chrono>
#include <fstream>
#include <utility>

#include <speedo/base/clock.hpp>
#include <speedo/store/redis_store.hpp>

#include "local/local_cluster.hpp"
#include "local/temporary_folder.hpp"

namespace speedo {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::milliseconds kRedisPollInterval{5};
constexpr std::chrono::seconds kRedisStartPatience{20};
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

// The socket is there once the server listens.
Result<void> PrivateRedis::launch() {
  auto started = children_.start(*private_redis(folder_).command);
  if (!started && started.error().code == ErrorCode::kNotFound) {
    return Error{ErrorCode::kUnavailable,
                 "redis-server is not installed (apt-get install redis-server)"};
  }
  SPEEDO_ASSIGN(pid_, std::move(started));
  const Instant end = steady_clock().now() + kRedisStartPatience;
  std::error_code code;
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
