// A gate whose sockets another thread serves.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <stop_token>
#include <string>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "gate/gate.hpp"
#include "support/catch.hpp"
#include "support/skip.hpp"

#include "admission_sides.hpp"
#include "gate_port.hpp"

namespace speedo {
namespace {

using std::chrono::milliseconds;

// What a file system that does not answer does to who opens a file there, by a lease on it: for
// 45 s at most.
class HeldFile {
 public:
  explicit HeldFile(const std::filesystem::path& path)
      : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    // By default the signal that somebody waits would end the process.
    REQUIRE(::fcntl(file_.get(), F_SETSIG, SIGURG) == 0);
    is_held_ = ::fcntl(file_.get(), F_SETLEASE, F_WRLCK) == 0;
  }
  ~HeldFile() { release(); }
  HeldFile(const HeldFile&) = delete;
  HeldFile& operator=(const HeldFile&) = delete;

  bool is_held() const { return is_held_; }  // false: the file system knows no leases
  bool await_reader() const {
    for (int i = 0; i < 2000 && ::fcntl(file_.get(), F_GETLEASE) == F_WRLCK; ++i) {
      std::this_thread::sleep_for(milliseconds{10});
    }
    return ::fcntl(file_.get(), F_GETLEASE) != F_WRLCK;
  }
  void release() { ::fcntl(file_.get(), F_SETLEASE, F_UNLCK); }

 private:
  const Descriptor file_;
  bool is_held_ = false;
};

}  // namespace

TEST_CASE("key files that cannot be read for a while hold up nobody, and count afterwards") {
  const test::TokenFolder tokens;
  const GateFiles files = tokens.files("a");
  test::Port port(files);
  const auto gate = test::caller_of(tokens.files("aa"));
  port.gate().lend();
  std::jthread server([&](const std::stop_token& stop) {
    pollfd entry{.fd = port.gate().events(), .events = POLLIN, .revents = 0};
    while (!stop.stop_requested()) {
      if (::poll(&entry, 1, 10) > 0) port.gate().serve();
    }
    port.gate().take_back();
  });
  const std::filesystem::path next = tokens.files("b").token;
  HeldFile held(next);
  if (!held.is_held()) SPEEDO_SKIP("no leases on files here");
  std::filesystem::rename(next, files.token);
  REQUIRE(held.await_reader());
  for (std::size_t i = 0; i < 3; ++i) {
    const auto call = gate->call("127.0.0.1", port.number(), test::kNoStop);
    REQUIRE(call);
    test::check_talk(port.arrived(i), call->caf->get());
  }
  held.release();
  const auto changed = test::caller_of(tokens.files("bb"));
  bool in = false;
  for (int i = 0; i < 600 && !in; ++i) {
    in = changed->call("127.0.0.1", port.number(), test::kNoStop).has_value();
    if (!in) std::this_thread::sleep_for(milliseconds{50});
  }
  CHECK(in);
}

}  // namespace speedo
