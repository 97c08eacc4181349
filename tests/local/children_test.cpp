#include "local/children.hpp"

#include <csignal>
#include <fstream>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "local/core_shares.hpp"
#include "local/local_cluster.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A folder for the guardian to remove.
fs::path make_folder(const TempDir& parent) {
  const fs::path folder = parent / "cluster";
  fs::create_directory(folder);
  std::ofstream(folder / "file") << "content";
  return folder;
}

bool process_exists(pid_t pid) { return ::kill(pid, 0) == 0; }

template <class Done>
bool happens(Done done) {
  for (int i = 0; i < 500; ++i) {
    if (done()) return true;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return false;
}

TEST_CASE("A child runs on the processors that it was given, and its peak memory is told") {
  const TempDir temporary;
  Children children(Guardian::create(make_folder(temporary)).value());
  const int processor = allowed_processors().front();
  ChildCommand command;
  command.arguments = {"grep", "Cpus_allowed_list", "/proc/self/status"};
  command.output = temporary / "output";
  command.processors = {processor};
  REQUIRE(children.start(command));
  const auto end = children.wait(seconds(10));
  REQUIRE(end);
  CHECK(end->exit_code == 0);
  CHECK(end->peak_memory_bytes > 100000);
  CHECK(last_line(command.output).ends_with(":\t" + std::to_string(processor)));
}

TEST_CASE("A child ignores that a terminal stops those in its background, and no other signal") {
  const TempDir temporary;
  Children children(Guardian::create(make_folder(temporary)).value());
  ChildCommand command;
  command.arguments = {"grep", "SigIgn", "/proc/self/status"};
  command.output = temporary / "output";
  REQUIRE(children.start(command));
  REQUIRE(children.wait(seconds(10)));
  const std::string line = last_line(command.output);
  const std::uint64_t ignored = std::stoull(line.substr(line.rfind('\t') + 1), nullptr, 16);
  const auto ignores = [&](int signal) { return ((ignored >> (signal - 1)) & 1U) != 0; };
  CHECK(ignores(SIGTTOU));
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGCHLD}) CHECK_FALSE(ignores(signal));
}

TEST_CASE("The end of a child is told, with its exit code or signal") {
  const TempDir temporary;
  Children children(Guardian::create(make_folder(temporary)).value());
  REQUIRE(children.start({{"sh", "-c", "exit 7"}, {}, {}}));
  const auto left = children.wait(seconds(10));
  REQUIRE(left);
  CHECK(left->exit_code == 7);
  CHECK(to_string(*left) == "exit code 7");

  const auto pid = children.start({{"sleep", "1000"}, {}, {}});
  REQUIRE(pid);
  CHECK(children.is_running(*pid));
  CHECK_FALSE(children.wait(milliseconds(0)));
  children.send(*pid, SIGTERM);
  const auto killed = children.wait(seconds(10));
  REQUIRE(killed);
  CHECK(killed->exit_code == 128 + SIGTERM);
  CHECK(to_string(*killed) == "SIGTERM");
  CHECK_FALSE(children.is_running(*pid));
}

TEST_CASE("A child has its own environment and output") {
  const TempDir temporary;
  Children children(Guardian::create(make_folder(temporary)).value());
  const fs::path log = temporary / "log";
  REQUIRE(children.start(
      {{"sh", "-c", "echo $SPEEDO_TEST; echo last >&2"}, {{"SPEEDO_TEST", "first"}}, log}));
  REQUIRE(children.wait(seconds(10)));
  std::ifstream stream(log);
  std::string line;
  std::getline(stream, line);
  CHECK(line == "first");
  CHECK(last_line(log) == "last");
}

TEST_CASE("A program that does not exist is an error") {
  const TempDir temporary;
  Children children(Guardian::create(make_folder(temporary)).value());
  const auto pid = children.start({{"speedo-no-such-program"}, {}, {}});
  REQUIRE_FALSE(pid);
  CHECK(pid.error().code == ErrorCode::kNotFound);
}

TEST_CASE("Children and folder are gone with their owner; the folder stays if asked for") {
  const TempDir temporary;
  const fs::path folder = make_folder(temporary);
  const bool keep = GENERATE(false, true);
  pid_t pid = 0;
  {
    Children children(Guardian::create(folder).value());
    pid = children.start({{"sleep", "1000"}, {}, {}}).value();
    if (keep) children.guardian().keep_folder();
  }
  CHECK_FALSE(process_exists(pid));
  CHECK(fs::exists(folder) == keep);
}

TEST_CASE("Nothing is left when the owner is killed with SIGKILL, not even grandchildren") {
  const TempDir temporary;
  const fs::path folder = make_folder(temporary);
  const fs::path pids = temporary / "pids";
  const pid_t owner = ::fork();
  if (owner == 0) {
    Children children(Guardian::create(folder).value());
    const std::string script = "sleep 1000 & echo $! $$ > " + pids.string() + "; wait";
    children.start({{"sh", "-c", script}, {}, {}}).value();
    ::pause();
  }
  pid_t grandchild = 0, child = 0;
  REQUIRE(happens([&] { return std::ifstream(pids) >> grandchild >> child && child > 0; }));
  REQUIRE(process_exists(grandchild));
  ::kill(owner, SIGKILL);
  ::waitpid(owner, nullptr, 0);
  CHECK(happens([&] { return !process_exists(child) && !process_exists(grandchild); }));
  CHECK(happens([&] { return !fs::exists(folder); }));
}

}  // namespace
}  // namespace speedo
