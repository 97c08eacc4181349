#pragma once

// The way in to CAF for the other files of this folder, and the place for what differs between its
// versions. This is CAF 0.17.
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include <fcntl.h>

#include "caf/all.hpp"
#include "caf/io/all.hpp"
#include "caf/io/basp_broker.hpp"
#include "caf/io/network/default_multiplexer.hpp"

#include <speedo/train/messages.hpp>

namespace speedo {

// A message that names its fields can travel.
template <class M>
concept WireMessage = requires(M message) { message.fields(); };

template <class Inspector, WireMessage M>
typename Inspector::result_type inspect(Inspector& inspector, M& message) {
  return std::apply([&](auto&... field) { return inspector(field...); }, message.fields());
}

}  // namespace speedo

// The order is the wire format.
CAF_BEGIN_TYPE_ID_BLOCK(speedo, caf::first_custom_type_id)
CAF_ADD_TYPE_ID(speedo, (speedo::HelloMessage))
CAF_ADD_TYPE_ID(speedo, (speedo::WelcomeMessage))
CAF_ADD_TYPE_ID(speedo, (speedo::RefusedMessage))
CAF_ADD_TYPE_ID(speedo, (speedo::ReadyMessage))
CAF_ADD_TYPE_ID(speedo, (speedo::TrainMessage))
CAF_ADD_TYPE_ID(speedo, (speedo::TrainedMessage))
CAF_ADD_TYPE_ID(speedo, (speedo::LeaveMessage))
CAF_ADD_TYPE_ID(speedo, (speedo::StopMessage))
CAF_ADD_TYPE_ID(speedo, (speedo::BeatMessage))
CAF_ADD_TYPE_ID(speedo, (speedo::StatusRequestMessage))
CAF_ADD_TYPE_ID(speedo, (speedo::JobStatusMessage))
CAF_ADD_TYPE_ID(speedo, (speedo::WorkerStatusMessage))
CAF_ADD_TYPE_ID(speedo, (speedo::PartOrderMessage))
CAF_ADD_TYPE_ID(speedo, (speedo::PartAnswerMessage))
CAF_ADD_TYPE_ID(speedo, (speedo::SaveStateMessage))
CAF_ADD_TYPE_ID(speedo, (speedo::StateSavedMessage))
CAF_END_TYPE_ID_BLOCK(speedo)

// SPEEDO_LOCAL_MESSAGE(type): may be sent within the process only. It has no wire format; a peer
// that sends one is cut off.
#define SPEEDO_LOCAL_MESSAGE(type) CAF_ALLOW_UNSAFE_MESSAGE_TYPE(type)

namespace speedo::compat {

// Registers this program's messages and the network module.
inline void load_modules(caf::actor_system_config& config) {
  config.load<caf::io::middleman>();
  config.add_message_types<caf::id_block::speedo>();
}

// What two nodes of this program's protocol call it.
inline std::string application_name() { return "speedo/" + std::to_string(kProtocolVersion); }

// What a message's type is called where it travels.
template <WireMessage M>
std::string wire_name() {
  return caf::type_name<M>::value;
}

// CAF's own actor for all connections of a system: without it nothing can be reached.
inline caf::actor network_broker(caf::actor_system& system) {
  return system.middleman().named_broker<caf::io::basp_broker>(caf::atom("BASP"));
}

// Nobody listens at it: CAF wants a port for whom it publishes.
inline constexpr std::uint16_t kNominalPort = 1;

inline caf::io::network::default_multiplexer& network_of(caf::actor_system& system) {
  return dynamic_cast<caf::io::network::default_multiplexer&>(system.middleman().backend());
}

// One connection of CAF's over a socket, which is CAF's from here on.
inline caf::io::scribe_ptr scribe_of(caf::actor_system& system, int socket) {
  return network_of(system).new_scribe(socket);
}

// Serves `whom` to the peer at the other end of `socket`.
inline void serve(caf::actor_system& system, int socket, const caf::actor& whom) {
  caf::anon_send(network_broker(system), caf::publish_atom::value, scribe_of(system, socket),
                 kNominalPort, caf::actor_cast<caf::strong_actor_ptr>(whom),
                 std::set<std::string>{});
}

// Finds whom the peer at the other end of `socket` serves. Blocking.
template <class Found, class Failed>
void reach(caf::actor_system& system, int socket, std::chrono::milliseconds patience, Found found,
           Failed failed) {
  caf::scoped_actor self{system};
  self->request(network_broker(system), caf::duration{patience}, caf::connect_atom::value,
                scribe_of(system, socket), kNominalPort)
      .receive([&](const caf::node_id&, const caf::strong_actor_ptr& whom,
                   const std::set<std::string>&) { found(whom); },
               [&](caf::error& error) { failed(error); });
}

// From begin() on until its end, `serve` is called on CAF's network thread whenever `events` can be
// read.
class NetworkEvents final : private caf::io::network::event_handler {
 public:
  // Takes a copy of the descriptor.
  NetworkEvents(caf::actor_system& system, int events, std::function<void()> serve)
      : event_handler(network_of(system), ::fcntl(events, F_DUPFD_CLOEXEC, 0)),
        serve_(std::move(serve)) {}
  // Requires: not on that thread.
  ~NetworkEvents() override {
    if (!has_begun_) return;
    backend().post([this] { passivate(); });
    gone_.get_future().get();
  }
  bool can_begin() const { return fd() >= 0; }  // false: there was no descriptor left
  void begin() {
    has_begun_ = true;
    backend().post([this] { activate(); });
  }

 private:
  void handle_event(caf::io::network::operation /*op*/) override { serve_(); }
  void removed_from_loop(caf::io::network::operation /*op*/) override { gone_.set_value(); }
  void graceful_shutdown() override {}

  const std::function<void()> serve_;
  bool has_begun_ = false;
  std::promise<void> gone_;
};

inline std::string render(const caf::actor_system& system, const caf::error& error) {
  return system.render(error);
}

template <class Self, class Message>
void send_after(Self* self, std::chrono::milliseconds delay, Message message) {
  self->delayed_send(self, delay, std::move(message));
}

// Why a peer is gone, for people. CAF does not know more of one that ended before it was monitored.
inline std::string departure(const caf::actor_system& system, const caf::error& reason) {
  if (reason == caf::exit_reason::remote_link_unreachable) return "its connection broke";
  if (reason == caf::exit_reason::unknown) return "it has ended";
  if (!reason || reason == caf::exit_reason::normal) return "it has left";
  return render(system, reason);
}

// `handler` gets the address of each monitored actor that is gone, and why.
template <class Self, class Handler>
void on_down(Self* self, Handler handler) {
  self->set_down_handler([self, handler](caf::down_msg& message) {
    handler(message.source, departure(self->system(), message.reason));
  });
}

// An exception in a handler ends the actor, with what it says as the cause.
template <class Self>
void end_on_exceptions(Self* self) {
  self->set_exception_handler([](std::exception_ptr& thrown) -> caf::error {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& exception) {
      return caf::make_error(caf::sec::runtime_error, std::string(exception.what()));
    } catch (...) {
      return caf::make_error(caf::sec::runtime_error, std::string("not a std::exception"));
    }
  });
}

// Whether it has ended: another process' also when the connection broke by which it was found. On
// any thread.
inline bool has_ended(const caf::actor& actor) {
  return caf::actor_cast<caf::abstract_actor*>(actor)->getf(
      caf::abstract_actor::is_cleaned_up_flag);
}

// Calls `handler` once, with the cause, when `actor` ends, whatever ends it; at once if it has
// ended. The actor handles no message any more then. On any thread.
template <class Handler>
void on_end(const caf::actor& actor, Handler handler) {
  const caf::actor_system& system = actor->home_system();
  actor->attach_functor([&system, handler](const caf::error& reason) {
    handler(reason ? render(system, reason) : std::string("exit"));
  });
}

}  // namespace speedo::compat
