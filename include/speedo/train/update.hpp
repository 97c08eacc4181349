#pragma once

namespace speedo {

// What a worker contributes and what the master does with it.
enum class UpdateKind {
  kFullDelta,     // the change of the weights by the worker's solver; master: W += delta / factor
  kGradientOnly,  // the raw gradient of one iteration; master: the solver's rule
};

}  // namespace speedo
