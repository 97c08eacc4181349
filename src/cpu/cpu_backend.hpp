#pragma once

#include <memory>

#include <speedo/backend/backend.hpp>

namespace speedo {

// The backend on this machine's processor: OpenBLAS for matrix products, own vector loops for the
// rest. `threads`: how many compute, the caller's included; 0 takes as many as the process may use,
// at most OPENBLAS_NUM_THREADS if that is set. The same count always gives the same bits.
std::unique_ptr<Backend> make_cpu_backend(int threads = 0);

}  // namespace speedo
