// What is run on other machines, run here: a stand-in for ssh gives its last word to a shell, as
// sshd does.

#include "local/remote_host.hpp"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include <unistd.h>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

std::string remote_text(const fs::path& path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

fs::path write_script(const fs::path& path, const std::string& text) {
  std::ofstream(path) << "#!/bin/sh\n" << text;
  fs::permissions(path, fs::perms::owner_all);
  return path;
}

// Another machine, in a folder: its shell, and its speedo-worker, which writes down what it gets.
struct FarMachine {
  explicit FarMachine(const std::string& worker)
      : children(Guardian::create(make_scratch()).value()) {
    shell.program = write_script(folder / "ssh", "for line; do :; done\nexec sh -c \"$line\"\n");
    host.name = "ann@node1";
    host.port = 2222;
    host.folder = (folder / "it's a \"folder\"").string();
    host.program = write_script(folder / "the worker", worker).string();
    fs::create_directory(host.folder);
  }
  fs::path make_scratch() const {
    fs::create_directory(folder / "scratch");
    return folder / "scratch";
  }
  pid_t start(const std::vector<std::string>& flags, const RedisCredentials& credentials = {}) {
    ChildCommand command =
        remote_workers(shell, host, flags, {.redis = credentials, .token = Secret("to'ken $x")});
    command.output = folder / "log";
    const auto pid = children.start(command);
    REQUIRE(pid);
    return *pid;
  }
  std::optional<ChildEnd> end() { return children.wait(std::chrono::seconds(20)); }
  bool has(const char* file) const { return fs::exists(fs::path(host.folder) / file); }
  bool gets(const char* file) const {
    for (int i = 0; i < 1000 && !has(file); ++i) std::this_thread::sleep_for(milliseconds(10));
    return has(file);
  }

  TempDir folder;
  RemoteShell shell;
  Host host;
  Children children;
};

TEST_CASE("A worker elsewhere gets its words as they are, its secrets by environment and pipe") {
  FarMachine machine("for word; do echo \"[$word]\"; done\npwd\n"
                  "echo \"$SPEEDO_REDIS_USERNAME/$SPEEDO_REDIS_PASSWORD\"\ncat /dev/fd/4\n"
                  "env | grep -c 'to.ken'\n"
                  "tr '\\0' ' ' </proc/$PPID/cmdline >parent\nexit 65\n");
  const RedisCredentials credentials{.user = "ann", .password = Secret("pass'word $x")};
  machine.start({"--job=a b", "it's", "$(touch bad)", "back\\slash", ""}, credentials);
  const auto end = machine.end();
  REQUIRE(end);
  CHECK(end->exit_code == 65);
  CHECK(remote_text(machine.folder / "log") ==
        "[--host=node1:2222]\n[--workers=1]\n[--job=a b]\n[it's]\n[$(touch bad)]\n[back\\slash]\n"
        "[]\n[--token-file=/dev/fd/4]\n" + machine.host.folder +
            "\nann/pass'word $x\nto'ken $x\n0\n");
  for (const char* secret : {"pass'word", "to'ken"}) {
    CHECK(remote_text(fs::path(machine.host.folder) / "parent").find(secret) == std::string::npos);
  }
  CHECK_FALSE(machine.has("bad"));
}

TEST_CASE("The logs of hosts have names of their own, with the user where it takes him") {
  const auto host = [](const char* name, std::uint16_t port) {
    Host made;
    made.name = name;
    made.port = port;
    return made;
  };
  const std::vector<Host> hosts{host("ann@node1", 0), host("bob@node1", 0), host("ann@node2", 0),
                                host("node1", 22), host("bob@node1", 22)};
  CHECK(log_names(hosts) == std::vector<std::string>{"ann@node1", "bob@node1", "node2", "node1:22",
                                                     "bob@node1:22"});
}

TEST_CASE("Without a password there is none in the environment") {
  FarMachine machine("echo \"${SPEEDO_REDIS_PASSWORD-none} ${SPEEDO_REDIS_USERNAME-none}\"\n");
  machine.host.threads = 3;
  machine.start({});
  REQUIRE(machine.end());
  CHECK(remote_text(machine.folder / "log") == "none none\n");
}

TEST_CASE("User and password of Redis in the environment elsewhere do not count") {
  FarMachine machine("echo \"${SPEEDO_REDIS_PASSWORD-none} ${SPEEDO_REDIS_USERNAME-none} "
                     "${SPEEDO_REDIS_PASSWORD_FILE-none}\"\n");
  write_script(machine.folder / "ssh",
               "export SPEEDO_REDIS_PASSWORD=other SPEEDO_REDIS_USERNAME=other "
               "SPEEDO_REDIS_PASSWORD_FILE=other\nfor line; do :; done\nexec sh -c \"$line\"\n");
  machine.start({});
  REQUIRE(machine.end());
  CHECK(remote_text(machine.folder / "log") == "none none none\n");
  RedisCredentials drawn;
  drawn.password = Secret("drawn");
  machine.start({}, drawn);
  REQUIRE(machine.end());
  CHECK(remote_text(machine.folder / "log") == "drawn none none\n");
}

TEST_CASE("A worker is asked to leave when the connection ends, whatever ends it") {
  FarMachine machine("trap 'touch left; exit 0' TERM\ntouch here\n"
                  "while :; do sleep 0.05; done\n");
  const pid_t pid = machine.start({});
  REQUIRE(machine.gets("here"));
  CHECK_FALSE(machine.has("left"));
  machine.children.close_input(pid);
  CHECK(machine.gets("left"));
  const auto end = machine.end();
  REQUIRE(end);
  CHECK(end->exit_code == 0);
}

TEST_CASE("A folder that is not there is an error of its own") {
  FarMachine machine("exit 0\n");
  machine.host.folder = "/no/such/folder";
  machine.start({});
  const auto end = machine.end();
  REQUIRE(end);
  CHECK(end->exit_code == 73);
}

}  // namespace
}  // namespace speedo
