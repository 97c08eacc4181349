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
// bilinear.

// Error: kConfig for an unknown type, impossible fields, or a shape that the filler cannot fill.
Result<void> check_filler(const caffe::FillerParameter& filler, const Shape& shape);

// Fills host memory; the same generator state always gives the same values.
// Requires: values.size() == shape.count(). Error: as check_filler().
Result<void> fill(const caffe::FillerParameter& filler, const Shape& shape, Random& random,
                  std::span<float> values);

}  // namespace speedo
