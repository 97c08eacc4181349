#include "main/command_support.hpp"

namespace speedo::test {
namespace {

// Four machines of one worker each, a head that stores and merges; `store`: of its table.
std::string write_cluster(const Context& place, const std::string& store = "") {
  return place.write("cluster.toml", R"([net]
parameters = 1000000
batch = 10
[[machine]]
name = "a"
count = 4
threads = 1
workers_max = 1
step_seconds = 1.0
bytes_per_second = 1e7
[[machine]]
name = "head"
cores = 8
step_seconds = 1.0
bytes_per_second = 1e7
[store]
machine = "head"
)" + store + R"(
[master]
machine = "head"
)");
}

// Of `speedo simulate` with these, as JSON.
Outcome simulate(Context& place, std::vector<std::string> flags) {
  flags.insert(flags.begin(), {"speedo", "simulate"});
  flags.emplace_back("--json");
  return place.run(flags);
}

nlohmann::json plan(Context& place, const std::vector<std::string>& flags) {
  const Outcome outcome = simulate(place, flags);
  INFO(outcome.errors);
  REQUIRE(outcome.exit_code == 0);
  return outcome.json();
}

TEST_CASE("A file of options for other programs does not keep a cluster from being planned") {
  Context place;
  const std::string cluster = write_cluster(place);
  const std::string file = place.write("of_a_job.toml", R"(solver = "s.prototxt"
threads = 1
test_interval = 10
moving_rate = 0.1
)");
  std::vector<std::string> flags = {"--config",   file,   "--cluster", cluster,
                                    "--strategy", "sync", "--workers", "1,2"};
  CHECK(plan(place, flags)["plans"].size() == 2);
  // On the command line it is a mistake.
  flags.insert(flags.end(), {"--solver", "s.prototxt"});
  const Outcome refused = simulate(place, flags);
  CHECK(refused.exit_code == 2);
  CHECK(refused.error_line().find("--solver belongs to --calibrate") != std::string::npos);

  place.write("of_a_job.toml", "gradient_only = true\n");
  plan(place, {"--config", file, "--cluster", cluster, "--recommend", "--workers", "2",
               "--strategy", "sync"});
}

TEST_CASE("A cluster that a file or a variable names is planned") {
  Context place;
  const std::string cluster = write_cluster(place);
  const std::string file =
      place.write("plan.toml", "[plan]\ncluster = \"" + cluster + "\"\nstrategy = \"sync\"\n");
  CHECK(plan(place, {"--config", file})["plans"].size() == 3);
  CHECK(plan(place, {"--config", file, "--workers", "4"})["plans"].size() == 1);
  const Outcome by_variable =
      place.run({"speedo", "simulate", "--strategy", "sync", "--workers", "2", "--json"},
                {"SPEEDO_CLUSTER=" + cluster});
  CHECK(by_variable.json()["plans"].size() == 1);
  // Seeds are the proof's alone.
  CHECK(plan(place, {"--config", file, "--seeds", "1..1", "--strategy", "sync"}).contains("seeds"));
}

TEST_CASE("Without shards the servers that are described stay") {
  Context place;
  const std::vector<std::string> flags = {
      "--cluster", write_cluster(place, "servers = 4"), "--strategy", "sync", "--workers", "4"};
  std::vector<std::string> without = flags;
  without.insert(without.end(), {"--shards", "0"});
  CHECK(plan(place, without) == plan(place, flags));
  CHECK(plan(place, flags)["exchange"].get<std::string>().starts_with("4 servers"));
}

TEST_CASE("A plan with --codec auto is one of what loses nothing") {
  Context place;
  const std::vector<std::string> flags = {"--cluster", write_cluster(place), "--strategy", "sync"};
  std::vector<std::string> with_auto = flags;
  with_auto.insert(with_auto.end(), {"--codec", "auto"});
  CHECK(plan(place, with_auto) == plan(place, flags));
}

TEST_CASE("By gradients alone all schedules are planned that can be") {
  Context place;
  const std::string cluster = write_cluster(place);
  const auto plans = plan(place, {"--cluster", cluster, "--gradient-only", "--workers", "2"});
  CHECK(plans["plans"].size() >= 2);
  const Outcome refused = simulate(
      place, {"--cluster", cluster, "--gradient-only", "--strategy", "easgd", "--workers", "2"});
  CHECK(refused.exit_code == 2);
  CHECK(refused.error_line().find("nothing to do with single gradients") != std::string::npos);
}

}  // namespace
}  // namespace speedo::test
