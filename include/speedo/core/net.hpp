#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <speedo/backend/device.hpp>
#include <speedo/base/random.hpp>
#include <speedo/base/result.hpp>
#include <speedo/core/batch_feed.hpp>
#include <speedo/core/batch_sink.hpp>
#include <speedo/core/bucket.hpp>
#include <speedo/core/factor_shape.hpp>
#include <speedo/core/layer.hpp>
#include <speedo/core/layer_expansion.hpp>
#include <speedo/core/parameter_arena.hpp>
#include <speedo/core/phase.hpp>

namespace caffe {
class NetParameter;
}

namespace speedo {

class Backend;
class DeviceSteps;

struct NetOptions {
  Phase phase = Phase::kTrain;
  int level = 0;
  std::vector<std::string> stages;
  Backend* backend = nullptr;                   // required; outlives the net
  FeedFactory* feeds = nullptr;                 // null: nets with data layers are refused
  SinkFactory* sinks = nullptr;                 // null: nets with layers that write are refused
  std::filesystem::path base;                   // folder of the prototxt
  std::uint64_t seed = 0;                       // fillers, dropout, shuffles, crops
  double start_fraction = 0.0;                  // see FeedOptions
  // A test net uses this net's weights, by layer name. Layers that this net lacks have weights of
  // their own, which nothing trains and no layout or arena of the test net holds.
  const class Net* share_parameters = nullptr;
  // Every blob keeps its values and gradients until the next pass, for those who look at them.
  // Otherwise memory is used again as soon as no layer needs what it holds: inputs stay, and
  // outputs (blobs that no layer reads) and inputs' gradients stay until the next forward(); of the
  // others, values may be gone after forward(), gradients after backward().
  bool keep_blobs = false;
  // Blobs that are kept though keep_blobs is false. Names that the net lacks are passed over.
  std::vector<std::string> kept_blobs;
  // Nothing is allocated: the net can tell its shapes and memory(), but not be run.
  bool plan_only = false;
  bool trains = true;    // false: backward() will not be called
  bool logs_set_up = false;  // Caffe's lines of how the net is built: its layers, shapes, memory
  bool shares_gradients = false;  // their arena is one that other processes can be given
  bool may_fuse = true;  // layers may do the work of in-place layers after them
  // By layer type: graphs of the caller's own, beside or instead of those that the registry knows.
  std::map<std::string, ExpandLayer> expansions;
};

// A net built from a NetParameter by Caffe's rules: include/exclude filtering, Split insertion,
// parameter sharing by name, loss weights, lr_mult/decay_mult, propagate_down, force_backward,
// pruning of backward. Old V0/V1 messages must be upgraded first (core/upgrade). Thread safety:
// one thread at a time.
class Net {
 public:
  // Errors: kConfig naming layer, blob and remedy; kData/kNotFound from data layers; kFull.
  static Result<std::unique_ptr<Net>> create(const caffe::NetParameter& parameter,
                                             const NetOptions& options);
  ~Net();
  Net(const Net&) = delete;
  Net& operator=(const Net&) = delete;

  // One pass over all layers, after a reshape() that keeps the values of Input blobs where a data
  // layer's batch has another shape than the one before. Returns the sum over tops of loss_weight x
  // value. Errors: of data and hooks; those of reshape().
  Result<float> forward();
  // The same for the loss alone: layers that write files do not.
  Result<float> rehearse();
  // Requires: NetOptions::trains, and a forward() of its own before (with keep_blobs, one may serve
  // several). Adds to parameter gradients.
  void backward();
  // Begins a sum of parameter gradients, which hold nothing to look at before backward() has run.
  void clear_gradients();
  // backward() multiplies the gradients by the loss with this from here on, so that all others are
  // too large by it, until unscale_gradients() is called. Requires: above 0, and finite.
  void set_gradient_scale(float scale);
  float gradient_scale() const;
  void unscale_gradients();  // the parameters'
  // The same passes on a device that computes beside the host, whose losses go to `steps`. A pass
  // is queue_sources(), which reads its data, queue_forward() and queue_backward(). Hooks are not
  // called. Requires: no queue_obstacle(). Errors: those of forward().
  Result<void> queue_sources(DeviceSteps& steps);
  Result<void> queue_forward(DeviceSteps& steps);
  void queue_backward(DeviceSteps& steps);
  // What stands against them; empty: nothing. And what against a recording of the last two.
  std::string queue_obstacle() const;
  std::string recording_obstacle() const;
  // What the layers of the pass under way draw from; after queue_sources(), what they will.
  Random pass_random() const;
  void set_pass_random(const Random& random);

  // Whether no gradient of a parameter is infinite or NaN. The loss alone does not tell: some
  // kernels' max(NaN, 0) is 0.
  bool has_finite_gradients() const;

  // Called during backward() when what will make the gradients of a bucket final for this pass is
  // queued; they are once `final` is done. The last layer's come first; each learnable range is
  // reported exactly once. Whoever adds up several passes wants this of the last one only. Null:
  // nobody.
  using GradientReady = std::function<void(const Bucket& bucket, const StreamEvent& final)>;
  void on_gradient_ready(GradientReady hook);

  // Called during forward() before a bucket's weights are first used; the first layer's come first.
  // Its error ends the pass. Null: all are there.
  using WeightsNeeded = std::function<Result<void>(const Bucket& bucket)>;
  void on_weights_needed(WeightsNeeded hook);

  // Parameters of which backward() may leave the factors of one pass' gradient, in the layout's
  // order: those of one layer alone, which learn, where that takes less room. None where batches
  // have several shapes. Valid until shapes change.
  std::vector<FactorShape> factor_shapes() const;
  // From here on it does so for these slots, and for no others; see Layer::leave_factors(). What
  // lies behind factors in their slot is not to be looked at.
  // Requires: they are among factor_shapes(); backward() runs once between clear_gradients().
  void leave_factors(std::span<const FactorShape> shapes);

  // Counts every layer that is run, so that others see that the net is at work. Null: nothing.
  // Requires: the counter outlives the passes.
  void count_layers(std::atomic<std::uint64_t>* counter);

  // Batches read by the following forward passes; also seeds their randomness.
  void set_batch_span(const BatchSpan& span);

  // Gives a MemoryData layer its items, one after another, and a label for each: the following
  // passes begin with the first batch of them. They are not copied, and stay as they are while
  // passes are run. Errors: kConfig, if there is no such layer, or no whole number of batches.
  Result<void> give_arrays(const std::string& layer, std::span<const float> data,
                           std::span<const float> labels);

  // Completes what layers with sinks (HDF5Output) wrote. Without it they leave nothing behind; no
  // forward() may follow. Error: kCannotWrite, of the first that failed; the others are completed.
  Result<void> finish();

  // Gives every blob its shape, layout and memory again after an Input blob was reshaped. Values of
  // blobs are gone then. The memory does not shrink.
  Result<void> reshape();

  const std::string& name() const;
  Phase phase() const;
  Backend& backend() const;

  // After Split insertion and with the layers that others were expanded to, in order of execution.
  // Pointers live until reshape(), forward()'s own included; names are the prototxt's, also of a
  // bottom that is read through a Reorder layer.
  struct LayerView {
    Layer* layer;
    std::vector<Tensor*> bottoms, tops;
    std::vector<std::string> bottom_names, top_names;
    std::vector<bool> propagate;  // per bottom
    bool needs_backward;
    // Arena slot of each parameter (owner's slot if shared); none, if in no arena that the net
    // shows.
    std::vector<std::size_t> slots;
    Fused fused;                     // passes that the layer before does
    bool shapes_vary = false;        // from pass to pass, of bottoms or tops
    bool is_reorder = false;         // put in by the net; in no prototxt
    std::string expanded_from;       // the prototxt's layer that it does a part of; empty: its own
  };
  const std::vector<LayerView>& layers() const;
  const std::vector<std::string>& blob_names() const;    // in order of creation, without Reorders'
  Tensor* blob(const std::string& name) const;           // null if there is none
  const std::vector<std::string>& output_names() const;  // blobs that no layer reads
  float loss_weight(const std::string& blob) const;

  // Weights and gradients. A test net made with share_parameters returns the training net's arenas.
  const ParameterLayout& layout() const;
  Arena& weights();
  const Arena& weights() const;
  Arena& gradients();

  // Bytes as planned. Parameters that a test net shares count nothing.
  struct Memory {
    std::int64_t blob_bytes = 0;       // values and gradients of all blobs
    std::int64_t unshared_bytes = 0;   // what they would take, each in memory of its own
    std::int64_t workspace_bytes = 0;  // what layers and operations keep between passes
    std::int64_t scratch_bytes = 0;    // of the backend, shared with the other nets on it
    std::int64_t parameter_bytes = 0, parameter_grad_bytes = 0;
  };
  Memory memory() const;

  // One layer at a time, for `speedo time` and debugging.
  Result<float> forward_layer(std::size_t index);
  Result<float> rehearse_layer(std::size_t index);
  void backward_layer(std::size_t index);

  // Copies weights by layer name, Caffe's rule: unknown source layers are skipped, missing ones
  // keep their values; another count or shape is kMismatch, naming both, and leaves the net
  // unchanged. Parameters that the net shares with another are passed over: that one is asked.
  Result<void> copy_weights_from(const caffe::NetParameter& source);
  // The net with its weights as Caffe's Net::ToProto writes it.
  void to_proto(caffe::NetParameter& target, bool with_diff) const;

 private:
  struct Impl;
  explicit Net(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace speedo
