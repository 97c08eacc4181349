#include "cli/report/console.hpp"

#include <cstdlib>
#include <string>

#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.hpp"
#include "support/catch.hpp"

namespace speedo {
namespace {

// What `body` writes to a terminal, in a process of its own.
std::string on_a_terminal(void (*body)()) {
  int terminal = -1;
  winsize size{24, 77, 0, 0};
  const pid_t pid = ::forkpty(&terminal, nullptr, nullptr, &size);
  REQUIRE(pid >= 0);
  if (pid == 0) {
    ::setenv("TERM", "xterm", 1);
    body();
    ::_exit(0);
  }
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = ::read(terminal, buffer, sizeof(buffer))) > 0;) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  ::waitpid(pid, nullptr, 0);
  ::close(terminal);
  return text;
}

TEST_CASE("A log line is written above the live line, which comes back below") {
  const std::string text = on_a_terminal([] {
    set_up_console(false);
    show_live_line("LIVE");
    SPEEDO_INFO("logged");
    clear_live_line();
    SPEEDO_INFO("alone");
  });
  INFO(text);
  const std::size_t first = text.find("LIVE");
  const std::size_t erased = text.find("\r\x1b[K", first);
  const std::size_t logged = text.find("logged\r\n", erased);
  const std::size_t again = text.find("LIVE", logged);
  const std::size_t cleared = text.find("\r\x1b[K", again);
  const std::size_t alone = text.find("alone", cleared);
  REQUIRE(alone != std::string::npos);
  CHECK(text.find("LIVE", alone) == std::string::npos);
}

TEST_CASE("Log lines have Caffe's form") {
  const std::string text = on_a_terminal([] {
    set_up_console(false);
    SPEEDO_WARN("text");
  });
  // W20261121 03:30:20.951838 32575 console_test.cpp:45] text
  CHECK(text[0] == 'W');
  CHECK(text.substr(1, 8).find_first_not_of("0123456789") == std::string::npos);
  CHECK(text.find(" console_test.cpp:") != std::string::npos);
  CHECK(text.find("] text\r\n") != std::string::npos);
}

TEST_CASE("The date of a log line may be without its year, as in Caffe's time") {
  const std::string text = on_a_terminal([] {
    set_up_console(false, LogFormat::kGlog);
    SPEEDO_INFO("text");
  });
  // I1121 03:30:20.951838 32575 console_test.cpp:45] text
  CHECK(text[0] == 'I');
  CHECK(text.substr(1, 4).find_first_not_of("0123456789") == std::string::npos);
  CHECK(text[5] == ' ');
  CHECK(text.find("] text\r\n") != std::string::npos);
}

TEST_CASE("NO_COLOR turns colour off and leaves the live line") {
  const std::string text = on_a_terminal([] {
    ::unsetenv("NO_COLOR");
    set_up_console(false);
    const bool colour = has_colour();
    ::setenv("NO_COLOR", "1", 1);
    std::printf("%d%d%d %d\n", has_live_line(), colour, has_colour(), terminal_width());
    std::fflush(stdout);
  });
  CHECK(text == "110 77\r\n");
}

TEST_CASE("A dumb terminal has no live line") {
  const std::string text = on_a_terminal([] {
    ::setenv("TERM", "dumb", 1);
    set_up_console(false);
    show_live_line("LIVE");
    std::printf("%d%d\n", has_live_line(), has_colour());
    std::fflush(stdout);
  });
  CHECK(text == "00\r\n");
}

}  // namespace
}  // namespace speedo
