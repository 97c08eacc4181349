#pragma once

#include <memory>

#include <speedo/backend/backend.hpp>

#include "support/gpu/recording_driver.hpp"

namespace speedo::test {

// The GPU backend without a GPU: its kernels run on the host, under the eyes of a RecordingDriver,
// and its products and convolutions are plain loops. Every buffer has exactly the bytes asked for.
std::unique_ptr<Backend> make_gpu_double(std::shared_ptr<CallLog> log,
                                         const RecordingOptions& options = {});
// The same with --precision fp16: products have operands of float16.
std::unique_ptr<Backend> make_half_gpu_double(std::shared_ptr<CallLog> log);

}  // namespace speedo::test
