#pragma once

#include <cblas.h>

#include <string_view>

#include <speedo/base/result.hpp>

namespace speedo::cpu {

// OpenBLAS, loaded when it is first asked for rather than with the program: its constructor reads
// from the environment which kernels to take and how many threads to start, and Debian's version
// takes AVX2 kernels on processors that are younger than itself. So it is told what cpu_isa()
// found, unless OPENBLAS_CORETYPE says otherwise, and starts no threads, whatever
// OPENBLAS_NUM_THREADS says: its own would fight with the pools.
// Thread safety: all functions. The first call changes the environment for a moment, so it should
// come before other threads read it.
struct OpenBlas {
  decltype(&cblas_sgemm) sgemm = nullptr;
  std::string_view core;  // the kernels taken, OpenBLAS' name for them
};

// Error: kUnsupported if the library cannot be loaded.
Result<void> load_openblas();
// Requires: load_openblas() succeeded.
const OpenBlas& openblas();

}  // namespace speedo::cpu
