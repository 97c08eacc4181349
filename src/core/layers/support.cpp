#include "core/layers/support.hpp"

#include <speedo/backend/backend.hpp>
#include <speedo/base/assert.hpp>

#include "caffe.pb.h"

namespace speedo {

Result<Shape> shape_from(const caffe::BlobShape& message) {
  return Shape::create({message.dim().begin(), message.dim().end()});
}

std::int64_t batch_size(const Shape& shape) { return shape.axes() == 0 ? 1 : shape[0]; }

std::int64_t rows_along(const Tensor& whole, int axis) {
  if (whole.layout().is_plain()) return whole.shape().count(0, axis);
  SPEEDO_ASSERT(axis <= 1);
  if (axis == 0) return 1;
  const ArrayShape shape = whole.array_shape();
  const bool channels_last = whole.layout().block == shape.channels;
  return channels_last ? shape.batch * shape.spatial : shape.batch;
}

std::int64_t bytes_of(const Tensor& tensor) {
  return tensor.storage_floats() * static_cast<std::int64_t>(sizeof(float));
}

bool has_own_memory(Backend& backend) { return backend.device().memory() == MemoryKind::kDevice; }

void put_value(Backend& backend, float value, float* target) {
  backend.device().upload(target, std::span<const float>(&value, 1));
}

float get_value(Backend& backend, const float* source) {
  float value = 0.0F;
  backend.device().download(std::span<float>(&value, 1), source);
  return value;
}

}  // namespace speedo
