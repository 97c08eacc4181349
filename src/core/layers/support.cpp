#include "core/layers/support.hpp"

#include <speedo/backend/backend.hpp>

#include "caffe.pb.h"

namespace speedo {

Result<Shape> shape_from(const caffe::BlobShape& message) {
  return Shape::create({message.dim().begin(), message.dim().end()});
}

std::int64_t batch_size(const Shape& shape) { return shape.axes() == 0 ? 1 : shape[0]; }

void put_value(Backend& backend, float value, float* target) {
  backend.upload(target, std::span<const float>(&value, 1));
}

float get_value(Backend& backend, const float* source) {
  float value = 0.0F;
  backend.download(std::span<float>(&value, 1), source);
  return value;
}

}  // namespace speedo
