// speedo launch on this machine: a stand-in for ssh gives its last word to a shell, as sshd does.

#include <algorithm>
#include <filesystem>

#include "main/command_support.hpp"
#include "support/redis_server.hpp"

namespace speedo::test {
namespace {

namespace fs = std::filesystem;

// Hosts of a file, and what ssh does before it reaches one that is to work.
struct LaunchPlace : Context {
  // `hosts`: lines that each host's program is added to.
  std::vector<std::string> command(const std::vector<std::string>& hosts,
                                   const std::string& before_work = "") const {
    std::string lines;
    for (const std::string& host : hosts) {
      lines += host + " program=" + program("speedo-worker") + "\n";
    }
    const std::string ssh = write("ssh", "#!/bin/sh\nfor line; do :; done\n"
                                         "case \"$line\" in *--version*) exec sh -c \"$line\" ;; "
                                         "esac\n" + before_work + "\nexec sh -c \"$line\"\n");
    fs::permissions(ssh, fs::perms::owner_all);
    return {"speedo", "launch",   "--hosts",   write("hosts", lines), "--ssh",  ssh,
            "--sync", "--solver", write_solver(), "--host",           "127.0.0.1", "--json"};
  }
};

std::vector<std::string> operator+(std::vector<std::string> words,
                                   const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST_CASE("A host of several workers whose ssh fails once is reached again, and all train") {
  LaunchPlace place;
  const std::string fails_once = "if mkdir \"" + place.file("failed") +
                                 "\" 2>/dev/null; then echo 'no route' >&2; exit 255; fi";
  const Outcome outcome =
      place.run(place.command({"127.0.0.1 workers=2", "localhost workers=2"}, fails_once) +
                std::vector<std::string>{"--max-restarts", "3"});
  INFO(outcome.errors);
  REQUIRE(outcome.exit_code == 0);
  CHECK(outcome.errors.find("2 of 4 go on; starts again in 0.2 s (restart 1 of 3)") !=
        std::string::npos);
  CHECK(outcome.json()["workers"] == 4);
  CHECK(outcome.json()["restarts"] == 1);
}

TEST_CASE("A host whose workers leave before training begins is not waited for without end") {
  LaunchPlace place;
  const Outcome outcome = place.run(
      place.command({"127.0.0.1", "localhost"}, "case \"$line\" in *localhost*) exit 0 ;; esac") +
      std::vector<std::string>{"--log-dir", place.file("logs")});
  INFO(outcome.errors);
  CHECK(outcome.exit_code == 69);
  CHECK(outcome.error_line() ==
        "speedo launch: training waits for 2 workers, and no more than 1 can come: localhost ended "
        "with exit code 0 before training is over");
}

TEST_CASE("A training that failed leaves the logs of its hosts, and neither password nor token") {
  LaunchPlace place;
  RedisServer redis({"hush", false, ""});
  const bool is_own = GENERATE(false, true);
  std::vector<std::string> line = place.command({"127.0.0.1"}, "echo lost; exit 65");
  if (is_own) {
    const std::string password = place.write("password", "hush\n");
    fs::permissions(password, fs::perms::owner_read);
    line = line + std::vector<std::string>{"--redis", redis.tcp_uri(), "--redis-password-file",
                                           password};
  }
  const std::string folder = place.file("tmp");
  fs::create_directory(folder);
  const Outcome outcome = place.run(line, {"TMPDIR=" + folder});
  INFO(outcome.errors);
  CHECK(outcome.exit_code == 65);
  bool has_log = false;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    INFO(entry.path());
    if (entry.is_directory()) continue;
    CHECK(entry.path().extension() == ".log");
    if (entry.path().filename() == "127.0.0.1.log") has_log = true;
  }
  CHECK(has_log);
}

TEST_CASE("--dry-run of a launch looks at the job and at what is needed here, too") {
  LaunchPlace place;
  std::vector<std::string> line = place.command({"127.0.0.1"}, "exit 1");
  const auto ends_with = [&](int code, const std::vector<std::string>& flags) {
    const Outcome outcome = place.run(line + std::vector<std::string>{"--dry-run"} + flags);
    INFO(outcome.output << outcome.errors);
    CHECK(outcome.exit_code == code);
    CHECK((outcome.output.find("host 127.0.0.1") != std::string::npos) == (code != 2));
  };
  ends_with(0, {});
  ends_with(2, {"--strategy", "easgd"});  // contradicts --sync
  ends_with(1, {"--redis", "127.0.0.1:1"});
  *(std::ranges::find(line, "--solver") + 1) = place.file("none");
  ends_with(1, {});
}

TEST_CASE("An ssh that is not there is named, with its flag") {
  LaunchPlace place;
  std::vector<std::string> line = place.command({"127.0.0.1"});
  *(std::ranges::find(line, "--ssh") + 1) = "/no/ssh";
  const Outcome outcome = place.run(line);
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.error_line().find("--ssh: program '/no/ssh' was not found") != std::string::npos);
}

TEST_CASE("Temporary files may lie in a folder whose name has quotes in it") {
  LaunchPlace place;
  const std::string folder = place.file("a \"b\\\" c");
  fs::create_directory(folder);
  const Outcome outcome = place.run(place.command({"127.0.0.1"}), {"TMPDIR=" + folder});
  INFO(outcome.errors);
  CHECK(outcome.exit_code == 0);
  CHECK(fs::is_empty(folder));
}

TEST_CASE("Shares and groups of a host that is not in the file are refused") {
  LaunchPlace place;
  const auto refused = [&](const std::string& schedule, const std::vector<std::string>& flags,
                           int code) {
    std::vector<std::string> line = place.command({"ann@127.0.0.1", "localhost:22"});
    std::replace(line.begin(), line.end(), std::string("--sync"), schedule);
    const Outcome outcome = place.run(line + flags);
    INFO(outcome.errors);
    CHECK(outcome.exit_code == code);
    CHECK(outcome.error_line().find("names 'node7'") != std::string::npos);
    CHECK(outcome.error_line().find("127.0.0.1, localhost:22") != std::string::npos);
  };
  refused("--sync", {"--shard-by", "127.0.0.1=2,localhost:22=2,node7=3"}, 2);
  refused("--strategy=grouping", {"--groups", place.write("groups", "127.0.0.1 node7\n")}, 64);
  // Others may join with the token.
  const std::string token = place.file("token");
  REQUIRE(place.run({"speedo", "token", "create", token}).exit_code == 0);
  const Outcome trained =
      place.run(place.command({"127.0.0.1"}) +
                std::vector<std::string>{"--shard-by", "node7=3", "--token-file", token});
  INFO(trained.errors);
  CHECK(trained.exit_code == 0);
  CHECK(trained.errors.find("--shard-by names workers that are not here: node7") !=
        std::string::npos);
}

TEST_CASE("Two users' workers on one host have a log each") {
  LaunchPlace place;
  const Outcome outcome = place.run(place.command({"ann@127.0.0.1", "bob@127.0.0.1"}) +
                                    std::vector<std::string>{"--log-dir", place.file("logs")});
  INFO(outcome.errors);
  CHECK(outcome.exit_code == 0);
  CHECK(fs::exists(place.file("logs/ann@127.0.0.1.log")));
  CHECK(fs::exists(place.file("logs/bob@127.0.0.1.log")));
}

}  // namespace
}  // namespace speedo::test
