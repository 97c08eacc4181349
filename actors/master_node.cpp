#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <speedo/base/assert.hpp>
#include <speedo/base/clock.hpp>
#include <speedo/base/limits.hpp>
#include <speedo/train/job_end.hpp>

#include "actors/actor_end.hpp"
#include "actors/job_master.hpp"
#include "actors/job_start.hpp"
#include "actors/master_actor.hpp"
#include "actors/master_lease.hpp"
#include "actors/node.hpp"
#include "actors/random_bits.hpp"
#include "actors/reachable_address.hpp"
#include "actors/system.hpp"
#include "actors/transport.hpp"
#include "base/log.hpp"

namespace speedo {
namespace {

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

// Within this time all workers that lost their master have noticed and knocked at the new one. It
// is there for the last of them even if the job turns out to be over.
constexpr std::chrono::milliseconds kReunionTime = kConnectionTimeout + kReconnectLost;

// CAF's own time-out must not be quicker than --worker-timeout: the session notices missing beats,
// and knows better whose fault they are.
std::chrono::milliseconds silence_allowed(const MasterConfig& config) {
  if (config.worker_timeout.count() == 0) return std::chrono::milliseconds{0};
  return std::max<std::chrono::milliseconds>(kConnectionTimeout, 2 * config.worker_timeout);
}

// What workers are told must fit into a message.
Result<void> check_length(const char* flag, const std::string& text) {
  if (text.size() <= kTextMax) return {};
  return Error{ErrorCode::kUsage,
               fmt::format("{}: {} bytes, at most {} are possible", flag, text.size(), kTextMax)};
}

Result<void> check(const MasterOptions& options) {
  SPEEDO_TRY(check_length("--redis", options.store.text()));
  SPEEDO_TRY(check_length("--job", options.job));
  for (const Schedule& stage : options.session.stages) {
    SPEEDO_TRY(check_schedule(stage));
    SPEEDO_TRY([&]() -> Result<void> {
      SPEEDO_ASSIGN([[maybe_unused]] const auto strategy, make_strategy(stage.strategy));
      return {};
    }());
  }
  return {};
}

// Everything of a master but its actor. Members end in the opposite order: the lease goes last,
// when nothing can be written any more.
struct Parts {
  Parts() = default;
  Parts(Parts&&) = default;
  ~Parts() { stop_waiting(); }
  // However training ended, or if it never began: neither store is waited for any longer.
  void stop_waiting() {
    if (lease) lease->stop_waiting();
    if (job) job->stop_waiting();
  }

  std::unique_ptr<MasterLease> lease;
  std::unique_ptr<JobMaster> job;
  std::unique_ptr<MasterSession> session;
  bool resumed = false;
  bool has_orphans = false;  // workers of an earlier master may be looking for this one
};

Result<std::unique_ptr<MasterLease>> claim(const MasterOptions& options, const MasterHooks& hooks,
                                           const OpenStore& open_store,
                                           std::function<void(Error)> lost) {
  MasterLease::Options how{
      .job = options.job, .take_over = options.take_over, .poll_stop = hooks.poll_stop};
  if (!options.initial_session.empty()) {
    // One that cannot be read is refused, or passed over, where it is to be restored.
    const auto origin = MasterSession::origin_of(options.initial_session);
    if (origin) how.epoch_floor = origin->epoch + 1;
  }
  SPEEDO_ASSIGN(std::shared_ptr<ParameterStore> store, open_store(options.store, options.job));
  SPEEDO_ASSIGN(auto lease, MasterLease::claim(std::move(store), std::move(how)));
  lease->keep(std::move(lost));
  return lease;
}

// An earlier master of the job did not end as it should.
bool had_another_master(ParameterStore& store) {
  return store.get_blob(job_key()).has_value() && !store.get_blob(ended_key()).has_value();
}

// Chooses what training goes on from, and makes its session.
Result<JobStart> begin_session(MasterOptions& options, const MasterHooks& hooks,
                               ParameterStore& store, JobNets& nets, Parts& made) {
  MasterConfig& config = options.session;
  SPEEDO_ASSIGN(JobStart start, find_start(options, config, nets, store));
  const std::string& state = start.checkpoint.session;
  config.first_version = Version{start.checkpoint.version.value + 1};
  if (start.from_store) config.training = {};
  made.resumed = start.from_store || !state.empty() || config.training.is_known();
  while (!config.training.is_known()) config.training = {random_bits(), random_bits()};
  made.has_orphans = had_another_master(store);
  made.session = std::make_unique<MasterSession>(config);
  if (!state.empty()) SPEEDO_TRY(made.session->restore(state));
  if (hooks.on_training) {
    SPEEDO_TRY(hooks.on_training(made.session->training(), !made.resumed));
  }
  if (!start.from_store) {
    SPEEDO_TRY(store.clear());
  } else if (made.has_orphans) {
    // Nobody reads what the workers of a master that died have left.
    SPEEDO_TRY(store.clear_contributions());
  }
  return start;
}

// The nets before the claim: a job that cannot run must not take the store from another master, nor
// change anything there.
Result<Parts> prepare(MasterOptions& options, const MasterHooks& hooks, const TrainerParts& parts,
                      const OpenStore& open_store, std::function<void(Error)> lost) {
  Parts made;
  MasterConfig& config = options.session;
  SPEEDO_ASSIGN(std::shared_ptr<ParameterStore> store, open_store(options.store, options.job));
  SPEEDO_ASSIGN(options.spec, with_seed_of_job(std::move(options.spec), options.resume, *store));
  SPEEDO_ASSIGN(auto nets, JobNets::create(parts, {.job = options.spec,
                                                   .with_tests = config.test_interval != 0 ||
                                                                 config.test_at_start,
                                                   .initial_weights = options.initial_weights,
                                                   .initial_state = options.initial_state}));
  if (hooks.admit) {
    const auto floats = static_cast<std::int64_t>(sizeof(float));
    SPEEDO_TRY(hooks.admit(nets->layout().parameter_count() * floats));
  }
  SPEEDO_ASSIGN(made.lease, claim(options, hooks, open_store, std::move(lost)));
  options.merger.epoch = config.epoch = config.first_run = made.lease->epoch();
  store->fence(config.epoch);

  config.model = nets->layout().digest();
  SPEEDO_ASSIGN(JobStart start, begin_session(options, hooks, *store, *nets, made));
  auto write = hooks.snapshot;
  if (!write) write = [](const SnapshotParts&) -> Result<void> { return {}; };
  SPEEDO_ASSIGN(made.job, JobMaster::create(options, parts, std::move(nets), std::move(store),
                                            std::move(start.checkpoint), std::move(write)));
  SPEEDO_ASSIGN(
      const Version first,
      made.job->begin(made.session->progress().stage, made.session->save(),
                      {.store_timeout = config.store_timeout, .poll_stop = hooks.poll_stop}));
  SPEEDO_ASSERT(first == config.first_version);
  return made;
}

// A master whose actor is gone need not wait for a lease any longer.
MasterHooks stopped_with(MasterHooks hooks, const ActorEnd& end) {
  hooks.poll_stop = [poll = std::move(hooks.poll_stop), &end]() -> std::optional<std::string> {
    if (end.over()) return "its actor has ended";
    return poll ? poll() : std::nullopt;
  };
  return hooks;
}

void say_where(const MasterOptions& options, const Parts& made) {
  if (!made.resumed) return;
  SPEEDO_INFO("Job '{}': training {} goes on from iteration {}", options.job,
              short_name(made.session->training()), made.session->progress().iteration);
  if (made.session->progress().iteration > options.session.max_iteration) {
    SPEEDO_WARN("It is of iteration {}, above --max-iter {}: nothing is left to train",
                made.session->progress().iteration, options.session.max_iteration);
  }
}

}  // namespace

Result<MasterProgress> run_master(const MasterOptions& given, const MasterHooks& hooks,
                                  const TrainerParts& parts, const OpenStore& open_store) {
  MasterOptions options = given;
  SPEEDO_TRY(check(options));
  options.merger.stages = options.spec.stages = updates_of(options.session.stages);
  options.session.store = options.store;
  options.session.job = options.job;
  // The port first: a master that cannot listen must not touch the store, where another's job may
  // lie. Workers that knock before it is ready wait in the actor's mailbox.
  ActorConfig config(silence_allowed(options.session));
  caf::actor_system system{config};
  ActorEnd end("the master");
  const caf::actor actor = system.spawn<MasterActor>(MasterActorHooks{
      .poll_stop = [&hooks]() -> std::optional<std::string> {
        return hooks.poll_stop ? hooks.poll_stop() : std::nullopt;
      },
      .stop_wants_snapshot = hooks.stop_wants_snapshot,
      .poll_snapshot = [&hooks] { return hooks.poll_snapshot && hooks.poll_snapshot(); },
      .on_progress =
          [&hooks](const MasterProgress& progress, const std::vector<TestScores>* scores) {
            if (hooks.on_progress) hooks.on_progress(progress, scores);
          },
      .on_end = end.last_word()});
  end.watch(actor);
  SPEEDO_ASSIGN(const std::uint16_t port, publish(system, actor, options.bind, options.port));
  end.watch_need("the network", network_of(system));
  const auto lost = [actor](Error error) {
    caf::anon_send(actor, MasterNotice{master_event::StoreLost{std::move(error)}, {}});
  };
  auto prepared = prepare(options, stopped_with(hooks, end), parts, open_store, lost);
  if (end.over()) return *end.wait();
  SPEEDO_ASSIGN(Parts made, std::move(prepared));
  say_where(options, made);
  if (hooks.on_listening) {
    hooks.on_listening(speedo_address(advertised_host(options), port));
  }
  const std::uint64_t first_worker = made.session->progress().worker_ids;
  caf::anon_send(actor, BeginMessage{made.session.get(), made.job.get(),
                                     made.has_orphans ? steady_clock().now() + kReunionTime
                                                             : Instant{0}});
  const std::optional<Error> error = end.wait();
  made.stop_waiting();
  const bool superseded = error && error->code == ErrorCode::kSuperseded;
  // One that broke off told its workers nothing: they look for the next master.
  if (!superseded && !end.broken()) {
    made.job->erase_workers(first_worker, made.session->progress().worker_ids);
    if (!another_follows(error)) made.job->put_end();
  }
  if (error) return *error;
  return made.session->progress();
}

}  // namespace speedo
