#include "cli/command_line.hpp"

#include <CLI/CLI.hpp>

#include "cli/flags/cluster_flags.hpp"
#include "cli/flags/flag_values.hpp"
#include "support/catch.hpp"

namespace speedo {
namespace {

struct Values {
  std::string solver, stage = "before", isa;
  std::int64_t max_iter = 60;
  bool json = false;
};

// Reads `words` behind --solver S.
Result<Values> read_line(std::vector<std::string> words) {
  words.insert(words.begin(), {"--solver", "S"});
  Values values;
  CLI::App app("test", "test");
  takes_file(app.add_option("--solver", values.solver, "solver"))->required();
  takes(app.add_option("--stage", values.stage, "stages"), "WORDS");
  takes_one_of(app.add_option("--cpu-isa", values.isa, "kernels"), {"avx2"});
  takes_count(app.add_option("--max-iter", values.max_iter, "iterations"), 0);
  app.add_flag("--json", values.json, "JSON");
  SPEEDO_TRY(parse_flags(app, words));
  return values;
}

std::string line_refusal(const std::vector<std::string>& words) {
  const auto values = read_line(words);
  REQUIRE_FALSE(values);
  CHECK(values.error().code == ErrorCode::kUsage);
  return values.error().message;
}

TEST_CASE("An empty value is the value: the next flag stays one") {
  for (const std::vector<std::string>& empty : std::vector<std::vector<std::string>>{
           {"--stage", ""}, {"-stage", ""}, {"--stage="}, {"-stage="}, {"-STAGE", ""}}) {
    INFO(empty.front());
    std::vector<std::string> words = empty;
    words.insert(words.end(), {"--max-iter", "2", "--json"});
    const auto before = read_line(words);
    REQUIRE(before);
    CHECK(before->stage.empty());
    CHECK(before->max_iter == 2);
    CHECK(before->json);
    words = {"-max_iter=2"};
    words.insert(words.end(), empty.begin(), empty.end());
    const auto at_the_end = read_line(words);
    REQUIRE(at_the_end);
    CHECK(at_the_end->stage.empty());
    CHECK(at_the_end->max_iter == 2);
  }
}

TEST_CASE("A flag that takes no empty value says so itself") {
  CHECK(line_refusal({"--max-iter", "", "--json"}).find("--max-iter: takes a whole number") == 0);
  CHECK(line_refusal({"-cpu-isa="}).find("--cpu-isa: takes one of avx2, not ''") == 0);
  CHECK(line_refusal({"--json="}) == "--json takes no value: write it without '='");
  CLI::App app("test", "test");
  std::string solver;
  app.add_option("--solver", solver, "solver")->required();
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"--solver", ""}, {"-solver="}}) {
    const auto read_line = parse_flags(app, words);
    REQUIRE_FALSE(read_line);
    CHECK(read_line.error().message == "flag --solver needs a value that is not empty");
  }
}

TEST_CASE("No flag of a cluster takes the next one for its value") {
  ClusterFlags names;
  CLI::App all("test", "test");
  add_cluster_flags(all, names, ClusterRole::kMaster);
  int tried = 0;
  for (const CLI::Option* option : all.get_options()) {
    if (option->get_items_expected_max() == 0 || option->get_lnames().empty()) continue;
    const std::string name = option->get_lnames().front();
    if (name == "solver" || name == "max-iter") continue;
    INFO(name);
    ++tried;
    for (const char* dashes : {"--", "-"}) {
      ClusterFlags flags;
      CLI::App app("test", "test");
      add_cluster_flags(app, flags, ClusterRole::kMaster);
      const auto read_line =
          parse_flags(app, {"--solver", "S", dashes + name, "", "--max-iter", "2", "--json"});
      if (!read_line) {
        CHECK(read_line.error().message.find("--" + name) == 0);
        continue;
      }
      CHECK(flags.json);
      CHECK(flags.schedule.max_iter == 2);
    }
  }
  CHECK(tried > 40);
}

}  // namespace
}  // namespace speedo
