// MasterSession under random events, most of them duplicates, late, or from nobody it knows.
// RC_PARAMS in the environment changes the seed and the number of sequences.

#include <cstdlib>
#include <limits>

#include <rapidcheck.h>

#include "support/catch.hpp"

#include "master_session_checker.hpp"
#include "master_session_driver.hpp"

namespace speedo {

namespace {

#ifdef SPEEDO_SANITIZED
constexpr const char* kParameters = "max_success=1000 max_size=200 seed=20261121";
#else
constexpr const char* kParameters = "max_success=10000 max_size=200 seed=20261121";
#endif
const int kParametersSet = setenv("RC_PARAMS", kParameters, 0);

// The session, its checker, and what the shell around it would know.
struct Master {
  Master(const MasterConfig& config, const std::string& strategy)
      : session(config, MasterDriver::named(strategy)), checker(config, strategy == "sync") {}

  void on(const MasterEvent& event) {
    checker.see(event);
    const MasterCommands commands = session.on(event);
    checker.check(commands);
    RC_ASSERT(checker.violation() == "");
    RC_ASSERT(session.finished() == checker.finished());
    RC_ASSERT(session.progress().iteration == checker.iteration());
    RC_ASSERT(session.progress().contributions == checker.merged_runs());
    for (const MasterCommand& command : commands) remember(command);
  }
  void remember(const MasterCommand& command) {
    if (const auto* welcome = std::get_if<master_command::SendWelcome>(&command)) {
      welcomes.push_back({welcome->peer.value, welcome->message.worker});
    }
    if (const auto* train = std::get_if<master_command::SendTrain>(&command)) {
      orders.push_back({train->peer.value, train->message.run});
    }
    if (const auto* start = std::get_if<master_command::StartMerge>(&command)) merge = *start;
    testing |= std::holds_alternative<master_command::StartTest>(command);
    saving |= std::holds_alternative<master_command::StartSnapshot>(command);
  }

  // Any message, also of connections that are gone: `random` picks sender and content from all
  // there ever were.
  MasterEvent message(unsigned kind, unsigned random) const {
    if (welcomes.empty() || kind == 0) {
      return master_event::Hello{{random % 8}, {kProtocolVersion, "w", "cpu"}};
    }
    const auto& [peer, worker] = welcomes[random % welcomes.size()];
    if (kind == 1) return master_event::PeerLost{{peer}, "reset"};
    if (kind == 2) return master_event::Leave{{peer}, {worker, 0, "bye"}};
    if (kind <= 5 || orders.empty()) {
      const auto& last = welcomes.back();
      return master_event::Ready{{last.first}, {last.second, 11, 12}};
    }
    // Mostly a recent order; its worker is the newest life on that connection.
    const std::size_t back = kind <= 7 ? random % orders.size()
                                       : random % std::min<std::size_t>(orders.size(), 4);
    const auto& [order_peer, run] = orders[orders.size() - 1 - back];
    std::uint64_t order_worker = 0;
    for (const auto& [p, w] : welcomes) order_worker = p == order_peer ? w : order_worker;
    const float loss = random % 13 == 0 ? std::numeric_limits<float>::quiet_NaN() : 1.0F;
    return master_event::Trained{
        {order_peer}, {order_worker, run, std::bit_cast<std::uint32_t>(loss), 0, 1, 0, 0}};
  }
  // What the shell owes, in an order that `random` picks; false if it owes nothing.
  bool settle(unsigned random) {
    if (merge && (random % 2 == 0 || (!testing && !saving))) {
      std::vector<WorkerId> rejected;
      if (random % 7 == 0) rejected.push_back(merge->contributions.front().worker);
      if (rejected.size() < merge->contributions.size()) version += 1;
      const MergeId id = merge->merge;
      merge.reset();
      on(master_event::Merged{id, {version}, rejected});
    } else if (testing) {
      testing = false;
      on(master_event::Tested{checker.iteration(), 0.5F, 1.0F});
    } else if (saving) {
      saving = false;
      on(master_event::SnapshotDone{checker.iteration()});
    } else {
      return false;
    }
    return true;
  }
  // Liveness: one worker that keeps reporting brings training to its end.
  void carry_to_the_end() {
    on(master_event::Hello{{100}, {kProtocolVersion, "last", "cpu"}});
    for (std::uint64_t peer = 0; peer < 8; ++peer) on(master_event::PeerLost{{peer}, "gone"});
    if (!session.finished() && welcomes.back().first == 100) {
      on(master_event::Ready{{100}, {welcomes.back().second, 11, 12}});
    }
    for (int step = 0; step < 200 && !session.finished(); ++step) {
      if (settle(1)) continue;
      RC_ASSERT(!orders.empty());
      RC_ASSERT(orders.back().first == 100U);
      on(master_event::Trained{
          {100}, {welcomes.back().second, orders.back().second, 0, 0, 1, 0, 0}});
    }
    RC_ASSERT(session.finished());
  }

  MasterSession session;
  MasterChecker checker;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> welcomes;  // connection, worker
  std::vector<std::pair<std::uint64_t, std::uint64_t>> orders;    // connection, run
  std::optional<master_command::StartMerge> merge;
  bool testing = false, saving = false;
  std::uint64_t version = 0;
};

void run_sequence(const std::string& strategy, const std::vector<std::uint16_t>& randoms) {
  MasterConfig config = config_for(1 + randoms.size() % 3, 12);
  config.test_interval = 3;
  config.snapshot_interval = 5;
  config.worker_timeout = std::chrono::seconds(60);
  Master master(config, strategy);
  int seconds = 0;
  for (const std::uint16_t random : randoms) {
    if (master.session.finished()) break;
    const unsigned kind = random % 16, rest = random / 16;
    if (kind == 15) {
      seconds += static_cast<int>(rest % 40);
      master.on(master_event::Tick{std::chrono::seconds(seconds)});
    } else if (kind < 12 || !master.settle(rest)) {
      master.on(master.message(kind, rest));
    }
  }
  if (!master.session.finished()) {
    // Enough to start with, if training has not begun.
    for (std::uint64_t peer = 101; peer < 104; ++peer) {
      master.on(master_event::Hello{{peer}, {kProtocolVersion, "w", "cpu"}});
      if (master.session.finished() || master.welcomes.empty()) break;
      master.on(master_event::Ready{{peer}, {master.welcomes.back().second, 11, 12}});
    }
    for (std::uint64_t peer = 101; peer < 104; ++peer) {
      master.on(master_event::PeerLost{{peer}, "gone"});
    }
    master.carry_to_the_end();
  }
}

}  // namespace

TEST_CASE("master session under random events, async") {
  CHECK(rc::check([](const std::vector<std::uint16_t>& randoms) {
    run_sequence("async", randoms);
  }));
}

TEST_CASE("master session under random events, sync") {
  CHECK(rc::check([](const std::vector<std::uint16_t>& randoms) {
    run_sequence("sync", randoms);
  }));
}

}  // namespace speedo
