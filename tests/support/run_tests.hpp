#pragma once

namespace speedo::test {

// ctest's SKIP_RETURN_CODE of every test program.
inline constexpr int kSkippedExitCode = 77;

// Runs the program's Catch2 test cases with the arguments that Catch2 knows. Ends with a line that
// counts the skipped ones, if any. Returns the exit code: 0; kSkippedExitCode if every case that
// was chosen was skipped; else Catch2's.
int run_tests(int argc, char** argv);

}  // namespace speedo::test
