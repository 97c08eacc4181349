#include "support/gpu/gpu_double.hpp"

#include <utility>

#include <speedo/base/assert.hpp>

#include "gpu/gpu_backend.hpp"
#include "support/gpu/plain_libraries.hpp"

namespace speedo::test {

std::unique_ptr<Backend> make_gpu_double(std::shared_ptr<CallLog> log,
                                         const RecordingOptions& options,
                                         gpu::Arithmetic arithmetic, bool fuses) {
  auto driver = std::make_unique<RecordingDriver>(std::move(log), options);
  RecordingDriver& recording = *driver;
  gpu::GpuParts parts;
  parts.driver = std::move(driver);
  parts.arithmetic = arithmetic;
  parts.fuses = fuses;
  const Rounding rounding{.is_half = arithmetic == gpu::Arithmetic::kFloat16};
  parts.make_blas = [=, &recording](gpu::StreamHandle) -> Result<std::unique_ptr<gpu::Blas>> {
    return make_plain_blas(recording, rounding);
  };
  parts.make_dnn = [&recording](gpu::StreamHandle stream) -> Result<std::unique_ptr<gpu::Dnn>> {
    return make_plain_dnn(recording, stream);
  };
  parts.limits = {.kept_bytes = 0, .kept_pinned_bytes = 0, .staging_slot_bytes = 65536};
  parts.name = "gpu double";
  auto backend = gpu::make_gpu_backend(std::move(parts));
  SPEEDO_ASSERT(backend.has_value());
  return std::move(*backend);
}

}  // namespace speedo::test
