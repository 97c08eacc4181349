#include "base/parse_number.hpp"

#include <cstdint>

#include "support/catch.hpp"

namespace speedo {
namespace {

TEST_CASE("A number is all of its text") {
  CHECK(parse_number<int>("42") == 42);
  CHECK(parse_number<int>("-3") == -3);
  CHECK(parse_number<float>("0.25") == 0.25F);
  for (const char* text : {"", " 42", "42 ", "3x", "+3", "0x10", "--3"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_number<std::int64_t>(text));
  }
}

TEST_CASE("A number that its type cannot hold is none") {
  CHECK(parse_number<std::uint64_t>("18446744073709551615") == UINT64_MAX);
  CHECK_FALSE(parse_number<std::uint64_t>("18446744073709551616"));
  CHECK_FALSE(parse_number<std::uint64_t>("-1"));
  CHECK_FALSE(parse_number<int>("2147483648"));
}

}  // namespace
}  // namespace speedo
