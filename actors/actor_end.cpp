#include "actors/actor_end.hpp"

#include <condition_variable>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include <speedo/base/assert.hpp>

namespace speedo {

struct ActorEnd::State {
  explicit State(std::string name_in) : name(std::move(name_in)) {}

  const std::string name;
  mutable std::mutex mutex;
  std::condition_variable changed;
  bool over = false;
  bool has_spoken = false;
  std::optional<Error> word;
  std::string cause;  // of an end without a last word; the first one that is known
};

ActorEnd::ActorEnd(std::string name) : state_(std::make_shared<State>(std::move(name))) {}

ActorEnd::~ActorEnd() {
  if (!actor_) return;
  caf::anon_send_exit(actor_, caf::exit_reason::kill);
  wait();
}

std::function<void(std::optional<Error>)> ActorEnd::last_word() const {
  return [state = state_](std::optional<Error> word) {
    const std::lock_guard lock(state->mutex);
    if (std::exchange(state->has_spoken, true)) return;
    state->word = std::move(word);
  };
}

void ActorEnd::watch(const caf::actor& actor, std::function<void()> on_broken) {
  SPEEDO_ASSERT(!actor_ && actor);
  actor_ = actor;
  compat::on_end(actor,
                 [state = state_, on_broken = std::move(on_broken)](const std::string& cause) {
                   // All of it with the lock held: once the owner knows, it frees everything but
                   // the state.
                   const std::lock_guard lock(state->mutex);
                   if (state->cause.empty()) state->cause = cause;
                   if (!state->has_spoken && on_broken) on_broken();
                   state->over = true;
                   state->changed.notify_all();
                 });
}

void ActorEnd::watch_need(const std::string& other_name, const caf::actor& other) {
  SPEEDO_ASSERT(actor_ && other);
  // A weak reference: `other` lives until its system goes, and must not keep the watched one.
  compat::on_end(other,
                 [state = state_, weak = actor_.address(), other_name](const std::string& cause) {
                   {
                     const std::lock_guard lock(state->mutex);
                     if (state->cause.empty())
                       state->cause = fmt::format("{} ended: {}", other_name, cause);
                   }
                   if (const auto actor = caf::actor_cast<caf::actor>(weak)) {
                     caf::anon_send_exit(actor, caf::exit_reason::kill);
                   }
                 });
}

bool ActorEnd::over() const {
  const std::lock_guard lock(state_->mutex);
  return state_->over;
}

bool ActorEnd::broken() const {
  const std::lock_guard lock(state_->mutex);
  return state_->over && !state_->has_spoken;
}

std::optional<Error> ActorEnd::wait() {
  SPEEDO_ASSERT(actor_);
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return state_->over; });
  if (state_->has_spoken) return state_->word;
  return Error{ErrorCode::kInternal,
               fmt::format("{} ended unexpectedly ({}): a fault of SpeeDO, or somebody told it to "
                           "exit; start the program again (a master with --resume=auto)",
                           state_->name, state_->cause)};
}

}  // namespace speedo
