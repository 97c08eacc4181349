#include "actors/system.hpp"

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <speedo/base/limits.hpp>

namespace speedo {
namespace {

constexpr std::size_t kSchedulerThreads = 2;
// Those, and those of its clock, its network and two actors of its own.
constexpr std::size_t kSystemThreads = kSchedulerThreads + 4;
// The gate minds silent connections: how long they may be so is known after CAF has begun.
constexpr std::chrono::hours kNever{24 * 365};

}  // namespace

ActorConfig::ActorConfig() {
  compat::load_modules(*this);
  // Actors only pass on decisions; the cores are for the trainers. The default policy polls when
  // idle and wakes up to 10 ms late, this one waits on a condition.
  set("scheduler.policy", caf::atom("sharing"));
  set("scheduler.max-threads", kSchedulerThreads);
  set("logger.verbosity", caf::atom("quiet"));
  set("logger.console", caf::atom("none"));
  // Off by default in CAF 0.17: by its beats the other side's gate knows that this one is there.
  set("middleman.heartbeat-interval", caf::timespan{kHeartbeatInterval});
  set("middleman.connection-timeout", caf::timespan{kNever});
  set("middleman.app-identifiers",
      std::vector<std::string>{compat::application_name()});
  // Control messages are tiny: decode them where they arrive, in order.
  set("middleman.workers", std::size_t{0});
}

void try_threads() {
  std::vector<std::jthread> threads;
  std::promise<void> all;  // goes before the threads, and lets them go
  const std::shared_future<void> ended = all.get_future().share();
  for (std::size_t i = 0; i < kSystemThreads; ++i) {
    threads.emplace_back([ended] {
      // The heap of a thread takes more address space than its stack.
      const auto heap = std::make_unique<volatile char[]>(1);
      heap[0] = 1;
      ended.wait();
    });
  }
}

}  // namespace speedo
