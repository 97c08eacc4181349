// Trainings whose images are decoded in speedo-parser.

#include <csignal>
#include <filesystem>
#include <set>
#include <thread>

#include "main/command_support.hpp"
#include "support/child_processes.hpp"

namespace speedo::test {
namespace {

constexpr const char* kParser = "speedo-parser";
constexpr int kDisplay = 200;

// A database of PNG files, and a training on it.
struct EncodedJob {
  EncodedJob() {
    std::string list;
    for (int i = 0; i < 40; ++i) {
      const std::string name = std::to_string(i) + ".pgm";
      std::string pixels(24 * 24, '\0');
      for (std::size_t at = 0; at < pixels.size(); ++at) {
        pixels[at] = static_cast<char>(at * static_cast<std::size_t>(i + 1) % 251);
      }
      place.write(name, "P5 24 24 255\n" + pixels);
      list += name + " " + std::to_string(i % 4) + "\n";
    }
    place.write("list.txt", list);
    const Outcome made =
        place.run({"speedo", "convert_imageset", "--gray", "--encode-type=png",
                   place.folder().string() + "/", place.file("list.txt"), place.file("db")});
    INFO(made.errors);
    REQUIRE(made.exit_code == 0);
    place.write("net.prototxt", R"(layer { name: "data" type: "Data" top: "data" top: "label"
        data_param { source: ")" + place.file("db") +
                                    R"(" batch_size: 8 }
        transform_param { crop_size: 20 mirror: true } }
      layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
              inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
      layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" })");
  }
  // One of the files, not the first, which is no longer one.
  void damage_one() {
    const std::string file = "db/data.mdb", magic = "\x89PNG";
    std::string bytes = place.read(file);
    std::size_t at = std::string::npos;
    for (int i = 0; i < 7; ++i) {
      at = bytes.find(magic, at + 1);
      REQUIRE(at != std::string::npos);
    }
    constexpr std::size_t kWidthOffset = 16;
    place.write(file, bytes.replace(at + kWidthOffset, 4, 4, '\0'));
  }
  // Whose weights lie behind it in NAME.caffemodel.
  std::vector<std::string> train(const std::string& name, int iterations,
                                 const std::vector<std::string>& flags) const {
    place.write(name + ".prototxt",
                "net: \"" + place.file("net.prototxt") +
                    "\" base_lr: 1e-6 lr_policy: \"fixed\" random_seed: 1 display: " +
                    std::to_string(kDisplay) + " max_iter: " + std::to_string(iterations) +
                    " snapshot_prefix: \"" + place.file(name) + "\"");
    std::vector<std::string> command = {"speedo", "train", "--solver",
                                        place.file(name + ".prototxt"), "--json"};
    command.insert(command.end(), flags.begin(), flags.end());
    return command;
  }
  std::string weights(const std::string& name, int iterations) const {
    return place.read(name + "_iter_" + std::to_string(iterations) + ".caffemodel");
  }
  mutable Context place;
};

TEST_CASE("A training goes on while its parsers are killed, to the same weights") {
  EncodedJob job;
  constexpr int kIterations = 5000;
  const Outcome plain = job.place.run(job.train("here", kIterations, {"--parser-process=off"}));
  REQUIRE(plain.exit_code == 0);
  CHECK(plain.json()["parser_deaths"] == 0);
  Process process =
      job.place.start(job.train("there", kIterations, {"--parser-process=on", "--threads=1"}));
  std::set<pid_t> struck;
  // Not the same record twice: each time the training goes on first.
  for (int i = 1; i <= 5; ++i) {
    REQUIRE(process.says("Iteration " + std::to_string(i * kDisplay)));
    for (const pid_t child : children_of(process.id(), kParser)) {
      if (::kill(child, SIGKILL) == 0) struck.insert(child);
    }
  }
  const Outcome killed = Context::finish(process);
  INFO(killed.errors);
  REQUIRE(killed.exit_code == 0);
  CHECK(struck.size() == 5);
  CHECK(killed.json()["parser_deaths"] == struck.size());
  CHECK(killed.errors.find("A parser process ended (SIGKILL)") != std::string::npos);
  CHECK(job.weights("there", kIterations) == job.weights("here", kIterations));
  CHECK_FALSE(job.weights("here", kIterations).empty());
}

TEST_CASE("Parsers end with their program, also when that is killed") {
  EncodedJob job;
  Process process = job.place.start(job.train("long", 100000000, {"--parser-process=on"}));
  std::vector<pid_t> parsers;
  while (parsers.empty() && process.running()) parsers = children_of(process.id(), kParser);
  REQUIRE_FALSE(parsers.empty());
  process.signal(SIGKILL);
  CHECK(process.wait() == 128 + SIGKILL);
  const auto alive = [](pid_t id) {
    return std::filesystem::exists("/proc/" + std::to_string(id));
  };
  for (const pid_t parser : parsers) {
    for (int i = 0; i < 1000 && alive(parser); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    CHECK_FALSE(alive(parser));
  }
}

TEST_CASE("The workers of a cluster tell of their parsers' ends and of the records they left out") {
  EncodedJob job;
  job.damage_one();
  constexpr int kIterations = 1000, kWorkers = 2;
  std::vector<std::string> command = job.train(
      "cluster", kIterations, {"--parser-process=on", "--threads=2", "--on-bad-record=skip"});
  command[1] = "run";
  command.insert(command.end(), {"--workers", std::to_string(kWorkers), "--sync"});
  Process process = job.place.start(command);
  REQUIRE(process.says("Iteration " + std::to_string(kDisplay)));
  std::size_t struck = 0;
  for (const pid_t worker : children_of(process.id(), "speedo-worker")) {
    for (const pid_t parser : children_of(worker, kParser)) {
      if (::kill(parser, SIGKILL) == 0) ++struck;
    }
  }
  const Outcome cluster = Context::finish(process);
  INFO(cluster.errors);
  REQUIRE(cluster.exit_code == 0);
  CHECK(cluster.json()["iterations"] == kIterations);
  CHECK(struck > 0);
  CHECK(cluster.json()["parser_deaths"] == struck);
  CHECK(cluster.json()["skipped_records"] == kWorkers);
}

TEST_CASE("A limit of a parser's memory that is too low is refused") {
  EncodedJob job;
  CHECK(job.place.run(job.train("low", 1, {"--parser-memory=63"})).exit_code == 2);
}

}  // namespace
}  // namespace speedo::test
