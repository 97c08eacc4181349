#include "core/prototxt.hpp"

#include <fstream>
#include <string>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

std::string net_text_error(const std::string& text) {
  const auto net = parse_net_prototxt(text, "net.prototxt");
  REQUIRE_FALSE(net.has_value());
  CHECK(net.error().code == ErrorCode::kConfig);
  CHECK(net.error().message.find('\n') == std::string::npos);
  return net.error().message;
}

TEST_CASE("errors name file, line and column", "[prototxt]") {
  using Catch::StartsWith;
  CHECK_THAT(net_text_error("name: \"a\"\nlayer {\n  nane: \"x\"\n}\n"),
             StartsWith("net.prototxt:3:7: "));
  CHECK_THAT(net_text_error("name: 3\n"), StartsWith("net.prototxt:1:7: "));
  CHECK_THAT(net_text_error("layer {\n  include { phase: TRIAN }\n}\n"),
             StartsWith("net.prototxt:2:"));
  CHECK_THAT(net_text_error("layer {\n  name: \"x\"\n"), StartsWith("net.prototxt:3:1: "));
  CHECK_THAT(net_text_error("name: \"a\" name: \"b\""), StartsWith("net.prototxt:1:"));
  CHECK_THAT(net_text_error(""), StartsWith("net.prototxt: is empty"));
  CHECK_THAT(net_text_error("layer { clip_param { min: 1 } }"), StartsWith("net.prototxt"));
}

TEST_CASE("deep nesting is refused, not followed", "[prototxt]") {
  std::string deep;
  for (int i = 0; i < 100000; ++i) {
    deep += "net_param { layer { ";
  }
  CHECK_FALSE(parse_solver_prototxt(deep, "solver").has_value());
}

TEST_CASE("bytes that are no text are refused", "[prototxt]") {
  CHECK_FALSE(parse_net_prototxt(std::string("\0\x01\xff\n\n", 5), "net").has_value());
}

TEST_CASE("missing files, folders and empty files are named", "[prototxt]") {
  const TempDir folder;
  const auto missing = read_net_prototxt(folder / "none.prototxt");
  REQUIRE_FALSE(missing.has_value());
  CHECK(missing.error().code == ErrorCode::kConfig);
  CHECK(missing.error().message.find("none.prototxt") != std::string::npos);
  CHECK_FALSE(read_net_prototxt(folder.path()).has_value());
  std::ofstream(folder / "empty.prototxt").close();
  const auto empty = read_solver_prototxt(folder / "empty.prototxt");
  REQUIRE_FALSE(empty.has_value());
  CHECK(empty.error().message.find("empty.prototxt") != std::string::npos);
}

TEST_CASE("the snapshot prefix defaults to the solver's name", "[prototxt]") {
  const TempDir folder;
  const auto path = folder / "my_solver.prototxt";
  std::ofstream(path) << "base_lr: 0.1\n";
  const auto solver = read_solver_prototxt(path);
  REQUIRE(solver.has_value());
  CHECK(solver->snapshot_prefix() == (folder / "my_solver").string());
  std::ofstream(path) << "snapshot_prefix: \"" << folder.path().string() << "\"\n";
  const auto within = read_solver_prototxt(path);
  REQUIRE(within.has_value());
  CHECK(within->snapshot_prefix() == (folder / "my_solver").string());
}

TEST_CASE("printed text reads back as the same message", "[prototxt]") {
  const auto net = parse_net_prototxt(
      "name: \"n\" layer { name: \"a\\n\\\"\" type: \"ReLU\" relu_param { negative_slope: 0.1 } }",
      "n");
  REQUIRE(net.has_value());
  const auto again = parse_net_prototxt(to_prototxt(*net), "again");
  REQUIRE(again.has_value());
  CHECK(again->SerializeAsString() == net->SerializeAsString());
}

}  // namespace
}  // namespace speedo
