// What docker/entry.sh makes of the words that an image is started with, with the programs that
// were built. docker/try.sh runs it in the images.

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "main/command_support.hpp"
#include "support/poll.hpp"
#include "support/redis_server.hpp"

namespace speedo::test {
namespace {

namespace fs = std::filesystem;

using Words = std::vector<std::string>;

// `words` as those of an image whose program is `image`.
Words entry(const std::string& image, const Words& words, const Words& variables = {}) {
  const std::string folder = std::filesystem::path(program(image)).parent_path().string();
  Words command{"/usr/bin/env", "PATH=" + folder + ":" + std::getenv("PATH")};
  command.insert(command.end(), variables.begin(), variables.end());
  command.insert(command.end(), {"docker/entry.sh", image});
  command.insert(command.end(), words.begin(), words.end());
  return command;
}

Outcome run(const std::string& image, const Words& words) {
  Context place;
  return place.run(entry(image, words));
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Of a file of objects, what containers of master and workers are started with, variables replaced.
std::vector<Words> commands_in(const std::string& path) {
  static const std::regex kCommand(R"(^ +(?:command|args): \[((?:master|worker|speedo-).*)\]$)");
  static const std::regex kDefault(R"(\$\{[A-Z]+:-([^}]*)\})"), kOther(R"(\$\([A-Z_]+\))");
  std::vector<Words> commands;
  std::ifstream file(path);
  REQUIRE(file);
  for (std::string line; std::getline(file, line);) {
    std::smatch found;
    if (!std::regex_match(line, found, kCommand)) continue;
    std::string text = std::regex_replace(found[1].str(), kDefault, "$1");
    text = std::regex_replace(text, kOther, "name");
    std::erase_if(text, [](char each) { return each == '"' || each == ','; });
    std::istringstream stream(text);
    Words words;
    for (std::string word; stream >> word;) words.push_back(word);
    commands.push_back(words);
  }
  return commands;
}

// HOST:PORT, as its log tells workers.
std::string first_word(const std::string& file) {
  std::ifstream stream(file);
  std::string word;
  stream >> word;
  return word;
}

std::string program_of(const std::string& process) {
  return first_word("/proc/" + process + "/comm");
}

std::string address_of(Process& master) {
  REQUIRE(master.says("Add workers with: "));
  const std::string log = master.errors(), start = "--master speedo://";
  const std::size_t begin = log.find(start) + start.size();
  return log.substr(begin, log.find_first_of(" \n", begin) - begin);
}

// docker/health.sh of one process alone, as others run the same programs; `change` of sed, too.
Outcome health_of(Context& place, const std::string& name, pid_t process,
                  const std::string& change = "") {
  const std::string here = "s#/proc/\\[0-9\\]\\*#/proc/" + std::to_string(process) + "#;" + change;
  return place.run(
      {"/bin/sh", "-c", "sed \"$1\" docker/health.sh | bash -s \"$2\"", "sh", here, name});
}

}  // namespace

TEST_CASE("Missing, swapped and unknown words show SpeeDO's usage") {
  const std::string master = "speedo-master", worker = "speedo-worker";
  struct Case {
    std::string image;
    Words words;
    std::string reason;
  };
  const std::vector<Case> cases{
      {master, {"master"}, "takes the master's address and the number of workers"},
      {master, {"master", "10.0.0.1"}, "takes the master's address and the number of workers"},
      {master, {"master", "3", "10.0.0.1"}, "\"3\" is no address of a master"},
      {master, {"master", "10.0.0.1:7000", "3"}, "\"10.0.0.1:7000\" has a port"},
      {master, {"master", "[fd77::1]:7000", "3"}, "\"[fd77::1]:7000\" has a port"},
      {master, {"master", "10.0.0.1", "--sync"}, "\"--sync\" is no number of workers"},
      {master, {"master", "--sync", "10.0.0.1", "3"}, "\"--sync\" is no address"},
      {master, {"worker", "10.0.0.1", "10.0.0.2"}, "is for the image speedo-worker"},
      {master, {"serve"}, "\"serve\" is no word"},
      {worker, {"worker"}, "takes the master's address and the worker's"},
      {worker, {"worker", "10.0.0.1"}, "takes the master's address and the worker's"},
      {worker, {"worker", "10.0.0.1", "3"}, "\"3\" is no address of a worker"},
      {worker, {"worker", "10.0.0.2", "akka.tcp://SpeeDO@10.0.0.1:56126/user/host"},
       "is no address of a worker"},
      {worker, {"master", "10.0.0.1", "3"}, "is for the image speedo-master"},
  };
  for (const Case& each : cases) {
    const Outcome outcome = run(each.image, each.words);
    INFO(each.words.size() << " words, " << each.words.back() << ": " << outcome.errors);
    CHECK(outcome.exit_code == 2);
    CHECK(has(outcome.errors, each.image + ": "));
    CHECK(has(outcome.errors, each.reason));
    CHECK(has(outcome.errors, "docker run ... speedo-master master MASTER-ADDRESS WORKERS"));
    CHECK(has(outcome.errors, "docker run ... speedo-worker worker MASTER-ADDRESS WORKER-ADDRESS"));
  }
}

TEST_CASE("Flags go to the image's program, and help is its own") {
  CHECK(has(run("speedo-master", {"--version"}).output, "speedo "));
  CHECK(has(run("speedo-worker", {"--help"}).output, "Usage: speedo-worker"));
  CHECK(has(run("speedo-master", {"master", "10.0.0.1", "3", "--help"}).output,
            "Usage: speedo-master"));
  CHECK(has(run("speedo-master", {"speedo", "--version"}).output, "speedo "));
  const Outcome misspelt = run("speedo-master", {"master", "127.0.0.1", "3", "--snc"});
  CHECK(misspelt.exit_code == 2);
  CHECK(has(misspelt.error_line(), "did you mean --sync?"));
}

TEST_CASE("What compose and Kubernetes start is understood, and ends for the want of a cluster") {
  const std::string root = SPEEDO_SOURCE_DIR;
  std::size_t count = 0;
  for (const char* file : {"docker/compose.yaml", "docker/compose.gpu.yaml",
                           "conf/kubernetes/master.yaml", "conf/kubernetes/worker.yaml"}) {
    for (Words words : commands_in(root + "/" + file)) {
      ++count;
      const bool is_worker = has(words.front(), "worker");
      if (is_worker) words.insert(words.end(), {"--connect-timeout", "1"});
      const Outcome outcome = run(is_worker ? "speedo-worker" : "speedo-master", words);
      INFO(file << ": " << words.front() << ": " << outcome.errors);
      CHECK(outcome.exit_code != 0);
      CHECK(outcome.exit_code != 2);
    }
  }
  CHECK(count == 5);
}

TEST_CASE("A master that is to start a Redis for others needs its password") {
  Context place;
  const Outcome none = run("speedo-master", {"master", "127.0.0.1", "1"});
  CHECK(none.exit_code == 77);
  CHECK(has(none.error_line(), "/run/secrets/redis_password"));
  CHECK(has(none.error_line(), "SPEEDO_REDIS_PASSWORD"));
  for (const Words& words : {Words{"redis"}, Words{"master", "127.0.0.1", "1"}}) {
    const Outcome missing = place.run(
        entry("speedo-master", words, {"SPEEDO_REDIS_PASSWORD_FILE=" + place.file("none")}));
    CHECK(missing.exit_code == 77);
    CHECK(has(missing.error_line(), place.file("none")));
  }
}

TEST_CASE("What is given beside --json is seen: nothing else is added to it") {
  Context place;
  fs::create_directory(place.file("bin"));
  fs::create_symlink(program("speedo"), place.file("bin/speedo"));
  const std::string master = place.write("bin/speedo-master", "#!/bin/sh\nprintf '%s ' \"$@\"\n");
  fs::permissions(master, fs::perms::owner_all);
  const Outcome outcome = place.run(entry(
      "speedo-master",
      {"master", "127.0.0.1", "2", "--json", "--redis", "named", "--solver", "s", "--port", "7"},
      {"PATH=" + place.file("bin") + ":" + std::getenv("PATH"), "SPEEDO_TOKEN_FILE=token"}));
  INFO(outcome.errors);
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.output ==
        "--host 127.0.0.1 --workers 2 --bind 127.0.0.1 --json --redis named --solver s --port 7 ");
}

TEST_CASE("An interface says where the image's master listens, in place of its address") {
  const Words words{"master", "127.0.0.1", "1",  "--redis", "127.0.0.1:1", "--solver",
                    "s",      "--iface",   "lo", "--dry-run"};
  const Outcome outcome = run("speedo-master", words);
  INFO(outcome.errors);
  CHECK(outcome.exit_code == 1);  // there are no such solver and Redis
  CHECK(has(outcome.output, "port"));
  CHECK_FALSE(has(outcome.errors, "--iface"));
}

TEST_CASE("A certificate among the words goes before the token that is mounted") {
  Context place;
  const std::string token = place.write("token", "t");
  const std::string mounted = "s#/run/secrets/speedo_token#" + token + "#";
  const auto given = [&](const Words& words) {
    Words command{"/bin/sh", "-c", "script=$1; shift; sed \"$script\" docker/entry.sh | "
                  "bash -s env \"$@\" | grep -c ^SPEEDO_TOKEN_FILE=", "sh", mounted};
    command.insert(command.end(), words.begin(), words.end());
    return place.run(command).output;
  };
  CHECK(given({}) == "1\n");
  CHECK(given({"-u", "A"}) == "1\n");
  CHECK(given({"-u", "tls-cert.prototxt"}) == "1\n");
  CHECK(given({"-u", "--tls-cert"}) == "0\n");
  CHECK(given({"-u", "-tlsCert"}) == "0\n");
}

TEST_CASE("Names with spaces and quotes in a file with a space are taken as they are") {
  Context place;
  fs::create_directory(place.file("a folder"));
  const std::string password = place.file("a \"pass\\word\"");
  const std::string config =
      place.write("a folder/speedo.toml", "[master]\nredis_password_file = '" + password + "'\n");
  const Outcome outcome =
      place.run(entry("speedo-master", {"master", "127.0.0.1", "1", "--config", config}));
  CHECK(outcome.exit_code == 77);
  CHECK(has(outcome.error_line(), "the password file '" + password + "' cannot be read"));
}

TEST_CASE("speedo.toml in the folder that was mounted is taken, whoever may write it") {
  Context place;
  const std::string config = place.write("speedo.toml", "[master]\nmax_iter = 7\n");
  fs::permissions(config, fs::perms::others_write, fs::perm_options::add);
  const auto run_in_it = [&](const Words& words) {
    Words command = entry("speedo-master", words);
    *std::ranges::find(command, "docker/entry.sh") = fs::absolute("docker/entry.sh").string();
    command.insert(command.begin() + 1, "--chdir=" + place.folder().string());
    return place.run(command);
  };
  const Outcome taken = run_in_it({"speedo", "config", "master"});
  INFO(taken.errors);
  CHECK(taken.exit_code == 0);
  CHECK(has(taken.output, "speedo.toml:2:1"));
  CHECK_FALSE(has(run_in_it({"speedo", "config", "master", "--no-config"}).output, "speedo.toml:"));
}

TEST_CASE("A port that somebody else listens at is not taken for the master's own Redis") {
  // Whether it is this listener's or another's.
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(6379);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool is_ours =
      ::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  REQUIRE((is_ours || errno == EADDRINUSE));
  if (is_ours) REQUIRE(::listen(listener, 1) == 0);
  Context place;
  const Outcome outcome = place.run(entry("speedo-master", {"master", "127.0.0.1", "1"},
                                          {"SPEEDO_REDIS_PASSWORD=hush"}));
  ::close(listener);
  CHECK(outcome.exit_code == 69);
  CHECK(has(outcome.error_line(), "port 6379 of 127.0.0.1 is in use"));
}

TEST_CASE("Health is that of each program that is there, and one has to be") {
  Context place;
  const auto health = [&](const Words& programs) {
    Words command{"/usr/bin/env", "docker/health.sh"};
    command.insert(command.end(), programs.begin(), programs.end());
    return place.run(command);
  };
  CHECK(health({}).exit_code == 2);
  const Outcome none = health({"no-such-thing", "nor-this"});
  CHECK(none.exit_code == 1);
  CHECK(has(none.errors, "no-such-thing nor-this does not run"));
  // Programs of names that no other test has.
  const std::string idle = place.file("idles-here"), ended = place.file("ends-here");
  for (const std::string& copy : {idle, ended}) {
    std::filesystem::copy_file("/bin/sleep", copy);
  }
  Process runs = place.start({idle, "600"});
  // Who becomes another program by exec leaves its child to nobody.
  const std::string child = place.file("child");
  Process parent = place.start({"/bin/sh", "-c", "\"$1\" 600 & echo $! > \"$2\"; exec sleep 600",
                                "sh", ended, child});
  poll_until([&] { return program_of(std::to_string(parent.id())) == "sleep"; });
  const std::string id = first_word(child);
  poll_until([&] { return program_of(id) == "ends-here"; });
  ::kill(std::stoi(id), SIGKILL);
  CHECK(health({"idles-here"}).exit_code == 0);
  CHECK(health({"idles-here", "no-such-thing"}).exit_code == 0);
  std::string errors;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!has(errors, "ends-here has ended") && std::chrono::steady_clock::now() < deadline) {
    errors = health({"idles-here", "ends-here"}).errors;
  }
  CHECK(has(errors, "ends-here has ended"));
  ::kill(runs.id(), SIGSTOP);
  CHECK(has(health({"idles-here"}).errors, "idles-here is stopped"));
  ::kill(runs.id(), SIGKILL);
  ::kill(parent.id(), SIGKILL);
}

TEST_CASE("A server is healthy where the kernel has no IPv6") {
  Context place;
  const ReservedPort port;
  Process redis = place.start({"/bin/sh", "-c", "exec redis-server --port $1 --save '' >&2", "sh",
                               std::to_string(port.port())});
  REQUIRE(redis.says("Ready to accept connections"));
  CHECK(health_of(place, "redis-server", redis.id()).exit_code == 0);
  const std::string gone = "s#/proc/net/tcp6#/proc/net/tcp6-is-gone#";
  CHECK(health_of(place, "redis-server", redis.id(), gone).exit_code == 0);
  redis.signal(SIGTERM);
}

TEST_CASE("A worker that has lost its master is not healthy, though it has a connection to Redis") {
  Context place;
  RedisServer redis;
  Process master =
      place.start({"speedo-master", "--solver", place.write_solver("max_iter: 100000000"),
                   "--redis", redis.tcp_uri()});
  Process worker = place.start({"speedo-worker", "--master", address_of(master), "--redis",
                                redis.tcp_uri(), "--no-shared-memory"});
  REQUIRE(master.says("training starts"));
  CHECK(health_of(place, "speedo-worker", worker.id()).exit_code == 0);
  ::kill(master.id(), SIGKILL);
  REQUIRE(worker.says("attempt 2 to reach the master"));
  const Outcome alone = health_of(place, "speedo-worker", worker.id());
  CHECK(alone.exit_code == 1);
  CHECK(has(alone.errors, "speedo-worker is not connected"));
  worker.signal(SIGKILL);
}

TEST_CASE("SpeeDO's two commands train with a Redis that is named") {
  Context place;
  RedisServer redis({"hush", false, ""});
  const std::string variable = "SPEEDO_REDIS_PASSWORD=hush";
  const std::string address = "127.0.0.1:" + std::to_string(redis.port());
  // No other address than the one that is given here would reach the master.
  Process master = place.start(
      entry("speedo-master",
            {"master", "127.0.0.1", "1", "--solver", place.write_solver(), "--movingRate", "0.5",
             "--port", "0", "--redis", address},
            {variable}));
  const Outcome worker =
      place.run(entry("speedo-worker", {"worker", address_of(master), "127.0.0.1"}, {variable}));
  INFO(worker.errors);
  CHECK(worker.exit_code == 0);
  CHECK(Context::finish(master).exit_code == 0);
  CHECK(has(master.errors(), "elastic"));
  CHECK(has(master.errors(), "127.0.0.1/"));
}

}  // namespace speedo::test
