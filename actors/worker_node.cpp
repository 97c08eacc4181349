#include <algorithm>
#include <future>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "actors/job_worker.hpp"
#include "actors/node.hpp"
#include "actors/system.hpp"
#include "actors/transport.hpp"
#include "actors/worker_actor.hpp"

namespace speedo {
namespace {

// One worker of this process: its work, and how it ended.
struct Member {
  std::unique_ptr<JobWorker> work;
  std::promise<std::optional<Error>> ended;
};

std::uint64_t random_bits() {
  std::random_device source;
  return static_cast<std::uint64_t>(source()) << 32U | source();
}

WorkerConfig member_config(const WorkerOptions& options, std::uint64_t index) {
  WorkerConfig config = options.session;
  config.name = fmt::format("{}/{}", options.name_prefix, index);
  config.master = options.master;
  config.seed += index;
  config.uuid_high = random_bits();
  config.uuid_low = random_bits();
  return config;
}

}  // namespace

Result<void> run_worker(const WorkerOptions& options, const WorkerHooks& hooks,
                        const TrainerParts& parts, const OpenStore& open_store) {
  SPEEDO_ASSIGN(const Address address, parse_address(options.master));
  ActorConfig config;
  caf::actor_system system{config};
  Connector connector(system);
  const WorkerActorHooks shared{
      .connect = [&](auto done) { connector.connect(address, std::move(done)); },
      .poll_stop = [&hooks]() -> std::optional<std::string> {
        return hooks.poll_stop ? hooks.poll_stop() : std::nullopt;
      },
      .on_end = {}};
  std::vector<Member> members(options.count);
  std::vector<caf::actor> actors;  // An actor without a handle may end early.
  for (std::uint64_t index = 0; index < options.count; ++index) {
    Member& member = members[index];
    member.work = std::make_unique<JobWorker>(make_trainer(parts), open_store,
                                              options.store_override);
    WorkerActorHooks own = shared;
    own.on_end = [&member](std::optional<Error> error) {
      member.ended.set_value(std::move(error));
    };
    actors.push_back(system.spawn<WorkerActor>(member_config(options, index), *member.work, own));
  }
  std::optional<Error> first;
  for (Member& member : members) {
    const std::optional<Error> error = member.ended.get_future().get();
    if (error && !first) first = error;
  }
  if (first) return *first;
  return {};
}

}  // namespace speedo
