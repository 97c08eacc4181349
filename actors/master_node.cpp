#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <speedo/base/assert.hpp>
#include <speedo/base/clock.hpp>
#include <speedo/base/limits.hpp>

#include "actors/actor_end.hpp"
#include "actors/master_actor.hpp"
#include "actors/master_reports.hpp"
#include "actors/node.hpp"
#include "actors/node_actors.hpp"
#include "actors/reachable_address.hpp"
#include "actors/system.hpp"
#include "actors/transport.hpp"
#include "base/log.hpp"
#include "train/job/master_run.hpp"

namespace speedo {
namespace {

// A terminal that takes nothing keeps a master from its end no longer than this.
constexpr std::chrono::seconds kReportTime{2};

Result<void> check_announced(const MasterOptions& options) {
  if (options.host.empty() && is_wildcard(options.bind)) return {};
  const std::string& host = options.host.empty() ? options.bind : options.host;
  if (is_announceable(host)) return {};
  return usage_error(fmt::format("{} '{}' is nothing that workers could call: give a name or an "
                                 "address of this machine, without a port, and none that stands "
                                 "for every interface",
                                 options.host.empty() ? "--bind" : "--host", host));
}

// The machine's own name is of no use to others: it often stands for the loopback there and here.
std::string advertised_host(const MasterOptions& options) {
  if (!options.host.empty()) return options.host;
  if (!is_wildcard(options.bind)) return options.bind;
  const std::string found = reachable_address(options.bind);
  if (!found.empty()) return found;
  SPEEDO_WARN("this machine has no network address but the loopback's, so only its own workers "
              "reach the master at what is announced; give what others reach with --host");
  return options.bind == "::" ? "::1" : "127.0.0.1";
}

// Within this time all workers that lost their master have noticed and connected to the new one. It
// is there for the last of them even if the job turns out to be over.
std::chrono::milliseconds reunion_time(const MasterConfig& config) {
  return std::max(std::chrono::milliseconds(silence_ms_of(config)), kConnectionTimeout) +
         kReconnectLost;
}

// The gate must not be quicker than --worker-timeout: the session notices missing beats, and knows
// better whose fault they are.
std::chrono::milliseconds silence_borne(const MasterConfig& config) {
  if (config.worker_timeout.count() == 0) return std::chrono::milliseconds{0};
  return std::max<std::chrono::milliseconds>(kConnectionTimeout, 2 * config.worker_timeout);
}

// A master whose actor is gone need not wait for a lease any longer.
MasterHooks stopped_with(MasterHooks hooks, const ActorEnd& end) {
  hooks.poll_stop = [poll = std::move(hooks.poll_stop), &end]() -> std::optional<std::string> {
    if (end.over()) return "its actor has ended";
    return poll ? poll() : std::nullopt;
  };
  return hooks;
}

// What the actor asks, it asks at once; what it tells takes its time.
MasterActorHooks actor_hooks(const MasterHooks& hooks, MasterReports& reports, ActorEnd& end) {
  return {.poll_stop = [&hooks, &reports]() -> std::optional<std::string> {
            if (reports.are_broken()) return "its reports broke off";
            return hooks.poll_stop ? hooks.poll_stop() : std::nullopt;
          },
          .stop_wants_snapshot = hooks.stop_wants_snapshot,
          .poll_snapshot = [&hooks] { return hooks.poll_snapshot && hooks.poll_snapshot(); },
          .on_progress =
              [&reports](const MasterProgress& progress, const std::vector<TestScores>* scores) {
                reports.progress(progress, scores);
              },
          .on_tested = hooks.on_tested,
          .on_status = [&reports](JobStatus status) { reports.status(std::move(status)); },
          .on_note = [&reports](bool is_warning,
                                std::string text) { reports.note(is_warning, std::move(text)); },
          .on_end = end.last_word()};
}

void say_where(const MasterOptions& options, MasterRun& made) {
  if (!made.resumed()) return;
  const std::uint64_t iteration = made.session().progress().iteration;
  SPEEDO_INFO("Job '{}': training {} goes on from iteration {}", options.job,
              short_name(made.session().training()), iteration);
  if (iteration > options.session.max_iteration) {
    SPEEDO_WARN("It is of iteration {}, above --max-iter {}: nothing is left to train",
                iteration, options.session.max_iteration);
  }
}

}  // namespace

Result<MasterProgress> run_master(const MasterOptions& options, const MasterHooks& hooks,
                                  const TrainerParts& parts, const OpenStore& open_store,
                                  const MasterGate& gate) {
  return run_master_seen({options, hooks, parts, open_store, gate}, {});
}

Result<MasterProgress> run_master_seen(const MasterArguments& node, const ActorSeen& seen) {
  const auto& [given, hooks, parts, open_store, guarded] = node;
  SPEEDO_ASSIGN(const MasterOptions options, complete(given));
  SPEEDO_TRY(check_announced(options));
  // It outlives the system, whose last words go out through it.
  SPEEDO_ASSIGN(const std::unique_ptr<Gate> gate,
                open_gate(GateRole::kMaster, guarded.files, guarded.warns));
  // The port first: a master that cannot listen must not touch the store, where another's job may
  // lie. Workers that connect before it is ready wait in the actor's mailbox.
  gate->bear_silence(silence_borne(options.session));
  ActorConfig config;
  try_threads();
  caf::actor_system system{config};
  const NetworkService service(system, *gate);
  MasterReports reports(hooks);
  ActorEnd end("the master");
  const caf::actor actor = system.spawn<MasterActor>(actor_hooks(hooks, reports, end));
  end.watch(actor);
  if (seen) seen(actor);
  SPEEDO_ASSIGN(const std::unique_ptr<Publication> published,
                Publication::create(system, *gate, actor, options.bind, options.port));
  end.watch_need("the network", compat::network_broker(system));
  const auto lost = [actor](Error error) {
    caf::anon_send(actor, MasterNotice{master_event::StoreLost{std::move(error)}, {}});
  };
  const MasterHooks stoppable = stopped_with(hooks, end);
  auto prepared = MasterRun::prepare(
      options, {.hooks = stoppable, .parts = parts, .open_store = open_store, .lost = lost});
  if (end.over()) return *end.wait();
  SPEEDO_ASSIGN(MasterRun made, std::move(prepared));
  say_where(options, made);
  if (hooks.on_listening) {
    hooks.on_listening(speedo_address(advertised_host(options), published->port()));
  }
  caf::anon_send(actor, BeginMessage{&made.session(), &made.job(),
                                     made.has_orphans()
                                         ? steady_clock().now() + reunion_time(options.session)
                                         : Instant{0}});
  const std::optional<Error> error = end.wait();
  reports.flush_within(kReportTime);
  // What is left to do may outlast the time that a signal leaves, and with it the report.
  if (error && hooks.poll_stop && hooks.poll_stop()) SPEEDO_ERROR("{}", error->message);
  // One that broke off told its workers nothing.
  made.end(error, end.broken());
  const auto told = reports.flush();
  if (error) return *error;
  SPEEDO_TRY(told);
  return made.session().progress();
}

}  // namespace speedo
