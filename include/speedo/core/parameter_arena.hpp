#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <speedo/backend/buffer.hpp>
#include <speedo/base/digest.hpp>
#include <speedo/base/result.hpp>
#include <speedo/core/shape.hpp>

namespace speedo {

class Backend;

// One learnable parameter: where it lies in the arena and how the solver treats it.
struct ParameterSlot {
  std::string layer;      // the owner: the first layer that uses it
  int index = 0;          // its place among that layer's parameters
  std::string name;       // ParamSpec.name; empty if not shared by name
  Shape shape;
  std::int64_t offset = 0;  // elements from the arena's start; a multiple of 16 (64 bytes)
  float lr_mult = 1.0F;
  float decay_mult = 1.0F;
  // Changed by forward passes, not by a solver. Its place in the gradient arena holds zeros, or
  // what is to be subtracted from it, which update rules leave as it is.
  bool is_statistic = false;
  std::int64_t count() const { return shape.count(); }
};

// The order, shapes and places of all learnable parameters of a net: Caffe's learnable_params
// order. Elements between the end of one parameter and the start of the next are padding and always
// zero.
class ParameterLayout {
 public:
  // Appends a parameter after the last one, 64-byte aligned; returns its index.
  std::size_t add(ParameterSlot slot);

  std::span<const ParameterSlot> slots() const { return slots_; }
  ParameterSlot& slot(std::size_t index) { return slots_[index]; }
  std::int64_t element_count() const { return element_count_; }  // with padding: the arena's length
  std::int64_t parameter_count() const;                          // without padding

  // The model's fingerprint: digest of names, indices, shapes and offsets (not of multipliers).
  Digest digest() const;

 private:
  std::vector<ParameterSlot> slots_;
  std::int64_t element_count_ = 0;
};

// One contiguous, 64-byte aligned float array with a layout's length: weights, gradients or one
// solver history. An exchange, a snapshot and an update are passes over ranges of it.
class Arena {
 public:
  Arena() = default;
  static Result<Arena> create(Backend& backend, std::int64_t element_count);  // zero filled
  // In Device::allocate_shared().
  static Result<Arena> create_shared(Backend& backend, std::int64_t element_count);

  float* data() { return buffer_.as_floats(); }
  const float* data() const { return buffer_.as_floats(); }
  std::int64_t size() const { return size_; }
  // Whose first bytes it is; null: this process' alone.
  const std::shared_ptr<SharedMemory>& shared() const { return buffer_.shared(); }

 private:
  Buffer buffer_;
  std::int64_t size_ = 0;
};

}  // namespace speedo
