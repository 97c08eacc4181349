#include "cli/report/console.hpp"

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

#include <sys/ioctl.h>
#include <unistd.h>

#include "base/log.hpp"

namespace speedo {

namespace {

constexpr const char* kEraseLine = "\r\x1b[K";

struct LiveLine {
  std::mutex mutex;
  bool enabled = false;
  std::string text;  // what stands on the terminal's last line now

  void erase() const {
    if (!text.empty()) std::fputs(kEraseLine, stderr);
    std::fflush(stderr);
  }
  void draw() const {
    if (!text.empty()) std::fputs(text.c_str(), stderr);
    std::fflush(stderr);
  }
};

LiveLine& live_line() {
  static LiveLine line;
  return line;
}

bool is_capable_terminal() {
  const char* term = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && term != nullptr && std::string(term) != "dumb";
}

}  // namespace

void set_up_console(bool debug, LogFormat format) {
  set_up_logging(format);
  if (debug) set_log_level(LogLevel::kDebug);
  if (!is_capable_terminal()) return;
  // The line is taken away before a log line is written, and put back below it. The lock is held in
  // between, as several threads log.
  set_log_hooks(
      [] {
        live_line().mutex.lock();
        live_line().erase();
      },
      [] {
        live_line().draw();
        live_line().mutex.unlock();
      });
  live_line().enabled = true;
}

bool has_live_line() { return live_line().enabled; }

bool has_colour() {
  const char* no_colour = std::getenv("NO_COLOR");
  return has_live_line() && (no_colour == nullptr || *no_colour == '\0');
}

void show_live_line(const std::string& text) {
  LiveLine& line = live_line();
  const std::lock_guard lock(line.mutex);
  if (!line.enabled) return;
  line.erase();
  line.text = text;
  line.draw();
}

void clear_live_line() { show_live_line(""); }

int terminal_width() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

}  // namespace speedo
