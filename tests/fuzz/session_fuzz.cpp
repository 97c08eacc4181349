// The state that a master's session leaves for the next one: whatever is taken can be gone on from.
#include <speedo/base/assert.hpp>
#include <speedo/train/master_session.hpp>
#include <speedo/train/strategy.hpp>

#include "fuzz/fuzz_input.hpp"
#include "fuzz/fuzz_target.hpp"

namespace speedo::fuzz {
namespace {

MasterConfig config_of(unsigned strategy, unsigned stages) {
  MasterConfig config;
  config.max_iteration = 100;
  const std::vector<StrategyEntry>& all = strategy_registry();
  Schedule schedule;
  schedule.strategy.name = all[strategy % all.size()].name;
  schedule.update = default_update(schedule.strategy, 2);
  schedule.iterations = stages > 1 ? 10 : 0;
  config.stages.assign(stages, schedule);
  return config;
}

// One worker joins, is told to train and leaves.
void go_on(MasterSession& session) {
  const PeerId peer{1};
  session.on(master_event::Tick{Instant{std::chrono::hours{1}}});
  session.on(master_event::Hello{peer, HelloMessage{.name = "host/1/1", .device = "cpu"}});
  session.on(master_event::Ready{peer, ReadyMessage{.worker = 1}});
  session.on(master_event::Tick{Instant{std::chrono::hours{1} + std::chrono::seconds{1}}});
  session.on(master_event::PeerLost{peer, "gone"});
  session.status();
}

SPEEDO_FUZZ_TARGET(session)(Bytes bytes) {
  Input input(bytes);
  const unsigned strategy = input.byte(), stages = 1U + input.byte() % 3U;
  const MasterConfig config = config_of(strategy, stages);
  if (!check_schedule(config.stages.front())) return;
  const std::string text = input.text();
  static_cast<void>(MasterSession::origin_of(text));
  MasterSession session(config);
  if (!session.restore(text)) return;
  MasterSession again(config);
  SPEEDO_ASSERT(again.restore(session.save()));
  SPEEDO_ASSERT(again.save() == session.save());
  go_on(session);
}

}  // namespace
}  // namespace speedo::fuzz
