#pragma once

#include <vector>

#include <speedo/core/solver.hpp>

namespace speedo {

// Every element of the net's outputs after a forward pass, in output order.
std::vector<TestScores::Score> read_outputs(const Net& net);

}  // namespace speedo
