#include "base/process_name.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "support/catch.hpp"
#include "support/skip.hpp"

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

constexpr int kCannotMount = 77;

// What `judge` returns in a process of its own that sees no more than an empty folder at `hidden`,
// and is another user if it may; kCannotMount if the system forbids such a view.
template <class Judge>
int judged_without(const std::string& hidden, Judge judge) {
  const pid_t id = ::fork();
  if (id == 0) {
    if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
      ::_exit(kCannotMount);
    }
    if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", hidden.c_str(), "tmpfs", 0, nullptr) != 0) {
      ::_exit(kCannotMount);
    }
    constexpr uid_t kAnother = 54321;
    [[maybe_unused]] const int as_before = ::setresuid(kAnother, kAnother, kAnother);
    ::_exit(judge());
  }
  int status = 0;
  REQUIRE(::waitpid(id, &status, 0) == id);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

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

TEST_CASE("a process that /proc hides is known dead only when the kernel has none of that number") {
  const std::string name = process_name();
  const std::string folder = "/proc/" + std::to_string(::getpid());
  const int dead = judged_without(folder, [&name] {
    const bool sees_itself = !process_name().ends_with('?');
    return is_known_dead(name) || !sees_itself ? 1 : 0;
  });
  if (dead == kCannotMount) SPEEDO_SKIP("no mounts of its own here");
  CHECK(dead == 0);
}

TEST_CASE("where /proc is not that of this process nothing is known of any") {
  const std::string number = std::to_string(::getpid());
  const int dead = judged_without("/proc", [&number] {
    std::string name = process_name();
    const std::size_t from = name.find('/') + 1;
    name.replace(from, name.find(' ') - from, number);
    return is_known_dead(name) ? 1 : 0;
  });
  if (dead == kCannotMount) SPEEDO_SKIP("no mounts of its own here");
  CHECK(dead == 0);
}

TEST_CASE("people see host and number") {
  CHECK(readable(process_name()).ends_with("/" + std::to_string(::getpid())));
  CHECK(readable("h/1").compare("h/1") == 0);
}

}  // namespace speedo
