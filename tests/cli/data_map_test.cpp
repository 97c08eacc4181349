#include "cli/data_map.hpp"

#include <fstream>

#include "core/prototxt.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

Result<DataMap> read_map(const std::string& text) {
  const TempDir folder;
  std::ofstream(folder / "map") << text;
  return read_data_map((folder / "map").string());
}

TEST_CASE("a data map gives each worker its source, or that of all others") {
  const auto map =
      read_map("# parts\nworker0 a/part_0  # the first\n\n\"worker 1\" \"b c/#1\"\n* rest\n");
  REQUIRE(map);
  CHECK(mapped_source(*map, "worker0").value() == "a/part_0");
  CHECK(mapped_source(*map, "worker 1").value() == "b c/#1");
  CHECK(mapped_source(*map, "worker7").value() == "rest");
  const auto missing = mapped_source({{"worker0", "a"}, {"worker1", "b"}}, "worker2");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().message.find("'worker2', only for worker0, worker1") != std::string::npos);
}

TEST_CASE("a data map that is none is refused with its line") {
  const auto refused = [](const std::string& text, const std::string& words) {
    INFO(text);
    const auto map = read_map(text);
    REQUIRE_FALSE(map);
    CHECK(map.error().code == ErrorCode::kConfig);
    CHECK(map.error().message.find(words) != std::string::npos);
  };
  refused("", "names no worker");
  refused("# nothing\n", "names no worker");
  refused("a b\na c\n", ":2: 'a' has a source already");
  refused("a\n", ":1: a line has");
  refused("a b c\n", ":1: a line has");
  refused("a \"b\n", "no end");
  CHECK_FALSE(read_data_map("/no/such/map"));
}

constexpr const char* kSolver = R"(net_param {
  layer { name: "train" type: "Data" top: "data" top: "label" include { phase: TRAIN }
          data_param { source: "all" batch_size: 2 } }
  layer { name: "test" type: "Data" top: "data" top: "label" include { phase: TEST }
          data_param { source: "tests" batch_size: 2 } }
  layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" } })";

TEST_CASE("the source of the train net is replaced, if there is one") {
  auto solver = parse_solver_prototxt(kSolver, "solver");
  REQUIRE(solver);
  REQUIRE(set_train_source("part", *solver));
  REQUIRE(solver->net_param().layer_size() == 2);
  CHECK(solver->net_param().layer(0).data_param().source() == "part");
  *solver->mutable_net_param()->add_layer() = solver->net_param().layer(0);
  const auto two = set_train_source("part", *solver);
  REQUIRE_FALSE(two);
  CHECK(two.error().message.find("2 layers") != std::string::npos);
  solver->mutable_net_param()->clear_layer();
  CHECK_FALSE(set_train_source("part", *solver));
}

}  // namespace
}  // namespace speedo
