#pragma once

#include <memory>

#include <speedo/backend/backend.hpp>
#include <speedo/base/result.hpp>
#include <speedo/cpu/cpu_options.hpp>

namespace speedo {

// The backend on this machine's processor: oneDNN where it was built in, OpenBLAS, and vector loops
// of our own, by the instruction sets of cpu/isa.hpp. The same options on the same machine always
// give the same bits; with pinned kernels the same parts do on any machine, with any number of
// threads. A program's own handlers of signals must be installed with SA_ONSTACK: oneDNN computes
// with the stack register elsewhere. Errors: kUsage if the processor has no such precision,
// kUnsupported if OpenBLAS cannot be loaded.
Result<std::unique_ptr<Backend>> make_cpu_backend(const CpuOptions& options);

// The same in float32, for programs that cannot go on without it: they end with the error's text.
std::unique_ptr<Backend> make_cpu_backend(int threads = 0);

}  // namespace speedo
