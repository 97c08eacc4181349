// Exceptions that nothing catches, each in a process of its own.

#include "cli/uncaught.hpp"

#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <speedo/base/thread_name.hpp>

#include "support/catch.hpp"

namespace speedo {
namespace {

struct Ending {
  int status = 0;
  std::string errors;
};

// Runs `body` in a child and returns how that ended.
Ending ending_of(const std::function<int()>& body) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    set_up_uncaught();
    ::_exit(body());
  }
  ::close(ends[1]);
  Ending ending;
  char block[256];
  for (ssize_t count; (count = ::read(ends[0], block, sizeof(block))) > 0;) {
    ending.errors.append(block, static_cast<std::size_t>(count));
  }
  ::close(ends[0]);
  REQUIRE(::waitpid(child, &ending.status, 0) == child);
  return ending;
}

void check_ending(const Ending& ending, const std::string& what, const std::string& where) {
  INFO(ending.errors);
  REQUIRE(WIFEXITED(ending.status));
  CHECK(WEXITSTATUS(ending.status) == 70);
  CHECK(ending.errors.find(what) != std::string::npos);
  CHECK(ending.errors.find(where) != std::string::npos);
}

[[noreturn]] void fail_with_length() { throw std::length_error("too long"); }

TEST_CASE("An exception on a thread ends the process with 70 and its name") {
  const auto on_thread = [](void (*fail)()) {
    return [fail] {
      std::thread([fail] {
        name_thread("prefetch");
        fail();
      }).join();
      return 0;
    };
  };
  check_ending(ending_of(on_thread(fail_with_length)), "std::length_error: too long",
               "thread 'prefetch'");
  check_ending(ending_of(on_thread([] { throw 7; })), "int", "thread 'prefetch'");
  check_ending(ending_of(on_thread([] { std::terminate(); })), "std::terminate()",
               "thread 'prefetch'");
}

TEST_CASE("An exception out of a program's main function is reported after its destructors") {
  const auto failing = [] {
    struct Last {
      ~Last() { (void)!::write(STDERR_FILENO, "cleaned up\n", 11); }
    } last;
    fail_with_length();
    return 0;
  };
  const Ending ending = ending_of([&] { return run_program("speedo-master", failing); });
  check_ending(ending, "speedo-master: internal error: std::length_error: too long", "cleaned up");
  CHECK(WEXITSTATUS(ending_of([] { return run_program("speedo", [] { return 3; }); }).status) == 3);
}

}  // namespace
}  // namespace speedo
