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

TEST_CASE(
    "A quote or bracket in the middle of a word is named, and begins elsewhere what it does") {
  const std::string letter = two_bytes(0xDA);
  for (const std::string& line : {"a = 0['" + letter + "'", "a = 0x'''''" + letter + "'''",
                                  "b'" + letter + "' = 1", std::string("a = 1[2]")}) {
    CAPTURE(line);
    CHECK(fault(line + "\n").find("in the middle of a word") != std::string::npos);
  }
  const auto parsed = parse_toml("[['t']]\na=[[1],['x',\"y\"],{b='z'}]#'[\n'c'.\"d\"='e'\n", "f");
  if (!parsed) FAIL(parsed.error().message);
  CHECK(parsed->size() == 1);
}

std::string repeated(const std::string& part, std::size_t count) {
  std::string text;
  while (count-- > 0) text += part;
  return text;
}

TEST_CASE("A key of many dots is named, however it is written, and numbers are none") {
  const std::string dots = "a key with more dots";
  for (const std::string part : {"a.", "'a'.", "\"a.#\" . "}) {
    CAPTURE(part);
    const std::string key = repeated(part, 100000) + "b";
    CHECK(fault("x = 1\n" + key + " = 1\n").find(dots) != std::string::npos);
    CHECK(fault("[" + key + "]\n").starts_with("file.toml:1:"));
    CHECK(fault("t = { a = 1, " + key + " = 1 }\n").find(dots) != std::string::npos);
  }
  const std::string key = repeated("a.", 100000) + "b";
  // A string may end with quotes of its own.
  for (const std::string quotes : {"\"\"\"", "'''"}) {
    for (const std::string more : {"", "~", "~~"}) {
      std::string text = "t = { a = " + quotes + "x" + more + quotes + ", " + key + " = 1 }\n";
      for (std::size_t at = text.find('~'); at != std::string::npos; at = text.find('~')) {
        text[at] = quotes[0];
      }
      CAPTURE(quotes, more);
      CHECK(fault(text).find(dots) != std::string::npos);
    }
  }
  const auto parsed =
      parse_toml("a = [" + repeated("0.5, ", 50) + "1.0]\nb = \"" + repeated("1.", 50) + "\" # " +
                     repeated("c.", 50) + "\nc.d . e-1.'f' = 1979-05-27T07:32:00.999\n",
                 "file.toml");
  if (!parsed) FAIL(parsed.error().message);
  CHECK(parsed->size() == 3);
}

// As deep as a file can go: as many dots as a key may have, as often as values lie in each other.
TEST_CASE("What is nested within the limits is read or refused, and ends nothing") {
  const std::string key = repeated("a.", 16) + "a = ";
  for (const std::size_t depth : {120U, 250U, 10000U}) {
    CAPTURE(depth);
    const std::string text = "[" + repeated("x.", 16) + "x]\n" + repeated(key + "[{", depth) + key +
                             "1" + repeated("}]", depth) + "\n";
    const auto parsed = parse_toml(text, "file.toml");
    CHECK((parsed || parsed.error().code == ErrorCode::kConfig));
    CHECK(parsed.has_value() == (depth == 120));
  }
}

}  // namespace
}  // namespace speedo
