#pragma once

#include <chrono>

#include <speedo/base/limits.hpp>

#include "actors/compat.hpp"

namespace speedo {

// CAF's settings, all made in code: no file and no command line of CAF's is read, its logger is
// off.
class ActorConfig : public caf::actor_system_config {
 public:
  // A connection that brings nothing for `silence` is given up.
  explicit ActorConfig(std::chrono::milliseconds silence = kConnectionTimeout);
};

}  // namespace speedo
