#include <speedo/base/result.hpp>

#include <memory>
#include <string>

#include "support/catch.hpp"

namespace speedo {
namespace {

Result<int> parse_digit(char text) {
  if (text < '0' || text > '9') return Error{ErrorCode::kUsage, "not a digit"};
  return text - '0';
}

Result<int> sum_of_digits(const std::string& text) {
  int sum = 0;
  for (const char digit : text) {
    SPEEDO_ASSIGN(const int value, parse_digit(digit));
    sum += value;
  }
  return sum;
}

Result<void> check_digits(const std::string& text) {
  SPEEDO_TRY(sum_of_digits(text));
  return {};
}

TEST_CASE("SPEEDO_ASSIGN passes values on and returns the first error") {
  REQUIRE(sum_of_digits("123").value() == 6);
  const Result<int> failed = sum_of_digits("1x3");
  REQUIRE_FALSE(failed);
  REQUIRE(failed.error().code == ErrorCode::kUsage);
}

TEST_CASE("SPEEDO_TRY keeps the error's code and message") {
  REQUIRE(check_digits("42"));
  REQUIRE(check_digits("4-").error().message == "not a digit");
}

TEST_CASE("A result may hold what cannot be copied") {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(7));
  const std::unique_ptr<int> value = std::move(result).value();
  REQUIRE(*value == 7);
}

TEST_CASE("Only an absent or slow peer is worth a retry") {
  REQUIRE(is_transient(ErrorCode::kUnavailable));
  REQUIRE(is_transient(ErrorCode::kTimeout));
  REQUIRE_FALSE(is_transient(ErrorCode::kRefused));
  REQUIRE_FALSE(is_transient(ErrorCode::kCorrupt));
}

}  // namespace
}  // namespace speedo
