#pragma once

#include <cstdint>

#include <speedo/base/result.hpp>
#include <speedo/core/shape.hpp>
#include <speedo/core/tensor.hpp>

namespace caffe {
class BlobShape;
}

namespace speedo {

class Backend;

// What several layers share.

// The shape that a prototxt gives, checked. Error: kConfig.
Result<Shape> shape_from(const caffe::BlobShape& message);

// Caffe's old view of a shape as num x channels x height x width: its first axis, 1 for a scalar.
std::int64_t batch_size(const Shape& shape);

// How many rows a tensor's memory consists of, of which cutting along `axis` gives each part a
// piece: a part's pieces have storage_count() / rows elements. Requires: an axis of 0 or 1, or a
// plain layout.
std::int64_t rows_along(const Tensor& whole, int axis);

// What a tensor's values take.
std::int64_t bytes_of(const Tensor& tensor);

// Whether the device has memory of its own, beside the host's.
bool has_own_memory(Backend& backend);

// One value from host to device and back. The second waits for the device.
void put_value(Backend& backend, float value, float* target);
float get_value(Backend& backend, const float* source);

}  // namespace speedo
