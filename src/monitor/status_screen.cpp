#include "monitor/status_screen.hpp"

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <sys/ioctl.h>
#include <unistd.h>

#include "monitor/status_text.hpp"

namespace speedo {
namespace {

constexpr const char* kEraseScreen = "\x1b[2J";
constexpr const char* kHome = "\x1b[H";
constexpr const char* kEraseToEnd = "\x1b[K";
constexpr const char* kEraseBelow = "\x1b[J";

// Where there is no terminal, as wide as it gets.
constexpr int kWide = 1000;

bool is_output_terminal() {
  const char* const term = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

bool wants_colour() {
  const char* const no_colour = std::getenv("NO_COLOR");
  return is_output_terminal() && (no_colour == nullptr || *no_colour == '\0');
}

struct Size {
  int columns = kWide;
  std::size_t lines = 0;  // 0: no end
};

Size output_size() {
  if (!is_output_terminal()) return {};
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return {80, 24};
  return {size.ws_col, size.ws_row};
}

// What fits on the screen, each line without what stood there before.
std::string fitted(const std::string& text, std::size_t lines) {
  std::string fitted;
  std::size_t shown = 0;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = text.find('\n', start);
    if (lines > 0 && ++shown + 1 >= lines) return fitted + "..." + kEraseToEnd + "\n";
    fitted += text.substr(start, end - start) + kEraseToEnd + "\n";
    start = end + 1;
  }
  return fitted;
}

}  // namespace

StatusScreen::StatusScreen() : is_terminal_(is_output_terminal()) {}

void StatusScreen::show(const JobStatus& status, const std::string& note) {
  const Size size = output_size();
  std::string text = status_text(status, size.columns, wants_colour());
  if (!note.empty()) text += note + "\n";
  if (is_terminal_) {
    text = (is_first_ ? kEraseScreen : "") + (kHome + fitted(text, size.lines)) + kEraseBelow;
  } else if (!is_first_) {
    text = "\n" + text;
  }
  is_first_ = false;
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

void print_status(const JobStatus& status) {
  std::fputs(status_text(status, output_size().columns, wants_colour()).c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace speedo
