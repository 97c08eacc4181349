#include "actors/transport.hpp"

#include <exception>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <speedo/base/limits.hpp>

#include "actors/listen_probe.hpp"
#include "base/patient_output.hpp"

namespace speedo {
namespace {

// What one kind of node says to another, and nothing else.
std::vector<std::string> messages_between(GateRole from, GateRole to) {
  using compat::wire_name;
  if (to == GateRole::kMaster && from == GateRole::kWorker) {
    return {wire_name<HelloMessage>(),   wire_name<ReadyMessage>(), wire_name<BeatMessage>(),
            wire_name<TrainedMessage>(), wire_name<LeaveMessage>(),
            wire_name<PartAnswerMessage>(), wire_name<StateSavedMessage>()};
  }
  if (to == GateRole::kMaster && from == GateRole::kWatcher) {
    return {wire_name<StatusRequestMessage>()};
  }
  if (to == GateRole::kWatcher && from == GateRole::kMaster) {
    return {wire_name<JobStatusMessage>(), wire_name<WorkerStatusMessage>()};
  }
  if (to == GateRole::kWorker && from == GateRole::kMaster) {
    return {wire_name<WelcomeMessage>(), wire_name<RefusedMessage>(), wire_name<TrainMessage>(),
            wire_name<StopMessage>(), wire_name<PartOrderMessage>(), wire_name<SaveStateMessage>()};
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Gate>> open_gate(GateRole role, const GateFiles& files, bool warns) {
  return Gate::create(
      {.role = role,
       .files = files,
       .protocol = kProtocolVersion,
       .application = compat::application_name(),
       .messages = [role](GateRole peer) { return messages_between(peer, role); },
       .warns = warns,
       .silence = kConnectionTimeout});
}

// The gate's thread leaves its events before another one looks at them.
NetworkService::NetworkService(caf::actor_system& system, Gate& gate) : gate_(gate) {
  events_.emplace(system, gate.events(), [&gate] {
    PatientOutput::never_wait_on_this_thread();
    gate.serve();
  });
  if (!events_->can_begin()) return;
  gate.lend();
  events_->begin();
}

NetworkService::~NetworkService() {
  events_.reset();
  gate_.take_back();
}

Result<std::unique_ptr<Publication>> Publication::create(caf::actor_system& system, Gate& gate,
                                                         const caf::actor& whom,
                                                         const std::string& bind,
                                                         std::uint16_t port) {
  // CAF knows published actors by a port; here it stands for nothing but this actor.
  const auto listening = gate.listen(bind, port, [&system, whom](auto caf_end) {
    compat::serve(system, caf_end->release(), whom);
  });
  if (!listening) return why_not_listening(bind, port);
  return std::unique_ptr<Publication>(new Publication(gate, *listening));
}

void Connector::connect(Address address, std::function<void(Result<caf::actor>)> done) {
  thread_.post([this, address = std::move(address), done = std::move(done)] {
    done(connect_now(address));
  });
}

// CAF may take an actor for gone while the connection stands, be it late about the one before it.
bool Connector::stands(const Address& address) const {
  return standing_ && standing_->address == address && *standing_->alive &&
         !compat::has_ended(standing_->found);
}

// Whatever goes wrong, whoever asked hears of it.
Result<caf::actor> Connector::connect_now(const Address& address) {
  if (stands(address)) return standing_->found;
  standing_.reset();
  try {
    SPEEDO_ASSIGN(GateCall call, gate_.call(address.host, address.port, stop_, tools_));
    const auto alive = call.alive;
    SPEEDO_ASSIGN(const caf::actor found, ask_network(address, std::move(call)));
    standing_ = Standing{address, alive, found};
    return found;
  } catch (const std::exception& exception) {
    return Error{ErrorCode::kInternal, fmt::format("connecting to {}:{} failed: {}", address.host,
                                                   address.port, exception.what())};
  }
}

Result<caf::actor> Connector::ask_network(const Address& address, GateCall call) {
  Result<caf::actor> result = Error{ErrorCode::kUnavailable, "no answer"};
  compat::reach(
      system_, call.caf->release(), kConnectionTimeout,
      [&](const caf::strong_actor_ptr& found) {
        if (found) result = caf::actor_cast<caf::actor>(found);
      },
      [&](const caf::error& error) {
        result = Error{ErrorCode::kUnavailable,
                       fmt::format("master {}:{}: {}", address.host, address.port,
                                   compat::render(system_, error))};
      });
  return result;
}

Result<void> probe_master(const Address& address, const GateFiles& files,
                          const std::string& source) {
  SPEEDO_ASSIGN(const std::unique_ptr<Gate> gate, open_gate(GateRole::kWatcher, files));
  const std::atomic<bool> never{false};
  const auto called = gate->call(address.host, address.port, never, {.source = source});
  if (!called) return called.error();
  return {};
}

}  // namespace speedo
