#include "actors/status_client.hpp"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include <speedo/base/clock.hpp>
#include <speedo/base/limits.hpp>

#include "actors/system.hpp"
#include "actors/transport.hpp"
#include "actors/wire.hpp"
#include "base/answer.hpp"
#include "train/note_text.hpp"
#include "train/status_messages.hpp"

namespace speedo {
namespace {

constexpr std::chrono::milliseconds kPoll{50};

Error stopped_error(const std::string& reason) {
  return Error{ErrorCode::kUnavailable, "stopped: " + reason};
}

}  // namespace

struct StatusClient::Impl {
  Impl(Address master_in, std::unique_ptr<Gate> gate_in,
       std::function<std::optional<std::string>()> poll_stop_in)
      : address(std::move(master_in)),
        poll_stop(std::move(poll_stop_in)),
        gate(std::move(gate_in)) {}

  Result<void> connect();
  Result<JobStatus> ask();
  Result<JobStatus> receive();

  const Address address;
  const std::function<std::optional<std::string>()> poll_stop;
  const std::unique_ptr<Gate> gate;
  ActorConfig config;
  caf::actor_system system{config};
  Connector connector{system, *gate};
  caf::scoped_actor self{system};
  caf::actor master;  // null while there is no connection
  Instant answered_at = Instant{0} - kStatusPause;
};

StatusClient::StatusClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

StatusClient::StatusClient(StatusClient&&) noexcept = default;

Result<StatusClient> StatusClient::create(Address master, const GateFiles& files,
                                          std::function<std::optional<std::string>()> poll_stop) {
  SPEEDO_ASSIGN(std::unique_ptr<Gate> gate, open_gate(GateRole::kWatcher, files));
  try_threads();
  return StatusClient(
      std::make_unique<Impl>(std::move(master), std::move(gate), std::move(poll_stop)));
}

StatusClient::~StatusClient() = default;

Result<void> StatusClient::Impl::connect() {
  const auto found = std::make_shared<Answer<Result<caf::actor>>>(real_platform());
  connector.connect(address, [found](Result<caf::actor> actor) { found->set(std::move(actor)); });
  while (!found->wait_for(kPoll)) {
    if (const auto reason = poll_stop()) return stopped_error(*reason);
  }
  SPEEDO_ASSIGN(master, found->wait());
  self->monitor(master);
  return {};
}

// What is left of an earlier answer begins or ends nothing.
Result<JobStatus> StatusClient::Impl::receive() {
  StatusAssembly assembly;
  std::optional<std::string> lost;
  const Instant deadline = steady_clock().now() + kAnswerTimeout;
  tell(self.ptr(), master, StatusRequestMessage{});
  while (true) {
    self->receive([&](const JobStatusMessage& message) { assembly.begin(clipped(message)); },
                  [&](const WorkerStatusMessage& message) { assembly.add(clipped(message)); },
                  [&](const caf::down_msg& message) {
                    if (message.source != master.address()) return;
                    lost = compat::departure(self->home_system(), message.reason);
                  },
                  caf::after(kPoll) >> [] {});
    if (auto status = assembly.take()) return std::move(*status);
    if (const auto reason = poll_stop()) return stopped_error(*reason);
    if (!lost && steady_clock().now() > deadline) {
      lost = fmt::format("no answer in {} s; it may still be preparing the job, or is no master of "
                         "this version",
                         whole_seconds(kAnswerTimeout));
    }
    if (lost) {
      return Error{ErrorCode::kUnavailable,
                   fmt::format("master {}:{}: {}", address.host, address.port, *lost)};
    }
  }
}

// A master gives no second answer so soon after the first.
Result<JobStatus> StatusClient::Impl::ask() {
  if (!master) SPEEDO_TRY(connect());
  while (steady_clock().now() < answered_at + kStatusPause) real_platform().sleep(kPoll);
  auto status = receive();
  answered_at = steady_clock().now();
  if (!status) master = nullptr;
  return status;
}

Result<JobStatus> StatusClient::ask() { return impl_->ask(); }

}  // namespace speedo
