#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <speedo/base/result.hpp>

#include "actors/compat.hpp"

namespace speedo {

// Where the owner of an actor learns of its end, whatever brings it about: the actor's own
// decision, an exit message, a kill, an error sent to it, an exception in a handler, the loss of
// its last handle. An actor that ends of its own will says its last word first; an end without one
// is a fault.
// Thread safety: over(), broken() and what last_word() gives: any thread; the rest: the owner's.
class ActorEnd {
 public:
  explicit ActorEnd(std::string name);  // of the actor, for messages: "the master"
  // Kills the actor if it is still there, and waits for its end.
  ~ActorEnd();
  ActorEnd(const ActorEnd&) = delete;
  ActorEnd& operator=(const ActorEnd&) = delete;

  // For the actor: to be called with its outcome before it quits of its own will. The first call
  // counts.
  std::function<void(std::optional<Error>)> last_word() const;

  // From now on the end of `actor` is noticed; if it has ended, at once. `on_broken` is called, on
  // any thread, if that was without a last word. To be called once.
  void watch(const caf::actor& actor, std::function<void()> on_broken = {});
  // The watched actor cannot work without `other`: if that one ends first, so does the watched one.
  // After watch().
  void watch_need(const std::string& other_name, const caf::actor& other);

  bool over() const;
  bool broken() const;  // it has ended without a last word
  // Waits for the end; then the actor uses nothing of its owner's any more. Gives its last word, or
  // kInternal with the cause that CAF names. Requires: watch() was called.
  std::optional<Error> wait();

 private:
  struct State;  // shared with the actor's hook and what is attached to the actor
  std::shared_ptr<State> state_;
  caf::actor actor_;
};

}  // namespace speedo
