#pragma once

#include <span>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/core/shape.hpp>

#include "caffe.pb.h"

namespace speedo {

// Shape of a stored array; old files give num, channels, height, width. Error: kData.
Result<Shape> shape_of(const caffe::BlobProto& blob);
// The same of an array that has all its values: to be asked before memory is taken for as many as a
// damaged shape may claim. Error: kData if they are more or fewer.
Result<Shape> filled_shape_of(const caffe::BlobProto& blob);

// Whether the stored array fits a parameter of `shape`: equal dims, or for an old file equal to
// `shape` after leading ones.
bool fits(const caffe::BlobProto& blob, const Shape& shape);

// The values, stored as float or double, as float. Error: kData if there are more or fewer than
// `target` holds.
Result<void> read_values(const caffe::BlobProto& blob, std::span<float> target);

// Sets shape and makes room for its values; returns them to be filled.
std::span<float> set_shape_and_data(const Shape& shape, caffe::BlobProto& blob);
std::span<float> set_diff(const Shape& shape, caffe::BlobProto& blob);

}  // namespace speedo
