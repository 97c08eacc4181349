#pragma once

#include <string>

#include <speedo/base/result.hpp>

namespace speedo::test {

// Which of the CPU backend's kernels a test program keeps to.
struct KernelChoice {
  std::string isa;         // portable, avx2 or avx512; empty: the best that the machine has
  bool no_onednn = false;  // as in a build without oneDNN
};

// Holds this process to them. To be called before the first backend is made. Error: kUsage, naming
// what the machine lacks, or the word that is no instruction set.
Result<void> keep_to(const KernelChoice& choice);

}  // namespace speedo::test
