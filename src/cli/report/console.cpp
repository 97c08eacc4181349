#include "cli/report/console.hpp"

#include <atomic>
#include <cstdlib>
#include <string>

#include <sys/ioctl.h>
#include <unistd.h>

#include "base/log.hpp"
#include "base/patient_output.hpp"

namespace speedo {

namespace {

std::atomic<bool> is_live = false;

bool is_capable_terminal() {
  const char* term = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && term != nullptr && std::string(term) != "dumb";
}

}  // namespace

void set_up_console(bool debug, LogFormat format) {
  set_up_logging(format);
  if (debug) set_log_level(LogLevel::kDebug);
  if (!is_capable_terminal()) return;
  is_live = true;
}

bool has_live_line() { return is_live; }

bool has_colour() {
  const char* no_colour = std::getenv("NO_COLOR");
  return has_live_line() && (no_colour == nullptr || *no_colour == '\0');
}

void show_live_line(const std::string& text) {
  if (is_live) standard_error().show_live_line(text);
}

void clear_live_line() { show_live_line(""); }

int terminal_width() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

}  // namespace speedo
