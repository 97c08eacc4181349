#pragma once

#include <memory>

#include <speedo/backend/backend.hpp>

#include "gpu/library/arithmetic.hpp"
#include "support/gpu/recording_driver.hpp"

namespace speedo::test {

// The GPU backend without a GPU: its kernels run on the host, under the eyes of a RecordingDriver,
// and its products and convolutions are plain loops. Every buffer has exactly the bytes asked for.
// `arithmetic`: as --precision chooses it; of products, float16's operands alone are rounded.
// `fuses`: see GpuOptions.
std::unique_ptr<Backend> make_gpu_double(std::shared_ptr<CallLog> log,
                                         const RecordingOptions& options = {},
                                         gpu::Arithmetic arithmetic = gpu::Arithmetic::kFloat32,
                                         bool fuses = true);

}  // namespace speedo::test
