#include <atomic>
#include <list>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "actors/actor_end.hpp"
#include "actors/node.hpp"
#include "actors/node_actors.hpp"
#include "actors/system.hpp"
#include "actors/transport.hpp"
#include "actors/worker_actor.hpp"
#include "base/random_bits.hpp"
#include "train/job/job_part.hpp"
#include "train/job/job_worker.hpp"

namespace speedo {
namespace {

// One worker of this process: its work, and the end of its actor, which goes first.
struct Member {
  Member(std::uint64_t index, std::unique_ptr<WorkerWork> work_in, JobPart* part_in)
      : work(std::move(work_in)),
        part(part_in),
        end(fmt::format("worker {} of this process", index)) {}

  std::unique_ptr<WorkerWork> work;
  JobPart* part;  // the work, where it merges
  ActorEnd end;
};

void add_member(const WorkerOptions& options, const TrainerParts& parts,
                const OpenStore& open_store, std::list<Member>& members) {
  const std::uint64_t index = members.size();
  if (options.merges_part) {
    auto part = std::make_unique<JobPart>(
        parts, open_store,
        WelcomedStore::Options{.store_override = options.store_override,
                               .store_timeout = options.store_timeout,
                               .platform = parts.platform});
    JobPart* const work = part.get();
    members.emplace_back(index, std::move(part), work);
    return;
  }
  members.emplace_back(index,
                       std::make_unique<JobWorker>(
                           make_trainer(parts), open_store,
                           JobWorker::Options{.store_override = options.store_override,
                                              .store_timeout = options.store_timeout,
                                              .find_door = options.find_door}),
                       nullptr);
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
  return run_worker_seen({options, hooks, parts, open_store}, {});
}

Result<void> run_worker_seen(const WorkerArguments& node, const ActorSeen& seen) {
  const auto& [options, hooks, parts, open_store] = node;
  SPEEDO_ASSIGN(const Address address, parse_address(options.master));
  // It outlives the system, whose last words go out through it.
  SPEEDO_ASSIGN(const std::unique_ptr<Gate> gate, open_gate(GateRole::kWorker, options.gate));
  ActorConfig config;
  try_threads();
  caf::actor_system system{config};
  const NetworkService service(system, *gate);
  Connector connector(system, *gate, {.source = options.source});
  std::atomic<bool> one_is_broken{false};  // A process that loses a worker ends: the others leave.
  std::list<Member> members;
  for (std::uint64_t index = 0; index < options.count; ++index) {
    add_member(options, parts, open_store, members);
  }
  for (std::uint64_t index = 0; Member& member : members) {
    const caf::actor actor = system.spawn<WorkerActor>(
        member_config(options, index++), *member.work,
        WorkerActorHooks{
            .connect = [&](auto done) { connector.connect(address, std::move(done)); },
            .poll_stop = [&]() -> std::optional<std::string> {
              if (one_is_broken) return "another worker of its process broke off";
              return hooks.poll_stop ? hooks.poll_stop() : std::nullopt;
            },
            .bear_silence = [&](auto silence) { gate->bear_silence(silence); },
            .on_end = member.end.last_word(),
            .part = member.part});
    member.end.watch(actor, [&] { one_is_broken = true; });
    if (seen) seen(actor);
    member.end.watch_need("the network", compat::network_broker(system));
  }
  std::optional<Error> first;
  for (Member& member : members) {
    const std::optional<Error> error = member.end.wait();
    if (error && (!first || member.end.broken())) first = error;
  }
  if (first) return *first;
  return {};
}

}  // namespace speedo
