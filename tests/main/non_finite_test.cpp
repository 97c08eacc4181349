// A worker whose data make losses that are not finite, beside one whose data are sound.

#include "main/command_support.hpp"

namespace speedo::test {
namespace {

// worker0's records are small; the squares of worker1's overflow.
struct SpoiltData {
  SpoiltData() {
    convert("good", "200");
    convert("bad", "3e38");
    place.write("map.txt", "worker0 " + place.file("good.datumfile") + "\nworker1 " +
                               place.file("bad.datumfile") + "\n");
    place.write("net.prototxt", R"(layer { name: "data" type: "Data" top: "data" top: "label"
        transform_param { scale: 0.005 }
        data_param { source: ")" +
                                    place.file("good.datumfile") +
                                    R"(" backend: DATUMFILE batch_size: 5 } }
      layer { name: "square" type: "Power" bottom: "data" top: "squared" power_param { power: 2 } }
      layer { name: "ip" type: "InnerProduct" bottom: "squared" top: "ip"
              inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
      layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" })");
    place.write("solver.prototxt", "net: \"" + place.file("net.prototxt") +
                                       "\" base_lr: 0.1 lr_policy: \"fixed\" max_iter: 12 "
                                       "random_seed: 1 snapshot_prefix: \"" +
                                       place.file("snap") + "\"");
  }
  void convert(const std::string& name, const std::string& high) {
    std::string table;
    for (int i = 0; i < 20; ++i) {
      table += (i % 2 == 0 ? "0" : high) + "," + std::to_string(i % 2) + "\n";
    }
    const Outcome made = place.run({"speedo", "convert", "csv", place.write(name + ".csv", table),
                                    place.file(name + ".datumfile"), "--floats", "--backend",
                                    "datumfile"});
    INFO(made.errors);
    REQUIRE(made.exit_code == 0);
  }
  Outcome run(std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"speedo", "run", "-solver", place.file("solver.prototxt"),
                                 "--workers", "2", "--sync", "--shard", "offset", "--data-map",
                                 place.file("map.txt"), "--threads", "2"});
    return place.run(flags);
  }
  Context place;
};

bool says(const Outcome& outcome, const std::string& text) {
  return outcome.errors.find(text) != std::string::npos;
}

constexpr const char* kFirst = "first not finite is blob 'squared' of layer 'square'";

TEST_CASE("Losses that are not finite are left out, counted, and traced to their layer") {
  SpoiltData data;
  const Outcome trained = data.run({"--json"});
  INFO(trained.errors);
  REQUIRE(trained.exit_code == 0);
  CHECK(trained.json()["rejected"].get<int>() > 0);
  CHECK(says(trained, kFirst));
  CHECK(says(trained, "worker worker1/"));
  CHECK(std::filesystem::exists(data.place.file("snap_iter_12.caffemodel")));
}

TEST_CASE("A test whose loss is not finite warns of it") {
  SpoiltData data;
  REQUIRE(data.run({}).exit_code == 0);
  const auto test = [&](const std::string& source) {
    std::string net = data.place.read("net.prototxt");
    const std::string good = data.place.file("good.datumfile");
    net.replace(net.find(good), good.size(), data.place.file(source));
    return data.place.run({"speedo", "test", "-model", data.place.write("test.prototxt", net),
                           "-weights", data.place.file("snap_iter_12.caffemodel"), "-iterations",
                           "2"});
  };
  const std::string warning = "A loss is not finite";
  CHECK_FALSE(says(test("good.datumfile"), warning));
  const Outcome bad = test("bad.datumfile");
  INFO(bad.errors);
  CHECK(says(bad, warning));
  CHECK(bad.exit_code == 0);
}

TEST_CASE("With --on-nan abort the first one ends training") {
  SpoiltData data;
  const Outcome ended = data.run({"--on-nan", "abort"});
  INFO(ended.errors);
  CHECK(ended.exit_code == 64);
  CHECK(says(ended, kFirst));
  CHECK(says(ended, "--on-nan says abort"));

  const std::string net = data.place.read("net.prototxt");
  std::string spoilt = net;
  spoilt.replace(spoilt.find("good.datumfile"), 4, "bad");
  data.place.write("net.prototxt", spoilt);
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"--on-nan", "abort"}, {"--nan-max", "1"}}) {
    std::vector<std::string> command = {"speedo", "train", "-solver",
                                        data.place.file("solver.prototxt")};
    command.insert(command.end(), flags.begin(), flags.end());
    const Outcome alone = data.place.run(command);
    CHECK(alone.exit_code == 64);
    CHECK(alone.error_line().find(kFirst) != std::string::npos);
    CHECK(alone.error_line().find("iteration 0") != std::string::npos);
  }
}

}  // namespace
}  // namespace speedo::test
