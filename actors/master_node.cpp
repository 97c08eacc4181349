#include <chrono>
#include <future>
#include <memory>
#include <utility>

#include <unistd.h>

#include <fmt/format.h>

#include "actors/job_master.hpp"
#include "actors/master_actor.hpp"
#include "actors/node.hpp"
#include "actors/system.hpp"
#include "actors/transport.hpp"
#include "train/job_solver.hpp"

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

// Runs of a restarted master must not be taken for those of the one before.
std::uint64_t first_run() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

Result<std::unique_ptr<JobMaster>> prepare(const MasterOptions& options, const MasterHooks& hooks,
                                           const TrainerParts& parts, const OpenStore& open_store) {
  const MasterConfig& session = options.session;
  SPEEDO_ASSIGN(auto nets,
                JobNets::create(parts, {.job = options.spec,
                                        .with_tests = session.test_interval != 0 ||
                                                      session.test_at_start,
                                        .initial_weights = options.initial_weights}));
  SPEEDO_ASSIGN(std::shared_ptr<ParameterStore> store, open_store(options.store_uri, options.job));
  auto write = hooks.snapshot;
  if (!write) write = [](auto&&...) -> Result<void> { return {}; };
  return JobMaster::create(options, parts, std::move(nets), std::move(store), std::move(write));
}

Result<std::unique_ptr<MasterSession>> make_session(const MasterOptions& options,
                                                    const JobMaster& job) {
  MasterConfig config = options.session;
  config.model = job.model();
  config.store_uri = options.store_uri;
  config.job = options.job;
  config.first_version = job.first_version();
  config.first_run = first_run();
  SPEEDO_ASSIGN(std::unique_ptr<Strategy> strategy, make_strategy(options.strategy));
  return std::make_unique<MasterSession>(std::move(config), std::move(strategy));
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
  SPEEDO_ASSIGN(options.spec, with_seed(std::move(options.spec)));
  // The port first: a master that cannot listen must not touch the store, where another's job may
  // lie.
  ActorConfig config;
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
  SPEEDO_ASSIGN(const std::unique_ptr<JobMaster> job, prepare(options, hooks, parts, open_store));
  SPEEDO_ASSIGN(const std::unique_ptr<MasterSession> session, make_session(options, *job));
  if (hooks.on_listening) {
    hooks.on_listening(fmt::format("speedo://{}:{}", advertised_host(options), port));
  }
  caf::anon_send(actor, BeginMessage{session.get(), job.get()});
  const std::optional<Error> error = ended.get_future().get();
  job->clean_up(session->progress().workers_joined);
  if (error) return *error;
  return session->progress();
}

}  // namespace speedo
