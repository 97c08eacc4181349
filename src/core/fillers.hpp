#pragma once

#include <span>

#include <speedo/base/random.hpp>
#include <speedo/base/result.hpp>
#include <speedo/core/shape.hpp>

namespace caffe {
class FillerParameter;
}

namespace speedo {

// Caffe's fillers: constant, uniform, gaussian (with sparse), xavier, msra, positive_unitball,
// bilinear. Fills host memory; the same generator state always gives the same values.
// Requires: values.size() == shape.count(). Error: kConfig for an unknown type or impossible
// fields.
Result<void> fill(const caffe::FillerParameter& filler, const Shape& shape, Random& random,
                  std::span<float> values);

}  // namespace speedo
