#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <speedo/backend/backend.hpp>
#include <speedo/base/result.hpp>

namespace speedo::test {

// Which of the CPU backend's kernels a test program keeps to, and how it uses them.
struct KernelChoice {
  std::string isa;         // portable, avx2 or avx512; empty: the best that the machine has
  bool no_onednn = false;  // as in a build without oneDNN
  bool deferred = false;   // on a device that does nothing before it is waited for
  std::optional<int> gpu = std::nullopt;  // the GPU backend, on the GPU of this number
  // The GPU backend on doubles of CUDA, with RecordingOptions::seed; none: the CPU backend.
  std::optional<std::uint64_t> gpu_double = std::nullopt;
  bool shared_memory = false;  // workers and merger exchange in it
};

// Holds this process to them. To be called before the first backend is made. Error: kUsage, naming
// what the machine lacks, or the word that is no instruction set; of GPUs as gpu_devices().
Result<void> keep_to(const KernelChoice& choice);
// What this process was told to keep to.
const KernelChoice& kernel_choice();

// The backend that this process was told to use: the CPU's, on a DeferredDevice or on its own, or
// the GPU's, or its double.
std::unique_ptr<Backend> make_backend(int threads);
// The GPU's double, whatever this process was told, which rounds as its CPU kernels do.
std::unique_ptr<Backend> make_gpu_double(std::uint64_t seed);
// Prints what the GPU's double found wrong with the calls that it was given, and says whether that
// is nothing. To be called when all backends are gone.
bool no_call_was_wrong();

}  // namespace speedo::test
