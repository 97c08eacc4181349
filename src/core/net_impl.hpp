#pragma once

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <speedo/base/random.hpp>
#include <speedo/core/net.hpp>

#include "caffe.pb.h"

namespace speedo {

// Weights and gradients with their layout: one object for a training net and its test nets.
struct NetParameters {
  ParameterLayout layout;
  Arena weights;
  Arena gradients;
};

// Which batch each forward pass reads; see DataSpan.
class BatchCursor {
 public:
  explicit BatchCursor(const DataSpan& span) : span_(span), next_(span.first) {}
  std::uint64_t take();

 private:
  DataSpan span_;
  std::uint64_t next_;
  std::uint64_t taken_ = 0;
};

// The state of a net and the steps of its construction, in the order in which they run.
struct Net::Impl {
  explicit Impl(const NetOptions& net_options);

  Result<void> build(const caffe::NetParameter& parameter);

  // net_build.cpp: layers one after another, each connected, set up and shaped.
  Result<void> add_layer(const caffe::LayerParameter& message);
  Result<void> connect_bottoms(const caffe::LayerParameter& message, LayerView& view);
  Result<void> connect_tops(const caffe::LayerParameter& message, LayerView& view);
  Result<void> set_up_layer(const caffe::LayerParameter& message, LayerView& view);
  Result<void> set_loss_weights(const caffe::LayerParameter& message, const LayerView& view);
  Result<void> shape_layer(const LayerView& view) const;
  std::size_t add_blob(const std::string& blob_name);
  void collect_outputs();
  Result<void> allocate_blobs();

  // backward_plan.cpp: which layers and bottoms take part in the backward pass.
  void mark_needs_backward(const caffe::LayerParameter& message, std::size_t layer);
  void prune_layers_without_loss();
  void force_backward();
  Result<void> check_propagation();
  void mark_gradient_blobs();

  // net_parameters.cpp: places in the arena, sharing by name, first values.
  Result<void> place_parameters();
  Result<std::size_t> place_parameter(std::size_t layer, int index);
  Result<void> share_with(const Net& owner);
  Result<void> create_arenas();
  Result<void> fill_parameters();
  void bind_parameters();

  // net.cpp: passes.
  void begin_forward();
  void begin_backward();
  Result<float> weighted_loss(std::size_t layer);
  void report_gradients(std::size_t layer);
  void count_layer() {
    if (layer_counter != nullptr) layer_counter->fetch_add(1, std::memory_order_relaxed);
  }

  struct Blob {
    std::string name;
    std::unique_ptr<Tensor> tensor;
    bool needs_backward = false;  // a parameter before it wants a gradient
    bool needs_grad = false;      // the backward pass touches its gradient
  };
  struct LayerWiring {
    std::vector<std::size_t> bottoms, tops;  // blobs
    std::vector<float> loss_weights;         // per top
    std::vector<bool> parameter_needs_grad;
    std::vector<std::unique_ptr<Tensor>> parameters;
    std::size_t slots_begin = 0, slots_end = 0;  // the slots that this layer owns
  };
  // A slot's multipliers may be given by any of its users, but only one value each.
  struct SlotUse {
    std::size_t layer = 0;
    int index = 0;
    bool has_lr_mult = false, has_decay_mult = false;
  };

  NetOptions options;
  std::string name;
  bool is_forced = false;
  std::vector<caffe::LayerParameter> messages;
  std::vector<std::unique_ptr<Layer>> layers;
  std::vector<LayerView> views;
  std::vector<LayerWiring> wiring;
  std::vector<Blob> blobs;
  std::vector<std::string> blob_names, output_names;
  std::unordered_map<std::string, std::size_t> blob_index;
  std::set<std::string> unread;  // blobs that no layer has read yet

  std::shared_ptr<NetParameters> parameters;
  std::vector<SlotUse> slot_uses;
  std::unordered_map<std::string, std::size_t> slot_of_name;

  Random random;
  BatchCursor cursor{DataSpan{}};
  GradientReady gradient_ready;
  std::atomic<std::uint64_t>* layer_counter = nullptr;
};

// "layer 'NAME' (TYPE): what".
Error layer_error(const caffe::LayerParameter& message, const std::string& what,
                  ErrorCode code = ErrorCode::kConfig);

}  // namespace speedo
