#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/core/batch_feed.hpp>
#include <speedo/core/layer.hpp>
#include <speedo/core/parameter_arena.hpp>
#include <speedo/core/phase.hpp>

namespace caffe {
class NetParameter;
}

namespace speedo {

class Backend;

struct NetOptions {
  Phase phase = Phase::kTrain;
  int level = 0;
  std::vector<std::string> stages;
  Backend* backend = nullptr;           // required; outlives the net
  FeedFactory* feeds = nullptr;         // null: nets with data layers are refused
  std::filesystem::path base;           // folder of the prototxt
  std::uint64_t seed = 0;               // fillers, dropout, shuffles, crops
  double start_fraction = 0.0;          // see FeedOptions
  const class Net* share_parameters = nullptr;  // a test net uses this net's weights, by layer name
};

// A net built from a NetParameter by Caffe's rules: include/exclude filtering, Split insertion,
// parameter sharing by name, loss weights, lr_mult/decay_mult, propagate_down, force_backward,
// pruning of backward. Old V0/V1 messages must be upgraded first (core/upgrade.hpp). Thread safety:
// one thread at a time.
class Net {
 public:
  // Errors: kConfig naming layer, blob and remedy; kData/kNotFound from data layers; kFull.
  static Result<std::unique_ptr<Net>> create(const caffe::NetParameter& parameter,
                                             const NetOptions& options);
  ~Net();
  Net(const Net&) = delete;
  Net& operator=(const Net&) = delete;

  // One pass over all layers. Returns the sum over tops of loss_weight x value.
  Result<float> forward();
  // Requires: forward() before. Adds to parameter gradients (clear_gradients() resets them).
  void backward();
  void clear_gradients();

  // Called during backward() when the gradients of arena elements [offset, offset+count) are final
  // for this pass; the last layer's come first. Each learnable range is reported exactly once.
  using GradientReady = std::function<void(std::int64_t offset, std::int64_t count)>;
  void on_gradient_ready(GradientReady hook);

  // Counts every layer that is run, so that others see that the net is at work. Null: nothing.
  // Requires: the counter outlives the passes.
  void count_layers(std::atomic<std::uint64_t>* counter);

  // Batches read by the following forward passes; also seeds their randomness.
  void set_data_span(const DataSpan& span);

  // Gives every blob its shape and memory again after an Input blob was reshaped.
  Result<void> reshape();

  const std::string& name() const;
  Phase phase() const;
  Backend& backend() const;

  // After Split insertion, in order of execution. Pointers live as long as the net.
  struct LayerView {
    Layer* layer;
    std::vector<Tensor*> bottoms, tops;
    std::vector<std::string> bottom_names, top_names;
    std::vector<bool> propagate;         // per bottom
    bool needs_backward;
    std::vector<std::size_t> slots;      // arena slot of each parameter (owner's slot if shared)
  };
  const std::vector<LayerView>& layers() const;
  const std::vector<std::string>& blob_names() const;   // in order of creation
  Tensor* blob(const std::string& name) const;          // null if there is none
  const std::vector<std::string>& output_names() const; // blobs that no layer reads
  float loss_weight(const std::string& blob) const;

  // Weights and gradients. A test net made with share_parameters returns the training net's arenas.
  const ParameterLayout& layout() const;
  Arena& weights();
  const Arena& weights() const;
  Arena& gradients();

  // Bytes of activations, gradients and parameters, as planned.
  struct Memory {
    std::int64_t activation_bytes, activation_grad_bytes, parameter_bytes, parameter_grad_bytes;
  };
  Memory memory() const;

  // One layer at a time, for `speedo time` and debugging.
  Result<float> forward_layer(std::size_t index);
  void backward_layer(std::size_t index);

  // Copies weights by layer name, Caffe's rule: unknown source layers are skipped, missing ones
  // keep their values; another count or shape is kMismatch, naming both, and leaves the net
  // unchanged.
  Result<void> copy_weights_from(const caffe::NetParameter& source);
  // The net with its weights as Caffe's Net::ToProto writes it.
  void to_proto(caffe::NetParameter& target, bool with_diff) const;

 private:
  struct Impl;
  explicit Net(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace speedo
