#pragma once

// A gate that listens at a port of this machine, and who comes there.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "gate/gate.hpp"
#include "support/catch.hpp"

#include "admission_sides.hpp"
#include "basp_bytes.hpp"

namespace speedo::test {

inline const std::atomic<bool> kNoStop{false};

inline GateOptions options_of(GateRole role, const GateFiles& files) {
  return {.role = role,
          .files = files,
          .protocol = kSpoken,
          .application = kCafApplication,
          .messages = [](GateRole) {
            return std::vector<std::string>{"speedo::HelloMessage"};
          }};
}

// What comes of the other end within a minute, up to so many bytes.
inline std::string read_from(int socket, std::size_t bytes) {
  std::string all;
  while (all.size() < bytes) {
    pollfd entry{.fd = socket, .events = POLLIN, .revents = 0};
    if (::poll(&entry, 1, 60000) <= 0) break;
    char piece[4096];
    const ssize_t got = ::recv(socket, piece, std::min(sizeof(piece), bytes - all.size()), 0);
    if (got <= 0) break;
    all.append(piece, static_cast<std::size_t>(got));
  }
  return all;
}

inline void write_to(int socket, const std::string& bytes) {
  REQUIRE(::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(bytes.size()));
}

// A gate that listens, and what it hands to CAF.
class Port {
 public:
  // `on_arrival`: on the gate's thread.
  explicit Port(const GateFiles& files, const std::function<void()>& on_arrival = [] {})
      : gate_(Gate::create(options_of(GateRole::kMaster, files)).value()) {
    port_ = gate_->listen("127.0.0.1", 0, [this, on_arrival](std::unique_ptr<Descriptor> caf) {
      on_arrival();
      const std::lock_guard lock(mutex_);
      arrived_.push_back(std::move(caf));
      changed_.notify_all();
    }).value();
  }
  ~Port() {
    gate_->stop_listening();
    arrived_.clear();
  }

  std::uint16_t number() const { return port_; }
  Gate& gate() { return *gate_; }
  int arrived(std::size_t which) {
    std::unique_lock lock(mutex_);
    REQUIRE(changed_.wait_for(lock, std::chrono::minutes{1},
                              [&] { return arrived_.size() > which; }));
    return arrived_[which]->get();
  }
  // Closes CAF's end of it.
  void end(std::size_t which) {
    const std::lock_guard lock(mutex_);
    arrived_[which].reset();
  }
  std::size_t arrivals() {
    const std::lock_guard lock(mutex_);
    return arrived_.size();
  }
  template <class Done>
  bool counts_until(Done done) {
    for (int i = 0; i < 6000 && !done(gate_->counts()); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
    return done(gate_->counts());
  }

  // A plain connection to it.
  std::unique_ptr<Descriptor> knock() const {
    auto socket = std::make_unique<Descriptor>(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port_);
    const int done =
        ::connect(socket->get(), reinterpret_cast<sockaddr*>(&address), sizeof(address));
    REQUIRE(done == 0);
    return socket;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Descriptor>> arrived_;
  std::unique_ptr<Gate> gate_;
  std::uint16_t port_ = 0;
};

// One that knocks, and holds back the words by which it would prove who it is.
struct Knocking {
  Knocking(const Port& port, const Credentials& credentials)
      : Knocking(port.knock(), credentials) {}
  Knocking(std::unique_ptr<Descriptor> knocks, const Credentials& credentials)
      : socket(std::move(knocks)),
        admission(Admission::call(credentials, {kSpoken, GateRole::kWorker, "h"}).value()) {
    admission->receive(read_from(socket->get(), kGreetingBytes), words);
  }
  // Whether it is let in by what it says after its first words, which are said.
  bool comes_in() {
    while (Sides::runs(*admission)) {
      const std::string heard = read_from(socket->get(), 1);
      if (heard.empty()) return false;
      words.clear();
      admission->receive(heard, words);
      if (!words.empty()) write_to(socket->get(), words);
    }
    return admission->step() == Admission::Step::kAdmitted;
  }

  std::unique_ptr<Descriptor> socket;
  std::unique_ptr<Admission> admission;
  std::string words;
};

inline std::unique_ptr<Gate> caller_of(const GateFiles& files) {
  return Gate::create(options_of(GateRole::kWorker, files)).value();
}

// That two of CAF's ends speak with each other.
inline void check_talk(int server, int client) {
  const std::string greeting = server_handshake('m', kCafApplication);
  write_to(server, greeting);
  REQUIRE(read_from(client, greeting.size()) == greeting);
  const std::string words =
      client_handshake('w') + direct_message("@<>+speedo::HelloMessage", "words");
  write_to(client, words);
  REQUIRE(read_from(server, words.size()) == words);
}

}  // namespace speedo::test
