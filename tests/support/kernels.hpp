#pragma once

#include <memory>
#include <string>

#include <speedo/backend/backend.hpp>
#include <speedo/base/result.hpp>

namespace speedo::test {

// Which of the CPU backend's kernels a test program keeps to, and how it uses them.
struct KernelChoice {
  std::string isa;         // portable, avx2 or avx512; empty: the best that the machine has
  bool no_onednn = false;  // as in a build without oneDNN
  bool deferred = false;   // on a device that does nothing before it is waited for
  bool shared_memory = false;  // workers and merger exchange in it
};

// Holds this process to them. To be called before the first backend is made. Error: kUsage, naming
// what the machine lacks, or the word that is no instruction set.
Result<void> keep_to(const KernelChoice& choice);
// What this process was told to keep to.
const KernelChoice& kernel_choice();

// The CPU backend as this process was told to use it: on a DeferredDevice, or on its own.
std::unique_ptr<Backend> make_backend(int threads);

}  // namespace speedo::test
