#include "cli/arguments.hpp"

#include "support/catch.hpp"

namespace speedo {
namespace {

using Words = std::vector<std::string>;

const std::vector<FlagName> kFlags = {
    {"max-iter"},    {"moving-rate"},          {"solver"},        {"cpu-db-actor", false},
    {"sync", false}, {"gradient-only", false}, {"sigint-effect"}, {"workers"},
    {"worker"}};

Words normalized(const Words& raw) {
  auto result = normalize_arguments(raw, kFlags);
  INFO((result ? "" : result.error().message));
  REQUIRE(result);
  return *result;
}

std::string refusal_of(const Words& raw) {
  const auto result = normalize_arguments(raw, kFlags);
  REQUIRE_FALSE(result);
  CHECK(result.error().code == ErrorCode::kUsage);
  return result.error().message;
}

TEST_CASE("Every spelling of a flag means the same") {
  for (const char* flag : {"--max-iter", "--maxIter", "--max_iter", "-maxIter", "-max_iter",
                           "-max-iter", "--MAXITER"}) {
    INFO(flag);
    CHECK(normalized({flag, "7"}) == Words{"--max-iter=7"});
    CHECK(normalized({std::string(flag) + "=7"}) == Words{"--max-iter=7"});
  }
  CHECK(normalized({"--CPUDBActor"}) == Words{"--cpu-db-actor"});
  CHECK(normalized({"-gradientOnly", "-sync"}) == Words{"--gradient-only", "--sync"});
  CHECK(normalized({"--sigint_effect=stop"}) == Words{"--sigint-effect=stop"});
}

TEST_CASE("A flag's value may begin with a dash, and may hold an equals sign") {
  CHECK(normalized({"--movingRate", "-0.5"}) == Words{"--moving-rate=-0.5"});
  CHECK(normalized({"--solver", "a=b.prototxt"}) == Words{"--solver=a=b.prototxt"});
  CHECK(normalized({"--solver=a=b.prototxt"}) == Words{"--solver=a=b.prototxt"});
  CHECK(normalized({"--solver", ""}) == Words{"--solver="});
}

TEST_CASE("What is no flag passes through") {
  CHECK(normalized({"in", "-", "-3", "out"}) == Words{"in", "-", "-3", "out"});
  CHECK(normalized({"--sync", "--", "--max-iter"}) == Words{"--sync", "--", "--max-iter"});
}

TEST_CASE("An unknown flag is refused with the nearest known one") {
  CHECK(refusal_of({"--max-itr", "3"}).find("did you mean --max-iter?") != std::string::npos);
  CHECK(refusal_of({"-solvr=x"}).find("unknown flag '-solvr', did you mean --solver?") !=
        std::string::npos);
  CHECK(refusal_of({"--completely-different"}).find("did you mean") == std::string::npos);
}

TEST_CASE("A flag without its value is refused") {
  CHECK(refusal_of({"--max-iter"}) == "flag --max-iter needs a value");
  CHECK(refusal_of({"--solver", "--workers", "3"}) == "flag --solver needs a value");
}

}  // namespace
}  // namespace speedo
