#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>

#include <speedo/base/assert.hpp>
#include <speedo/base/clock.hpp>
#include <speedo/base/limits.hpp>

#include "actors/job_master.hpp"
#include "actors/job_start.hpp"
#include "actors/master_actor.hpp"
#include "actors/master_lease.hpp"
#include "actors/node.hpp"
#include "actors/system.hpp"
#include "actors/transport.hpp"
#include "base/log.hpp"

namespace speedo {
namespace {

// An address that means "every interface" tells workers nothing; the machine's name does.
std::string advertised_host(const MasterOptions& options) {
  if (!options.host.empty()) return options.host;
  const bool is_wildcard =
      options.bind.empty() || options.bind == "0.0.0.0" || options.bind == "::";
  if (!is_wildcard) return options.bind;
  char name[256] = {};
  return ::gethostname(name, sizeof(name) - 1) == 0 ? name : "localhost";
}

// Within this time all workers that lost their master have noticed and knocked at the new one. It
// is there for the last of them even if the job turns out to be over.
constexpr std::chrono::milliseconds kReunionTime = kConnectionTimeout + kReconnectLost;

// CAF's own time-out must not be quicker than --worker-timeout: the session notices missing beats,
// and knows better whose fault they are.
std::chrono::milliseconds silence_allowed(const MasterConfig& config) {
  if (config.worker_timeout.count() == 0) return std::chrono::milliseconds{0};
  return std::max<std::chrono::milliseconds>(kConnectionTimeout, 2 * config.worker_timeout);
}

Result<void> check(const MasterOptions& options) {
  for (const Schedule& stage : options.session.stages) {
    SPEEDO_TRY(check_schedule(stage));
    SPEEDO_TRY([&]() -> Result<void> {
      SPEEDO_ASSIGN([[maybe_unused]] const auto strategy, make_strategy(stage.strategy));
      return {};
    }());
  }
  return {};
}

std::vector<UpdateSpec> updates_of(const std::vector<Schedule>& stages) {
  std::vector<UpdateSpec> updates;
  for (const Schedule& stage : stages) updates.push_back(stage.update);
  return updates;
}

// Everything of a master but its actor. Members end in the opposite order: the lease goes last,
// when nothing can be written any more.
struct Parts {
  std::unique_ptr<MasterLease> lease;
  std::unique_ptr<JobMaster> job;
  std::unique_ptr<MasterSession> session;
  bool resumed = false;
};

Result<std::unique_ptr<MasterLease>> claim(const MasterOptions& options, const MasterHooks& hooks,
                                           const OpenStore& open_store,
                                           std::function<void(Error)> lost) {
  SPEEDO_ASSIGN(std::shared_ptr<ParameterStore> store, open_store(options.store_uri, options.job));
  SPEEDO_ASSIGN(auto lease, MasterLease::claim(std::move(store), {.job = options.job,
                                                                  .take_over = options.take_over,
                                                                  .poll_stop = hooks.poll_stop}));
  lease->keep(std::move(lost));
  return lease;
}

// The nets before the claim: a job that cannot run must not take the store from another master, nor
// change anything there.
Result<Parts> prepare(MasterOptions& options, const MasterHooks& hooks, const TrainerParts& parts,
                      const OpenStore& open_store, std::function<void(Error)> lost) {
  Parts made;
  MasterConfig& config = options.session;
  SPEEDO_ASSIGN(std::shared_ptr<ParameterStore> store, open_store(options.store_uri, options.job));
  SPEEDO_ASSIGN(options.spec, with_seed_of_job(std::move(options.spec), options.resume, *store));
  SPEEDO_ASSIGN(auto nets, JobNets::create(parts, {.job = options.spec,
                                                   .with_tests = config.test_interval != 0 ||
                                                                 config.test_at_start,
                                                   .initial_weights = options.initial_weights,
                                                   .initial_state = options.initial_state}));
  SPEEDO_ASSIGN(made.lease, claim(options, hooks, open_store, std::move(lost)));
  options.merger.epoch = config.epoch = config.first_run = made.lease->epoch();
  store->fence(config.epoch);

  config.model = nets->layout().digest();
  SPEEDO_ASSIGN(JobStart start, find_start(options, config, *nets, *store));
  made.resumed = start.from_store || !start.checkpoint.session.empty();
  config.first_version = Version{start.checkpoint.version.value + 1};
  made.session = std::make_unique<MasterSession>(config);
  if (!start.checkpoint.session.empty()) {
    SPEEDO_TRY(made.session->restore(start.checkpoint.session));
  }
  auto write = hooks.snapshot;
  if (!write) write = [](const SnapshotParts&) -> Result<void> { return {}; };
  SPEEDO_ASSIGN(made.job, JobMaster::create(options, parts, std::move(nets), std::move(store),
                                            std::move(start.checkpoint), std::move(write)));
  SPEEDO_ASSIGN(const Version first,
                made.job->begin(made.session->progress().stage, made.session->save()));
  SPEEDO_ASSERT(first == config.first_version);
  return made;
}

void say_where(const MasterOptions& options, const Parts& made) {
  if (!made.resumed) return;
  SPEEDO_INFO("Job '{}' goes on from iteration {}", options.job,
              made.session->progress().iteration);
}

// Ends the actor when the master gives up before it began; the system would wait for it.
class ActorEnd {
 public:
  explicit ActorEnd(caf::actor actor) : actor_(std::move(actor)) {}
  ~ActorEnd() { caf::anon_send_exit(actor_, caf::exit_reason::user_shutdown); }
  ActorEnd(const ActorEnd&) = delete;
  ActorEnd& operator=(const ActorEnd&) = delete;

 private:
  caf::actor actor_;
};

}  // namespace

Result<MasterProgress> run_master(const MasterOptions& given, const MasterHooks& hooks,
                                  const TrainerParts& parts, const OpenStore& open_store) {
  MasterOptions options = given;
  SPEEDO_TRY(check(options));
  options.merger.stages = options.spec.stages = updates_of(options.session.stages);
  options.session.store_uri = options.store_uri;
  options.session.job = options.job;
  // The port first: a master that cannot listen must not touch the store, where another's job may
  // lie. Workers that knock before it is ready wait in the actor's mailbox.
  ActorConfig config(silence_allowed(options.session));
  caf::actor_system system{config};
  std::promise<std::optional<Error>> ended;
  const caf::actor actor = system.spawn<MasterActor>(MasterActorHooks{
      .poll_stop = [&hooks]() -> std::optional<std::string> {
        return hooks.poll_stop ? hooks.poll_stop() : std::nullopt;
      },
      .on_progress =
          [&hooks](const MasterProgress& progress, const std::vector<TestScores>* scores) {
            if (hooks.on_progress) hooks.on_progress(progress, scores);
          },
      .on_end = [&ended](std::optional<Error> error) { ended.set_value(std::move(error)); }});
  const ActorEnd at_return(actor);
  SPEEDO_ASSIGN(const std::uint16_t port, publish(system, actor, options.bind, options.port));
  const auto lost = [actor](Error error) {
    caf::anon_send(actor, MasterNotice{master_event::StoreLost{std::move(error)}, {}});
  };
  SPEEDO_ASSIGN(Parts made, prepare(options, hooks, parts, open_store, lost));
  say_where(options, made);
  if (hooks.on_listening) {
    hooks.on_listening(fmt::format("speedo://{}:{}", advertised_host(options), port));
  }
  const std::uint64_t first_worker = made.session->progress().worker_ids;
  caf::anon_send(actor, BeginMessage{made.session.get(), made.job.get(),
                                     made.job->has_orphans() ? steady_clock().now() + kReunionTime
                                                             : Instant{0}});
  const std::optional<Error> error = ended.get_future().get();
  const bool superseded = error && error->code == ErrorCode::kSuperseded;
  if (!superseded) made.job->clean_up(first_worker, made.session->progress().worker_ids);
  if (error) return *error;
  return made.session->progress();
}

}  // namespace speedo
