// A gate whose sockets another thread serves.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

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

TEST_CASE("of many who prove at once who they are few have their turn, and each in the end") {
  constexpr int kMany = 15;
  const test::TokenFolder tokens;
  test::Port port(tokens.files("a"));
  port.gate().lend();
  std::vector<std::unique_ptr<Descriptor>> sockets;
  for (int i = 0; i < kMany; ++i) sockets.push_back(port.knock());
  port.gate().serve();
  std::vector<test::Knocking> knocking;
  for (auto& socket : sockets) knocking.emplace_back(std::move(socket), tokens.credentials("a"));
  for (const test::Knocking& each : knocking) test::write_to(each.socket->get(), each.words);
  const auto answered = [&] {
    return std::count_if(knocking.begin(), knocking.end(), [](const test::Knocking& each) {
      pollfd entry{.fd = each.socket->get(), .events = POLLIN, .revents = 0};
      return ::poll(&entry, 1, 0) > 0;
    });
  };
  std::vector<std::ptrdiff_t> after;  // each turn
  while (answered() < kMany && after.size() < kMany) {
    port.gate().serve();
    after.push_back(answered());
  }
  CHECK(after == std::vector<std::ptrdiff_t>{4, 8, 12, kMany});
  port.gate().take_back();
}

}  // namespace speedo
