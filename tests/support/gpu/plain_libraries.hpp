#pragma once

#include <memory>

#include "gpu/cublas/blas.hpp"
#include "gpu/cudnn/dnn.hpp"
#include "support/gpu/recording_driver.hpp"
#include "support/gpu/short_floats.hpp"

namespace speedo::test {

// What cuBLASLt and cuDNN compute, by plain loops on the host, queued on a RecordingDriver: for
// builds without their headers. `driver` outlives them; `rounding`: of operands.
std::unique_ptr<gpu::Blas> make_plain_blas(RecordingDriver& driver,
                                           const Rounding& rounding = {});
// Of convolutions that the reference backend knows, on `stream`.
std::unique_ptr<gpu::Dnn> make_plain_dnn(RecordingDriver& driver, gpu::StreamHandle stream);

}  // namespace speedo::test
