#include "cli/options/toml_parse.hpp"

#include "support/catch.hpp"

namespace speedo {
namespace {

std::string two_bytes(unsigned code) {
  return {static_cast<char>(0xC0U | code >> 6U), static_cast<char>(0x80U | (code & 0x3FU))};
}

std::string fault(const std::string& text) {
  const auto parsed = parse_toml(text, "file.toml");
  REQUIRE_FALSE(parsed);
  CHECK(parsed.error().code == ErrorCode::kConfig);
  return parsed.error().message;
}

TEST_CASE("Letters beyond ASCII stand in strings and comments") {
  const std::string letter = two_bytes(0x3D6);
  std::string text = "\xEF\xBB\xBF# ~\na = \"~\"\nb = '~' # '~\nc = \"\"\"x\n\\\"~\"\"\"\n"
                     "d = '''\n~'''\n\"~\" = \"\"\n";
  for (std::size_t at = text.find('~'); at != std::string::npos; at = text.find('~')) {
    text.replace(at, 1, letter);
  }
  const auto parsed = parse_toml(text, "file.toml");
  if (!parsed) FAIL(parsed.error().message);
  CHECK(parsed->size() == 5);
  CHECK(parsed->get_as<std::string>("b")->get() == letter);
}

TEST_CASE("Any letter beyond ASCII elsewhere is named with line and column") {
  for (unsigned code = 0x80; code < 0x800; ++code) {
    CAPTURE(code);
    const std::string letter = two_bytes(code);
    CHECK(fault("a = 1\nke" + letter + " = 2\n").starts_with("file.toml:2:3: "));
    CHECK(fault("[" + letter + "]\n").starts_with("file.toml:1:2: "));
  }
  CHECK(fault("a = \"open\n" + two_bytes(0x3D6) + " = 1").starts_with("file.toml:2:1: "));
  CHECK(fault("a = 1\nb = = 2\n").starts_with("file.toml:2:"));
}

}  // namespace
}  // namespace speedo
