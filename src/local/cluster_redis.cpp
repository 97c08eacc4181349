#include "local/cluster_redis.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/log.hpp"
#include "local/local_cluster.hpp"

namespace speedo {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kServerPollInterval{2};
constexpr std::chrono::seconds kServerStartPatience{20};
constexpr milliseconds kServerDelayFirst{250};
constexpr std::chrono::seconds kServerLivesWell{60};

// Calls `done` every few milliseconds until it is true or patience runs out.
template <class Done>
bool server_shows(Done done) {
  const Instant end = steady_clock().now() + kServerStartPatience;
  while (!done()) {
    if (steady_clock().now() > end) return false;
    std::this_thread::sleep_for(kServerPollInterval);
  }
  return true;
}

std::string ended_with(const ChildEnd& end) { return "redis-server ended with " + to_string(end); }

}  // namespace

Result<void> ClusterRedis::start(std::vector<RedisPlace> places) {
  for (RedisPlace& place : places) {
    servers_.push_back({.place = std::move(place)});
    if (servers_.back().place.command) SPEEDO_TRY(start(servers_.back()));
  }
  return {};
}

Result<void> ClusterRedis::start(Server& server) {
  auto started = children_.start(*server.place.command);
  if (!started && started.error().code == ErrorCode::kNotFound) {
    return Error{ErrorCode::kUnavailable,
                 "redis-server is not installed (apt-get install redis-server)"};
  }
  SPEEDO_ASSIGN(const pid_t pid, std::move(started));
  std::string how = "it does not answer";
  std::optional<ChildEnd> other;
  const bool ready = server_shows([&] {
    if (const auto end = children_.wait(milliseconds(0))) {
      if (end->pid == pid) how = "it ended with " + to_string(*end);
      if (end->pid != pid) other = *end;
    }
    return !children_.is_running(pid) || other || server.place.answers();
  });
  if (other) return Error{ErrorCode::kUnavailable, ended_with(*other)};
  if (ready && children_.is_running(pid)) {
    server.pid = pid;
    server.begun = steady_clock().now();
    return {};
  }
  const std::string quote = last_line(server.place.command->output);
  return Error{ErrorCode::kUnavailable,
               "redis-server did not start: " + how + (quote.empty() ? "" : ": " + quote)};
}

std::string ClusterRedis::uris() const {
  std::string all;
  for (const Server& each : servers_) all += (all.empty() ? "" : ",") + each.place.uri;
  return all;
}

bool ClusterRedis::has(pid_t pid) const {
  return std::ranges::any_of(servers_, [&](const Server& each) { return each.pid == pid; });
}

Result<void> ClusterRedis::take_end(const ChildEnd& end) {
  const auto server =
      std::ranges::find_if(servers_, [&](const Server& each) { return each.pid == end.pid; });
  server->pid = 0;
  const std::string quote = end.signal == 0 ? last_line(server->place.command->output) : "";
  return plan_restart(*server, ended_with(end) + (quote.empty() ? "" : ": " + quote));
}

// `what` has become of it.
Result<void> ClusterRedis::plan_restart(Server& server, const std::string& what) {
  const Instant now = steady_clock().now();
  if (now - server.begun > kServerLivesWell) server.restarts = 0;
  if (server.restarts == kRedisRestartsMax) {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("{}, after {} restarts in a row", what, kRedisRestartsMax)};
  }
  const milliseconds delay = kServerDelayFirst * (1 << server.restarts);
  ++server.restarts;
  server.due = now + delay;
  SPEEDO_WARN(
      "{} ({}); starts again in {:.2f} s without its data, which the master publishes "
      "again (restart {} of {} in a row)",
      what, server.place.uri, std::chrono::duration<double>(delay).count(), server.restarts,
      kRedisRestartsMax);
  return {};
}

// Whether it answers the master sees; one that ends again is the next end.
Result<void> ClusterRedis::restart_due() {
  const Instant now = steady_clock().now();
  for (Server& server : servers_) {
    if (!server.due || *server.due > now) continue;
    server.due.reset();
    const auto started = children_.start(*server.place.command);
    server.begun = now;
    if (!started) {
      SPEEDO_TRY(
          plan_restart(server, "redis-server does not start again: " + started.error().message));
      continue;
    }
    server.pid = *started;
    SPEEDO_INFO("redis-server started again ({}, pid {})", server.place.uri, server.pid);
  }
  return {};
}

}  // namespace speedo
