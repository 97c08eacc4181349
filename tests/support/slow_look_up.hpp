#pragma once

#include <future>
#include <memory>
#include <string>

#include "base/name_lookup.hpp"

namespace speedo::test {

// The look-up of a name that lasts until the test ends it.
struct SlowLookUp {
  std::promise<void> asked, answer, forgotten;

  // To be called once. What it holds tells when it is freed.
  LookUp function() {
    const std::shared_ptr<SlowLookUp> held(this, [](SlowLookUp* it) { it->forgotten.set_value(); });
    return [held](const std::string&, int) -> Result<HostAddresses> {
      held->asked.set_value();
      held->answer.get_future().get();
      return Error{ErrorCode::kUnavailable, "answered at last"};
    };
  }
};

}  // namespace speedo::test
