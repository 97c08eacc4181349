#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>

namespace speedo {

// The extents of a tensor, outermost axis first; N x C x H x W for images. No axis: a scalar, count
// 1.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims) : dims_(dims) {}

  // Checks what a prototxt or a file may hold: at most kBlobAxesMax axes, none negative, and a
  // product of at most kBlobElementsMax. Error: kConfig, with the dims.
  static Result<Shape> create(std::vector<std::int64_t> dims);

  int axes() const { return static_cast<int>(dims_.size()); }
  const std::vector<std::int64_t>& dims() const { return dims_; }
  std::int64_t operator[](int axis) const;            // Requires: 0 <= axis < axes()
  std::int64_t count() const { return count(0, axes()); }
  std::int64_t count(int from) const { return count(from, axes()); }
  std::int64_t count(int from, int to) const;         // product of axes from .. to-1; 1 if none

  // Caffe's reading of a possibly negative axis: -1 is the last. Error: kConfig.
  Result<int> canonical_axis(int axis) const;

  // Caffe's rule for old files: equal after the shorter one is padded with leading ones.
  bool matches_legacy(const Shape& other) const;

  bool operator==(const Shape&) const = default;

 private:
  std::vector<std::int64_t> dims_;
};

// "64 1 28 28 (50176)", as in Caffe's log.
std::string to_string(const Shape& shape);

}  // namespace speedo
