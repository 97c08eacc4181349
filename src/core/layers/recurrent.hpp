#pragma once

#include <span>
#include <vector>

#include <speedo/core/layer.hpp>

namespace speedo {

// Sequences through a unit that remembers, Caffe's RecurrentLayer. Bottoms: x (steps x streams x
// ...), cont (steps x streams: 0 where a stream begins a sequence, else 1) and, if wanted, values
// for all steps (streams x ...). The first step goes on from where the pass before ended, at first
// from zeros; with expose_hidden these states are more bottoms, and more tops give the last ones.
// Gradients do not pass through them, nor through cont.
//
// Caffe unrolls the steps into a net. Here the layer walks over them itself: the products with x,
// and the sums over steps of all gradients by weights, are one matrix product each; only that of
// the hidden values before remains for each step.
//
// Parameters: weights of x (width x inputs) and their bias; those of the values for all steps
// (width x their count), if there are such; those of the hidden values (width x cells); what the
// unit adds.
class RecurrentLayer : public Layer {
 public:
  using Layer::Layer;
  LayerArity arity() const override;
  bool allow_force_backward(int bottom) const override { return bottom != kCont; }
  bool can_propagate(int bottom) const override { return bottom != kCont; }
  Result<void> setup(const LayerContext& context, Tensors bottoms, Tensors tops) override;
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  Result<void> prepare(Tensors bottoms, Tensors tops, bool trains) override;
  bool backward_reads_bottom(int bottom) const override;
  OperationInfo info() const override;
  std::int64_t workspace_bytes() const override { return workspace_bytes_; }
  std::span<Tensor> carried_values() override { return carried_; }
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;

 protected:
  // The unit. It makes sums_per_cell() x cells() = width sums of each stream into its states, of
  // which the hidden values are the first.
  virtual int sums_per_cell() const = 0;
  virtual int state_count() const = 0;
  virtual Result<void> request_more() { return {}; }
  virtual Result<void> shape_unit() = 0;
  // Memory that it keeps from forward() to backward().
  virtual std::vector<Tensor*> unit_memory() = 0;
  virtual double unit_flops() const { return 0.0; }  // of the products that it adds, forward
  // State `index` after step `t`. That after step -1 is written by forward(), but for the hidden
  // values, which have none.
  virtual float* state(int index, std::int64_t t, Tensors tops) = 0;
  // From sums(t) and the states before to those of step `t`, for whose streams `cont` is.
  virtual void step_forward(std::int64_t t, const float* cont, Tensors tops) = 0;
  virtual void after_forward(Tensors /*tops*/) {}
  virtual void before_backward(Tensors /*tops*/) {}
  // Gradient by the hidden values of step `t` of what is made of them, the next step aside.
  virtual const float* output_gradient(std::int64_t t, Tensors tops) = 0;
  // Puts the gradient by sums(t) in their place; t falls from the last step to 0.
  virtual void step_backward(std::int64_t t, const float* h_grad, Tensors tops) = 0;

  std::int64_t steps() const { return steps_; }
  std::int64_t streams() const { return streams_; }
  std::int64_t cells() const { return cells_; }
  std::int64_t step_count() const { return streams_ * cells_; }  // hidden values of a step
  float* sums(std::int64_t t) { return sums_.data() + t * streams_ * width_; }
  int parameter_count() const { return has_static_ ? 4 : 3; }  // without those of request_more()
  // Shapes a tensor of the layer's own. Error: kConfig.
  Result<void> shape_memory(Tensor& tensor, std::vector<std::int64_t> dims) const;

 private:
  static constexpr int kX = 0, kCont = 1, kStatic = 2;              // bottoms
  static constexpr int kWeights = 0, kBias = 1, kStaticWeights = 2;  // parameters

  Result<void> read_sizes(Tensors bottoms);
  Result<void> check_bottoms(Tensors bottoms) const;
  int first_exposed() const { return has_static_ ? 3 : 2; }
  int hidden_weights() const { return parameter_count() - 1; }
  std::vector<Tensor*> own_memory();
  const float* state_before(int index, Tensors bottoms);
  void keep_states(Tensors tops);
  void multiply_x(Tensors bottoms);
  void add_constants(std::int64_t t);
  void multiply_streams(const float* cont, const float* from, float* to);
  void add_gradients(Tensors bottoms);
  void add_product(int parameter, std::int64_t rows, const float* grad, const float* values);
  void make_bottom_gradients(const std::vector<bool>& propagate, Tensors bottoms);

  bool exposes_ = false, has_static_ = false;
  std::int64_t steps_ = 0, streams_ = 0, cells_ = 0, width_ = 0, inputs_ = 0, static_inputs_ = 0;
  Tensor sums_;       // of all steps; in their place what the unit makes of them, their gradients
  Tensor conted_;     // hidden values before each step, 0 where a sequence begins
  Tensor constants_;  // sums of what is for all steps; in their place their gradients
  Tensor h_grad_, conted_grad_;  // of one step
  std::vector<Tensor> carried_;  // states from pass to pass, if they are not exposed
  std::int64_t workspace_bytes_ = 0;
};

}  // namespace speedo
