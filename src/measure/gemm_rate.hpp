#pragma once

#include <speedo/base/result.hpp>

namespace speedo {

class Backend;

// The best rate of a float32 matrix product of 1024 x 1024 x 1024 in GFLOP/s over about `seconds`:
// what the machine can do at this moment, to compare layers with. Error: kFull.
Result<double> measure_gemm_rate(Backend& backend, double seconds = 0.3);

}  // namespace speedo
