#include "actors/transport.hpp"

#include <exception>
#include <set>
#include <utility>

#include <fmt/format.h>

#include <speedo/base/limits.hpp>

#include "actors/listen_probe.hpp"

namespace speedo {

Result<std::uint16_t> publish(caf::actor_system& system, const caf::actor& whom,
                              const std::string& bind, std::uint16_t port) {
  // With `reuse`, connections of an ended master that linger in the kernel do not block the port.
  const auto published = system.middleman().publish(whom, port, bind.c_str(), true);
  if (published) return *published;
  return why_not_listening(bind, port);
}

void Connector::connect(Address address, std::function<void(Result<caf::actor>)> done) {
  thread_.post([this, address = std::move(address), done = std::move(done)] {
    done(connect_now(address));
  });
}

// Whatever goes wrong, whoever asked hears of it.
Result<caf::actor> Connector::connect_now(const Address& address) {
  try {
    SPEEDO_ASSIGN(const Address found_at, probe_endpoint(address, stop_, tools_));
    return ask_network(address, found_at);
  } catch (const std::exception& exception) {
    return Error{ErrorCode::kInternal, fmt::format("connecting to {}:{} failed: {}", address.host,
                                                   address.port, exception.what())};
  }
}

Result<caf::actor> Connector::ask_network(const Address& address, const Address& found_at) {
  Result<caf::actor> result = Error{ErrorCode::kUnavailable, "no answer"};
  caf::scoped_actor self{system_};
  self->request(system_.middleman().actor_handle(), caf::duration{kConnectionTimeout},
                compat::ConnectAtom::value, found_at.host, found_at.port)
      .receive(
          [&](const caf::node_id&, const caf::strong_actor_ptr& found,
              const std::set<std::string>&) {
            if (found) result = caf::actor_cast<caf::actor>(found);
          },
          [&](caf::error& error) {
            const bool other = compat::other_application(error);
            result =
                Error{other ? ErrorCode::kMismatch : ErrorCode::kUnavailable,
                      fmt::format("master {}:{}: {}", address.host, address.port,
                                  other ? "another version of SpeeDO; use the same version for "
                                          "master and workers"
                                        : compat::render(system_, error))};
          });
  return result;
}

}  // namespace speedo
