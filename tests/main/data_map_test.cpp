// Workers of a cluster that each train on data of their own.

#include <filesystem>

#include "main/command_support.hpp"

namespace speedo::test {
namespace {

namespace fs = std::filesystem;

// Forty records of two classes, as a whole and in two parts, and a net that reads the whole.
struct PartedData {
  PartedData() {
    std::string table;
    for (int i = 0; i < 40; ++i) {
      table += std::to_string(i % 2 * 200) + "," + std::to_string(i) + "," + std::to_string(i % 2) +
               "\n";
    }
    place.write("all.csv", table);
    convert({"csv", place.file("all.csv"), place.file("all.datumfile")});
    convert({"db", place.file("all.datumfile"), place.file("part.datumfile"), "--parts", "3,1"});
    const std::string layer = R"(layer { name: "data" type: "Data" top: "data" top: "label"
        transform_param { scale: 0.005 }
        data_param { source: ")" +
                              place.file("all.datumfile") +
                              R"(" backend: DATUMFILE batch_size: 5 } }
      layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
              inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
      layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy"
              include { phase: TEST } }
      layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" })";
    place.write("net.prototxt", layer);
    place.write("solver.prototxt", "net: \"" + place.file("net.prototxt") +
                                       "\" base_lr: 0.5 lr_policy: \"fixed\" max_iter: 60 "
                                       "random_seed: 1 test_iter: 8 test_interval: 60 "
                                       "snapshot_prefix: \"" +
                                       place.file("snap") + "\"");
  }
  void convert(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"speedo", "convert"});
    arguments.insert(arguments.end(), {"--backend", "datumfile"});
    const Outcome made = place.run(arguments);
    INFO(made.errors);
    REQUIRE(made.exit_code == 0);
  }
  Outcome run(std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"speedo", "run", "-solver", place.file("solver.prototxt"),
                                 "--workers", "2", "--sync"});
    return place.run(flags);
  }

  Context place;
};

TEST_CASE("Workers train on the parts that a data map gives them") {
  PartedData data;
  const Context& place = data.place;
  const std::string map =
      place.write("map.txt", "worker0 " + place.file("part_0.datumfile") + "\nworker1 " +
                                 place.file("part_1.datumfile") + "\n");
  const std::vector<std::string> flags = {
      "--data-map", map, "--shard", "offset", "--log-dir", place.file("")};
  const Outcome trained = data.run(flags);
  INFO(trained.errors);
  REQUIRE(trained.exit_code == 0);
  CHECK(trained.output.starts_with("accuracy 1.0"));
  for (const std::string number : {"0", "1"}) {
    CHECK(place.read("worker" + number + ".log")
              .find("Training data: " + place.file("part_" + number + ".datumfile")) !=
          std::string::npos);
  }

  // A worker reads its part alone: one that is broken is its own, and is named. Training, which
  // waits for all, ends.
  place.write("part_1.datumfile", "no datums");
  const Outcome refused = data.run(flags);
  CHECK(refused.exit_code == 65);
  CHECK(refused.error_line().find("waits for 2 workers") != std::string::npos);
  CHECK(refused.error_line().find("part_1.datumfile'") != std::string::npos);
  CHECK(place.read("worker1.log").find("part_1.datumfile'") != std::string::npos);
  CHECK(place.read("worker0.log").find("part_0.datumfile'") == std::string::npos);
}

TEST_CASE("A data map that does not fit the job is refused") {
  PartedData data;
  const std::string map = data.place.write("map.txt", "worker0 here\n");
  const Outcome dealt = data.run({"--data-map", map});
  CHECK(dealt.exit_code == 2);
  CHECK(dealt.error_line().find("--shard offset") != std::string::npos);
  const Outcome incomplete = data.run({"--data-map", map, "--shard", "offset"});
  CHECK(incomplete.exit_code != 0);
  CHECK(incomplete.error_line().find("no source for 'worker1'") != std::string::npos);
  const std::string whole = data.place.file("all.datumfile");
  const std::string slip =
      data.place.write("slip.txt", "worker0 " + whole + "\nwroker1 " + whole + "\n* " + whole);
  const Outcome trained =
      data.run({"--data-map", slip, "--shard", "offset", "--max-iter", "2", "--test-interval=0"});
  INFO(trained.errors);
  CHECK(trained.exit_code == 0);
  CHECK(trained.errors.find("no worker is called 'wroker1'") != std::string::npos);
}

}  // namespace
}  // namespace speedo::test
