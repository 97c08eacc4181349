#pragma once

#include <speedo/base/result.hpp>
#include <speedo/core/factor_shape.hpp>

namespace speedo {

class Backend;

// Seconds in which `backend` makes a gradient of one worker's factors, as a replica does: of those
// of some workers at once, by their number. The median of at least a few, over about `seconds`.
// Error: kFull.
Result<double> measure_product(Backend& backend, const FactorShape& shape, double seconds);

}  // namespace speedo
