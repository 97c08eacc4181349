#pragma once

#include <speedo/core/layer.hpp>

namespace speedo {

// Tops made by fillers. Constant tops are filled once, the others anew at each forward pass.
class DummyDataLayer final : public Layer {
 public:
  using Layer::Layer;
  LayerArity arity() const override { return {0, 0, 1, -1}; }
  Result<void> setup(const LayerContext& context, Tensors bottoms, Tensors tops) override;
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors, const std::vector<bool>&, Tensors) override {}
  bool keeps_tops() const override { return true; }

 private:
  Result<std::vector<Shape>> read_shapes(std::size_t tops) const;

  std::vector<Shape> shapes_;                           // one per top
  std::vector<const caffe::FillerParameter*> fillers_;  // one per top
  std::vector<bool> filled_;                            // constants that are in place
  std::vector<float> values_;                           // on the host
};

}  // namespace speedo
