#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <speedo/base/random.hpp>
#include <speedo/base/result.hpp>
#include <speedo/core/batch_feed.hpp>
#include <speedo/core/phase.hpp>
#include <speedo/core/tensor.hpp>

namespace caffe {
class FillerParameter;
class LayerParameter;
}  // namespace caffe

namespace speedo {

class Backend;

// What a layer may know of the world around it. Outlives the layer.
struct LayerContext {
  Backend* backend = nullptr;
  Phase phase = Phase::kTrain;
  FeedFactory* feeds = nullptr;        // null: data layers are refused
  FeedOptions feed_options;            // for data layers
  // Drawn from by layers that need randomness in forward(). The net reseeds it before every forward
  // pass from its seed and the batch index, so a pass can be repeated anywhere.
  Random* random = nullptr;
};

// A parameter that a layer asks for in setup(). The net places it in the arena and fills it.
struct ParameterRequest {
  Shape shape;
  const caffe::FillerParameter* filler = nullptr;  // null: zeros. Points into the layer's message
};

// How many bottoms and tops a layer type takes; -1: no bound.
struct LayerArity {
  int bottoms_min = 1, bottoms_max = 1;
  int tops_min = 1, tops_max = 1;
  bool equal_counts = false;  // as many tops as bottoms
};

// One step of a net, Caffe's contract: setup() once, reshape() whenever a bottom's shape may have
// changed, then forward() and backward() any number of times. Written once for all devices: values
// are touched only through the backend.
//
// Gradients: parameter gradients are added to, bottom gradients are overwritten (each has one
// reader, as the net puts a Split where a blob has more).
// Thread safety: one thread at a time.
class Layer {
 public:
  explicit Layer(const caffe::LayerParameter& parameter);
  virtual ~Layer();
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  const std::string& name() const { return name_; }
  const std::string& type() const { return type_; }

  virtual LayerArity arity() const { return {}; }
  // Loss layers: Caffe's weight of top `index` when the prototxt gives none.
  virtual float default_loss_weight(int /*top*/) const { return 0.0F; }
  // With force_backward: whether bottom `index` may get a gradient (false for labels).
  virtual bool allow_force_backward(int /*bottom*/) const { return true; }
  // Whether a top may be one of the bottoms. setup() refuses it otherwise.
  virtual bool allows_in_place() const { return false; }
  // Whether bottom `index` can have a gradient at all. A net that needs one there is refused.
  virtual bool can_propagate(int /*bottom*/) const { return true; }
  // Whether tops that the prototxt leaves out, up to arity().tops_min, are added without a name: so
  // it is for losses.
  virtual bool auto_tops() const { return false; }

  // Reads options, checks shapes, asks for parameters (parameter_requests()). Overrides call this
  // one first: it keeps the context and checks arity(). Errors: kConfig, beginning
  // "layer 'NAME' (TYPE): ".
  virtual Result<void> setup(const LayerContext& context, Tensors bottoms, Tensors tops);
  // Gives the tops their shapes and prepares scratch memory. Called after setup() too.
  virtual Result<void> reshape(Tensors bottoms, Tensors tops) = 0;
  // Errors: kData for bad records and labels.
  virtual Result<void> forward(Tensors bottoms, Tensors tops) = 0;
  // propagate[i]: whether bottom i needs its gradient.
  virtual void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) = 0;

  // Data layers: what to read next. Others ignore it.
  virtual void set_data_span(const DataSpan& /*span*/) {}

  const std::vector<ParameterRequest>& parameter_requests() const { return requests_; }
  // Called by the net with views of the arena, one per request, and whether each needs a gradient.
  void bind_parameters(std::vector<Tensor*> parameters, std::vector<bool> needs_grad);
  const std::vector<Tensor*>& parameters() const { return parameters_; }

 protected:
  const caffe::LayerParameter& parameter_message() const { return *message_; }
  Backend& backend() const { return *context_.backend; }
  const LayerContext& context() const { return context_; }
  void request_parameter(Shape shape, const caffe::FillerParameter* filler);
  Tensor& parameter(int index) { return *parameters_[static_cast<std::size_t>(index)]; }
  bool parameter_needs_grad(int index) const {
    return needs_grad_[static_cast<std::size_t>(index)];
  }
  // An error of this layer: kConfig unless said otherwise, prefixed with its name and type.
  Error error(std::string what, ErrorCode code = ErrorCode::kConfig) const;

 private:
  std::unique_ptr<caffe::LayerParameter> message_;
  std::string name_, type_;
  LayerContext context_;
  std::vector<ParameterRequest> requests_;
  std::vector<Tensor*> parameters_;
  std::vector<bool> needs_grad_;
};

}  // namespace speedo
