#include "support/catch.hpp"

#include <speedo/train/messages.hpp>

namespace speedo {

TEST_CASE("texts of messages are one line and bounded, cut between characters") {
  CHECK(clip_text("plain") == "plain");
  CHECK(clip_text("two\nlines\x1b[31m\t") == "two lines [31m ");
  CHECK(clip_text(std::string(kTextMax, 'a')) == std::string(kTextMax, 'a'));
  const std::string cut = clip_text(std::string(kTextMax + 1, 'a'));
  CHECK(cut == std::string(kTextMax - 3, 'a') + "...");
  std::string umlauts;
  for (std::size_t i = 0; i < kTextMax; ++i) umlauts += "\xc3\xa4";
  const std::string clipped = clip_text(umlauts);
  CHECK(clipped.size() <= kTextMax);
  CHECK(clipped.substr(clipped.size() - 5) == "\xc3\xa4...");
  CHECK(clip_text(std::string(2000, '\x80')) == "...");
}

TEST_CASE("an error code from the wire is one of ours or an internal error") {
  CHECK(error_code_of(static_cast<std::uint32_t>(ErrorCode::kMismatch)) == ErrorCode::kMismatch);
  CHECK(error_code_of(static_cast<std::uint32_t>(ErrorCode::kInternal)) == ErrorCode::kInternal);
  CHECK(error_code_of(static_cast<std::uint32_t>(ErrorCode::kSuperseded)) ==
        ErrorCode::kSuperseded);
  CHECK(error_code_of(12345) == ErrorCode::kInternal);
}

}  // namespace speedo
