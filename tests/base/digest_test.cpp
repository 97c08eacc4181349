#include <speedo/base/digest.hpp>

#include <string>

#include "support/catch.hpp"

namespace speedo {
namespace {

TEST_CASE("Digests are XXH3's, so that records stay readable across versions") {
  // Published test values of XXH3 for the empty input.
  REQUIRE(to_string(digest_of("")) == "99aa06d3014798d86001c324468d497f");
  REQUIRE(checksum_of({}) == 0x2d06800538d394c2U);
}

TEST_CASE("A flipped bit changes digest and checksum") {
  std::string text(1000, 'a');
  const Digest before = digest_of(text);
  const auto checksum = checksum_of(std::as_bytes(std::span(text)));
  text[500] ^= 1;
  REQUIRE(digest_of(text) != before);
  REQUIRE(checksum_of(std::as_bytes(std::span(text))) != checksum);
}

}  // namespace
}  // namespace speedo
