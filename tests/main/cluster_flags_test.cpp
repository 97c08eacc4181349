#include "main/cluster_flags.hpp"

#include <CLI/CLI.hpp>

#include "main/command_line.hpp"
#include "main/later_flags.hpp"
#include "support/catch.hpp"

namespace speedo {
namespace {

using Words = std::vector<std::string>;

Result<ClusterFlags> read(Words arguments, ClusterRole role = ClusterRole::kMaster) {
  CLI::App app("test", "test");
  ClusterFlags flags;
  add_cluster_flags(app, flags, role);
  SPEEDO_TRY(refuse_later_flags(arguments));
  SPEEDO_TRY(parse(app, arguments));
  SPEEDO_TRY(check(flags));
  return flags;
}

ClusterFlags accepted(Words arguments) {
  arguments.insert(arguments.begin(), {"--solver", "s.prototxt"});
  auto flags = read(arguments);
  INFO((flags ? "" : flags.error().message));
  REQUIRE(flags);
  return *flags;
}

std::string refused(Words arguments) {
  arguments.insert(arguments.begin(), {"--solver", "s.prototxt"});
  const auto flags = read(arguments);
  REQUIRE_FALSE(flags);
  CHECK(flags.error().code == ErrorCode::kUsage);
  CHECK(flags.error().message.find('\n') == std::string::npos);
  return flags.error().message;
}

TEST_CASE("SpeeDO's master flags are understood") {
  const ClusterFlags flags = accepted(
      {"--worker",  "3",       "--redis",   "store",      "--host",      "10.0.0.1",
       "--port",    "5000",    "--maxIter", "900",        "--startIter", "100",
       "--test",    "50",      "--resume",  "--factor",   "2",           "--train",
       "4",         "--lr",    "0.5",       "--momentum", "0.8",         "--weightDecay",
       "0.01",      "--batch", "128",       "--keyName",  "job1",        "--CPUDBActor",
       "--timeout", "30",      "--skip",    "1e-6",       "--debug",     "--sleepAfterFinish",
       "--device",  "cpu"});
  CHECK(flags.solver == "s.prototxt");
  CHECK(flags.workers == "3");
  CHECK(flags.redis == "store");
  CHECK(flags.host == "10.0.0.1");
  CHECK(flags.port == 5000);
  CHECK(flags.max_iter == 900);
  CHECK(flags.start_iter == 100);
  CHECK(flags.test_interval == 50);
  CHECK(flags.resume);
  CHECK(flags.factor == 2.0);
  CHECK(flags.train == 4);
  CHECK(flags.lr == 0.5);
  CHECK(flags.momentum == 0.8);
  CHECK(flags.weight_decay == 0.01);
  CHECK(flags.batch == 128);
  CHECK(flags.key_name == "job1");
  CHECK(flags.cpu_db_actor);
  CHECK(flags.join_timeout_s == 30);
  CHECK(flags.skip == Approx(1e-6));
  CHECK(flags.debug);
  CHECK(flags.sleep_after_finish);
}

TEST_CASE("The schedule is async unless asked for") {
  CHECK(strategy_name(accepted({})) == "async");
  CHECK(strategy_name(accepted({"--sync"})) == "sync");
  CHECK(strategy_name(accepted({"--strategy", "sync"})) == "sync");
  CHECK(strategy_name(accepted({"--sync", "--strategy=sync"})) == "sync");
}

TEST_CASE("Flags of what is not built yet are refused by name, in any spelling") {
  const std::vector<std::pair<Words, std::string>> cases = {
      {{"--maxAdvance", "2"}, "partially synchronous"},
      {{"--weedout", "3"}, "weed-out"},
      {{"--drop", "3"}, "weed-out"},
      {{"--movingRate", "0.5"}, "elastic"},
      {{"--moving-rate=0.5"}, "elastic"},
      {{"-movingRate", "0.5"}, "elastic"},
      {{"--hybrid", "=maxIter", "100"}, "hybrid"},
      {{"--hdfs", "/path"}, "HDFS"},
      {{"--gpu", "0"}, "GPU"}};
  for (const auto& [arguments, what] : cases) {
    const std::string message = refused(arguments);
    INFO(message);
    CHECK(message.find(what) != std::string::npos);
    CHECK(message.find("not built yet") != std::string::npos);
  }
  CHECK(refused({"--strategy", "easgd"}).find("not built yet") != std::string::npos);
  CHECK(refused({"--strategy", "nonsense"}).find("nonsense") != std::string::npos);
  CHECK(refused({"--device", "gpu"}).find("only cpu") != std::string::npos);
}

TEST_CASE("Contradictions are refused with the reason") {
  CHECK(refused({"--sync", "--strategy", "async"}).find("contradicts") != std::string::npos);
  CHECK(refused({"--snapshot", "a.caffemodel", "--weights", "b.caffemodel"}).find("give one") !=
        std::string::npos);
  CHECK(refused({"--resume", "--weights", "b.caffemodel"}).find("give one") != std::string::npos);
  CHECK(refused({"--snapshot", "a.solverstate", "--start-iter", "5"}).find("contradicts") !=
        std::string::npos);
  CHECK(refused({"--gradientOnly", "--train", "4"}).find("contradicts") != std::string::npos);
  CHECK(refused({"--gradientOnly", "--factor", "2"}).find("contradicts") != std::string::npos);
  CHECK(refused({"--gradientOnly", "--skip", "0.1"}).find("contradicts") != std::string::npos);
  CHECK(refused({"--workers", "4:2"}).find("MIN is greater than MAX") != std::string::npos);
}

TEST_CASE("Values out of range are refused, naming flag and value") {
  for (const auto& [flag, value] :
       std::vector<std::pair<std::string, std::string>>{{"--workers", "0"},
                                                        {"--workers", "3x"},
                                                        {"--workers", "-1"},
                                                        {"--workers", "1:"},
                                                        {"--port", "70000"},
                                                        {"--port", "x"},
                                                        {"--max-iter", "-1"},
                                                        {"--max-iter", "1.5"},
                                                        {"--max-iter", "3000000000"},
                                                        {"--train", "0"},
                                                        {"--lr", "nan"},
                                                        {"--lr", "fast"},
                                                        {"--skip", "-1"},
                                                        {"--factor", "0"},
                                                        {"--batch", "0"},
                                                        {"--shard", "other"},
                                                        {"--seed", "-4"},
                                                        {"--timeout", "-1"}}) {
    const std::string message = refused({flag, value});
    INFO(message);
    CHECK(message.find(flag == "--timeout" ? "timeout" : flag) != std::string::npos);
  }
}

TEST_CASE("An address that others reach needs --insecure") {
  CHECK(refused({"--bind", "0.0.0.0"}).find("not yet authenticated") != std::string::npos);
  CHECK(accepted({"--bind", "0.0.0.0", "--insecure"}).bind == "0.0.0.0");
  CHECK(accepted({"--bind", "127.0.0.2"}).bind == "127.0.0.2");
  CHECK(accepted({"--bind", "localhost"}).bind == "localhost");
}

TEST_CASE("A range of workers") {
  CHECK(parse_workers("3")->min == 3);
  CHECK(parse_workers("3")->max == 3);
  CHECK(parse_workers("2:8")->min == 2);
  CHECK(parse_workers("2:8")->max == 8);
}

TEST_CASE("speedo run chooses network and store itself") {
  const auto flags = read({"--solver", "s", "--redis", "h"}, ClusterRole::kRun);
  REQUIRE_FALSE(flags);
  CHECK(flags.error().message.find("unknown flag '--redis'") != std::string::npos);
}

}  // namespace
}  // namespace speedo
