#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <speedo/backend/layout.hpp>
#include <speedo/backend/operations.hpp>
#include <speedo/backend/unary_op.hpp>
#include <speedo/base/random.hpp>
#include <speedo/base/result.hpp>
#include <speedo/core/batch_feed.hpp>
#include <speedo/core/batch_sink.hpp>
#include <speedo/core/factor_shape.hpp>
#include <speedo/core/phase.hpp>
#include <speedo/core/tensor.hpp>

namespace caffe {
class FillerParameter;
class LayerParameter;
}  // namespace caffe

namespace speedo {

class Backend;
class DeviceSteps;

// What a layer may know of the world around it. Outlives the layer.
struct LayerContext {
  Backend* backend = nullptr;
  Phase phase = Phase::kTrain;
  FeedFactory* feeds = nullptr;  // null: data layers are refused
  FeedOptions feed_options;      // for data layers
  SinkFactory* sinks = nullptr;  // null: layers that write are refused, unless plan_only
  // Drawn from by layers that need randomness in forward(). The net reseeds it before every forward
  // pass from its seed and the batch index, so a pass can be repeated anywhere.
  Random* random = nullptr;
  bool plan_only = false;   // nothing is allocated, and no pass will be run
  bool keep_blobs = false;  // every blob's gradient must be there after backward()
};

// A parameter that a layer asks for in setup(). The net places it in the arena and fills it.
struct ParameterRequest {
  Shape shape;
  // Null: zeros. Outlives the layer; most point into its message.
  const caffe::FillerParameter* filler = nullptr;
  // Kept by forward() and by no solver: its multipliers are 0, and no gradient goes there. Needs
  // lr_mult 0 where the message gives one.
  bool is_statistic = false;
};

// How many bottoms and tops a layer type takes; -1: no bound.
struct LayerArity {
  int bottoms_min = 1, bottoms_max = 1;
  int tops_min = 1, tops_max = 1;
  bool equal_counts = false;  // as many tops as bottoms
};

// What a layer makes of its bottoms' layouts. The net puts a Reorder layer where a bottom does not
// lie as its reader needs it.
enum class LayoutRule {
  kPlain,         // bottoms and tops are plain
  kSame,          // all bottoms and tops lie alike, in any layout
  kSameUnpadded,  // likewise, but padding would not stay zero: plain instead of a padded layout
  kSameUncut,  // likewise, but channels are put together or cut apart: plain where a block of one
               // bottom or top would reach into the next
  kNative,     // bottoms and tops in the net's layout
};

// Which passes of a layer another one does together with its own.
struct Fused {
  bool forward = false, backward = false;
};

// What a layer may do for the one after it.
struct FusionTerms {
  // The forward pass alone: the other's backward pass, if it runs, does not need the bottom.
  bool forward_alone = false;
  // Both passes: they run backward() alike (both with all gradients, or neither).
  bool with_backward = false;
  // The other is not in place: it has a second bottom, which is there before this layer's forward
  // pass, and a top of its own. If both passes are fused, this layer gets that bottom as its second
  // one and that top instead of its own, which nobody else reads.
  bool joins = false;
};

// One step of a net, Caffe's contract and one step more: setup() once, reshape() whenever a
// bottom's shape may have changed, prepare() when layouts are known, then forward() and backward()
// any number of times. Behind a layer that shapes its tops in forward(), both may come again before
// each forward(), with the memory that there is. Written once for all devices: values are touched
// only through the backend.
//
// Gradients: parameter gradients are added to, bottom gradients are overwritten (each has one
// reader, as the net puts a Split where a blob has more). Memory of tops and of bottom gradients
// holds anything before they are written, so passes write all of it, padding too.
// Thread safety: one thread at a time.
class Layer {
 public:
  explicit Layer(const caffe::LayerParameter& parameter);
  virtual ~Layer();
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  const std::string& name() const { return name_; }
  const std::string& type() const { return type_; }
  const caffe::LayerParameter& parameter_message() const { return *message_; }

  virtual LayerArity arity() const { return {}; }
  // Loss layers: Caffe's weight of top `index` when the prototxt gives none.
  virtual float default_loss_weight(int /*top*/) const { return 0.0F; }
  // With force_backward: whether bottom `index` may get a gradient (false for labels).
  virtual bool allow_force_backward(int /*bottom*/) const { return true; }
  // Whether a top may be one of the bottoms. setup() refuses it otherwise.
  virtual bool allows_in_place() const { return false; }
  // Whether backward() needs the first bottom as it was even when the top is in its place. A net
  // that trains gives such a layer a top of its own.
  virtual bool keeps_bottom() const { return false; }
  // Whether backward() needs the top as forward() made it even when a layer behind works in its
  // place. A net that trains gives that one a top of its own. Valid after reshape().
  virtual bool keeps_top() const { return false; }
  // Whether bottom `index` can have a gradient at all. A net that needs one there is refused.
  virtual bool can_propagate(int /*bottom*/) const { return true; }
  // Whether tops that the prototxt leaves out, up to arity().tops_min, are added without a name: so
  // it is for losses.
  virtual bool auto_tops() const { return false; }

  // Reads options, checks shapes, asks for parameters (parameter_requests()). Overrides call this
  // one first: it keeps the context and checks arity(). Errors: kConfig, beginning
  // "layer 'NAME' (TYPE): ".
  virtual Result<void> setup(const LayerContext& context, Tensors bottoms, Tensors tops);
  // Gives the tops their shapes, or the largest that forward() may. Called after setup() too.
  virtual Result<void> reshape(Tensors bottoms, Tensors tops) = 0;

  // Whether forward() gives the tops their shapes, by the values it finds. It must know them when
  // it returns, and has waited for what it needs of the device. Layers that read such tops are
  // shaped and prepared again before their own forward pass; they all are plain and share no
  // memory.
  virtual bool shapes_tops_in_forward() const { return false; }

  // Valid after reshape().
  virtual LayoutRule layout_rule() const { return LayoutRule::kPlain; }
  // Whether bottoms and tops may have bfloat16 elements, where the net's layout has; else they are
  // plain there.
  virtual bool takes_bfloat16() const { return false; }
  // With kNative: whether the first bottom may as well be plain in a net that prefers `native`.
  virtual bool takes_plain_bottom(LayoutKind /*native*/) const { return false; }
  // What the choice of the net's layout depends on; null: nothing.
  virtual const ConvolutionShape* convolution_shape() const { return nullptr; }
  // The function that the layer applies to each element of its bottom and does nothing else, by
  // which the layer before may do its work; nothing: it is no such layer. Valid after setup().
  virtual std::optional<UnaryOp> activation() const { return std::nullopt; }
  // Offers to do the work of `next`, which follows in place on this layer's only top and on nothing
  // else, or joins it with another blob. Returns what it will do; called between reshape() and
  // prepare(), and again with the layer after `next` if that was fused. The same offer gets the
  // same answer.
  virtual Fused fuse(Layer& /*next*/, const FusionTerms& /*terms*/) { return {}; }

  // Offers to apply, in backward(), the slope of this function to the gradient of the only bottom,
  // which is the function's result and tells the slope; its layer has no backward pass then.
  // Nothing: no longer. False: it does not.
  virtual bool apply_slope(const std::optional<UnaryOp>& /*of*/) { return false; }

  // Makes the operations and memory that passes need, for the shapes and layouts that bottoms and
  // tops have now; their own memory is not there yet. `trains`: whether backward() will be called.
  // Error: kFull.
  virtual Result<void> prepare(Tensors /*bottoms*/, Tensors /*tops*/, bool /*trains*/) {
    return {};
  }
  // What backward() reads, so that other memory can be used again. Valid after prepare().
  virtual bool backward_reads_bottom(int /*bottom*/) const { return true; }
  virtual bool backward_reads_top(int /*top*/) const { return true; }
  // Values of the layer's own that each forward pass leaves to the next one.
  virtual std::span<Tensor> carried_values() { return {}; }
  // Whether the tops' values must survive from one pass to the next.
  virtual bool keeps_tops() const { return false; }
  // Whether forward() may find the values of this bottom, which nobody needs any more, and of this
  // top in the same memory. It then works in place.
  virtual bool values_may_share(int /*bottom*/, int /*top*/) const { return false; }
  // Whether backward() may find the gradients of this bottom and this top in the same memory. It
  // then works in place; with several bottoms it leaves that memory as it is.
  virtual bool gradients_may_share(int /*bottom*/, int /*top*/) const { return false; }
  // Of the operation that does most of the work; an empty kernel if there is none to name.
  virtual OperationInfo info() const { return {}; }
  // Memory of its own between passes: masks, statistics, copies; operations' and parameters aside.
  virtual std::int64_t workspace_bytes() const { return 0; }

  // Errors: kData for bad records and labels.
  virtual Result<void> forward(Tensors bottoms, Tensors tops) = 0;
  // propagate[i]: whether bottom i needs its gradient.
  virtual void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) = 0;

  // The same on a device that computes beside the host: they wait for it no more than they must. A
  // loss leaves its numbers there, and is NaN where forward() would find a fault with a label.
  virtual Result<void> queue_forward(DeviceSteps& /*steps*/, Tensors bottoms, Tensors tops) {
    return forward(bottoms, tops);
  }
  virtual void queue_backward(DeviceSteps& /*steps*/, Tensors tops,
                              const std::vector<bool>& propagate, Tensors bottoms) {
    backward(tops, propagate, bottoms);
  }
  // Whether forward() writes to what outlives the net.
  virtual bool writes_outside() const { return false; }
  // Whether forward() is the host's work above all: it brings data.
  virtual bool brings_data() const { return false; }

  // Of the first parameter, if its gradient of one pass is such a product and its factors have
  // room in its place; the slot is the net's to name. Valid after reshape().
  virtual std::optional<FactorShape> gradient_factors() const { return std::nullopt; }
  // From here on backward() puts the factors, L and behind it R, at the beginning of the first
  // parameter's gradient, over what is there, instead of adding their product; or no longer.
  // Requires: gradient_factors().
  virtual void leave_factors(bool /*leaves*/) {}

  // Whether backward() can write the first parameter's gradient instead of adding to it. Valid
  // after reshape().
  virtual bool can_overwrite_gradient() const { return false; }
  // The next backward() does so, whatever lies there; of what is behind factors that it leaves
  // nothing is known. Requires: can_overwrite_gradient().
  virtual void overwrite_gradient() {}

  // Data layers: what to read next. Others ignore it.
  virtual void set_batch_span(const BatchSpan& /*span*/) {}
  // Data layers: whether their batches may have several shapes; and whether the one that forward()
  // reads next has another than the tops, which reshape() gives them. Waits for that batch. Errors:
  // kData, kFull.
  virtual bool batches_vary() const { return false; }
  virtual Result<bool> next_batch_differs(Tensors /*tops*/) { return false; }

  // See Net::give_arrays(). Layers that are not made for it refuse.
  virtual Result<void> give_arrays(std::span<const float> data, std::span<const float> labels);

  // Layers that write: what forward() passes wrote is complete. No pass follows.
  virtual Result<void> finish() { return {}; }

  const std::vector<ParameterRequest>& parameter_requests() const { return requests_; }
  // Called by the net with views of the arena, one per request, and whether each needs a gradient.
  void bind_parameters(std::vector<Tensor*> parameters, std::vector<bool> needs_grad);
  const std::vector<Tensor*>& parameters() const { return parameters_; }
  bool parameter_needs_grad(int index) const {
    return needs_grad_[static_cast<std::size_t>(index)];
  }

 protected:
  Backend& backend() const { return *context_.backend; }
  const LayerContext& context() const { return context_; }
  void request_parameter(Shape shape, const caffe::FillerParameter* filler);
  void request_statistic(Shape shape);
  Tensor& parameter(int index) { return *parameters_[static_cast<std::size_t>(index)]; }
  // Provides memory for the values of a tensor of the layer's own; none in a net that only plans.
  // Error: kFull.
  Result<void> allocate(Tensor& tensor);
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
