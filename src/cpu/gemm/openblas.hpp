#pragma once

#include <cblas.h>

#include <string_view>

#include <speedo/base/result.hpp>

namespace speedo::cpu {

// OpenBLAS, loaded when it is first asked for rather than with the program: its constructor reads
// from the environment which kernels to take and how many threads to start, and Debian's version
// takes AVX2 kernels on processors that are younger than itself. So it is told what cpu_isa()
// found, unless OPENBLAS_CORETYPE says otherwise and kernels are not pinned, and starts no threads,
// whatever
// OPENBLAS_NUM_THREADS says: its own would fight with the pools.
// Thread safety: all functions. The first call changes the environment for a moment, so it should
// come before other threads read it.
struct OpenBlas {
  decltype(&cblas_sgemm) sgemm = nullptr;
  std::string_view core;  // the kernels taken, OpenBLAS' name for them
};

// Errors: kUnsupported if the library cannot be loaded; kFull if the address space is too small.
Result<void> load_openblas();
// Whether so many threads can have their buffers, without which OpenBLAS tries for ever; where the
// address space is limited one of them is taken at once. Error: kFull. Requires: load_openblas()
// succeeded.
Result<void> check_room_for_openblas(int threads);
// Requires: load_openblas() succeeded.
const OpenBlas& openblas();

}  // namespace speedo::cpu
