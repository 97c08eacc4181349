#pragma once

#include <cstdint>
#include <string>

#include <speedo/base/result.hpp>

namespace caffe {
class SolverParameter;
}

namespace speedo {

// What ends a training, or keeps one from beginning.

// "WHAT; lower base_lr ...".
Error diverged(const std::string& what);

// After so many losses in a row that were not finite, with weights that give a finite one.
Error data_at_fault(std::int64_t iteration, int losses);

// Error: kConfig, naming a field that counts iterations and is no such count.
Result<void> check_intervals(const caffe::SolverParameter& solver);

}  // namespace speedo
