#pragma once

#include <speedo/core/layer.hpp>

namespace speedo {

// Other axes for the same values: the axes from `axis` on, num_axes of them, become those of
// reshape_param.shape, where 0 copies the bottom's and one -1 takes what is left. Shares memory.
class ReshapeLayer final : public Layer {
 public:
  using Layer::Layer;
  bool backward_reads_bottom(int) const override { return false; }
  bool backward_reads_top(int) const override { return false; }
  Result<void> setup(const LayerContext& context, Tensors bottoms, Tensors tops) override;
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  Result<void> forward(Tensors, Tensors) override { return {}; }
  void backward(Tensors, const std::vector<bool>&, Tensors) override {}

 private:
  // The axes [begin, end) of a bottom that are replaced.
  struct Range {
    int begin, end;
  };
  Result<Range> replaced_axes(const Shape& bottom) const;
  Result<Shape> top_shape(const Shape& bottom) const;
  Result<void> infer(const Shape& bottom, Range range, std::vector<std::int64_t>& dims) const;
};

}  // namespace speedo
