#include "base/process_name.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "support/catch.hpp"

namespace speedo {
namespace {

// The name of a child process that has ended. Not waited for: so long it is a zombie.
struct DeadChild {
  DeadChild() {
    int ends[2] = {};
    REQUIRE(::pipe(ends) == 0);
    id = ::fork();
    if (id == 0) {
      const std::string text = process_name();
      if (::write(ends[1], text.data(), text.size()) < 0) ::_exit(1);
      ::pause();
    }
    char text[512] = {};
    const ssize_t size = ::read(ends[0], text, sizeof(text));
    name.assign(text, static_cast<std::size_t>(size));
    ::close(ends[0]);
    ::close(ends[1]);
    CHECK_FALSE(is_known_dead(name));
    ::kill(id, SIGSTOP);
    siginfo_t stopped{};
    ::waitid(P_PID, static_cast<id_t>(id), &stopped, WSTOPPED | WNOWAIT);
    CHECK_FALSE(is_known_dead(name));  // It may go on.
    ::kill(id, SIGKILL);
    siginfo_t ended{};
    ::waitid(P_PID, static_cast<id_t>(id), &ended, WEXITED | WNOWAIT);
  }
  ~DeadChild() { bury(); }
  void bury() {
    if (id > 0) ::waitpid(id, nullptr, 0);
    id = -1;
  }
  pid_t id = -1;
  std::string name;
};

}  // namespace

TEST_CASE("a process is known by its name, alive, stopped, dead and buried") {
  CHECK_FALSE(is_known_dead(process_name()));
  CHECK_FALSE(is_known_dead(process_name() + " 7"));
  DeadChild child;
  CHECK(child.name != process_name());
  CHECK(is_known_dead(child.name));
  CHECK(is_known_dead(child.name + " 7"));
  child.bury();
  CHECK(is_known_dead(child.name));
}

TEST_CASE("another process of the same number is another process") {
  std::string name = process_name();
  const std::size_t start = name.find(' ') + 1;
  name.replace(start, name.find(' ', start) - start, "1");
  CHECK(is_known_dead(name));
}

TEST_CASE("of processes elsewhere nothing is known") {
  const std::string name = process_name();
  const std::string from_slash = name.substr(name.find('/'));
  CHECK_FALSE(is_known_dead("another-host" + from_slash));
  // Another start of the machine.
  CHECK_FALSE(is_known_dead(name.substr(0, name.size() - 1) + "x"));
  for (const char* text : {"", " ", "/", "x/ 1 2", "h/99999999999999999999 1 2/3", "h/-1 1 2/3"}) {
    CHECK_FALSE(is_known_dead(text));
  }
}

TEST_CASE("people see host and number") {
  CHECK(readable(process_name()).ends_with("/" + std::to_string(::getpid())));
  CHECK(readable("h/1").compare("h/1") == 0);
}

}  // namespace speedo
