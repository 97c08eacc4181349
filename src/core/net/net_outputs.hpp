#pragma once

#include <vector>

#include <speedo/core/solver.hpp>

namespace speedo {

// Every element of the net's outputs after a forward pass, in output order.
std::vector<TestScores::Score> read_outputs(const Net& net);

// Whether every loss among the scores is a number: one that is not says that the weights have run
// away.
bool has_finite_losses(const TestScores& scores);

}  // namespace speedo
