#pragma once

#include <speedo/backend/backend.hpp>
#include <speedo/core/tensor.hpp>

#include "core/layers/support.hpp"

namespace speedo {

// A bottom's values for the backward pass of a layer that works in place, where the top takes their
// place in the forward pass.
class BottomCopy {
 public:
  // Whether there is one from here on. If so, tensor() is to be given memory.
  void plan(bool is_kept, const Tensor& bottom) {
    is_kept_ = is_kept;
    if (!is_kept) return;
    tensor_.reshape(bottom.shape());
    tensor_.set_layout(bottom.layout());
  }
  bool is_kept() const { return is_kept_; }
  Tensor& tensor() { return tensor_; }
  std::int64_t bytes() const { return is_kept_ ? bytes_of(tensor_) : 0; }

  // Before the top is written.
  void save(Backend& backend, const Tensor& bottom) {
    if (is_kept_) backend.copy(tensor_.elements(), bottom.data(), tensor_.data());
  }
  const float* values(const Tensor& bottom) const {
    return is_kept_ ? tensor_.data() : bottom.data();
  }

 private:
  bool is_kept_ = false;
  Tensor tensor_;
};

}  // namespace speedo
