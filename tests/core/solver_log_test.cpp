#include "core/solver/solver_log.hpp"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "core/solver_support.hpp"
#include "support/catch.hpp"
#include "support/log_capture.hpp"

namespace speedo {
namespace {

std::vector<TestScores::Score> output(const std::string& name, int count) {
  return std::vector<TestScores::Score>(static_cast<std::size_t>(count), {name, 1.0F, 0.0F});
}

// What is shown, as "name index" or "name -count".
std::vector<std::string> shown(const std::vector<TestScores::Score>& scores) {
  std::vector<std::string> lines;
  for_each_shown(scores, {[&](int index, const TestScores::Score& score) {
                            lines.push_back(fmt::format("{} {}", score.name, index));
                          },
                          [&](const std::string& name, int count) {
                            lines.push_back(fmt::format("{} -{}", name, count));
                          }});
  return lines;
}

TEST_CASE("an output with many elements shows the first, and how many follow", "[solver]") {
  std::vector<TestScores::Score> scores = output("accuracy", 1);
  for (const auto& score : output("prob", 640)) scores.push_back(score);
  for (const auto& score : output("loss", 1)) scores.push_back(score);
  const std::vector<std::string> lines = shown(scores);
  REQUIRE(lines.size() == static_cast<std::size_t>(kLinesPerOutputMax) + 3);
  CHECK(lines.front() == "accuracy 0");
  CHECK(lines[1] == "prob 1");
  CHECK(lines[static_cast<std::size_t>(kLinesPerOutputMax)] ==
        fmt::format("prob {}", kLinesPerOutputMax));
  CHECK(lines[static_cast<std::size_t>(kLinesPerOutputMax) + 1] ==
        fmt::format("prob -{}", 640 - kLinesPerOutputMax));
  CHECK(lines.back() == "loss 641");
}

TEST_CASE("an output with just as many elements as are shown is shown whole", "[solver]") {
  CHECK(shown({}).empty());
  CHECK(shown(output("a", kLinesPerOutputMax)).back() ==
        fmt::format("a {}", kLinesPerOutputMax - 1));
  CHECK(shown(output("a", kLinesPerOutputMax + 1)).back() == "a -1");
}

TEST_CASE("Caffe's parsers can read what is no finite number", "[solver]") {
  const float negative = std::copysign(std::numeric_limits<float>::quiet_NaN(), -1.0F);
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(number_text(negative) == "nan");
  CHECK(number_text(-2.5F) == "-2.5");
  CHECK(number_text(infinity) == "inf");
  CHECK(number_text(-infinity) == "-1e999");
  CHECK(std::strtod("-1e999", nullptr) == -std::numeric_limits<double>::infinity());
}

TEST_CASE("queries of URIs are in no line of a solver", "[solver]") {
  test::World world;
  const test::LogCapture log;
  caffe::SolverParameter message =
      test::small_solver("weights: 'http://h/a?hidden,http://h/b?hidden'");
  message.add_weights("http://h/c?hidden");
  message.mutable_net_param()->mutable_layer(0)->mutable_data_param()->set_source(
      "https://h/d?hidden");
  const auto made = Solver::create(message, world.options(), {});
  CHECK(log.has("weights: \"http://h/a,http://h/b\""));
  CHECK(log.has("weights: \"http://h/c\""));
  CHECK_FALSE(log.has("hidden"));
}

}  // namespace
}  // namespace speedo
