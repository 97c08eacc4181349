#pragma once

// What a file of vector kernels includes before Highway. Its kernels are compiled once per
// instruction set, and the machine's best that cpu/isa.hpp allows is chosen at run time:
//
//   #include "cpu/support/simd.hpp"
//   #ifndef HWY_TARGET_INCLUDE  // defined where CMakeLists.txt joins several such files
//   #define HWY_TARGET_INCLUDE "cpu/this_folder/this_file.cpp"
//   #endif
//   #include <hwy/foreach_target.h>
//   #include "cpu/support/simd.inl"
//   HWY_BEFORE_NAMESPACE();
//   namespace speedo::cpu::HWY_NAMESPACE { namespace { ...kernels... } }
//   HWY_AFTER_NAMESPACE();
//   #if HWY_ONCE
//   ...HWY_EXPORT(kernel), HWY_DYNAMIC_DISPATCH(kernel)(...)...
//   #endif

// Processors between SSSE3 and SSE4 are not worth a copy. SVE's vectors have no size that arrays of
// them could have; NEON serves those processors.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)

#include <hwy/detect_targets.h>
