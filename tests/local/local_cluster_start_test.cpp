#include "local/local_cluster.hpp"

#include <fstream>

#include <sys/wait.h>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

// Whether a child of ours has ended that nobody has waited for.
bool somebody_ended() {
  siginfo_t found{};
  return ::waitid(P_ALL, 0, &found, WEXITED | WNOHANG | WNOWAIT) == 0 && found.si_pid != 0;
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
    return std::vector<RedisPlace>{
        place_of("while [ ! -e '" + sign + "' ]; do sleep 0.01; done; exit 3", [] { return true; }),
        place_of("sleep 1000", ends)};
  };
  const auto ended = run_local_cluster(options);
  REQUIRE_FALSE(ended);
  CHECK(ended.error().code == ErrorCode::kUnavailable);
  CHECK(ended.error().message == "redis-server ended with exit code 3");
}

}  // namespace
}  // namespace speedo
