#include "cli/exit_code.hpp"

#include <algorithm>
#include <string>

#include <poll.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/patient_output.hpp"
#include "base/shown_text.hpp"
#include "cli/report/console.hpp"

namespace speedo {

namespace {

constexpr int kReaderMs = 200;  // that a reader of standard error may take

// Whether standard error takes a line, if need be after a moment.
bool can_report() {
  pollfd file{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  return ::poll(&file, 1, kReaderMs) == 1 && (file.revents & POLLOUT) != 0;
}

}  // namespace

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUsage:
      return 2;
    case ErrorCode::kConfig:
    case ErrorCode::kUnsupported:
    case ErrorCode::kNotFinite:
      return 64;  // The remedy lies in the solver or the net.
    case ErrorCode::kData:
    case ErrorCode::kNotFound:
    case ErrorCode::kCorrupt:
      return 65;
    case ErrorCode::kUnavailable:
      return 69;
    case ErrorCode::kInternal:
      return 70;
    case ErrorCode::kCannotWrite:
      return 73;
    case ErrorCode::kTimeout:
    case ErrorCode::kFull:
    case ErrorCode::kSuperseded:
      return 75;
    case ErrorCode::kRefused:
      return 77;
    case ErrorCode::kMismatch:
      return 78;
  }
  return 70;
}

ErrorCode unless_refused(ErrorCode code, ErrorCode otherwise) {
  return code == ErrorCode::kRefused ? code : otherwise;
}

ErrorCode error_code_of_exit(int code) {
  switch (code) {
    case 2:
      return ErrorCode::kUsage;
    case 64:
      return ErrorCode::kConfig;
    case 65:
      return ErrorCode::kData;
    case 70:
      return ErrorCode::kInternal;
    case 73:
      return ErrorCode::kCannotWrite;
    case 75:
      return ErrorCode::kTimeout;
    case 77:
      return ErrorCode::kRefused;
    case 78:
      return ErrorCode::kMismatch;
    default:
      return ErrorCode::kUnavailable;
  }
}

void end_at_once(std::string_view line, ErrorCode code) {
  end_at_once(line, exit_code(code));
}

void end_at_once(std::string_view line, int exit_code) {
  if (!can_report()) ::_exit(exit_code);
  if (::write(STDERR_FILENO, line.data(), line.size()) < 0) ::_exit(exit_code);
  ::_exit(exit_code);
}

int report_failure(const char* program, const Error& error) {
  std::string line = error.message;
  std::replace(line.begin(), line.end(), '\n', ' ');
  clear_live_line();
  standard_error().write(fmt::format("{}: {}\n", program, shown_text(line, "\t")));
  return exit_code(error.code);
}

}  // namespace speedo
