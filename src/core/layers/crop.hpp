#pragma once

#include <vector>

#include <speedo/core/layer.hpp>

namespace speedo {

// The part of bottom 0 that has bottom 1's size on the axes from `axis` on and begins there at
// `offset`: one number for all of them, or one each. Bottom 1's gradient is zero.
class CropLayer final : public Layer {
 public:
  using Layer::Layer;
  LayerArity arity() const override { return {2, 2, 1, 1}; }
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  bool backward_reads_bottom(int) const override { return false; }
  bool backward_reads_top(int) const override { return false; }
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;

 private:
  Result<std::vector<std::int64_t>> read_offsets(const Shape& bottom, int axis) const;
  template <class Visit>
  void for_each_plane(const Visit& visit) const;

  Shape whole_, part_;
  std::vector<std::int64_t> offsets_;  // one per axis
};

}  // namespace speedo
