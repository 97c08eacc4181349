// How programs take the password of Redis, and what they say of it.

#include <signal.h>
#include <sys/stat.h>

#include "main/command_support.hpp"
#include "support/redis_server.hpp"
#include "support/secret_search.hpp"

namespace speedo::test {
namespace {

constexpr const char* kVariable = "SPEEDO_REDIS_PASSWORD=hush words";

// A master that is told to resume from a Redis that has nothing: once it may go in, it says that.
class ResumingMaster {
 public:
  ResumingMaster() : redis_({"", false, "requirepass \"hush words\""}) {}

  std::string file(const std::string& content, mode_t mode = 0600) const {
    const std::string path = place_.write("password", content);
    ::chmod(path.c_str(), mode);
    return path;
  }
  Outcome run(const std::vector<std::string>& flags,
              const std::vector<std::string>& environment = {}, const std::string& user_info = "") {
    std::vector<std::string> command = {
        "speedo-master", "--solver",
        solver_,         "--resume",
        "--redis",       "redis://" + user_info + "127.0.0.1:" + std::to_string(redis_.port())};
    command.insert(command.end(), flags.begin(), flags.end());
    Outcome outcome = place_.run(command, environment);
    INFO(outcome.errors);
    CHECK(outcome.errors.find("hush") == std::string::npos);
    return outcome;
  }
  Outcome run_with_file(const std::string& path) { return run({"--redis-password-file", path}); }
  std::string folder() const { return place_.folder(); }

 private:
  Context place_;
  RedisServer redis_;
  const std::string solver_ = place_.write_solver();
};

void check_opened(const Outcome& outcome) {
  INFO(outcome.errors);
  CHECK(outcome.exit_code == 65);
  CHECK(outcome.error_line().find("resume") != std::string::npos);
}

bool warns(const Outcome& outcome, const std::string& of) {
  return outcome.errors.find(of) != std::string::npos;
}

}  // namespace

TEST_CASE("A master takes the password from a file, the environment or the address") {
  ResumingMaster master;
  for (const char* content : {"hush words", "hush words\n", "hush words\r\n"}) {
    const Outcome outcome = master.run_with_file(master.file(content));
    check_opened(outcome);
    CHECK_FALSE(warns(outcome, "chmod 600"));
    CHECK_FALSE(warns(outcome, "--redis had a password"));
  }
  check_opened(master.run({}, {kVariable}));
  const Outcome address = master.run({}, {}, ":hush%20words@");
  check_opened(address);
  CHECK(warns(address, "--redis had a password"));
  // The file's comes first.
  check_opened(master.run({"--redis-password-file", master.file("hush words")},
                          {"SPEEDO_REDIS_PASSWORD=hush"}, ":hush@"));
}

TEST_CASE("A password file that others may read is warned of, and used") {
  ResumingMaster master;
  for (const mode_t mode : {0600, 0640, 0604, 0620, 0644, 0440}) {
    INFO(mode);
    const Outcome outcome = master.run_with_file(master.file("hush words\n", mode));
    check_opened(outcome);
    // A group may read it, as it may a token: so secrets are mounted in Kubernetes.
    CHECK(warns(outcome, "chmod 600") == (mode == 0604 || mode == 0620 || mode == 0644));
  }
}

TEST_CASE("A password file that is no good ends a program with its name and the reason") {
  ResumingMaster master;
  const auto fails = [&](const std::string& path, int code, const std::string& reason) {
    const Outcome outcome = master.run_with_file(path);
    INFO(outcome.errors);
    CHECK(outcome.exit_code == code);
    CHECK(outcome.error_line().find(path) != std::string::npos);
    CHECK(outcome.error_line().find(reason) != std::string::npos);
  };
  fails(master.folder() + "/none", 65, "No such file");
  fails(master.folder(), 64, "directory");
  fails(master.file(""), 64, "empty");
  fails(master.file("\n"), 64, "empty");
  fails(master.file("hush\nwords\n"), 64, "one line");
  fails(master.file(std::string(100000, 'x')), 64, "longer than");
}

TEST_CASE("A wrong or missing password is refused with the remedy") {
  ResumingMaster master;
  for (const Outcome& outcome : {master.run({}), master.run({}, {"SPEEDO_REDIS_PASSWORD=hush"}),
                                 master.run_with_file(master.file("hush  words")),
                                 master.run({}, {}, ":hush@"), master.run({}, {}, "hush@")}) {
    INFO(outcome.errors);
    CHECK(outcome.exit_code == 77);
    CHECK(outcome.error_line().find("--redis-password-file") != std::string::npos);
  }
}

TEST_CASE("`speedo run` keeps the environment's password from what it starts") {
  Context place;
  Process run = place.start(
      {"speedo", "run", "--solver", place.write_solver("max_iter: 1000000"), "--workers", "1"},
      {kVariable, "SPEEDO_TEST_CANARY=Canary-value-8Rn"});
  REQUIRE(run.says("training starts"));
  // The program, its guardian, the master and the worker; Redis writes its title over it.
  CHECK(in_process_lists({"Canary-value-8Rn"}).size() >= 4);
  CHECK(in_process_lists({"hush words"}).empty());
  run.signal(SIGTERM);
  const Outcome outcome = Context::finish(run);
  CHECK(outcome.exit_code == 0);
}

}  // namespace speedo::test
