#include "base/shown_text.hpp"

#include "support/catch.hpp"

namespace speedo {

TEST_CASE("a text that is shown moves no cursor and begins no line") {
  CHECK(shown_text("").empty());
  CHECK(shown_text("plain, \xc3\xa4 and \xe4\xb8\xad") == "plain, \xc3\xa4 and \xe4\xb8\xad");
  CHECK(shown_text("a\nb\r\x1b[2J\x7f") == "a?b??[2J?");
  // The second set of control characters, as UTF-8.
  CHECK(shown_text("\xc2\x9b!\xc2\xa0") == "\xc2?!\xc2\xa0");
  CHECK(shown_text("a\n\tb\r\n", "\t\n") == "a\n\tb?\n");
}

}  // namespace speedo
