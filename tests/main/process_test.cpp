// How programs begin and end where their surroundings are not as usual.

#include <csignal>
#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "main/command_support.hpp"
#include "support/poll.hpp"
#include "support/redis_server.hpp"

namespace speedo::test {
namespace {

namespace fs = std::filesystem;

// A line of the shell; $SPEEDO is the program.
Outcome shell(const Context& place, const std::string& line) {
  static int number = 0;
  Process process({"/bin/sh", "-c", "SPEEDO=" + program("speedo") + "; " + line},
                  place.folder() / ("shell" + std::to_string(number++)));
  return Context::finish(process);
}

TEST_CASE("A program whose standard files are closed does its work") {
  Context place;
  const std::string solver = place.write_solver("max_iter: 5");
  for (const char* closed : {"<&-", ">&-", "2>&-", "<&- >&- 2>&-"}) {
    INFO(closed);
    for (const char* command : {"train", "run"}) {
      INFO(command);
      const Outcome outcome = shell(
          place, "exec $SPEEDO " + std::string(command) + " -solver " + solver + " " + closed);
      INFO(outcome.errors);
      CHECK(outcome.exit_code == 0);
      CHECK(fs::remove(place.file("snap_iter_5.caffemodel")));
    }
  }
}

TEST_CASE("A result that cannot be written is an error") {
  Context place;
  const std::string solver = place.write_solver("max_iter: 5");
  for (const std::string& command : {"train --json -solver " + solver, "run -solver " + solver,
                                     "net --json -model " + place.file("net.prototxt"),
                                     "time -iterations 1 -model " + place.file("net.prototxt"),
                                     std::string("--help"), std::string("train --version")}) {
    INFO(command);
    const Outcome outcome = shell(place, "exec $SPEEDO " + command + " > /dev/full");
    CHECK(outcome.exit_code == 73);
    CHECK(outcome.error_line().find("could not be written to standard output") !=
          std::string::npos);
  }
}

TEST_CASE("A limit of the address space ends a program with a line that names it") {
  Context place;
  const std::string solver = place.write_solver("max_iter: 5");
  const std::string command = GENERATE(as<std::string>(), "train", "run");
  bool limited = false;
  for (const int mebibytes : {100, 150, 200, 300, 400}) {
    INFO(command << " with " << mebibytes << " MiB");
    const Outcome outcome =
        shell(place, "ulimit -v " + std::to_string(mebibytes * 1024) + "; exec $SPEEDO " +
                         command + " -solver " + solver + " --threads 1");
    INFO(outcome.errors);
    if (outcome.exit_code == 127) continue;  // Not even its libraries fit.
    if (outcome.exit_code == 0) continue;
    CHECK(outcome.exit_code == 75);
    CHECK(outcome.error_line().find("ulimit -v") != std::string::npos);
    limited = true;
  }
  CHECK(limited);
}

TEST_CASE("A conversion that is asked to stop leaves nothing behind") {
  constexpr int kManyRecords = 3'000'000;
  Context place;
  std::string table;
  for (int i = 0; i < kManyRecords; ++i) table += "1,0\n";
  const std::string output = place.file("out/lmdb");
  REQUIRE(fs::create_directory(place.file("out")));
  Process process =
      place.start({"speedo", "convert", "csv", place.write("table.csv", table), output});
  poll_until([&] { return !fs::is_empty(place.file("out")) || !process.running(); });
  process.signal(SIGTERM);
  CHECK(process.wait() == 69);
  CHECK(fs::is_empty(place.file("out")));
  CHECK(process.errors().find("stopped after") != std::string::npos);
}

TEST_CASE("Signals that were ignored or blocked before do what they should") {
  Context place;
  const std::string solver = place.write_solver("max_iter: 5");
  const Outcome alone = place.run({"/usr/bin/env", "--ignore-signal=CHLD", program("speedo"), "run",
                                   "--workers", "1", "--solver", solver});
  INFO(alone.errors);
  CHECK(alone.exit_code == 0);

  const std::string endless = place.write_solver("max_iter: 100000000", "endless.prototxt");
  for (const char* command : {"train", "run"}) {
    INFO(command);
    Process training = place.start(
        {"/usr/bin/env", "--block-signal=TERM", program("speedo"), command, "--solver", endless});
    REQUIRE(training.says("Iteration 10"));
    training.signal(SIGTERM);
    CHECK(Context::finish(training).exit_code == 0);
  }
}

TEST_CASE("SIGHUP writes a snapshot and training goes on, with one process or many") {
  Context place;
  const std::string solver = place.write_solver("max_iter: 100000000");
  for (const char* command : {"train", "run"}) {
    INFO(command);
    Process process = place.start({"speedo", command, "-solver", solver});
    REQUIRE(process.says("Iteration 10 ("));
    process.signal(SIGHUP);
    REQUIRE(process.says("Snapshotting solver state"));
    CHECK(process.running());
    process.signal(SIGINT);
    CHECK(Context::finish(process).exit_code == 0);
  }
}

TEST_CASE("What SIGHUP and SIGINT do can be chosen") {
  Context place;
  const std::string solver = place.write_solver("max_iter: 100000000");
  Process process = place.start({"speedo", "run", "-solver", solver, "--sigint-effect", "snapshot",
                                 "--sighup-effect", "stop"});
  REQUIRE(process.says("Iteration 10 ("));
  process.signal(SIGINT);
  REQUIRE(process.says("Snapshotting solver state"));
  CHECK(process.running());
  process.signal(SIGHUP);
  const Outcome outcome = Context::finish(process);
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.errors.find("stopped: ") != std::string::npos);
}

TEST_CASE("A signal that only stops leaves the last snapshot to the solver, in a cluster too") {
  Context place;
  const std::string solver = place.write_solver("max_iter: 100000000 snapshot_after_train: false");
  for (const char* command : {"train", "run"}) {
    for (const int signal : {SIGINT, SIGHUP}) {
      INFO(command << " " << signal);
      Process process = place.start({"speedo", command, "-solver", solver, "--sigint-effect",
                                     "stop", "--sighup-effect", "stop"});
      REQUIRE(process.says("Iteration 10 ("));
      process.signal(signal);
      const Outcome outcome = Context::finish(process);
      CHECK(outcome.exit_code == 0);
      CHECK(outcome.errors.find("Snapshotting") == std::string::npos);
    }
  }
}

// A pipe for standard error that is full and has a reader which reads nothing.
struct FullPipe {
  explicit FullPipe(const std::string& name) {
    REQUIRE(::mkfifo(name.c_str(), 0600) == 0);
    reader = ::open(name.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    const int writer = ::open(name.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    const std::string line(64, '.');
    while (::write(writer, line.data(), line.size()) > 0) continue;
    while (::write(writer, line.data(), 1) > 0) continue;
    ::close(writer);
  }
  ~FullPipe() { ::close(reader); }
  int reader = -1;
};

TEST_CASE("Training whose log nobody reads comes to its end, with its snapshot") {
  Context place;
  const std::string log = place.file("log");
  const FullPipe full(log);
  for (const char* command : {"train", "run"}) {
    INFO(command);
    const std::string solver = place.write_solver();
    Process process({"/bin/sh", "-c", "exec " + program("speedo") + " " + command +
                                          " --solver " + solver + " 2> " + log},
                    place.folder() / command);
    CHECK(process.wait() == 0);
    CHECK(fs::exists(place.file("snap_iter_40.caffemodel")));
    fs::remove(place.file("snap_iter_40.caffemodel"));
  }
}

TEST_CASE("A master whose log nobody reads obeys a signal, or its grace period") {
  Context place;
  RedisServer server;
  const std::string log = place.file("log"), address = place.file("address");
  const FullPipe full(log);
  const bool hangs = GENERATE(false, true);
  const std::string period = hangs ? "1" : "120";
  Process process({"/bin/sh", "-c", "exec " + program("speedo-master") + " --solver " +
                                        place.write_solver() + " --workers 1 --redis 127.0.0.1:" +
                                        std::to_string(server.port()) + " --grace-period " +
                                        period + " --address-file " + address + " 2> " + log},
                  place.folder() / "master");
  poll_until([&] { return fs::exists(address) || !process.running(); });
  if (hangs) server.pause();
  process.signal(SIGTERM);
  CHECK(process.wait() == (hangs ? 75 : 0));
  if (hangs) server.resume();
}

TEST_CASE("Ctrl-C in a cluster is named as what it is") {
  Context place;
  Process process =
      place.start({"speedo", "run", "-solver", place.write_solver("max_iter: 100000000")});
  REQUIRE(process.says("Iteration 10 ("));
  process.signal(SIGINT);
  const Outcome outcome = Context::finish(process);
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.errors.find("stopped: SIGINT received") != std::string::npos);
}

// The folder goes while training runs, as a disk that is full or away.
TEST_CASE("A snapshot folder that is lost costs no weights: they are elsewhere, and that is said") {
  Context place;
  const TempDir scratch;
  const std::string temporary = "TMPDIR=" + scratch.path().string();
  for (const char* command : {"train", "run"}) {
    INFO(command);
    const std::string folder = place.file("snaps");
    fs::create_directory(folder);
    place.write_net();
    const std::string solver = place.write(
        "lost.prototxt", "net: \"" + place.file("net.prototxt") +
                             "\" base_lr: 0.05 lr_policy: \"fixed\" display: 10 random_seed: 3 "
                             "max_iter: 100000000 snapshot_prefix: \"" +
                             folder + "/net\"");
    Process process = place.start({"speedo", command, "-solver", solver}, {temporary});
    REQUIRE(process.says("Iteration 10 ("));
    fs::remove_all(folder);
    process.signal(SIGHUP);
    REQUIRE(process.says("speedo-rescue-"));
    CHECK(process.running());
    process.signal(SIGTERM);
    const Outcome outcome = Context::finish(process);
    INFO(outcome.errors);
    CHECK(outcome.exit_code == 73);
    const std::string line = outcome.errors;
    const std::size_t begin = line.rfind("it is in '");
    REQUIRE(begin != std::string::npos);
    const std::size_t path = begin + std::string("it is in '").size();
    const fs::path rescue = line.substr(path, line.find('\'', path) - path);
    int files = 0;
    for (const auto& entry : fs::directory_iterator(rescue)) files += entry.is_regular_file();
    CHECK(files >= 3);
    fs::remove_all(rescue);
  }
}

TEST_CASE("A last snapshot waits for room, and is written when there is some") {
  Context place;
  const TempDir scratch;
  const std::string temporary = "TMPDIR=" + scratch.path().string();
  for (const auto& [command, last] :
       {std::pair("train", std::string("40000")), std::pair("run", std::string("5000"))}) {
    INFO(command);
    const std::string folder = place.file("snaps");
    fs::create_directory(folder);
    place.write_net();
    const std::string solver = place.write(
        "late.prototxt", "net: \"" + place.file("net.prototxt") +
                             "\" base_lr: 0.05 lr_policy: \"fixed\" display: 10 random_seed: 3 "
                             "snapshot_prefix: \"" +
                             folder + "/net\" max_iter: " + last);
    Process process = place.start({"speedo", command, "-solver", solver}, {temporary});
    REQUIRE(process.says("Iteration 10 ("));
    // It may be putting a file there just now.
    for (std::error_code failed; fs::exists(folder);) fs::remove_all(folder, failed);
    REQUIRE(process.says("trying again in 30 s"));
    CHECK(process.running());
    fs::create_directory(folder);
    process.signal(SIGTERM);  // tries once more
    const Outcome outcome = Context::finish(process);
    INFO(outcome.errors);
    CHECK(outcome.exit_code == 0);
    CHECK(fs::exists(folder + "/net_iter_" + last + ".caffemodel"));
    fs::remove_all(folder);
  }
}

}  // namespace
}  // namespace speedo::test
