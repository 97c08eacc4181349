#include "cli/flags/cluster_flags.hpp"

#include "cli/flags/speedo_flags.hpp"
#include "cli/options/read_options.hpp"
#include "support/catch.hpp"

namespace speedo {
namespace {

using Words = std::vector<std::string>;

Result<ClusterFlags> read(Words arguments, ClusterRole role = ClusterRole::kMaster) {
  SPEEDO_TRY(refuse_speedo_flags(arguments, SpeedoProgram::kMaster));
  OptionValues values(role == ClusterRole::kRun ? Program::kRun : Program::kMaster);
  SPEEDO_TRY(read_options(fold_speedo(arguments), values, {}));
  ClusterFlags flags = cluster_flags(values);
  SPEEDO_TRY(check(flags, role));
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
       "--port",    "5000",    "--maxIter", "900",        "--test",      "50",
       "--resume",  "--factor",   "2",           "--train",
       "4",         "--lr",    "0.5",       "--momentum", "0.8",         "--weightDecay",
       "0.01",      "--batch", "128",       "--keyName",  "job1",        "--CPUDBActor",
       "--timeout", "30",      "--skip",    "1e-6",       "--debug",     "--sleepAfterFinish",
       "15",        "--device", "cpu",      "--insecure"});
  CHECK(flags.solver == "s.prototxt");
  CHECK(flags.workers == "3");
  CHECK(flags.redis == "store");
  CHECK(flags.host == "10.0.0.1");
  CHECK(bind_address(flags) == "10.0.0.1");
  CHECK(flags.port == 5000);
  CHECK(flags.schedule.max_iter == 900);
  CHECK(flags.schedule.test_interval == 50);
  CHECK(flags.resume == "store");
  CHECK(flags.schedule.factor == 2.0);
  CHECK(flags.schedule.train == 4);
  CHECK(flags.schedule.lr == 0.5);
  CHECK(flags.schedule.momentum == 0.8);
  CHECK(flags.schedule.weight_decay == 0.01);
  CHECK(flags.batch == 128);
  CHECK(flags.key_name == "job1");
  CHECK(flags.cpu_db_actor);
  CHECK(flags.join_timeout_s == 30);
  CHECK(flags.schedule.skip.value() == Approx(1e-6));
  CHECK(flags.log.debug);
  CHECK(flags.sleep_after_finish == "15");
}

TEST_CASE("--host and --bind take an IPv6 address in brackets as well") {
  CHECK(accepted({"--host", "[::1]"}).host == "::1");
  CHECK(bind_address(accepted({"--bind", "[fd77::1]", "--insecure"})) == "fd77::1");
  CHECK(accepted({"--host", "10.0.0.1", "--insecure"}).host == "10.0.0.1");
  CHECK(accepted({"--host", "[10.0.0.1]", "--insecure"}).host == "[10.0.0.1]");
}

TEST_CASE("--resume takes a value only behind an equals sign") {
  CHECK(accepted({}).resume.empty());
  CHECK(accepted({"--resume"}).resume == kResumeFromStore);
  CHECK(accepted({"--resume=auto"}).resume == kResumeNewest);
  CHECK(accepted({"--resume=a/b_iter_3.speedo"}).resume == "a/b_iter_3.speedo");
  CHECK(refused({"--resume", "auto"}).find("auto") != std::string::npos);
  CHECK(refused({"--resume=a.solverstate"}).find("--snapshot") != std::string::npos);
  CHECK(refused({"--resume=sometimes"}).find("sometimes") != std::string::npos);
  CHECK(refused({"--resume=auto", "--start-iter", "5"}).find("contradicts --resume=auto") !=
        std::string::npos);
  CHECK(accepted({"--resume", "--start-iter", "5"}).start_iter == 5);
  CHECK(refused({"--snapshot", "a.speedo"}).find("--resume=a.speedo") != std::string::npos);
}

TEST_CASE("SpeeDO's hybrid, as many arguments or one") {
  const ClusterFlags flags =
      accepted({"--maxIter", "800", "--test", "50", "--hybrid", "=maxIter", "100", "=sync", "==",
                "=maxIter", "200", "=test", "100", "==", "=maxIter", "300", "=drop", "3"});
  CHECK(flags.schedule.max_iter == 800);
  CHECK(flags.hybrid == "=maxIter 100 =sync == =maxIter 200 =test 100 == =maxIter 300 =drop 3");
  const ClusterFlags quoted = accepted({"--hybrid", "=maxIter 100 =sync == =drop 3", "--json"});
  CHECK(quoted.hybrid == "=maxIter 100 =sync == =drop 3");
  CHECK(quoted.json);
  CHECK(refused({"--hybrid"}).find("needs a value") != std::string::npos);
  CHECK(accepted({"--hybrid", "=maxIter", "5", "=sync", "==", "=drop", "3", "--sync"})
            .schedule.sync);
}

TEST_CASE("--deterministic needs rounds, fixed workers and no state on the workers") {
  const auto why = [](Words arguments) {
    arguments.emplace_back("--deterministic");
    return refused(std::move(arguments));
  };
  CHECK(why({}).find("async") != std::string::npos);
  CHECK(why({"--sync"}).find("momentum") != std::string::npos);
  CHECK(why({"--strategy", "sync-easgd", "--moving-rate", "0.1"}).find("elastic") !=
        std::string::npos);
  CHECK(why({"--sync", "--gradient-only", "--workers", "2:4"}).find("--workers 4") !=
        std::string::npos);
  CHECK(why({"--sync", "--gradient-only", "--shard", "offset"}).find("--shard") !=
        std::string::npos);
  CHECK(why({"--sync", "--gradient-only", "--shard-by", "speed"}).find("--shard-by") !=
        std::string::npos);
  CHECK(why({"--hybrid", "=maxIter", "3", "=sync", "=gradientOnly", "==", "=drop", "3"})
            .find("stage 2") != std::string::npos);
  const auto workers = [](Words arguments) {
    arguments.emplace_back("--deterministic");
    return *worker_range(accepted(std::move(arguments)));
  };
  CHECK(workers({"--sync", "--gradient-only", "--workers", "3"}).min == 3);
  CHECK(workers({"--strategy", "averaging", "--workers", "3"}).max == 3);
  CHECK(workers({"--sync", "--save-updater", "reset", "--workers", "2:2"}).min == 2);
  CHECK(workers({"--sync", "--snapshot-workers", "--workers", "2"}).min == 2);
  CHECK(why({"--snapshot-workers"}).find("async") != std::string::npos);
}

TEST_CASE("Membership, time-outs and checkpoints") {
  const ClusterFlags flags =
      accepted({"--workers", "2:4", "--below-min-timeout", "60", "--worker-timeout", "5",
                "--stall-timeout", "70", "--publish-interval", "10", "--snapshot-interval", "100",
                "--keep-snapshots", "3", "--keep-best", "--take-over", "--snapshot-workers"});
  CHECK(flags.below_min_timeout_s == 60);
  CHECK(flags.worker_timeout_s == 5);
  CHECK(flags.stall_timeout_s == 70);
  CHECK(flags.publish_interval == 10);
  CHECK(flags.snapshot_interval == 100);
  CHECK(flags.rotation.keep == 3);
  CHECK(flags.rotation.keep_best);
  CHECK(flags.snapshot_workers);
  CHECK_FALSE(accepted({}).snapshot_workers);
  CHECK(flags.take_over);
  CHECK(accepted({}).worker_timeout_s == 10);
  CHECK(refused({"--keep-best"}).find("--keep-snapshots") != std::string::npos);
  CHECK(refused({"--shard-by", "speed"}).find("rounds") != std::string::npos);
  CHECK(accepted({"--shard-by", "speed", "--sync"}).shard_by == "speed");
  CHECK(accepted({"--shard-by", "worker0=2.5,node1=8", "--sync"}).shard_by.starts_with("worker0"));
  for (const char* bad : {"slow", "a=0.5", "a=9", "a=x", "=2", "a=2,a=3", ","}) {
    CHECK(refused({"--sync", "--shard-by", bad}).find("NAME=R") != std::string::npos);
  }
  CHECK(refused({"--sync", "--shard-by", "a=2", "--deterministic"}).find("--deterministic") !=
        std::string::npos);
  CHECK(refused({"--sync", "--shard-by", "speed", "--shard", "offset"}).find("--shard offset") !=
        std::string::npos);
}

TEST_CASE("Flags of what is not built yet are refused by name, in any spelling") {
  for (const auto& [arguments, what] : std::vector<std::pair<Words, std::string>>{
           {{"--hdfs", "/path"}, "HDFS"}, {{"-HDFS=/path"}, "HDFS"}}) {
    const std::string message = refused(arguments);
    INFO(message);
    CHECK(message.find(what) != std::string::npos);
    CHECK(message.find("not built yet") != std::string::npos);
  }
  CHECK(refused({"--device", "tpu"}).find("cpu, gpu, or gpu:0 to gpu:63") != std::string::npos);
}

TEST_CASE("A state and a checkpoint lie on this machine, and a query is not shown") {
  const Words common = {"--solver", "s.prototxt"};
  for (const Words& words : {Words{"--snapshot", "http://h/a.solverstate?hidden"},
                             Words{"--snapshot", "s3://b/a.solverstate"},
                             Words{"--resume=https://h/a.speedo"}}) {
    Words arguments = common;
    arguments.insert(arguments.end(), words.begin(), words.end());
    const auto flags = read(arguments);
    REQUIRE_FALSE(flags);
    INFO(flags.error().message);
    CHECK(flags.error().code == ErrorCode::kUnsupported);
    CHECK(flags.error().message.find("this machine alone") != std::string::npos);
    CHECK(flags.error().message.find("hidden") == std::string::npos);
  }
  CHECK(accepted({"--snapshot", "http://h/a.caffemodel"}).snapshot == "http://h/a.caffemodel");
}

TEST_CASE("Beside --resume=auto weights are what begins without a checkpoint") {
  CHECK(accepted({"--resume=auto", "--weights", "a.caffemodel"}).weights == "a.caffemodel");
  CHECK(accepted({"--resume=auto", "--snapshot", "a.solverstate"}).snapshot == "a.solverstate");
  CHECK(accepted({"--resume=auto", "--weights", "a", "--start-iter", "5"}).start_iter == 5);
  for (const char* resume : {"--resume", "--resume=a.speedo"}) {
    CHECK(refused({resume, "--weights", "a"}).find("or --resume=auto") != std::string::npos);
    CHECK(refused({resume, "--snapshot", "a"}).find("or --resume=auto") != std::string::npos);
  }
  CHECK(refused({"--resume=auto", "--weights", "a", "--snapshot", "b"}).find("give one") !=
        std::string::npos);
}

TEST_CASE("Contradictions are refused with the reason") {
  CHECK(refused({"--sync", "--strategy", "async"}).find("contradicts") != std::string::npos);
  CHECK(refused({"--sync", "--strategy", "async"}).find("--sync=false") == std::string::npos);
  CHECK(refused({"--strategy", "nonsense"}).find("nonsense") != std::string::npos);
  CHECK(refused({"--snapshot", "a.caffemodel", "--weights", "b.caffemodel"}).find("give one") !=
        std::string::npos);
  CHECK(refused({"--resume", "--weights", "b.caffemodel"}).find("give one") != std::string::npos);
  CHECK(refused({"--snapshot", "a.solverstate", "--start-iter", "5"}).find("contradicts") !=
        std::string::npos);
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
                                                        {"--lr", "1e39"},
                                                        {"--lr", "1e-320"},
                                                        {"--factor", "-1e39"},
                                                        {"--clip-contributions", "0"},
                                                        {"--clip-contributions", "-1"},
                                                        {"--robust", "0"},
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

TEST_CASE("An address that others reach needs a token, certificates or --insecure") {
  CHECK(refused({"--bind", "0.0.0.0"}).find("--token-file") != std::string::npos);
  CHECK(accepted({"--bind", "0.0.0.0", "--token-file", "t"}).gate.token_file == "t");
  CHECK(accepted({"--bind", "0.0.0.0", "--tls-cert", "c", "--tls-key", "k", "--tls-ca", "a"})
            .gate.any());
  CHECK(refused({"--tls-cert", "c", "--tls-key", "k"}).find("belong together") !=
        std::string::npos);
  CHECK(refused({"--token-file", "t", "--tls-ca", "a"}).find("two ways") != std::string::npos);
  CHECK(refused({"--token-file", "t", "--insecure"}).find("--insecure-redis") != std::string::npos);
  CHECK(accepted({"--bind", "0.0.0.0", "--insecure"}).insecure_redis);
  const ClusterFlags open_redis = accepted({"--token-file", "t", "--insecure-redis"});
  CHECK((open_redis.insecure_redis && !open_redis.insecure));
  CHECK_FALSE(accepted({}).insecure_redis);
  CHECK(refused({"--bind", "0.0.0.0", "--insecure-redis"}).find("--token-file") !=
        std::string::npos);
  CHECK(accepted({"--bind", "0.0.0.0", "--insecure"}).bind == "0.0.0.0");
  CHECK(accepted({"--bind", "127.0.0.2"}).bind == "127.0.0.2");
  CHECK(accepted({"--bind", "::1"}).bind == "::1");
  // Names and addresses of others, whatever they begin with.
  for (const char* bind : {"127.example.org", "127.0.0.1.example.org", "127.", "::2"}) {
    CHECK(refused({"--bind", bind}).find("--token-file") != std::string::npos);
  }
  CHECK(accepted({"--bind", "localhost"}).bind == "localhost");
  CHECK(refused({"--host", "10.0.0.1"}).find("--host 10.0.0.1: others reach this") == 0);
  CHECK(refused({"--host", "10.0.0.1"}).find("--bind") != std::string::npos);
  CHECK(bind_address(accepted({"--host", "10.0.0.1", "--insecure"})) == "10.0.0.1");
  CHECK(bind_address(accepted({"--host", "10.0.0.1", "--bind", "127.0.0.1"})) == "127.0.0.1");
  CHECK(bind_address(accepted({})) == "127.0.0.1");
}

TEST_CASE("Staying after the end, for a time or until a signal") {
  CHECK(accepted({}).sleep_after_finish.empty());
  CHECK(accepted({"--sleep-after-finish"}).sleep_after_finish == kUntilSignal);
  CHECK(accepted({"--sleep-after-finish=20"}).sleep_after_finish == "20");
  CHECK(accepted({"--sleepAfterFinish", "20", "--json"}).sleep_after_finish == "20");
  CHECK(refused({"--sleepAfterFinish", "soon"}).find("soon") != std::string::npos);
}

TEST_CASE("A number that no float holds is refused as such, and limits of 0 are none") {
  CHECK(refused({"--factor", "1e-320"}).find("--factor: takes a number that a float can hold") !=
        std::string::npos);
  CHECK(refused({"--robust", "0"}).find("--robust: takes a number above 0, not '0'") !=
        std::string::npos);
  CHECK(accepted({"--clip-contributions", "1e-3"}).clip_contributions == 1e-3);
  CHECK(accepted({"--lr", "0"}).schedule.lr == 0.0);
}

TEST_CASE("The page's address is looked at with the flags, before anything is started") {
  CHECK(accepted({"--metrics-addr", "127.0.0.1:9464"}).metrics_addr == "127.0.0.1:9464");
  CHECK(refused({"--metrics-addr", "9464,127.0.0.1:9465"}).find("--metrics-addr 9464,") == 0);
}

TEST_CASE("A range of workers") {
  const WorkerRange any = *parse_workers("3");
  CHECK(any.start == 3);
  CHECK(any.min == 1);
  CHECK(any.max == 0);
  CHECK(any.expected() == 3);
  const WorkerRange range = *parse_workers("2:8");
  CHECK(range.start == 2);
  CHECK(range.min == 2);
  CHECK(range.max == 8);
  CHECK(range.expected() == 8);
}

TEST_CASE("speedo run chooses network and store itself") {
  const auto flags = read({"--solver", "s", "--redis", "h"}, ClusterRole::kRun);
  REQUIRE_FALSE(flags);
  CHECK(flags.error().message.find("unknown flag '--redis'") != std::string::npos);
  const auto resumed = read({"--solver", "s", "--resume"}, ClusterRole::kRun);
  REQUIRE_FALSE(resumed);
  CHECK(resumed.error().message.find("--resume=auto") != std::string::npos);
  CHECK(read({"--solver", "s", "--resume=auto"}, ClusterRole::kRun));
}

}  // namespace
}  // namespace speedo
