// Cases that are skipped are counted as such: by the line at the end, and for ctest by the exit
// code. Hidden cases of this program are run for it in a process of their own.

#include <filesystem>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/process.hpp"
#include "support/run_tests.hpp"
#include "support/skip.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

TEST_CASE("skips itself", "[.][skips]") {
  SPEEDO_SKIP("asked to");
  FAIL("behind the end of a skipped case");
}
TEST_CASE("skips itself in one of two sections", "[.][skips]") {
  SECTION("one") { CHECK(true); }
  SECTION("two") { SPEEDO_SKIP("asked to, too"); }
}
TEST_CASE("passes beside them", "[.][passes]") { CHECK(true); }
TEST_CASE("fails beside them", "[.][fails]") { CHECK(false); }

struct Ending {
  int exit_code;
  std::string said;
};

Ending run(const std::string& cases) {
  const TempDir folder;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  test::Process process({self, cases}, folder / "log");
  const auto exit_code = process.wait();
  REQUIRE(exit_code.has_value());
  return {*exit_code, process.output()};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("a program whose cases were all skipped is skipped") {
  const Ending ending = run("[skips]");
  CHECK(ending.exit_code == test::kSkippedExitCode);
  CHECK(has(ending.said, "skipped: skips itself: asked to\n"));
  CHECK(has(ending.said, "2 of 2 test cases skipped"));
}

TEST_CASE("a program with a skipped case beside others passes or fails, and counts it") {
  const Ending passed = run("[skips],[passes]");
  CHECK(passed.exit_code == 0);
  CHECK(has(passed.said, "2 of 3 test cases skipped"));
  const Ending failed = run("[skips],[fails]");
  CHECK(failed.exit_code == 1);
  CHECK(has(failed.said, "2 of 3 test cases skipped"));
}

TEST_CASE("a program that skips nothing says nothing of it") {
  const Ending ending = run("[passes]");
  CHECK(ending.exit_code == 0);
  CHECK_FALSE(has(ending.said, "skipped"));
}

}  // namespace
}  // namespace speedo
