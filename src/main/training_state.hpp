#pragma once

#include <functional>
#include <optional>

#include "local/local_cluster.hpp"

namespace speedo {

// Asks the master of a cluster that is started here how far training is; nothing if it does not
// answer. Blocking, for seconds at most; a signal breaks it off.
std::function<std::optional<TrainingState>(const MasterPlace& master)> ask_training_state();

}  // namespace speedo
