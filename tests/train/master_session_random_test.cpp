// MasterSession under random events, most of them duplicates, late, or from nobody it knows.
// With the seed that is kept and a fresh one, see support/random_seed.hpp.

#include <limits>

#include "support/catch.hpp"
#include "support/random_property.hpp"

#include "sim/check/session_checker.hpp"

#include "master_session_driver.hpp"

namespace speedo {

namespace {

#ifdef SPEEDO_SANITIZED
constexpr test::PropertySize kSize{.sequences = 1000, .longest = 200};
#else
constexpr test::PropertySize kSize{.sequences = 10'000, .longest = 200};
#endif

// The session, its checker, and what the shell around it would know.
struct Master {
  explicit Master(const MasterConfig& config)
      : lineage(std::vector<UpdateSpec>(config.stages.size()), {}, {}, violations),
        checker(config, {}, lineage, violations),
        session(config, [this](const StrategyOptions& options) { return make_watched(options); }) {
  }

  Result<std::unique_ptr<Strategy>> make_watched(const StrategyOptions& options) {
    SPEEDO_ASSIGN(auto strategy, make_strategy(options));
    const auto on_change = [this](sim::ScheduleChecker* at_work, sim::ScheduleChecker* gone) {
      if (at_work != nullptr) schedule = at_work;
      if (schedule == gone) schedule = nullptr;
    };
    return sim::watch_strategy(std::move(strategy), options, violations, on_change);
  }
  void on(const MasterEvent& event) {
    if (const auto* e = std::get_if<master_event::Trained>(&event)) running.erase(e->peer.value);
    checker.before(event);
    const MasterCommands commands = session.on(event);
    checker.watch_schedule(schedule);
    checker.after(commands);
    checker.check_state(session.save());
    RC_ASSERT(violations.first() == "");
    RC_ASSERT(session.finished() == checker.finished());
    RC_ASSERT(session.progress().iteration == checker.iteration());
    RC_ASSERT(session.progress().contributions == checker.merged_contributions());
    for (const MasterCommand& command : commands) remember(command);
  }
  void remember(const MasterCommand& command) {
    if (const auto* welcome = std::get_if<master_command::SendWelcome>(&command)) {
      welcomes.push_back({welcome->peer.value, welcome->message.worker});
    }
    if (const auto* train = std::get_if<master_command::SendTrain>(&command)) {
      orders.push_back({train->peer.value, train->message.run});
      if (train->peer.value >= 100) running[train->peer.value] = train->message.run;
    }
    if (const auto* start = std::get_if<master_command::StartMerge>(&command)) merge = *start;
    entering |= std::holds_alternative<master_command::EnterStage>(command);
    testing |= std::holds_alternative<master_command::StartTest>(command);
    saving |= std::holds_alternative<master_command::StartSnapshot>(command);
  }

  // Any message, also of connections that are gone: `random` picks sender and content from all
  // there ever were.
  MasterEvent message(unsigned kind, unsigned random) const {
    if (welcomes.empty() || kind == 0) {
      // Now and then a process that is known on another connection.
      const std::uint64_t uuid = random % 5 == 0 ? 1 + random % 3 : 10 + random % 8;
      return hello(random % 8, "h" + std::to_string(random % 3), uuid);
    }
    const auto& [peer, worker] = welcomes[random % welcomes.size()];
    if (kind == 1) return master_event::PeerLost{{peer}, "reset"};
    if (kind == 2) return master_event::Leave{{peer}, {worker, 0, "bye"}};
    if (kind <= 5 || orders.empty()) {
      const auto& last = welcomes.back();
      return master_event::Ready{{last.first}, {last.second, 11, 12}};
    }
    if (kind == 6) return master_event::Beat{{peer}, {worker, random % 16, random % 5}};
    // Mostly a recent order; its worker is the newest incarnation on that connection.
    const std::size_t back = kind <= 7 ? random % orders.size()
                                       : random % std::min<std::size_t>(orders.size(), 4);
    const auto& [order_peer, run] = orders[orders.size() - 1 - back];
    std::uint64_t order_worker = 0;
    for (const auto& [p, w] : welcomes) order_worker = p == order_peer ? w : order_worker;
    const float loss = random % 13 == 0 ? std::numeric_limits<float>::quiet_NaN() : 1.0F;
    return master_event::Trained{
        {order_peer},
        {order_worker, run, std::bit_cast<std::uint32_t>(loss), 0, 10, 1 + order_peer * 3, 0}};
  }
  static MasterEvent hello(std::uint64_t peer, const std::string& name, std::uint64_t uuid) {
    return master_event::Hello{{peer}, {kProtocolVersion, name, "cpu", uuid, uuid}};
  }
  // What the shell owes, in an order that `random` picks; false if it owes nothing.
  bool settle(unsigned random) {
    if (merge && (random % 2 == 0 || (!testing && !saving && !entering))) {
      std::vector<WorkerId> rejected;
      if (random % 7 == 0) rejected.push_back(merge->contributions.front().worker);
      master_event::Merged merged{merge->merge, {version}, rejected};
      if (random % 3 == 0) merged.not_finite = rejected;
      const bool is_made = rejected.size() < merge->contributions.size();
      if (is_made && !is_put_off(*merge, merged)) merged.version.value = version += 1;
      merge.reset();
      on(merged);
    } else if (entering) {
      entering = false;
      version += 1;
      on(master_event::StageEntered{{version}});
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
  // Liveness: workers that keep reporting bring training to its end.
  void carry_to_the_end() {
    for (std::uint64_t peer = 0; peer < 8; ++peer) on(master_event::PeerLost{{peer}, "gone"});
    for (std::uint64_t peer = 100; peer < 103 && !session.finished(); ++peer) {
      on(hello(peer, "sound" + std::to_string(peer), peer));
      if (welcomes.empty() || welcomes.back().first != peer) continue;   // the end has come
      on(master_event::Ready{{peer}, {welcomes.back().second, 11, 12}});
    }
    for (int step = 0; step < 300 && !session.finished(); ++step) {
      if (settle(1)) continue;
      const auto pending = running;
      RC_ASSERT(!pending.empty());
      for (const auto& [peer, run] : pending) {
        std::uint64_t worker = 0;
        for (const auto& [p, w] : welcomes) worker = p == peer ? w : worker;
        on(master_event::Trained{{peer}, {worker, run, 0, 0, 1, 0, 0}});
      }
    }
    RC_ASSERT(session.finished());
  }

  sim::Violations violations;
  sim::Lineage lineage;
  sim::SessionChecker checker;
  sim::ScheduleChecker* schedule = nullptr;  // of the strategy at work
  MasterSession session;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> welcomes;  // connection, worker
  std::vector<std::pair<std::uint64_t, std::uint64_t>> orders;    // connection, run
  std::optional<master_command::StartMerge> merge;
  std::map<std::uint64_t, std::uint64_t> running;                 // of the last workers
  bool entering = false, testing = false, saving = false;
  std::uint64_t version = 0;
};

// "sync async" is a job of two stages.
MasterConfig random_config(const std::vector<std::string>& strategies, std::size_t salt) {
  MasterConfig config = config_for(1 + salt % 3, 12);
  config.workers_min = 1 + salt / 3 % 2;
  config.workers_max = salt % 7 == 0 ? 5 : 0;
  config.test_interval = 3;
  config.snapshot_interval = 5;
  config.worker_timeout = std::chrono::seconds(20);
  config.stall_timeout = std::chrono::seconds(30);
  config.shard_by_speed = salt % 2 == 0;
  config.stages.clear();
  for (const std::string& name : strategies) {
    Schedule stage;
    stage.strategy.name = name;
    stage.iterations = strategies.size() > 1 ? 2 + salt % 3 : 0;
    stage.weight_by_staleness = name == "async";
    const bool may_be_exact = name == "sync" && config.workers_min == config.workers_start;
    if (may_be_exact && salt / 4 % 2 == 0) stage.strategy.exact_workers = config.workers_start;
    config.stages.push_back(stage);
  }
  return config;
}

void run_sequence(const std::vector<std::string>& strategies,
                  const std::vector<std::uint16_t>& randoms) {
  Master master(random_config(strategies, randoms.size()));
  int milliseconds = 0;
  for (const std::uint16_t random : randoms) {
    if (master.session.finished()) break;
    const unsigned kind = random % 16, rest = random / 16;
    if (kind == 15) {
      for (unsigned i = 0; i < rest % 8; ++i) {
        milliseconds += 1000;
        master.on(master_event::Tick{std::chrono::milliseconds(milliseconds)});
      }
    } else if (kind < 12 || !master.settle(rest)) {
      master.on(master.message(kind, rest));
    }
  }
  if (!master.session.finished()) master.carry_to_the_end();
}

}  // namespace

TEST_CASE("master session under random events, async") {
  CHECK(test::holds_for_seeds({20261121}, kSize, [](const std::vector<std::uint16_t>& randoms) {
    run_sequence({"async"}, randoms);
  }));
}

TEST_CASE("master session under random events, sync") {
  CHECK(test::holds_for_seeds({20261121}, kSize, [](const std::vector<std::uint16_t>& randoms) {
    run_sequence({"sync"}, randoms);
  }));
}

TEST_CASE("master session under random events, sync and async in turn") {
  CHECK(test::holds_for_seeds({20261121}, kSize, [](const std::vector<std::uint16_t>& randoms) {
    run_sequence({"sync", "async"}, randoms);
  }));
}

}  // namespace speedo
