#include "gate/gate.hpp"

#include <utility>

#include "gate/gate_loop.hpp"
#include "gate/gate_socket.hpp"

namespace speedo {

Gate::Gate(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}

Gate::~Gate() = default;

Result<std::unique_ptr<Gate>> Gate::create(GateOptions options) {
  SPEEDO_ASSIGN(std::unique_ptr<Loop> loop, Loop::create(std::move(options)));
  return std::unique_ptr<Gate>(new Gate(std::move(loop)));
}

Result<std::uint16_t> Gate::listen(const std::string& bind, std::uint16_t port, Arrive arrive) {
  SPEEDO_ASSIGN(ListeningSocket socket, listen_at(bind, port));
  const std::uint16_t bound = socket.port;
  loop_->listen(std::move(socket), std::move(arrive));
  return bound;
}

void Gate::stop_listening() { loop_->stop_listening(); }

void Gate::bear_silence(std::chrono::milliseconds silence) { loop_->bear_silence(silence); }

int Gate::events() const { return loop_->events(); }

void Gate::lend() { loop_->lend(); }

void Gate::serve() { loop_->serve(); }

void Gate::take_back() { loop_->take_back(); }

GateCounts Gate::counts() const { return loop_->counts(); }

}  // namespace speedo
