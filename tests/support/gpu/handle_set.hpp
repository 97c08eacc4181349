#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "support/gpu/call_log.hpp"

namespace speedo::test {

// The handles of one kind that a library's double has given out. Requires: `log` outlives it.
template <class Handle, class State>
class HandleSet {
 public:
  HandleSet(CallLog& log, std::string kind) : log_(log), kind_(std::move(kind)) {}
  ~HandleSet() {
    for (const auto& [handle, state] : states_) {
      if (state != nullptr) log_.report(fmt::format("a {} was never destroyed", kind_));
    }
  }
  HandleSet(const HandleSet&) = delete;
  HandleSet& operator=(const HandleSet&) = delete;

  // Never the same twice.
  Handle make(State state = {}) {
    auto* const handle = reinterpret_cast<Handle>(++last_ * 64);
    states_[handle] = std::make_unique<State>(std::move(state));
    return handle;
  }
  // Null, with a report, if there is no such handle.
  State* find(Handle handle, const char* call) {
    const auto found = states_.find(handle);
    if (found == states_.end()) {
      log_.report(fmt::format("{}: no such {}", call, kind_));
      return nullptr;
    }
    if (found->second == nullptr) log_.report(fmt::format("{}: the {} is gone", call, kind_));
    return found->second.get();
  }
  bool destroy(Handle handle, const char* call) {
    if (find(handle, call) == nullptr) return false;
    states_[handle] = nullptr;
    return true;
  }

 private:
  CallLog& log_;
  std::string kind_;
  std::uintptr_t last_ = 0;
  std::map<Handle, std::unique_ptr<State>> states_;  // null: destroyed
};

}  // namespace speedo::test
