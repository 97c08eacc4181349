// Prototxts as editors and web pages leave them.

#include "core/prototxt_character.hpp"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "core/prototxt.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

std::string error_of(const std::string& text) {
  const auto net = parse_net_prototxt(text, "net.prototxt");
  REQUIRE_FALSE(net);
  CHECK(net.error().code == ErrorCode::kConfig);
  return net.error().message;
}

TEST_CASE("A byte order mark is passed over, and counts no column", "[prototxt]") {
  const auto net = parse_net_prototxt("\xEF\xBB\xBFname: \"x\"\n", "net.prototxt");
  REQUIRE(net);
  CHECK(net->name() == "x");
  CHECK(parse_solver_prototxt("\xEF\xBB\xBF"
                              "base_lr: 0.5\n",
                              "s")
            ->base_lr() == 0.5F);
  CHECK_THAT(error_of("\xEF\xBB\xBFname: 3\n"), Catch::StartsWith("net.prototxt:1:7: "));
}

TEST_CASE("Characters that only look right are named, with their place", "[prototxt]") {
  CHECK(error_of("name: \"x\"\nlayer {\n\ttype: \xE2\x80\x9CReLU\xE2\x80\x9D }\n") ==
        "net.prototxt:3:15: '\xE2\x80\x9C' (U+201C) is a curly quote: write a plain \" instead");
  CHECK(error_of("name: \xE2\x80\x98x\xE2\x80\x99") ==
        "net.prototxt:1:7: '\xE2\x80\x98' (U+2018) is a curly quote: write a plain ' instead");
  CHECK(error_of("name:\xC2\xA0\"x\"") ==
        "net.prototxt:1:6: '\xC2\xA0' (U+00A0) is a space that does not break: write a plain one "
        "instead");
  CHECK_THAT(error_of("layer { power_param { shift: \xE2\x88\x92"
                      "1 } }"),
             Catch::Contains("(U+2212) is a minus sign"));
  CHECK_THAT(error_of("name: \"x\" \xEF\xBB\xBFlayer {}"), Catch::Contains("a byte order mark"));
  CHECK(error_of("\xC3\xA4: 1") ==
        "net.prototxt:1:1: '\xC3\xA4' (U+00E4) is not allowed outside of quotes and comments");
  CHECK(error_of("\n \xFF: 1") ==
        "net.prototxt:2:2: byte 0xff is no character of UTF-8: save the file as UTF-8");
  CHECK(error_of("name: \xE2\x80") ==
        "net.prototxt:1:7: byte 0xe2 is no character of UTF-8: save the file as UTF-8");
  CHECK_THAT(error_of(std::string("\xFF\xFEn\0a\0", 6)), Catch::Contains("is UTF-16"));
}

TEST_CASE("Within quotes and comments any character may stand", "[prototxt]") {
  const auto net =
      parse_net_prototxt("# \xE2\x80\x9Cquoted\xE2\x80\x9D\nname: \"\xC3\xA4\xE2\x80\x9C\"\n", "n");
  REQUIRE(net);
  CHECK(net->name() == "\xC3\xA4\xE2\x80\x9C");
}

TEST_CASE("A solver for a net, or a net for a solver, is told apart", "[prototxt]") {
  const std::string net = "name: \"x\"\nlayer { name: \"a\" type: \"ReLU\" }\n";
  const std::string solver = "net: \"x.prototxt\"\nbase_lr: 0.1\n";
  const std::string as_net = error_of(solver);
  CHECK_THAT(as_net, Catch::StartsWith("net.prototxt:1:4: "));
  CHECK_THAT(as_net, Catch::Contains("the file is a solver, where a net is wanted"));
  const auto as_solver = parse_solver_prototxt(net, "s.prototxt");
  REQUIRE_FALSE(as_solver);
  CHECK_THAT(as_solver.error().message, Catch::StartsWith("s.prototxt:1:5: "));
  CHECK_THAT(as_solver.error().message,
             Catch::Contains("the file is a net, where a solver is wanted: are the two swapped?"));
  CHECK_THAT(error_of("nonsense: 1"), !Catch::Contains("swapped"));
}

TEST_CASE("A file that may not be read is refused, not bad configuration", "[prototxt]") {
  const TempDir folder;
  std::ofstream(folder / "net.prototxt") << "name: \"x\"\n";
  REQUIRE(::chmod(folder.path().c_str(), 0755) == 0);
  REQUIRE(::chmod((folder / "net.prototxt").c_str(), 0) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    if (::geteuid() == 0 && ::setuid(kNobody) != 0) ::_exit(1);
    const auto net = read_net_prototxt(folder / "net.prototxt");
    ::_exit(!net && net.error().code == ErrorCode::kRefused ? 0 : 2);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace speedo
