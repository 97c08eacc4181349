// Features extracted by several processes are those of one, also when one of them is killed.

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "main/command_support.hpp"

namespace speedo::test {
namespace {

namespace fs = std::filesystem;

// A net that reads MNIST-sized noise in batches that differ, and its weights.
struct Extraction {
  Extraction() {
    net = place.write("net.prototxt", R"(name: "noise"
      layer { name: "data" type: "HDF5Data" top: "data" top: "label"
              hdf5_data_param { source: ")" +
                                          place.file("train.txt") +
                                          R"(" batch_size: 7 } }
      layer { name: "ip1" type: "InnerProduct" bottom: "data" top: "ip1"
              inner_product_param { num_output: 33 weight_filler { type: "xavier" } } }
      layer { name: "tanh" type: "TanH" bottom: "ip1" top: "tanh" }
      layer { name: "ip2" type: "InnerProduct" bottom: "tanh" top: "ip2"
              inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
      layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" })");
    const std::string solver =
        place.write("solver.prototxt", "net: \"" + net +
                                           "\" base_lr: 0.1 lr_policy: \"fixed\" max_iter: 1 "
                                           "random_seed: 5 snapshot_prefix: \"" +
                                           place.file("snap") + "\"");
    const fs::path data = fs::path(SPEEDO_SOURCE_DIR) / "tests/golden/data/cli";
    for (const char* name : {"train.txt", "train.h5"}) fs::copy(data / name, place.folder());
    const Outcome trained = place.run({"speedo", "train", "-solver", solver});
    INFO(trained.errors);
    REQUIRE(trained.exit_code == 0);
  }
  std::vector<std::string> line(const std::string& name, const std::string& backend, int batches,
                                std::vector<std::string> flags = {}) const {
    std::vector<std::string> words = {"speedo",
                                      "extract_features",
                                      place.file("snap_iter_1.caffemodel"),
                                      net,
                                      "tanh,ip2",
                                      place.file(name + "_tanh") + "," + place.file(name + "_ip2"),
                                      std::to_string(batches),
                                      backend};
    words.insert(words.end(), flags.begin(), flags.end());
    return words;
  }
  std::string database(const std::string& name, const std::string& backend) const {
    return backend == "lmdb" ? place.read(name + "/data.mdb") : place.read(name);
  }
  void check_same(const std::string& name, const std::string& backend) const {
    for (const char* blob : {"_tanh", "_ip2"}) {
      const std::string bytes = database(name + blob, backend);
      CHECK(bytes.size() > 1000);
      CHECK((bytes == database("one" + std::string(blob), backend)));
    }
  }

  Context place;
  std::string net;
};

// A process of this parent's that does a part; 0 if there is none now.
pid_t part_worker_of(pid_t parent) {
  std::ifstream children("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) +
                         "/children");
  for (pid_t child = 0; children >> child;) {
    std::ifstream stream("/proc/" + std::to_string(child) + "/cmdline", std::ios::binary);
    const std::string words{std::istreambuf_iterator<char>(stream), {}};
    if (words.find("--part=") != std::string::npos) return child;
  }
  return 0;
}

TEST_CASE("extract_features over workers writes the bytes of one process") {
  Extraction extraction;
  const char* backend = GENERATE("lmdb", "datumfile");
  REQUIRE(extraction.place.run(extraction.line("one", backend, 23)).exit_code == 0);
  const Outcome spread =
      extraction.place.run(extraction.line("three", backend, 23, {"--workers", "3"}));
  INFO(spread.errors);
  REQUIRE(spread.exit_code == 0);
  extraction.check_same("three", backend);
}

TEST_CASE("extract_features goes on when one of three workers is killed") {
  Extraction extraction;
  Context& place = extraction.place;
  constexpr int kBatches = 3000;
  REQUIRE(place.run(extraction.line("one", "lmdb", kBatches)).exit_code == 0);
  Process run = place.start(extraction.line("killed", "lmdb", kBatches, {"--workers", "3"}));
  bool killed = false;
  while (!killed && run.running()) {
    const pid_t worker = part_worker_of(run.id());
    killed = worker != 0 && ::kill(worker, SIGKILL) == 0;
    if (!killed) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const Outcome spread = Context::finish(run);
  INFO(spread.errors);
  REQUIRE(spread.exit_code == 0);
  REQUIRE(killed);
  CHECK(spread.errors.find("ended with SIGKILL") != std::string::npos);
  CHECK(spread.errors.find("are given out again") != std::string::npos);
  extraction.check_same("killed", "lmdb");
}

TEST_CASE("extract_features over workers refuses a net that carries values from batch to batch") {
  Context place;
  const std::string net = place.write("lstm.prototxt", R"(
    layer { name: "data" type: "DummyData" top: "data" top: "cont"
            dummy_data_param { shape { dim: 2 dim: 3 dim: 4 } shape { dim: 2 dim: 3 }
                               data_filler { type: "gaussian" } data_filler { value: 1 } } }
    layer { name: "memory" type: "LSTM" bottom: "data" bottom: "cont" top: "memory"
            recurrent_param { num_output: 2 weight_filler { type: "xavier" } } }
    layer { name: "half" type: "Power" bottom: "memory" top: "half" power_param { scale: 0.5 } })");
  const std::string solver =
      place.write("solver.prototxt", "net: \"" + net +
                                         "\" base_lr: 0.1 lr_policy: \"fixed\" max_iter: 1 "
                                         "snapshot_prefix: \"" +
                                         place.file("snap") + "\"");
  REQUIRE(place.run({"speedo", "train", "-solver", solver}).exit_code == 0);
  const std::vector<std::string> line = {"speedo", "extract_features",
                                         place.file("snap_iter_1.caffemodel"), net, "half",
                                         place.file("half"), "8", "datumfile"};
  std::vector<std::string> spread = line;
  spread.insert(spread.end(), {"--workers", "2"});
  const Outcome refused = place.run(spread);
  CHECK(refused.exit_code == 64);
  CHECK(refused.error_line().find("layer 'memory' carries values") != std::string::npos);
  CHECK_FALSE(fs::exists(place.file("half")));
  CHECK(place.run(line).exit_code == 0);
}

TEST_CASE("extract_features over workers tells what a worker found, and leaves nothing behind") {
  Extraction extraction;
  Context& place = extraction.place;
  auto wrong = extraction.line("wrong", "lmdb", 6, {"--workers=2"});
  wrong[4] = "tanh,nothing";
  const Outcome refused = place.run(wrong);
  CHECK(refused.exit_code == 64);
  CHECK(refused.error_line().find("no blob 'nothing'") != std::string::npos);
  CHECK_FALSE(fs::exists(place.file("wrong_tanh")));
  CHECK(place.run(extraction.line("x", "lmdb", 6, {"--part", "5:2"})).exit_code == 2);
  CHECK(place.run(extraction.line("x", "lmdb", 6, {"--workers", "0"})).exit_code == 2);
  CHECK(place.run(extraction.line("x", "lmdb", 6, {"--workers=2", "--hosts", "h"})).exit_code == 2);
}

}  // namespace
}  // namespace speedo::test
