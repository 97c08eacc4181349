#pragma once

#include <utility>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

#include "actors/compat.hpp"

namespace speedo {

#ifdef __SANITIZE_THREAD__
// CAF's actor, which tells the thread sanitizer the order that a mailbox gives, because Debian's
// CAF is not built for it: what was done before the actor was launched or sent a message, and what
// the actor has done since, comes before the handling of a message.
class ActorBase : public caf::event_based_actor {
 public:
  using caf::event_based_actor::event_based_actor;

  void launch(caf::execution_unit* unit, bool lazy, bool hide) override {
    __tsan_release(this);
    caf::event_based_actor::launch(unit, lazy, hide);
  }
  void initialize() override {
    __tsan_acquire(this);
    caf::event_based_actor::initialize();
    __tsan_release(this);
  }
  using caf::event_based_actor::enqueue;
  void enqueue(caf::mailbox_element_ptr message, caf::execution_unit* unit) override {
    __tsan_release(this);
    caf::event_based_actor::enqueue(std::move(message), unit);
  }
  using caf::event_based_actor::consume;
  caf::invoke_message_result consume(caf::mailbox_element& message) override {
    __tsan_acquire(this);
    const caf::invoke_message_result result = caf::event_based_actor::consume(message);
    __tsan_release(this);
    return result;
  }
};
#else
using ActorBase = caf::event_based_actor;
#endif

// Runs on the thread of CAF's network, where its system has one, instead of the scheduler's: what
// a peer says or is told changes no thread. What takes long in it, as a line of log that nobody
// reads, holds up all that CAF says, its beats too.
class NetworkActor : public ActorBase {
 public:
  explicit NetworkActor(caf::actor_config& config) : ActorBase(config) {}

  subtype_t subtype() const override {
    return home_system().has_middleman() ? io_actor : ActorBase::subtype();
  }
  void launch(caf::execution_unit* unit, bool lazy, bool hide) override {
    ActorBase::launch(place(unit), lazy, hide);
  }
  using ActorBase::enqueue;
  void enqueue(caf::mailbox_element_ptr message, caf::execution_unit* unit) override {
    ActorBase::enqueue(std::move(message), place(unit));
  }

 private:
  caf::execution_unit* place(caf::execution_unit* other) const {
    return home_system().has_middleman() ? &home_system().middleman().backend() : other;
  }
};

}  // namespace speedo
