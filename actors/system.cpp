#include "actors/system.hpp"

#include <string>
#include <vector>

#include <fmt/format.h>

namespace speedo {

ActorConfig::ActorConfig(std::chrono::milliseconds silence) {
  compat::load_modules(*this);
  // Actors only pass on decisions; the cores are for the trainers. The default policy polls when
  // idle and wakes up to 10 ms late, this one waits on a condition.
  set("scheduler.policy", caf::atom("sharing"));
  set("scheduler.max-threads", std::size_t{2});
  set("logger.verbosity", caf::atom("quiet"));
  set("logger.console", caf::atom("none"));
  // Off by default in CAF 0.17: a frozen peer would never be noticed.
  set("middleman.heartbeat-interval", caf::timespan{kHeartbeatInterval});
  set("middleman.connection-timeout", caf::timespan{silence});
  set("middleman.app-identifiers",
      std::vector<std::string>{fmt::format("speedo/{}", kProtocolVersion)});
  // Control messages are tiny: decode them where they arrive, in order.
  set("middleman.workers", std::size_t{0});
}

}  // namespace speedo
