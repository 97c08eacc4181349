#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <speedo/backend/device.hpp>
#include <speedo/base/result.hpp>
#include <speedo/core/shape.hpp>

namespace speedo {

// The tops of one batch, in memory of the host that is used again for the next one. Thread safety:
// one thread at a time, but values of different places may be written by several.
class BatchTops {
 public:
  // Gives the tops these shapes. Where the memory that is there does not suffice it is taken anew,
  // zero-filled, as readers may leave places out; else values stay. `pinned_by` null: ordinary
  // memory. Error: kFull; the tops are as before then.
  Result<void> fit(const std::vector<Shape>& shapes, Device* pinned_by = nullptr);

  bool is_empty() const { return values_.empty(); }
  std::size_t size() const { return values_.size(); }
  std::span<float> operator[](std::size_t top) const { return values_[top]; }
  const std::vector<Shape>& shapes() const { return shapes_; }
  std::vector<std::span<const float>> values() const { return {values_.begin(), values_.end()}; }

 private:
  std::vector<Buffer> memory_;
  std::vector<Shape> shapes_;
  std::vector<std::span<float>> values_;
};

}  // namespace speedo
