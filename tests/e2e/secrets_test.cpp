// No password of Redis is to be seen: not in logs, files, messages, process lists, core dumps.
// What goes to Redis itself is clear text by its protocol.

#include <signal.h>
#include <sys/stat.h>

#include <fstream>

#include "support/catch.hpp"
#include "support/secret_search.hpp"

#include "cluster.hpp"
#include "recording_proxy.hpp"

namespace speedo {
namespace {

using test::Cluster;
using test::MemoryPart;
using test::Process;
using test::Texts;

constexpr const char* kDefaultPassword = "Xk4-default-hush-9Wq";
constexpr const char* kUserPassword = "Zt7 trainer/hush:3@Vb";
constexpr const char* kUserPasswordEncoded = "Zt7%20trainer%2Fhush%3A3%40Vb";
constexpr const char* kWrongPassword = "Lm2-wrong-hush-5Rd";
// Nobody hides these: they show that a search finds what is there.
constexpr const char* kName = "Canary-host-6Yp";
constexpr const char* kVariable = "SPEEDO_TEST_CANARY=Canary-value-1Hc";

const Texts kSecrets = {kDefaultPassword, kUserPassword, kUserPasswordEncoded, kWrongPassword};

std::string write_password(const Cluster& cluster, const std::string& name,
                           const std::string& password) {
  const std::string file = cluster.file(name).string();
  std::ofstream(file) << password << "\n";
  ::chmod(file.c_str(), 0600);
  return file;
}

// A way to give one password to a program: arguments and environment.
struct Login {
  std::string user_info;  // in an address
  std::vector<std::string> arguments, environment;
};

Login login_of(const std::string& way, const std::string& file) {
  if (way == "file") return {"trainer@", {"--redis-password-file", file}, {}};
  if (way == "environment") {
    return {
        "",
        {},
        {std::string("SPEEDO_REDIS_PASSWORD=") + kUserPassword, "SPEEDO_REDIS_USERNAME=trainer"}};
  }
  return {std::string("trainer:") + kUserPasswordEncoded + "@", {}, {}};
}

void check_processes(Cluster& cluster) {
  CHECK(test::in_process_lists(kSecrets).empty());
  CHECK(test::in_process_lists({kName}).size() == 1);
  CHECK(test::in_process_lists({kVariable}).size() == 1);
  for (const auto* processes : {&cluster.masters(), &cluster.workers()}) {
    for (const Process& process : *processes) {
      CAPTURE(process.id());
      CHECK(test::in_memory(process.id(), MemoryPart::kDumped, kSecrets).empty());
      CHECK_FALSE(test::in_memory(process.id(), MemoryPart::kDumped, {"speedo"}).empty());
      CHECK(test::in_memory(process.id(), MemoryPart::kUndumped, kSecrets).size() == 1);
    }
  }
}

// One that may not go in says how to, and takes nobody with it.
void check_refused_worker(Cluster& cluster, const std::string& master) {
  Process& worker = cluster.start_worker(
      master, {"--redis-password-file", write_password(cluster, "wrong", kWrongPassword)});
  CHECK(worker.wait() == 77);
  CHECK(worker.errors().find("--redis-password-file") != std::string::npos);
  cluster.workers().pop_back();
}

}  // namespace

TEST_CASE("no password is to be seen, however it was given") {
  const std::string way = GENERATE(as<std::string>(), "file", "environment", "address");
  CAPTURE(way);
  Cluster::Options options;
  options.own_proof = true;  // none: what travels in clear can be searched
  options.password = kDefaultPassword;
  options.redis_lines = std::string("user trainer on \">") + kUserPassword + "\" ~speedo:* +@all";
  options.user_info = login_of(way, "").user_info;
  Cluster cluster(1000000, options);
  const std::string file = write_password(cluster, "trainer", kUserPassword);
  const Login login = login_of(way, file);
  std::vector<std::string> flags = login.arguments;
  flags.insert(flags.end(), {"--workers", "2"});
  Process& master = cluster.start_master(flags, login.environment);
  const std::string address = cluster.address();

  test::RecordingProxy proxy(
      static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  const std::string through = "speedo://127.0.0.1:" + std::to_string(proxy.port());
  const std::string redis = "127.0.0.1:" + std::to_string(cluster.redis().port());
  std::vector<std::string> worker = login.arguments;
  worker.insert(worker.end(), {"--redis", "redis://" + login.user_info + redis, "--host", kName});
  cluster.start_worker(through, worker, login.environment);
  check_refused_worker(cluster, through);
  cluster.start_worker(
      through, {"--redis-password-file", write_password(cluster, "default", kDefaultPassword)},
      {kVariable});
  REQUIRE(cluster.counts_beyond(5));

  check_processes(cluster);
  master.signal(SIGTERM);
  CHECK(master.wait() == 0);
  for (Process& each : cluster.workers()) CHECK(each.wait() == 0);

  const std::string messages = proxy.recorded();
  CHECK(test::in_text("messages", messages, kSecrets).empty());
  for (const std::string& sent : {redis, std::string(kName), std::string("WRONGPASS")}) {
    CHECK_FALSE(test::in_text("messages", messages, {sent}).empty());
  }
  CHECK(test::in_files(cluster.file("."), kSecrets, {"trainer", "default", "wrong"}).empty());
  CHECK(test::in_files(cluster.file("."), kSecrets).size() == 3);
  CHECK_FALSE(test::in_files(cluster.file("."), {redis}).empty());
}

}  // namespace speedo
