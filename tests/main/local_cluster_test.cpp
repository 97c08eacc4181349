// speedo run: the local cluster, from its start to the last trace of it.

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include <unistd.h>

#include "checkpoint/resume.hpp"
#include "main/command_support.hpp"

namespace speedo::test {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

// The processes whose command line names `text`.
std::set<pid_t> processes_of(const std::string& text) {
  std::set<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream stream(entry.path() / "cmdline");
    std::stringstream line;
    line << stream.rdbuf();
    if (line.str().find(text) != std::string::npos) found.insert(std::stoi(name));
  }
  return found;
}

// The end of its patience guards against hanging.
template <class Done>
bool happens(Done done) {
  for (int i = 0; i < 12000; ++i) {
    if (done()) return true;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return false;
}

// A context whose clusters keep their temporary folders in it, so that traces can be told from
// those of others.
struct ClusterPlace : Context {
  ClusterPlace() {
    // Short, as the path of a unix socket is.
    scratch = fs::temp_directory_path() / ("sr" + std::to_string(::getpid()));
    fs::create_directory(scratch);
    ::setenv("TMPDIR", scratch.c_str(), 1);
  }
  ~ClusterPlace() {
    ::unsetenv("TMPDIR");
    std::error_code code;
    fs::remove_all(scratch, code);
  }
  bool no_trace() const { return processes_of(scratch.string()).empty() && fs::is_empty(scratch); }
  // Known by the environment they inherited: their command line names only the master.
  std::set<pid_t> workers() const {
    std::set<pid_t> found;
    for (const pid_t pid : processes_of("speedo-worker")) {
      std::ifstream stream("/proc/" + std::to_string(pid) + "/environ");
      std::stringstream text;
      text << stream.rdbuf();
      if (text.str().find("TMPDIR=" + scratch.string()) != std::string::npos) found.insert(pid);
    }
    return found;
  }
  pid_t a_worker() const {
    const std::set<pid_t> all = workers();
    REQUIRE_FALSE(all.empty());
    return *all.begin();
  }
  // Each shows its socket as its command line.
  std::set<pid_t> redis() const { return processes_of("unixsocket:" + scratch.string()); }
  fs::path scratch;
};

TEST_CASE("A local cluster trains to the end and leaves nothing behind") {
  ClusterPlace place;
  const bool sync = GENERATE(false, true);
  std::vector<std::string> command = {"speedo",    "run", "--solver", place.write_solver(),
                                      "--workers", "3",   "--json"};
  if (sync) command.emplace_back("--sync");
  const Outcome outcome = place.run(command);
  INFO(outcome.errors);
  REQUIRE(outcome.exit_code == 0);
  const auto result = outcome.json();
  CHECK(result["iterations"] == 40);
  CHECK(result["merges"].get<int>() >= 40);
  CHECK(result["workers"] == 3);
  CHECK(result["accuracy"] == 1.0);
  // Without rounds the last loss may be that of a worker that began with the first weights.
  if (sync) CHECK(result["loss"].get<double>() < 0.7);
  CHECK(result["seconds_to_first_merge"].get<double>() > 0.0);
  CHECK(outcome.errors.find("Test net output #0: accuracy = ") != std::string::npos);
  CHECK(outcome.errors.find("speedo-worker --master speedo://127.0.0.1:") != std::string::npos);
  CHECK(fs::exists(place.file("snap_iter_40.caffemodel")));
  CHECK(place.no_trace());
}

TEST_CASE("Without --json the result is one line for people") {
  ClusterPlace place;
  const Outcome outcome = place.run({"speedo", "run", "-solver", place.write_solver()});
  REQUIRE(outcome.exit_code == 0);
  CHECK(outcome.output.find("accuracy 1.0000, loss ") == 0);
}

TEST_CASE("SIGINT ends a cluster with a snapshot, and nothing is left") {
  ClusterPlace place;
  Process process =
      place.start({"speedo", "run", "--solver", place.write_solver("max_iter: 100000000"),
                   "--workers", "2", "--json", "--log-dir", place.file("logs")});
  REQUIRE(process.says("Iteration 10 ("));
  process.signal(SIGINT);
  const Outcome outcome = Context::finish(process);
  CHECK(outcome.exit_code == 0);
  const std::string snapshot = outcome.json()["snapshot"];
  CHECK(fs::exists(snapshot));
  CHECK(fs::exists(place.file("logs/worker1.log")));
  CHECK(happens([&] { return place.no_trace(); }));
}

// While it predicts what it needs, and while what it has started is not there yet.
TEST_CASE("A signal that comes while a cluster is started ends it cleanly, and nothing is left") {
  ClusterPlace place;
  const int signal = GENERATE(SIGINT, SIGTERM, SIGHUP);
  const std::string line =
      GENERATE(as<std::string>(), "Threads: ", "Memory predicted", "Master listens at");
  CAPTURE(signal, line);
  Process process =
      place.start({"speedo", "run", "--solver", place.write_solver("max_iter: 100000000"),
                   "--workers", "2", "--sighup-effect", "stop"});
  REQUIRE(process.says(line));
  process.signal(signal);
  const Outcome outcome = Context::finish(process);
  INFO(outcome.errors);
  CHECK(outcome.exit_code == 0);
  CHECK(happens([&] { return place.no_trace() && place.workers().empty(); }));
}

TEST_CASE("Nothing is left of a cluster whose command is killed") {
  ClusterPlace place;
  Process process = place.start(
      {"speedo", "run", "--solver", place.write_solver("max_iter: 100000000"), "--workers", "2"});
  REQUIRE(process.says("Iteration 10 ("));
  REQUIRE(place.workers().size() == 2);
  process.signal(SIGKILL);
  CHECK(process.wait() == 128 + SIGKILL);
  CHECK(happens([&] { return place.no_trace() && place.workers().empty(); }));
}

TEST_CASE("A worker that is killed is reported, and training goes on; without any it ends") {
  ClusterPlace place;
  Process process =
      place.start({"speedo", "run", "--solver", place.write_solver("max_iter: 100000000"),
                   "--workers", "2", "--log-dir", place.file("logs")});
  REQUIRE(process.says("Iteration 10 ("));
  ::kill(place.a_worker(), SIGKILL);
  REQUIRE(process.says("1 of 2 go on"));
  CHECK(process.running());
  ::kill(place.a_worker(), SIGKILL);
  const Outcome outcome = Context::finish(process);
  CHECK(outcome.exit_code == 69);
  CHECK(outcome.error_line().find("speedo run: all 2 workers ended") == 0);
  CHECK(outcome.error_line().find("; --resume=auto goes on from '") != std::string::npos);
  CHECK(happens([&] { return place.no_trace(); }));
}

TEST_CASE("A worker that dies is started again, as often as allowed; then that is said") {
  ClusterPlace place;
  Process process =
      place.start({"speedo", "run", "--solver", place.write_solver("max_iter: 100000000"),
                   "--workers", "2", "--max-restarts", "1", "--json", "--log-dir",
                   place.file("logs")});
  REQUIRE(process.says("Iteration 10 ("));
  const pid_t first = place.a_worker();
  ::kill(first, SIGKILL);
  REQUIRE(process.says("starts again in 0.2 s (restart 1 of 1)"));
  REQUIRE(process.says("started again (pid"));
  REQUIRE(happens([&] { return place.workers().size() == 2; }));
  for (const pid_t pid : place.workers()) ::kill(pid, SIGKILL);
  REQUIRE(process.says("its restarts (--max-restarts 1) are used up"));
  REQUIRE(happens([&] { return place.workers().size() == 1; }));
  process.signal(SIGINT);
  const Outcome outcome = Context::finish(process);
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.json()["restarts"] == 2);
  CHECK(fs::exists(place.file("logs/worker0.restart1.log")));
  CHECK(happens([&] { return place.no_trace(); }));
}

TEST_CASE("A worker that cannot be started again is tried as often as allowed; then all ends") {
  ClusterPlace place;
  Process process =
      place.start({"speedo", "run", "--solver", place.write_solver("max_iter: 100000000"),
                   "--workers", "1", "--max-restarts", "2", "--log-dir", place.file("logs")});
  REQUIRE(process.says("Iteration 10 ("));
  fs::remove_all(place.file("logs"));
  ::kill(place.a_worker(), SIGKILL);
  REQUIRE(process.says("worker0 cannot be started again: cannot write"));
  REQUIRE(process.says("starts again in 0.5 s (restart 2 of 2)"));
  const Outcome outcome = Context::finish(process);
  CHECK(outcome.exit_code == 73);
  CHECK(outcome.error_line().find("speedo run: the only worker ended for good, as it cannot be "
                                  "started again: cannot write") == 0);
  CHECK(happens([&] { return place.no_trace(); }));
}

TEST_CASE("A worker that leaves before training is over is missed once no other trains") {
  ClusterPlace place;
  Process process =
      place.start({"speedo", "run", "--solver", place.write_solver("max_iter: 100000000"),
                   "--workers", "2", "--max-restarts", "1", "--log-dir", place.file("logs")});
  REQUIRE(process.says("Iteration 10 ("));
  ::kill(place.a_worker(), SIGTERM);
  REQUIRE(process.says("ended: exit code 0 before training is over; 1 of 2 go on\n"));
  ::kill(place.a_worker(), SIGTERM);
  REQUIRE(process.says("0 of 2 go on; starts again in 0.2 s (restart 1 of 1)"));
  REQUIRE(process.says("started again (pid"));
  REQUIRE(happens([&] { return place.workers().size() == 1; }));
  ::kill(place.a_worker(), SIGKILL);
  const Outcome outcome = Context::finish(process);
  CHECK(outcome.exit_code == 69);
  CHECK(happens([&] { return place.no_trace(); }));
}

TEST_CASE("Without restarts a cluster ends with the last worker that leaves") {
  ClusterPlace place;
  Process process =
      place.start({"speedo", "run", "--solver", place.write_solver("max_iter: 100000000"),
                   "--workers", "1", "--log-dir", place.file("logs")});
  REQUIRE(process.says("Iteration 10 ("));
  ::kill(place.a_worker(), SIGTERM);
  const Outcome outcome = Context::finish(process);
  CHECK(outcome.exit_code == 69);
  CHECK(outcome.error_line().starts_with(
      "speedo run: the only worker ended with exit code 0 before training is over; --resume=auto"));
}

TEST_CASE("A worker has as long as the longest --worker-timeout says") {
  ClusterPlace place;
  const Outcome outcome =
      place.run({"speedo", "run", "--solver", place.write_solver("max_iter: 60"), "--workers", "2",
                 "--worker-timeout", "2147483647"});
  INFO(outcome.errors);
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.errors.find("no progress") == std::string::npos);
}

TEST_CASE("A cluster that is stopped before its first merge writes no snapshot") {
  ClusterPlace place;
  Process process =
      place.start({"speedo", "run", "--solver", place.write_solver(), "--workers", "2"});
  REQUIRE(process.says("Schedule: async"));
  process.signal(SIGINT);
  Context::finish(process);
  CHECK_FALSE(fs::exists(place.file("snap_iter_0.caffemodel")));
}

TEST_CASE("A hybrid cluster goes through its stages, and says which") {
  ClusterPlace place;
  const Outcome outcome =
      place.run({"speedo", "run", "--solver", place.write_solver(), "--workers", "2", "--json",
                 "--hybrid", "=maxIter", "10", "=sync", "==", "=maxIter", "10", "=drop", "3", "==",
                 "=movingRate", "0.3", "=train", "2"});
  INFO(outcome.errors);
  REQUIRE(outcome.exit_code == 0);
  CHECK(outcome.json()["iterations"] == 40);
  CHECK(outcome.json()["stage"] == 3);
  CHECK(outcome.errors.find("Stage 3: easgd; elastic averaging every 2 mini-batches") !=
        std::string::npos);
}

TEST_CASE("A stage tests at its own interval in a job that does not test") {
  ClusterPlace place;
  const Outcome outcome = place.run({"speedo", "run", "--solver", place.write_solver("max_iter: 8"),
                                     "--workers", "2", "--test", "0", "--hybrid", "=maxIter", "4",
                                     "=sync", "=test", "2", "==", "=maxIter", "4", "=sync"});
  INFO(outcome.errors);
  REQUIRE(outcome.exit_code == 0);
  std::string tested;
  std::stringstream lines(outcome.errors);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find("] Iteration ");
    if (at == std::string::npos || line.find(", Testing net (#0)") == std::string::npos) continue;
    tested += line.substr(at + 12, line.find(',', at) - at - 12) + " ";
  }
  CHECK(tested == "2 4 ");
}

TEST_CASE("A cluster goes on from its newest valid checkpoint file, or from the one named") {
  ClusterPlace place;
  const std::string solver = place.write_solver("max_iter: 60 snapshot: 20");
  const std::vector<std::string> command = {"speedo",   "run",    "--solver",        solver,
                                            "--sync",   "--json", "--gradient-only", "--max-iter",
                                            "40",       "--resume=auto"};
  const Outcome anew = place.run(command);
  INFO(anew.errors);
  REQUIRE(anew.exit_code == 0);
  CHECK(anew.json()["merges"] == 40);
  std::ofstream(place.file("snap_iter_40.caffemodel"), std::ios::app) << "x";
  std::vector<std::string> longer = command;
  longer[8] = "60";
  const Outcome resumed = place.run(longer);
  INFO(resumed.errors);
  REQUIRE(resumed.exit_code == 0);
  CHECK(resumed.errors.find("skips " + place.file("snap_iter_40.speedo")) != std::string::npos);
  CHECK(resumed.errors.find("goes on from iteration 20") != std::string::npos);
  CHECK(resumed.json()["iterations"] == 60);
  longer.back() = "--resume=" + place.file("snap_iter_20.speedo");
  CHECK(place.run(longer).exit_code == 0);
}

TEST_CASE("A cluster that goes on names the one seed that it goes on with") {
  ClusterPlace place;
  std::string text = place.read(fs::path(place.write_solver("max_iter: 60")).filename().string());
  const std::string given = "random_seed: 3 ";
  text.erase(text.find(given), given.size());
  const std::string solver = place.write("solver.prototxt", text);
  const auto seeds_of = [&](const std::vector<std::string>& flags) {
    std::vector<std::string> line = {"speedo", "run", "--solver", solver};
    line.insert(line.end(), flags.begin(), flags.end());
    const Outcome outcome = place.run(line);
    INFO(outcome.errors);
    REQUIRE(outcome.exit_code == 0);
    std::vector<std::string> seeds;
    const std::string mark = "random_seed: ";
    for (std::size_t at = 0; (at = outcome.errors.find(mark, at)) != std::string::npos;) {
      at += mark.size();
      seeds.push_back(outcome.errors.substr(at, outcome.errors.find('\n', at) - at));
    }
    return seeds;
  };
  const auto first = seeds_of({"--max-iter", "10"});
  REQUIRE(first.size() == 1);
  CHECK(seeds_of({"--max-iter", "20", "--resume=auto"}) == first);
  const std::string state = place.file("snap_iter_10.solverstate");
  CHECK(seeds_of({"--max-iter", "20", "--snapshot", state}) == first);
  CHECK(seeds_of({"--max-iter", "20", "--snapshot", state, "--resume=auto", "--job", "of-none"}) ==
        first);
}

TEST_CASE("Weights given beside --resume=auto begin a training that has no checkpoint") {
  for (const bool is_state : {false, true}) {
    Context earlier;
    REQUIRE(earlier.run({"speedo", "train", "-solver", earlier.write_solver()}).exit_code == 0);
    ClusterPlace place;
    const std::string solver = place.write_solver("max_iter: 100");
    const std::string given =
        earlier.file(is_state ? "snap_iter_40.solverstate" : "snap_iter_40.caffemodel");
    const auto train_to = [&](const std::string& iteration) {
      const Outcome outcome =
          place.run({"speedo", "run", "--solver", solver, "--max-iter", iteration,
                     is_state ? "--snapshot" : "--weights", given, "--resume=auto"});
      INFO(outcome.errors);
      CHECK(outcome.exit_code == 0);
      return outcome.errors;
    };
    CHECK(train_to("50").find("starting from " + given) != std::string::npos);
    const std::string resumed = train_to("60");
    CHECK(resumed.find("goes on from iteration 50") != std::string::npos);
    CHECK(resumed.find("not from " + given) != std::string::npos);
    CHECK(fs::exists(place.file("snap_iter_60.speedo")));
    // It is needed no more, until the checkpoints are gone, too.
    fs::remove(given);
    CHECK(train_to("70").find("goes on from iteration 60") != std::string::npos);
    const Outcome missing =
        place.run({"speedo", "run", "--solver", solver, "--job", "of-none",
                   is_state ? "--snapshot" : "--weights", given, "--resume=auto"});
    CHECK(missing.exit_code == 65);
    CHECK(missing.error_line().find(given) != std::string::npos);
  }
}

// A solver on records in a database, so that what is trained depends on the place in the data.
std::string write_solver_on_records(ClusterPlace& place, const std::string& prefix) {
  std::string csv;
  for (int i = 0; i < 60; ++i) {
    csv += std::to_string(i * 37 % 256) + "," + std::to_string(i * 101 % 256) + "," +
           std::to_string(i % 3) + "\n";
  }
  place.write("records.csv", csv);
  REQUIRE(place.run({"speedo", "convert", "csv", place.file("records.csv"), place.file("r_lmdb"),
                     "--force"})
              .exit_code == 0);
  place.write("records.prototxt", R"(name: "records"
    layer { name: "d" type: "Data" top: "data" top: "label" transform_param { scale: 0.004 }
            data_param { source: ")" + place.file("r_lmdb") +
                                      R"(" backend: LMDB batch_size: 7 } }
    layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
            inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" })");
  return place.write(prefix + ".prototxt", "net: \"" + place.file("records.prototxt") +
                                               "\" base_lr: 0.1 lr_policy: \"fixed\" momentum: 0.9 "
                                               "random_seed: 5 snapshot_prefix: \"" +
                                               place.file(prefix) + "\"");
}

TEST_CASE("A deterministic cluster that goes on is bit for bit one that was never interrupted") {
  ClusterPlace place;
  const auto run = [&](const std::string& prefix, const std::string& iterations,
                       const std::vector<std::string>& flags) {
    std::vector<std::string> command = {
        "speedo", "run", "--solver", write_solver_on_records(place, prefix), "--workers", "2",
        "--deterministic", "--resume=auto", "--max-iter", iterations};
    command.insert(command.end(), flags.begin(), flags.end());
    const Outcome outcome = place.run(command);
    INFO(outcome.errors);
    REQUIRE(outcome.exit_code == 0);
  };
  const auto flags = GENERATE(std::vector<std::string>{"--sync", "--gradient-only"},
                              std::vector<std::string>{"--strategy", "averaging"});
  run("whole", "40", flags);
  run("parts", "17", flags);
  run("parts", "40", flags);
  const std::string whole = place.read("whole_iter_40.caffemodel");
  CHECK_FALSE(whole.empty());
  CHECK(whole == place.read("parts_iter_40.caffemodel"));
  CHECK(whole != place.read("parts_iter_17.caffemodel"));
}

TEST_CASE("A job that is complete ends at once, though no worker joined") {
  ClusterPlace place;
  const std::string solver = place.write_solver("max_iter: 10");
  REQUIRE(place.run({"speedo", "run", "--solver", solver, "--workers", "2"}).exit_code == 0);
  const Outcome again = place.run({"speedo", "run", "--solver", solver, "--workers", "2",
                                   "--resume=auto", "--max-iter", "5"});
  INFO(again.errors);
  CHECK(again.exit_code == 0);
  CHECK(again.errors.find("iteration 10, above --max-iter 5") != std::string::npos);
  // Nobody joined, and nobody was waited for.
  CHECK(again.errors.find("joined") == std::string::npos);
  CHECK(again.errors.find("waiting for workers") == std::string::npos);
  CHECK(happens([&] { return place.no_trace(); }));
}

TEST_CASE("A cluster whose Redis dies goes on with another, and loses nothing") {
  ClusterPlace place;
  const auto flags =
      GENERATE(std::vector<std::string>{}, std::vector<std::string>{"--sync"},
               std::vector<std::string>{"--sync", "--shards", "2"},
               std::vector<std::string>{"--sync", "--gradient-only", "--replicated"});
  std::vector<std::string> command = {
      "speedo",    "run", "--solver", place.write_solver("max_iter: 100000000"),
      "--workers", "2",   "--json"};
  command.insert(command.end(), flags.begin(), flags.end());
  Process process = place.start(command);
  REQUIRE(process.says("Iteration 10 ("));
  const std::set<pid_t> all = place.redis();
  REQUIRE_FALSE(all.empty());
  ::kill(*all.rbegin(), SIGKILL);
  REQUIRE(process.says("redis-server started again"));
  const auto iterations = [&] {
    std::size_t count = 0;
    const std::string said = process.errors(), word = "Iteration ";
    for (std::size_t at = 0; (at = said.find(word, at)) != std::string::npos; ++at) ++count;
    return count;
  };
  const std::size_t seen = iterations();
  CHECK(happens([&] { return iterations() > seen + 5; }));
  process.signal(SIGINT);
  const Outcome outcome = Context::finish(process);
  INFO(outcome.errors);
  CHECK(outcome.exit_code == 0);
  CHECK(fs::exists(std::string(outcome.json()["snapshot"])));
  CHECK(happens([&] { return place.no_trace(); }));
}

TEST_CASE("A cluster whose Redis dies again and again saves what it has and says what happened") {
  ClusterPlace place;
  Process process =
      place.start({"speedo", "run", "--solver", place.write_solver("max_iter: 100000000"),
                   "--workers", "2", "--log-dir", place.file("logs")});
  REQUIRE(process.says("Iteration 10 ("));
  for (const char* next : {"restart 1 of 3", "restart 2 of 3", "restart 3 of 3", "is stopped"}) {
    REQUIRE(happens([&] { return !place.redis().empty(); }));
    for (const pid_t each : place.redis()) ::kill(each, SIGKILL);
    REQUIRE(process.says(next));
  }
  const Outcome outcome = Context::finish(process);
  CHECK(outcome.exit_code == 69);
  const std::string line = outcome.error_line();
  CHECK(
      line.starts_with("speedo run: redis-server ended with SIGKILL, after 3 restarts in a row; "
                       "--resume=auto goes on from '" +
                       place.file("snap_iter_")));
  CHECK(line.ends_with(".speedo', its newest checkpoint file"));
  CHECK(outcome.errors.find("Snapshotting to binary proto file") != std::string::npos);
  CHECK(outcome.errors.find("The master is stopped, with SIGTERM: redis-server ended") !=
        std::string::npos);
  CHECK(outcome.errors.find("The logs of the workers are in " + place.file("logs")) !=
        std::string::npos);
  CHECK(happens([&] { return place.no_trace(); }));
}

TEST_CASE("A cluster goes on from a snapshot of speedo train, and starts from weights") {
  ClusterPlace place;
  const std::string solver = place.write_solver();
  REQUIRE(place.run({"speedo", "train", "-solver", solver}).exit_code == 0);
  const Outcome resumed =
      place.run({"speedo", "run", "--solver", solver, "--maxIter", "60", "--snapshot",
                 place.file("snap_iter_40.solverstate"), "--json"});
  INFO(resumed.errors);
  REQUIRE(resumed.exit_code == 0);
  CHECK(resumed.json()["iterations"] == 60);
  CHECK(resumed.json()["merges"] == 20);
  const Outcome tuned = place.run({"speedo", "run", "--solver", solver, "--max-iter", "5",
                                   "--snapshot", place.file("snap_iter_40.caffemodel"), "--json"});
  REQUIRE(tuned.exit_code == 0);
  CHECK(tuned.json()["merges"] == 5);
  CHECK(tuned.json()["accuracy"] == 1.0);
}

TEST_CASE("Training goes on in its data from one process to a cluster, and back") {
  ClusterPlace place;
  const std::string solver = place.write_solver("max_iter: 10");
  const auto trains = [&](std::vector<std::string> command, const std::string& iterations) {
    command.insert(command.end(), {"--solver", solver, "--max-iter", iterations});
    const Outcome outcome = place.run(command);
    INFO(outcome.errors);
    REQUIRE(outcome.exit_code == 0);
    const auto record = read_record(place.file("snap_iter_" + iterations + ".speedo"));
    REQUIRE(record);
    return data_step_of(*record);
  };
  const auto state = [&](int iteration) {
    return place.file("snap_iter_" + std::to_string(iteration) + ".solverstate");
  };
  const std::vector<std::string> cluster{"speedo", "run", "--workers", "2", "--sync"};
  const auto with = [](std::vector<std::string> command, const std::vector<std::string>& more) {
    command.insert(command.end(), more.begin(), more.end());
    return command;
  };
  CHECK(trains({"speedo", "train"}, "10") == 10);
  CHECK(trains(with(cluster, {"--resume=auto"}), "15") == 20);
  CHECK(trains({"speedo", "train", "--resume=auto"}, "20") == 25);
  CHECK(trains(with(cluster, {"--resume=" + place.file("snap_iter_20.speedo")}), "25") == 35);
  CHECK(trains({"speedo", "train", "--snapshot", state(25)}, "30") == 40);
  CHECK(trains(with(cluster, {"--snapshot", state(30)}), "35") == 50);
}

TEST_CASE("A cluster starts from the weights that the solver names") {
  ClusterPlace place;
  const std::string solver = place.write_solver();
  REQUIRE(place.run({"speedo", "train", "-solver", solver}).exit_code == 0);
  const auto run = [&](const std::string& weights, const std::vector<std::string>& flags) {
    const std::string named = place.write_solver("max_iter: 5 weights: \"" + weights + "\"");
    std::vector<std::string> command{"speedo", "run", "--solver", named, "--json"};
    command.insert(command.end(), flags.begin(), flags.end());
    return place.run(command);
  };
  const std::string learned = place.file("snap_iter_40.caffemodel");
  const Outcome tuned = run(learned + ", " + learned, {});
  INFO(tuned.errors);
  REQUIRE(tuned.exit_code == 0);
  CHECK(tuned.json()["accuracy"] == 1.0);
  const Outcome absent = run("absent.caffemodel", {});
  CHECK(absent.exit_code != 0);
  CHECK(absent.errors.find("'absent.caffemodel' does not exist") != std::string::npos);
  CHECK(run("absent.caffemodel", {"--weights", learned}).exit_code == 0);
}

}  // namespace
}  // namespace speedo::test
