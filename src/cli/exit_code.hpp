#pragma once

#include <string_view>

#include <speedo/base/result.hpp>

namespace speedo {

// The exit code of a process that ended with an error of this kind. README.md lists them all; a
// process that a signal ends at once returns 128 + the signal's number.
int exit_code(ErrorCode code);

// `code` if it says that permission is missing, which ends with the same code everywhere, else
// `otherwise`.
ErrorCode unless_refused(ErrorCode code, ErrorCode otherwise);

// The kind of error behind the exit code of another process of ours.
ErrorCode error_code_of_exit(int exit_code);

// Ends the process with this line on standard error, if it takes one, and the code, without
// destructors. Allocates nothing.
[[noreturn]] void end_at_once(std::string_view line, ErrorCode code);
[[noreturn]] void end_at_once(std::string_view line, int exit_code);

// Of a process whose GPU failed in the middle: what it computed since its last exchange is lost,
// and another one can go on.
inline constexpr int kGpuFaultExit = 71;

// "PROGRAM: MESSAGE" on standard error, on one line, and the exit code.
int report_failure(const char* program, const Error& error);

}  // namespace speedo
