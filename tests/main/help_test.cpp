#include <sstream>

#include "main/command_support.hpp"

namespace speedo::test {
namespace {

std::size_t longest_line(const std::string& text) {
  std::size_t longest = 0, length = 0;
  for (const char c : text) {
    length = c == '\n' ? 0 : length + 1;
    longest = std::max(longest, length);
  }
  return longest;
}

TEST_CASE("Each program and command explains itself: groups of flags, an example, on 100 columns") {
  Context place;
  const std::vector<std::vector<std::string>> commands = {
      {"speedo", "run"},  {"speedo", "train"}, {"speedo", "test"},
      {"speedo", "time"}, {"speedo", "net"},   {"speedo", "convert"},
      {"speedo", "mean"}, {"speedo-master"},   {"speedo-worker"}};
  for (std::vector<std::string> command : commands) {
    INFO(command.back());
    for (const char* flag : {"--help", "-h", "-help"}) {
      std::vector<std::string> with_flag = command;
      with_flag.emplace_back(flag);
      const Outcome help = place.run(with_flag);
      CHECK(help.exit_code == 0);
      CHECK(help.errors.empty());
      CHECK(help.output.find("Example") != std::string::npos);
      CHECK(longest_line(help.output) <= 100);
      CHECK(help.output.find('{') == std::string::npos);
    }
    command.emplace_back("--version");
    CHECK(place.run(command).output.find("speedo 0.1.0") == 0);
  }
}

TEST_CASE("The flags that users know are in the help") {
  Context place;
  const std::string master = place.run({"speedo-master", "--help"}).output;
  for (const char* flag : {"--solver",
                           "--worker",
                           "--redis",
                           "--host",
                           "--bind",
                           "--port",
                           "--max-iter",
                           "--start-iter",
                           "--test",
                           "--resume",
                           "--snapshot",
                           "--weights",
                           "--sync",
                           "--strategy",
                           "--gradient-only",
                           "--factor",
                           "--train",
                           "--lr",
                           "--momentum",
                           "--weight-decay",
                           "--batch",
                           "--key-name",
                           "--timeout",
                           "--skip",
                           "--debug",
                           "--sleep-after-finish",
                           "--worker-timeout",
                           "--json",
                           "--shard",
                           "--seed",
                           "--insecure",
                           "--cpu-db-actor",
                           "--device",
                           "--max-advance",
                           "--staleness",
                           "--weedout",
                           "--moving-rate",
                           "--hybrid",
                           "--hybrid-file",
                           "--groups",
                           "--publish-interval",
                           "--keep-snapshots",
                           "--keep-best",
                           "--deterministic",
                           "--take-over",
                           "--stall-timeout",
                           "--job",
                           "--force"}) {
    INFO(flag);
    CHECK(master.find(flag) != std::string::npos);
  }
  for (const char* name : {"partial-sync", "ssp", "weedout", "grouping", "easgd", "averaging"}) {
    INFO(name);
    CHECK(master.find(name) != std::string::npos);
  }
  const std::string run = place.run({"speedo", "run", "--help"}).output;
  CHECK(run.find("--max-restarts") != std::string::npos);
  CHECK(run.find("--redis") == std::string::npos);
  for (const char* flag : {"--threads", "--cpu-isa", "--precision", "--pin", "--force"}) {
    INFO(flag);
    CHECK(run.find(flag) != std::string::npos);
  }
  for (const char* command : {"train", "test", "time", "net"}) {
    INFO(command);
    const std::string help = place.run({"speedo", command, "--help"}).output;
    CHECK(help.find("--threads") != std::string::npos);
    CHECK(help.find("--cpu-isa") != std::string::npos);
    CHECK(help.find("--precision") != std::string::npos);
  }
  CHECK(place.run({"speedo-worker", "--help"}).output.find("--threads") != std::string::npos);
  const std::string train = place.run({"speedo", "train", "--help"}).output;
  for (const char* flag : {"--solver", "--snapshot", "--weights", "--level", "--stage",
                           "--sigint-effect", "--sighup-effect"}) {
    INFO(flag);
    CHECK(train.find(flag) != std::string::npos);
  }
}

TEST_CASE("speedo alone lists its commands; an unknown one is refused with the nearest") {
  Context place;
  const Outcome help = place.run({"speedo", "--help"});
  CHECK(help.exit_code == 0);
  for (const char* name : {"run", "train", "test", "time", "net", "convert", "mean"}) {
    CHECK(help.output.find("\n  " + std::string(name) + " ") != std::string::npos);
  }
  CHECK(place.run({"speedo"}).exit_code == 2);
  const Outcome unknown = place.run({"speedo", "trian"});
  CHECK(unknown.exit_code == 2);
  CHECK(unknown.error_line() ==
        "speedo: unknown command 'trian', did you mean train? (speedo --help lists all commands)");
}

TEST_CASE("The help tells defaults, and what a closed terminal does") {
  Context place;
  const auto help_of = [&](std::vector<std::string> command) {
    command.emplace_back("--help");
    std::istringstream words(place.run(command).output);
    std::string text;
    for (std::string word; words >> word;) text += word + " ";
    return text;
  };
  const auto tells = [](const std::string& help, const std::string& what) {
    INFO(what);
    CHECK(help.find(what) != std::string::npos);
  };
  const std::string master = help_of({"speedo-master"});
  const std::string run = help_of({"speedo", "run"});
  const std::string train = help_of({"speedo", "train"});
  const std::string worker = help_of({"speedo-worker"});
  for (const std::string& help : {master, run, train, worker}) tells(help, "SIGHUP");
  for (const std::string& help : {master, run}) {
    tells(help, "write a snapshot and go on");
    tells(help, "(default: 0, or the snapshot's)");
  }
  for (const std::string& help : {run, train}) {
    tells(help, "--lr X base_lr (default: the solver's)");
    tells(help, "random_seed (default: the solver's, else one that is drawn and logged)");
  }
  tells(run, "each worker may keep its own (keep)");
  tells(help_of({"speedo", "convert"}), "Take so many records (default: all)");
  tells(help_of({"speedo", "net"}), "TRAIN or TEST (default: TRAIN)");
  tells(help_of({"speedo", "time"}), "(default 50)");
}

}  // namespace
}  // namespace speedo::test
