#pragma once

#include "actors/compat.hpp"

namespace speedo {

// CAF's settings, all made in code: no file and no command line of CAF's is read, its logger is
// off.
class ActorConfig : public caf::actor_system_config {
 public:
  ActorConfig();
};

// To call before an actor system is made: one that does not get a thread ends the process without
// the cause. Throws what std::thread throws where the system does not give all threads of one.
void try_threads();

}  // namespace speedo
