#include "cli/exit_code.hpp"

#include "support/catch.hpp"

namespace speedo {
namespace {

TEST_CASE("Exit codes are those of the documented table") {
  CHECK(exit_code(ErrorCode::kUsage) == 2);
  CHECK(exit_code(ErrorCode::kConfig) == 64);
  CHECK(exit_code(ErrorCode::kUnsupported) == 64);
  CHECK(exit_code(ErrorCode::kNotFinite) == 64);
  CHECK(exit_code(ErrorCode::kData) == 65);
  CHECK(exit_code(ErrorCode::kNotFound) == 65);
  CHECK(exit_code(ErrorCode::kCorrupt) == 65);
  CHECK(exit_code(ErrorCode::kUnavailable) == 69);
  CHECK(exit_code(ErrorCode::kInternal) == 70);
  CHECK(exit_code(ErrorCode::kCannotWrite) == 73);
  CHECK(exit_code(ErrorCode::kTimeout) == 75);
  CHECK(exit_code(ErrorCode::kFull) == 75);
  CHECK(exit_code(ErrorCode::kRefused) == 77);
  CHECK(exit_code(ErrorCode::kMismatch) == 78);
}

TEST_CASE("The exit code of a child leads back to an error with the same exit code") {
  for (const int code : {2, 64, 65, 69, 70, 73, 75, 77, 78}) {
    CHECK(exit_code(error_code_of_exit(code)) == code);
  }
  CHECK(exit_code(error_code_of_exit(1)) == 69);
}

}  // namespace
}  // namespace speedo
