// Faults planted in machine, network, store and job, each found by the check that is named for it.

#include <sys/mount.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "base/memory_limit.hpp"
#include "doctor/machine_check.hpp"
#include "main/command_support.hpp"
#include "support/redis_cluster.hpp"
#include "support/redis_server.hpp"

namespace speedo::test {
namespace {

using Words = std::vector<std::string>;

// What `speedo doctor --json`, or another program that examines, says of one check.
struct Verdict {
  int exit_code = -1;
  std::string health = "not checked", what = {}, remedy = {};
};

Verdict verdict_on(Context& place, const std::string& check, Words command) {
  const Outcome outcome = place.run(std::move(command));
  INFO(outcome.errors);
  REQUIRE(outcome.errors.empty());
  Verdict verdict{.exit_code = outcome.exit_code};
  const nlohmann::json report = outcome.json();
  for (const auto& finding : report["findings"]) {
    if (finding["check"] != check) continue;
    verdict.health = finding["health"];
    verdict.what = finding["what"];
    verdict.remedy = finding["remedy"];
  }
  return verdict;
}

void check_problem(const Verdict& verdict, const std::string& part) {
  INFO(verdict.what);
  CHECK(verdict.health == "problem");
  CHECK(verdict.exit_code == 1);
  CHECK(verdict.what.find(part) != std::string::npos);
  CHECK_FALSE(verdict.remedy.empty());
}

Words doctor(const Words& flags) {
  Words command = {"speedo", "doctor", "--json"};
  command.insert(command.end(), flags.begin(), flags.end());
  return command;
}

std::string address_of(const RedisServer& server) {
  return "127.0.0.1:" + std::to_string(server.port());
}

// Of a net with 280 KB of weights, whose snapshots go to `prefix`.
std::string wide_solver(const Context& place, const std::string& prefix) {
  return place.write("wide_solver.prototxt",
                     "max_iter: 3 base_lr: 0.1 lr_policy: \"fixed\" net: \"" +
                         place.write_net("wide.prototxt", 4096) + "\" snapshot_prefix: \"" +
                         place.file(prefix) + "\"\n");
}

TEST_CASE("A machine, a job and a server without fault have no problem") {
  Context place;
  const RedisServer server;
  const Outcome outcome = place.run({"speedo", "doctor", "--solver", place.write_solver(),
                                     "--redis", address_of(server), "--workers", "2"});
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.output.find("problem ") == std::string::npos);
  for (const char* check : {"kernels", "blas", "threads", "memory", "open files",
                            "temporary files", "clock", "cuda", "solver", "net and data",
                            "snapshot folder", "snapshot room", "host", "redis version",
                            "redis policy", "redis memory"}) {
    INFO(check);
    CHECK(outcome.output.find(check) != std::string::npos);
  }
  // It says of GPUs what device_query does.
  const Outcome devices = place.run({"speedo", "device_query"});
  const std::string why = devices.error_line().substr(devices.error_line().find(": ") + 2);
  CHECK((devices.exit_code == 0 || outcome.output.find(why) != std::string::npos));
}

TEST_CASE("Redis: away, closed, evicting, too small, saving, a replica") {
  Context place;
  const auto on = [&](const std::string& check, const RedisServer& server, Words more = {}) {
    more.insert(more.end(), {"--redis", address_of(server)});
    return verdict_on(place, check, doctor(more));
  };
  RedisServer away;
  away.kill();
  check_problem(on("redis", away), "refused");
  const RedisServer closed({.password = "secret"});
  check_problem(on("redis", closed), "password");
  place.write("password", "wrong\n");
  check_problem(on("redis", closed, {"--redis-password-file", place.file("password")}), "");
  const RedisServer evicting({.extra = "maxmemory-policy allkeys-lru\n"});
  check_problem(on("redis policy", evicting), "allkeys-lru");
  const RedisServer small({.extra = "maxmemory 1mb\n"});
  check_problem(on("redis memory", small, {"--solver", wide_solver(place, "wide")}),
                "the job stores");
  const RedisServer saving({.extra = "save 60 1\n"});
  CHECK(on("redis persistence", saving).health == "warning");
  const RedisServer replica({.extra = "replicaof 127.0.0.1 1\n"});
  check_problem(on("redis", replica), "replica");
}

// What a master of a net with 1.1 MB of weights says of a server; killed once it listens.
struct MasterSays {
  MasterSays(const RedisServer& server, const Words& flags, const Words& environment = {}) {
    Words command = {"speedo-master", "--solver",
                     place.write("wide_solver.prototxt",
                                 "max_iter: 3 base_lr: 0.1 lr_policy: \"fixed\" net: \"" +
                                     place.write_net("wide.prototxt", 16384) +
                                     "\" snapshot_prefix: \"" + place.file("wide") + "\"\n"),
                     "--redis", address_of(server)};
    command.insert(command.end(), flags.begin(), flags.end());
    Process master = place.start(command, environment);
    if (master.says("Add workers with: ")) master.signal(SIGKILL);
    exit_code = Context::finish(master).exit_code;
    log = master.errors();
  }
  bool says(const std::string& text) const { return log.find(text) != std::string::npos; }

  Context place;
  int exit_code = -1;
  std::string log;
};

TEST_CASE("A master compares what its job stores with the memory of its Redis") {
  const RedisServer small({.extra = "maxmemory 2mb\nmaxmemory-policy noeviction\n"});
  const MasterSays refused(small, {"--workers", "2"});
  INFO(refused.log);
  CHECK(refused.exit_code == 64);
  CHECK(refused.says("maxmemory 2.0 MiB"));
  CHECK(refused.says("the job stores 4.1 MiB there"));
  CHECK(refused.says("--force"));

  const RedisServer tight({.extra = "maxmemory 5mb\nmaxmemory-policy noeviction\n"});
  const MasterSays warned(tight, {"--workers", "8"});
  INFO(warned.log);
  CHECK(warned.exit_code == 128 + SIGKILL);
  CHECK(warned.says("maxmemory 5.0 MiB"));
  CHECK(warned.says("up to 50 MiB: raise maxmemory"));

  const RedisServer ample;
  const MasterSays content(ample, {"--workers", "2"});
  INFO(content.log);
  CHECK(content.exit_code == 128 + SIGKILL);
  CHECK(content.says("its machine has "));
  CHECK_FALSE(content.says("raise maxmemory"));
}

// What the master of a job of two workers says beside a Redis of so much memory. One that warns of
// it does not train.
struct JobSays {
  JobSays(const std::string& maxmemory, const Words& flags) {
    const RedisServer server({.extra = "maxmemory-policy noeviction\n" + maxmemory + "\n"});
    Words command = {"speedo-master", "--solver",
                     place.write("wide_solver.prototxt",
                                 "max_iter: 40 base_lr: 0.1 momentum: 0.9 lr_policy: \"fixed\" "
                                 "net: \"" + place.write_net("wide.prototxt", 163840) +
                                     "\" snapshot_prefix: \"" + place.file("wide") + "\"\n"),
                     "--redis", address_of(server), "--workers", "2", "--no-shared-memory"};
    command.insert(command.end(), flags.begin(), flags.end());
    Process master = place.start(command);
    const bool listens = master.says("Add workers with: ");
    if (listens && master.errors().find("raise maxmemory") == std::string::npos) {
      const std::string said = master.errors(), before = "speedo-worker --master ";
      const std::size_t at = said.find(before) + before.size();
      const std::string address = said.substr(at, said.find('\n', at) - at);
      Process workers = place.start({"speedo-worker", "--master", address, "--workers", "2"});
      exit_code = Context::finish(master).exit_code;
      Context::finish(workers);
    } else {
      master.signal(SIGKILL);
      Context::finish(master);
    }
    log = master.errors();
  }
  bool says(const std::string& text) const { return log.find(text) != std::string::npos; }

  Context place;
  int exit_code = -1;
  std::string log;
};

// "up to 63 MiB": the bytes.
std::int64_t forecast_in(const std::string& log) {
  const std::string before = "by way of it up to ";
  const std::size_t at = log.find(before);
  INFO(log);
  REQUIRE(at != std::string::npos);
  REQUIRE(log.find(" MiB", at) < at + before.size() + 8);
  return static_cast<std::int64_t>(std::stod(log.substr(at + before.size())) * (1U << 20U));
}

TEST_CASE("A job fits into a Redis of the memory that its master says that it takes") {
  const Words flags = GENERATE(Words{"--sync"}, Words{"--gradient-only"});
  const JobSays ample("", flags);
  REQUIRE(ample.exit_code == 0);
  // What an empty server has in use, and what the line has rounded.
  constexpr std::int64_t kMiB = 1 << 20, kEmpty = 2 * kMiB;
  const std::int64_t forecast = forecast_in(ample.log);
  const JobSays above("maxmemory " + std::to_string(forecast + kEmpty), flags);
  INFO(above.log);
  CHECK(above.exit_code == 0);
  CHECK_FALSE(above.says("raise maxmemory"));
  CHECK_FALSE(above.says("OOM"));
  const JobSays below("maxmemory " + std::to_string(forecast - kMiB), flags);
  CHECK(below.says("raise maxmemory"));
}

TEST_CASE("A Redis that does not tell its memory is not said to have too little") {
  const RedisServer server(
      {.extra = "maxmemory 5mb\nuser default off\nuser me on >word ~* &* +@all -info\n"});
  const MasterSays master(server, {"--workers", "8"},
                          {"SPEEDO_REDIS_USERNAME=me", "SPEEDO_REDIS_PASSWORD=word"});
  INFO(master.log);
  CHECK(master.says("its memory was not checked: it may not be asked for it"));
  CHECK_FALSE(master.says("the job stores"));
}

TEST_CASE("A Redis Cluster: well, evicting on one node, in part, none, not named as one") {
  Context place;
  RedisCluster nodes;
  const auto on = [&](const std::string& check, const std::string& redis) {
    return verdict_on(place, check, doctor({"--redis", redis}));
  };
  const Verdict well = on("redis cluster", nodes.address());
  CHECK(well.exit_code == 0);
  CHECK(well.health == "ok");
  CHECK(well.what == "3 primaries serve all slots");
  check_problem(on("redis", address_of(nodes.node(1))), "a node of a Redis Cluster of 3 primaries");
  nodes.ask(2, "CONFIG SET maxmemory-policy allkeys-lru");
  check_problem(on("redis policy", nodes.address()), address_of(nodes.node(2)) + ": ");
  nodes.ask(2, "CONFIG SET maxmemory-policy noeviction");
  nodes.ask(0, "CLUSTER DELSLOTS 7");
  check_problem(on("redis cluster", "redis-cluster://" + address_of(nodes.node(0))),
                "7 (1 of 16384 in all)");
  const RedisServer alone;
  check_problem(on("redis cluster", "redis-cluster://" + address_of(alone)),
                "is no node of a Redis Cluster");
}

TEST_CASE("Network: a name for the loopback, one without address, ports, no master") {
  Context place;
  const auto on = [&](const std::string& check, const Words& flags) {
    return verdict_on(place, check, doctor(flags));
  };
  check_problem(on("host", {"--bind", "0.0.0.0", "--host", "localhost"}), "loopback");
  check_problem(on("host", {"--bind", "0.0.0.0", "--host", "nowhere.invalid"}), "no address");
  const RedisServer server;
  check_problem(on("port", {"--port", std::to_string(server.port())}), "in use");
  check_problem(on("port", {"--bind", "203.0.113.1", "--port", "0"}), "203.0.113.1");
  check_problem(on("port", {"--host", "203.0.113.1", "--port", "0"}), "203.0.113.1");
  CHECK(on("port", {"--port", "0"}).health == "ok");
  check_problem(on("master", {"--master", "127.0.0.1:1"}), "nobody listens");
  check_problem(on("master", {"--master", address_of(server)}), "");
  check_problem(on("master", {"--master", "here"}), "here");
}

TEST_CASE("Job: no solver, an unknown layer, missing data, no folder or no room for snapshots") {
  Context place;
  const auto on = [&](const std::string& check, const std::string& solver) {
    return verdict_on(place, check, doctor({"--solver", solver}));
  };
  check_problem(on("solver", place.file("none.prototxt")), "none.prototxt");
  const auto with_net = [&](const std::string& layer) {
    place.write("odd.prototxt", layer);
    return place.write("odd_solver.prototxt",
                       "max_iter: 3 base_lr: 0.1 lr_policy: \"fixed\" net: \"" +
                           place.file("odd.prototxt") + "\"\n");
  };
  check_problem(on("net and data", with_net("layer { name: \"a\" type: \"Nonsense\" top: \"a\" }")),
                "Nonsense");
  check_problem(on("net and data",
                   with_net("layer { name: \"a\" type: \"Data\" top: \"a\" top: \"b\" "
                            "data_param { source: \"gone_lmdb\" batch_size: 4 backend: LMDB } }")),
                "gone_lmdb");
  const std::string solver = place.write("away_solver.prototxt",
                                         "max_iter: 3 base_lr: 0.1 lr_policy: \"fixed\" net: \"" +
                                             place.write_net() + "\" snapshot_prefix: \"" +
                                             place.file("none/s") + "\"\n");
  check_problem(on("snapshot folder", solver), "none");
}

TEST_CASE("A disk that is full has no room for snapshots") {
  Context place;
  const std::string folder = place.file("small");
  std::filesystem::create_directory(folder);
  if (::mount("none", folder.c_str(), "tmpfs", 0, "size=16k") != 0) {
    WARN("skipped: no file system can be mounted here");
    return;
  }
  std::ofstream(folder + "/filler") << std::string(13000, 'x');
  const Verdict verdict =
      verdict_on(place, "snapshot room", doctor({"--solver", wide_solver(place, "small/s")}));
  CHECK(::umount(folder.c_str()) == 0);
  check_problem(verdict, "");
}

TEST_CASE("Limits of a process: open files, processors") {
  Context place;
  const std::string doctor_of = program("speedo") + " doctor --json";
  check_problem(verdict_on(place, "open files",
                           {"/bin/bash", "-c", "ulimit -n 64; exec " + doctor_of}),
                "64");
  if (::sysconf(_SC_NPROCESSORS_ONLN) < 2) return;
  CHECK(verdict_on(place, "threads", {"/bin/bash", "-c", "exec taskset -c 0 " + doctor_of})
            .health == "warning");
}

TEST_CASE("A control group that is too small is a problem of the memory") {
  const TempDir root;
  std::filesystem::create_directories(root / "proc/self");
  std::filesystem::create_directories(root / "sys/fs/cgroup/job");
  std::ofstream(root / "proc/meminfo") << "MemTotal: 16000000 kB\n";
  std::ofstream(root / "proc/self/cgroup") << "0::/job\n";
  std::ofstream(root / "sys/fs/cgroup/cgroup.controllers") << "memory\n";
  std::ofstream(root / "sys/fs/cgroup/job/memory.max") << "104857600\n";
  const MemoryLimit limit = memory_limit(root.path());
  const Finding small = check_memory(std::int64_t{200} << 20U, limit);
  INFO(small.what);
  CHECK(small.health == Health::kProblem);
  CHECK(small.what.find("cgroup") != std::string::npos);
  CHECK(check_memory(std::int64_t{50} << 20U, limit).health == Health::kOk);
  CHECK(check_memory(std::int64_t{50} << 20U, {}).what.ends_with("is not known"));

  const TempDir no_proc;
  const Findings there = check_machine(no_proc.path());
  const auto memory = std::ranges::find(there, "memory", &Finding::check);
  REQUIRE(memory != there.end());
  CHECK(memory->health == Health::kWarning);
  CHECK(memory->what.ends_with("is not known"));
}

TEST_CASE("--dry-run and doctor hold all processes of a run against the memory, as the run does") {
  Context place;
  const std::string solver = place.write_solver();
  for (const Words& command :
       {Words{"speedo", "run", "--solver", solver, "--workers", "2", "--dry-run"},
        Words{"speedo", "doctor", "--solver", solver, "--workers", "2"}}) {
    const Outcome outcome = place.run(command);
    INFO(outcome.output);
    CHECK(outcome.exit_code == 0);
    for (const char* part : {"are predicted: 2 workers of ", ", the master ", ", the store "}) {
      CHECK(outcome.output.find(part) != std::string::npos);
    }
  }
  // Where the master is elsewhere, only the workers are here.
  const Verdict joining = verdict_on(
      place, "memory", doctor({"--solver", solver, "--workers", "2", "--master", "127.0.0.1:1"}));
  CHECK(joining.what.find("the master") == std::string::npos);
}

TEST_CASE("--dry-run looks at what concerns its program, and trains nothing") {
  Context place;
  const std::string solver = place.write_solver();
  const Outcome run = place.run({"speedo", "run", "--solver", solver, "--dry-run"});
  CHECK(run.exit_code == 0);
  CHECK(run.output.find("snapshot folder") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(place.file("snap_iter_40.caffemodel")));
  const RedisServer evicting({.extra = "maxmemory-policy allkeys-lru\n"});
  const Outcome master = place.run(
      {"speedo-master", "--solver", solver, "--redis", address_of(evicting), "--dry-run"});
  CHECK(master.exit_code == 1);
  CHECK(master.output.find("problem  redis policy") != std::string::npos);
  const Outcome worker =
      place.run({"speedo-worker", "--master", "127.0.0.1:1", "--dry-run"});
  CHECK(worker.exit_code == 1);
  CHECK(worker.output.find("problem  master") != std::string::npos);
}

}  // namespace
}  // namespace speedo::test
