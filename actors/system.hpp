#pragma once

#include "actors/compat.hpp"

namespace speedo {

// CAF's settings, all made in code: no file and no command line of CAF's is read, its logger is
// off.
class ActorConfig : public caf::actor_system_config {
 public:
  ActorConfig();
};

}  // namespace speedo
