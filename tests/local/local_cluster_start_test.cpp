#include "local/local_cluster.hpp"

#include <chrono>
#include <fstream>
#include <string>

#include <sys/wait.h>

#include "local/cluster_redis.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

// Whether a child of ours has ended that nobody has waited for.
bool somebody_ended() {
  siginfo_t found{};
  return ::waitid(P_ALL, 0, &found, WEXITED | WNOHANG | WNOWAIT) == 0 && found.si_pid != 0;
}

// A script that ends once `sign` is there.
std::string until(const std::string& sign) {
  return "while [ ! -e '" + sign + "' ]; do sleep 0.01; done; exit 3";
}

RedisPlace place_of(const std::string& script, std::function<bool()> answers) {
  RedisPlace place;
  place.command.emplace();
  place.command->arguments = {"sh", "-c", script};
  place.answers = std::move(answers);
  place.uri = "unix:///none";
  return place;
}

TEST_CASE("A redis-server that ends while the next one starts ends the cluster") {
  const TempDir folder;
  const std::string sign = folder / "end";
  LocalClusterOptions options;
  options.redis = [&](const std::filesystem::path&) -> Result<std::vector<RedisPlace>> {
    const auto ends = [&sign, ended = std::make_shared<bool>(false)] {
      std::ofstream(sign).put('x');
      // It answers once the cluster has been able to see that the first one is gone.
      if (*ended) return true;
      *ended = somebody_ended();
      return false;
    };
    return std::vector<RedisPlace>{place_of(until(sign), [] { return true; }),
                                   place_of("sleep 1000", ends)};
  };
  const auto ended = run_local_cluster(options);
  REQUIRE_FALSE(ended);
  CHECK(ended.error().code == ErrorCode::kUnavailable);
  CHECK(ended.error().message == "redis-server ended with exit code 3");
}

TEST_CASE("A redis-server that dies is started again, and again only so often") {
  const TempDir temporary;
  std::filesystem::create_directory(temporary / "cluster");
  const std::string sign = temporary / "end";
  Children children(Guardian::create(temporary / "cluster").value());
  ClusterRedis redis(children);
  REQUIRE(redis.start({place_of("sleep 1000", [] { return true; }), place_of(until(sign), [&sign] {
                         return bool(std::ofstream(sign).put('x'));
                       })}));
  CHECK(redis.uris() == "unix:///none,unix:///none");
  int ends = 0;
  Result<void> kept;
  while (kept) {
    kept = redis.restart_due();
    const auto end = children.wait(std::chrono::milliseconds(10));
    if (!kept || !end) continue;
    CHECK(redis.has(end->pid));
    ++ends;
    kept = redis.take_end(*end);
    CHECK_FALSE(redis.has(end->pid));
  }
  CHECK(ends == 1 + kRedisRestartsMax);
  CHECK(kept.error().code == ErrorCode::kUnavailable);
  CHECK(kept.error().message == "redis-server ended with exit code 3, after 3 restarts in a row");
}

}  // namespace
}  // namespace speedo
