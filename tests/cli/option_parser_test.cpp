#include "cli/options/option_parser.hpp"

#include "cli/flags/cluster_flags.hpp"
#include "support/catch.hpp"

namespace speedo {
namespace {

Result<ClusterFlags> read_line(std::vector<std::string> words) {
  words.insert(words.begin(), {"--solver", "S"});
  OptionValues values(Program::kMaster);
  SPEEDO_TRY(read_flags(words, values));
  return cluster_flags(values);
}

std::string line_refusal(const std::vector<std::string>& words) {
  const auto flags = read_line(words);
  REQUIRE_FALSE(flags);
  CHECK(flags.error().code == ErrorCode::kUsage);
  return flags.error().message;
}

TEST_CASE("An empty value is the value: the next flag stays one") {
  for (const std::vector<std::string>& empty : std::vector<std::vector<std::string>>{
           {"--stage", ""}, {"-stage", ""}, {"--stage="}, {"-stage="}, {"-STAGE", ""}}) {
    INFO(empty.front());
    std::vector<std::string> words = empty;
    words.insert(words.end(), {"--max-iter", "2", "--json"});
    const auto before = read_line(words);
    REQUIRE(before);
    CHECK(before->state.stage.empty());
    CHECK(before->schedule.max_iter == 2);
    CHECK(before->json);
    words = {"-max_iter=2"};
    words.insert(words.end(), empty.begin(), empty.end());
    const auto at_the_end = read_line(words);
    REQUIRE(at_the_end);
    CHECK(at_the_end->state.stage.empty());
    CHECK(at_the_end->schedule.max_iter == 2);
  }
}

TEST_CASE("A flag that takes no empty value says so itself") {
  CHECK(line_refusal({"--max-iter", "", "--json"}).find("--max-iter: takes a whole number") == 0);
  CHECK(
      line_refusal({"-cpu-isa="}).find("--cpu-isa: takes one of portable, avx2, avx512, not ''") ==
      0);
  CHECK(line_refusal({"--codec="}) == "--codec: takes a NAME, not ''");
  CHECK(line_refusal({"--json="}) == "--json takes no value: write it without '='");
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"--solver", ""}, {"-solver="}}) {
    OptionValues values(Program::kMaster);
    const auto read = read_flags(words, values);
    REQUIRE_FALSE(read);
    CHECK(read.error().message == "flag --solver needs a value that is not empty");
  }
}

TEST_CASE("A level may be below 0, as the rules of layers may ask for") {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"--level", "-3"}, {"-level=-3"}}) {
    const auto flags = read_line(words);
    REQUIRE(flags);
    CHECK(flags->state.level == -3);
  }
  CHECK(line_refusal({"--level", "low"}).find("--level: takes a whole number") == 0);
}

TEST_CASE("No flag of a cluster takes the next one for its value") {
  int tried = 0;
  for (const Option* option : options_of(Program::kMaster)) {
    if (option->type.kind == ValueKind::kSwitch || option->type.kind == ValueKind::kOptionalText) {
      continue;
    }
    const std::string name(option->name);
    if (name == "solver" || name == "max-iter") continue;
    INFO(name);
    ++tried;
    for (const char* dashes : {"--", "-"}) {
      const auto flags = read_line({dashes + name, "", "--max-iter", "2", "--json"});
      if (!flags) {
        CHECK(flags.error().message.find("--" + name) == 0);
        continue;
      }
      CHECK(flags->json);
      CHECK(flags->schedule.max_iter == 2);
    }
  }
  CHECK(tried > 40);
}

}  // namespace
}  // namespace speedo
