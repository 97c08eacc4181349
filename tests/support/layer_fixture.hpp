#pragma once

#include <memory>
#include <string>
#include <vector>

#include <speedo/backend/backend.hpp>
#include <speedo/core/layer.hpp>

namespace speedo {

// One layer with its bottoms, tops and parameters, without a net around it.
class LayerFixture {
 public:
  // `text`: a LayerParameter's text without name, bottoms and tops.
  explicit LayerFixture(const std::string& text, std::unique_ptr<Backend> backend,
                        Phase phase = Phase::kTrain);

  // `in_place`: top 0 is bottom 0. The error is the first of make_layer(), setup(), reshape() and
  // prepare().
  Result<void> build(const std::vector<Shape>& bottoms, int tops, bool in_place = false);

  // Gives the bottoms other shapes, as a net does when its input changes.
  Result<void> reshape(const std::vector<Shape>& bottoms);

  // Runs forward() with the same random numbers each time.
  Result<void> forward();
  void backward();

  Backend& backend() { return *backend_; }
  Layer& layer() { return *layer_; }
  Tensor& bottom(std::size_t index) { return *bottoms_[index]; }
  Tensor& top(std::size_t index) { return *tops_[index]; }
  Tensor& parameter(std::size_t index) { return *parameters_[index]; }
  std::size_t bottom_count() const { return bottoms_.size(); }
  std::size_t top_count() const { return tops_.size(); }
  std::size_t parameter_count() const { return parameters_.size(); }
  void set_bottom(std::size_t index, const std::vector<float>& values);
  std::vector<float> top_values(std::size_t index) const;
  // Whether bottom i gets a gradient; all that can at first.
  std::vector<bool> propagate;

 private:
  Result<void> build_parameters();
  Result<void> prepare();

  std::string text_;
  std::unique_ptr<Backend> backend_;
  Random random_{0};
  LayerContext context_;
  std::unique_ptr<Layer> layer_;
  std::vector<std::unique_ptr<Tensor>> owned_;
  std::vector<Tensor*> bottoms_, tops_, parameters_;
};

}  // namespace speedo
