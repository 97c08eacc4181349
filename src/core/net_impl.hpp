#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <speedo/base/random.hpp>
#include <speedo/core/net.hpp>

#include "caffe.pb.h"

namespace speedo {

class BlobTimeline;

// Weights and gradients with their layout: one object for a training net and its test nets.
struct NetParameters {
  ParameterLayout layout;
  Arena weights;
  Arena gradients;
};

// Which batch each forward pass reads; see BatchSpan.
class BatchCursor {
 public:
  explicit BatchCursor(const BatchSpan& span) : span_(span), next_(span.first) {}
  std::uint64_t take();

 private:
  BatchSpan span_;
  std::uint64_t next_;
  std::uint64_t taken_ = 0;
};

// A layer of weight files and its parameters in a net.
struct StoredLayer {
  std::string name, type;
  std::vector<Tensor*> parameters;
  std::vector<std::size_t> slots;
};

// The state of a net and the steps of its construction, in the order in which they run.
struct Net::Impl {
  struct Blob {
    std::string name;
    std::unique_ptr<Tensor> tensor;
    bool needs_backward = false;  // a parameter before it wants a gradient
    bool needs_grad = false;      // the backward pass touches its gradient
  };
  struct SlotRange {
    std::size_t begin = 0, end = 0;
  };
  struct LayerWiring {
    std::vector<std::size_t> bottoms, tops;  // blobs
    std::vector<float> loss_weights;         // per top
    std::vector<bool> parameter_needs_grad;
    SlotRange slots;                        // that this layer owns
    std::vector<SlotRange> fused_slots;     // of the layers whose backward pass this one does
    std::vector<SlotRange> borrowed_slots;  // of those whose forward pass it does
  };
  // What a plan adds to: hidden blobs, Reorder layers.
  struct Graph {
    std::vector<LayerView> views;
    std::vector<LayerWiring> wiring;
    std::unordered_map<std::string, std::size_t> blob_index;
    std::size_t blob_count = 0;
  };
  // A slot's multipliers may be given by any of its users, but only one value each.
  struct SlotUse {
    std::size_t layer = 0;
    int index = 0;
    bool has_lr_mult = false, has_decay_mult = false;
  };
  // A layer of the prototxt that several in the net stand for.
  struct Expansion {
    caffe::LayerParameter message;
    std::string graph;                      // as it was written for the bottoms' shapes
    std::size_t first = 0;                  // layer of the net
    std::vector<std::vector<int>> numbers;  // of each layer from there: its parameters' numbers
    std::vector<std::size_t> slots;         // of each number, once parameters have places

    int parameter_count() const;
    SlotUse user_of(int parameter) const;
  };

  explicit Impl(const NetOptions& net_options);

  Result<void> build(const caffe::NetParameter& parameter);

  // net_expand.cpp: layers that become several.
  const ExpandLayer* find_expansion(const std::string& type) const;
  Result<void> write_graph(const caffe::LayerParameter& message, const caffe::LayerParameter& local,
                           caffe::NetParameter& graph) const;
  Result<void> expand_layer(const caffe::LayerParameter& message);
  Result<void> check_expansion(const Expansion& expansion) const;
  const Expansion* expansion_of(std::size_t layer) const;
  void note_expanded_slots();

  // net_build.cpp: layers one after another, each connected, set up and shaped.
  Result<void> add_layer(caffe::LayerParameter& message);
  Result<void> connect_bottoms(const caffe::LayerParameter& message, LayerView& view);
  Result<void> connect_tops(const caffe::LayerParameter& message, LayerView& view);
  Result<void> set_up_layer(const caffe::LayerParameter& message, LayerView& view);
  static Result<void> check_request(const caffe::LayerParameter& message, const LayerView& view,
                                    std::size_t index);
  Result<void> freeze_statistics(const LayerView& view, caffe::LayerParameter& message);
  Result<void> set_loss_weights(const caffe::LayerParameter& message, const LayerView& view);
  Result<void> shape_layer(const LayerView& view) const;
  std::size_t add_blob(const std::string& blob_name);
  std::size_t add_automatic_top();
  void collect_outputs();

  // shape_plan.cpp: shapes that forward passes learn.
  void mark_varying_shapes();
  void note_planned_shapes();
  Result<void> follow_shapes(std::size_t layer);

  // net_plan.cpp, fusion_plan.cpp, layout_plan.cpp, memory_plan.cpp: from shapes to a net that can
  // run; again after shapes changed.
  Result<void> plan();
  void forget_plan();
  void fuse_layers();
  void fuse_into(std::size_t layer);
  void part_in_place_layers();
  bool is_kept_top(std::size_t layer) const;
  bool is_written_from_outside(std::size_t blob) const;
  void give_own_top(std::size_t layer);
  Result<void> plan_layouts();
  Result<void> read_in_layout(LayerView& view, LayerWiring& wires, std::size_t bottom,
                              Layout layout);
  std::size_t find_reorder(const Tensor& source, Layout layout) const;
  Result<void> add_reorder(std::size_t position, const LayerView& reader, const LayerWiring& wires,
                           std::size_t bottom, Layout layout);
  Result<void> prepare_layers();
  BlobTimeline make_timeline() const;
  void keep_blobs(BlobTimeline& timeline) const;
  Result<void> plan_memory();

  // backward_plan.cpp: which layers and bottoms take part in the backward pass.
  void mark_needs_backward(const caffe::LayerParameter& message, std::size_t layer);
  void prune_layers_without_loss();
  void force_backward();
  Result<void> check_propagation();
  void mark_gradient_blobs();

  // net_parameters.cpp: places in the arena, sharing by name, first values.
  Result<void> place_parameters();
  Result<std::size_t> place_parameter(std::size_t layer, int index);
  std::pair<std::string, int> stored_place(std::size_t layer, int index) const;
  Result<void> share_with(const Net& owner);
  Result<std::vector<std::size_t>> slots_of_layer(std::size_t layer, const Impl& source) const;
  Result<std::vector<std::size_t>> slots_of_expansion(std::size_t layer, const Impl& source) const;
  Result<void> create_arenas();
  Result<void> fill_parameters();
  void bind_parameters();

  // net_weights.cpp: what weight files know.
  std::optional<StoredLayer> find_receiver(const std::string& layer) const;
  std::vector<Tensor*> parameters_of(const Expansion& expansion) const;

  // net.cpp: passes.
  void begin_forward();
  void begin_backward();
  Result<float> weighted_loss(std::size_t layer);
  void report_gradients(std::size_t layer);
  Result<void> ask_for_weights(std::size_t layer);
  Bucket bucket_of(SlotRange range) const;
  void count_layer() {
    if (layer_counter != nullptr) layer_counter->fetch_add(1, std::memory_order_relaxed);
  }

  NetOptions options;
  std::string name;
  bool is_forced = false;
  std::vector<caffe::LayerParameter> messages;  // of layers, without Reorders
  std::vector<Expansion> expansions;            // in net order
  std::vector<std::unique_ptr<Layer>> layers, reorders;
  std::vector<LayerView> views;
  std::vector<LayerWiring> wiring;
  std::vector<Blob> blobs;
  std::vector<std::string> blob_names, output_names;
  std::unordered_map<std::string, std::size_t> blob_index;
  std::set<std::string> unread;  // blobs that no layer has read yet

  std::optional<Graph> unplanned;                   // as the prototxt has it, once there is a plan
  std::vector<std::vector<Shape>> followed_shapes;  // of layers' bottoms when they were prepared
  Buffer blob_memory;
  Memory memory;  // of blobs

  std::shared_ptr<NetParameters> parameters;
  std::vector<std::unique_ptr<Tensor>> parameter_tensors;
  std::vector<SlotUse> slot_uses;
  std::unordered_map<std::string, std::size_t> slot_of_name;

  Random random;
  BatchCursor cursor{BatchSpan{}};
  GradientReady gradient_ready;
  WeightsNeeded weights_needed;
  std::atomic<std::uint64_t>* layer_counter = nullptr;
};

// "layer 'NAME' (TYPE): what".
Error layer_error(const caffe::LayerParameter& message, const std::string& what,
                  ErrorCode code = ErrorCode::kConfig);
Error too_many_params(const caffe::LayerParameter& message, std::size_t parameter_count);
Error wrong_loss_weights(const caffe::LayerParameter& message, std::size_t top_count);

}  // namespace speedo
