// Looking at a running job: speedo status, the master's page, the trace.

#include <csignal>

#include <algorithm>
#include <chrono>
#include <set>
#include <sstream>
#include <thread>

#include "main/command_support.hpp"
#include "support/free_port.hpp"
#include "support/http_get.hpp"
#include "support/redis_server.hpp"

namespace speedo::test {
namespace {

using nlohmann::json;

// What stands in the log behind `words`, to the end of the line.
std::string said(const Process& process, const std::string& words) {
  const std::string log = process.errors();
  const std::size_t begin = log.find(words);
  REQUIRE(begin != std::string::npos);
  return log.substr(begin + words.size(), log.find('\n', begin) - begin - words.size());
}

// A training that does not end by itself, whose page and address are known.
struct Running {
  explicit Running(Context& place, const std::vector<std::string>& flags = {})
      : cluster(place.start(command(place, flags))) {
    REQUIRE(cluster.says("Iteration 20 ("));
    const std::string all = said(cluster, "See how it goes with: speedo status --master ");
    const std::string token = " --token-file ";
    const std::size_t end = all.find(token);
    REQUIRE(end != std::string::npos);
    address = all.substr(0, end);
    token_file = all.substr(end + token.size());
  }
  static std::vector<std::string> command(Context& place, const std::vector<std::string>& flags) {
    std::vector<std::string> all = {
        "speedo", "run", "--solver", place.write_solver("max_iter: 100000000"), "--workers", "3",
        "--sync", "--max-restarts", "5"};
    all.insert(all.end(), flags.begin(), flags.end());
    return all;
  }
  json status(Context& place) const {
    return place.run(words({"--json"})).json();
  }
  std::vector<std::string> words(const std::vector<std::string>& flags) const {
    std::vector<std::string> all = {"speedo", "status",       "--master",
                                    address,  "--token-file", token_file};
    all.insert(all.end(), flags.begin(), flags.end());
    return all;
  }
  Process cluster;
  std::string address, token_file;
};

// Of "worker0/123/0".
int pid_in(const std::string& name) { return std::stoi(name.substr(name.find('/') + 1)); }

std::set<std::string> states(const json& status) {
  std::set<std::string> found;
  for (const json& worker : status["workers"]) found.insert(worker["state"].get<std::string>());
  return found;
}

TEST_CASE("status shows a job, and --watch a worker that dies and returns") {
  Context place;
  Running job(place);
  const json before = job.status(place);
  CHECK(before["state"] == "training");
  CHECK(before["iteration"].get<int>() >= 20);
  CHECK(before["schedule"] == "sync");
  REQUIRE(before["workers"].size() == 3);
  const Outcome table = place.run(job.words({}));
  CHECK(table.exit_code == 0);
  CHECK(table.output.find("iteration ") != std::string::npos);
  CHECK(table.output.find("3 workers") != std::string::npos);
  CHECK(table.output.find('\x1b') == std::string::npos);

  Process watch = place.start(job.words({"--watch", "--json"}));
  ::kill(pid_in(before["workers"][1]["name"]), SIGKILL);
  bool has_gone = false, has_returned = false;
  for (int i = 0; i < 600 && !has_returned; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    std::istringstream lines(watch.output());
    for (std::string line; std::getline(lines, line);) {
      const json status = json::parse(line, nullptr, false);
      if (!status.is_object()) continue;
      has_gone = has_gone || states(status).count("gone") == 1;
      has_returned = has_gone && status["workers_alive"] == 3;
    }
  }
  CHECK(has_gone);
  CHECK(has_returned);
  // The end of the job ends the watching.
  job.cluster.signal(SIGTERM);
  CHECK(Context::finish(job.cluster).exit_code == 0);
  const Outcome seen = Context::finish(watch);
  CHECK(seen.exit_code == 0);
  const std::size_t last = seen.output.rfind('\n', seen.output.size() - 2);
  CHECK(json::parse(seen.output.substr(last + 1))["state"] == "over");
  CHECK(job.cluster.errors().find("% backward") != std::string::npos);
}

TEST_CASE("--watch of a master that dies ends, saying what was last seen") {
  Context place;
  RedisServer redis;
  const std::string token = place.file("token");
  REQUIRE(place.run({"speedo", "token", "create", token}).exit_code == 0);
  Process master = place.start({"speedo-master", "--solver", place.write_solver("max_iter: 77"),
                                "--redis", redis.tcp_uri(), "--token-file", token});
  REQUIRE(master.says("Add workers with: "));
  std::string address = said(master, "speedo-worker --master ");
  address = address.substr(0, address.find(' '));
  const std::vector<std::string> watch{"speedo",  "status",       "--master", address,
                                       "--watch", "--token-file", token};
  std::vector<std::string> with_json = watch;
  with_json.emplace_back("--json");
  Process text = place.start(watch), lines = place.start(with_json);
  for (const Process* each : {&text, &lines}) {
    for (int i = 0; i < 600 && each->output().empty(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    REQUIRE_FALSE(each->output().empty());
  }
  master.signal(SIGKILL);
  CHECK(master.wait());
  for (Process* each : {&text, &lines}) {
    const Outcome outcome = Context::finish(*each);
    INFO(outcome.errors);
    CHECK(outcome.exit_code == 69);
    CHECK(outcome.error_line().find("last seen at iteration 0 of 77") != std::string::npos);
    CHECK(outcome.error_line().find(address.substr(address.find("//") + 2)) != std::string::npos);
  }
}

TEST_CASE("A master serves its page, figures and health, and a trace has every process in it") {
  Context place;
  const std::string trace = place.file("trace.json");
  Running job(place, {"--metrics-addr", "0", "--trace", trace});
  const std::string url = said(job.cluster, "Look at the job at ");
  const std::uint16_t port = port_of(url.substr(0, url.size() - 1));
  CHECK(http_get(port, "/").body.find("<title>SpeeDO</title>") != std::string::npos);
  CHECK(http_get(port, "/healthz").status == 200);
  CHECK(http_get(port, "/readyz").status == 200);
  const std::string metrics = http_get(port, "/metrics").body;
  CHECK(metrics.find("speedo_workers{state=\"") != std::string::npos);
  CHECK(metrics.find("speedo_redis_errors_total{kind=\"timeout\"} 0") != std::string::npos);
  const auto shown = [&] { return json::parse(http_get(port, "/status.json").body); };
  for (int i = 0; i < 600 && shown()["workers"].size() < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  CHECK(shown()["workers"].size() == 3);
  CHECK_FALSE(json::parse(http_get(port, "/curves.json").body)["loss"].empty());

  job.cluster.signal(SIGTERM);
  CHECK(Context::finish(job.cluster).exit_code == 0);
  CHECK(http_get(port, "/").status == 0);
  const json events = json::parse(place.read("trace.json"), nullptr, false);
  REQUIRE(events.is_array());
  std::set<std::string> names, processes;
  for (const json& event : events) {
    names.insert(event["name"].get<std::string>());
    if (event["name"] == "process_name") processes.insert(event["args"]["name"].get<std::string>());
  }
  for (const char* name : {"forward", "backward", "read weights", "store contribution",
                           "wait for order", "merge", "test", "snapshot"}) {
    INFO(name);
    CHECK(names.count(name) == 1);
  }
  CHECK(processes == std::set<std::string>{"speedo run", "speedo-master", "speedo-worker worker0",
                                           "speedo-worker worker1", "speedo-worker worker2"});
}

TEST_CASE("A training in one process can be traced as well") {
  Context place;
  const Outcome outcome = place.run({"speedo", "train", "--solver", place.write_solver(),
                                     "--trace-file", place.file("trace.json")});
  REQUIRE(outcome.exit_code == 0);
  const json events = json::parse(place.read("trace.json"), nullptr, false);
  REQUIRE(events.is_array());
  const auto updates = std::count_if(events.begin(), events.end(),
                                     [](const json& event) { return event["name"] == "update"; });
  CHECK(updates == 40);
}

TEST_CASE("What cannot be shown or written is refused before training, saying why") {
  Context place;
  const std::string solver = place.write_solver();
  ReservedPort taken;
  taken.listen();
  const Outcome in_use = place.run({"speedo", "run", "--solver", solver, "--workers", "1",
                                    "--metrics-addr", taken.address()});
  CHECK(in_use.exit_code == 69);
  CHECK(in_use.errors.find(taken.address()) != std::string::npos);
  CHECK(in_use.errors.find("in use") != std::string::npos);
  CHECK(place.run({"speedo", "run", "--solver", solver, "--metrics-addr", "nonsense"}).exit_code ==
        2);
  const Outcome full = place.run({"speedo", "train", "--solver", solver, "--trace", "/dev/full"});
  CHECK(full.exit_code == 73);
  CHECK(full.error_line().find("No space left") != std::string::npos);
}

TEST_CASE("status of something that is no master says what is there") {
  Context place;
  const ReservedPort nobody;
  const Outcome none = place.run({"speedo", "status", "--master", nobody.address()});
  CHECK(none.exit_code == 69);
  CHECK(none.error_line().find(nobody.address()) != std::string::npos);
  ReservedPort silent;
  silent.listen();
  const Outcome other = place.run({"speedo", "status", "--master", silent.address(), "--watch"});
  CHECK(other.exit_code == 69);
  CHECK(other.error_line().find(silent.address()) != std::string::npos);
  CHECK(place.run({"speedo", "status"}).exit_code == 2);
}

}  // namespace
}  // namespace speedo::test
