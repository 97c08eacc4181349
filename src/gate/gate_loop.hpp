#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "gate/gate.hpp"
#include "gate/gate_connection.hpp"
#include "gate/gate_limits.hpp"

namespace speedo {

// The thread of a gate: all its sockets, by epoll. While it is lent another thread has its turn at
// their events, and this one sees to deadlines.
class Gate::Loop {
 public:
  static Result<std::unique_ptr<Loop>> create(GateOptions options);
  ~Loop();

  const GateOptions& options() const { return options_; }
  std::shared_ptr<const GateCredentials> credentials() const;
  GateLink::RulesOf rules_of(bool from_server) const;
  GateCounts counts() const;

  // See Gate.
  int events() const { return epoll_->get(); }
  void lend();
  void serve();
  void take_back();

  void bear_silence(std::chrono::milliseconds silence);
  // Credentials that have changed count when it returns. Blocking, as long as their files are.
  void reload_now();
  void listen(ListeningSocket socket, Arrive arrive);
  void stop_listening();
  // Connects and is let in. Blocking, on the caller's thread. Errors: as Gate::call().
  struct CallLimits {
    const std::atomic<bool>& stop;
    const Clock& clock;
    const std::string& source;
    Instant deadline;
    Instant reached_by;  // the address must have answered by then
  };
  Result<std::unique_ptr<GateConnection>> connect(const std::string& host, std::uint16_t port,
                                                  const addrinfo& address,
                                                  const CallLimits& limits);
  // A connection that this side made, open, with its end for the loop.
  std::shared_ptr<const std::atomic<bool>> adopt(std::unique_ptr<GateConnection> connection);

 private:
  // Of one connection, beside the connection itself.
  struct Member {
    std::unique_ptr<GateConnection> connection;
    std::shared_ptr<std::atomic<bool>> alive;
    bool came = false;  // to the port, in contrast to one that was called
    bool let_in = false;
    bool waits = false;  // in waiting_
    bool end_noted = false;
    // What epoll waits for at its sockets; 0: it does not know the socket.
    std::uint32_t network_interest = 0, local_interest = 0;
  };
  using Members = std::map<std::uint64_t, Member>;
  // In the epoll instance: two places for each member, from its number on, and two of the loop's.
  static constexpr std::uint64_t kWakePlace = 0, kListenerPlace = 1;

  Loop(GateOptions options, std::shared_ptr<const GateCredentials> credentials);
  Result<void> open();

  // From any thread: done by who serves.
  void post(std::function<void()> work);
  void run();
  bool is_over() const;
  void serve_within(int milliseconds, std::unique_lock<std::mutex>& turn);
  void do_posted();
  int patience() const;
  void look_around(Instant now);
  void end_silent(Instant now);
  void reload(std::unique_lock<std::mutex>& turn);
  void read_files_again();
  Result<std::shared_ptr<const GateCredentials>> load_again(const FileStamps& stamps) const;

  void accept_some(Instant now);
  bool accept_one(Instant now);
  void shed_one(Instant now);
  void rest_from_accepting(Instant now);
  void accept_again(Instant now);
  void watch_listener();
  void make_room(const std::string& host, Instant now);
  void displace(const std::function<bool(const Member&)>& is_one, std::size_t most, Instant now);
  void welcome(std::unique_ptr<Descriptor> socket, PeerAddress address, Instant now);

  void enter(Member member, Instant now);
  void attend(std::uint64_t place, Instant now);
  void hear_waiting(Instant now);
  void service(std::uint64_t id, Instant now,
               GateConnection::Ends ends = GateConnection::Ends::kBoth);
  void watch(std::uint64_t id, Member& member);
  void admit(Member& member, Instant now);
  void note_end(Member& member, Instant now);
  void note(std::uint64_t GateCounts::* count, const Member& member, std::string_view why,
            Instant now);

  const GateOptions options_;
  mutable std::mutex mutex_;
  std::shared_ptr<const GateCredentials> credentials_;  // guarded by mutex_
  std::vector<std::function<void()>> posted_;           // guarded by mutex_
  std::atomic<std::chrono::milliseconds> silence_;
  GateCounts counts_;                                   // guarded by mutex_
  std::unique_ptr<Descriptor> epoll_, wake_, reserve_;
  const GateLimits limits_;

  // Held by who reads the files, who does not hold turn_. Taken before mutex_.
  std::mutex reading_;
  FileStamps stamps_;                  // of what was read
  std::optional<FileStamps> refused_;  // of what could not be, and was said
  Instant reloaded_{};                 // of the loop's thread

  // Held by who serves, and guards all below. Taken before mutex_.
  std::mutex turn_;
  std::condition_variable back_;
  bool is_lent_ = false;
  std::unique_ptr<Descriptor> listener_;
  Arrive arrive_;
  Members members_;
  std::uint64_t next_id_ = 1;
  std::deque<std::uint64_t> waiting_;  // who is not let in yet and has said something
  std::uint64_t proofs_ = 0;           // that were looked at, ever
  AuditPacer pacer_;
  AuditPacer admitted_pacer_;  // strangers must not leave out who was let in
  Instant looked_around_{}, warned_{};
  std::optional<Instant> accepts_again_;  // after a shortage
  std::optional<Instant> ends_at_;
  std::thread thread_;
};

}  // namespace speedo
