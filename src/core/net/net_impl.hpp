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
#include "core/plan/fusion_plan.hpp"
#include "core/plan/graph.hpp"
#include "core/plan/memory_plan.hpp"

namespace speedo {

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

// A layer of weight files and its parameters in a net. No slots: another net gives them.
struct StoredLayer {
  std::string name, type;
  std::vector<Tensor*> parameters;
  std::vector<std::size_t> slots;
};

// The state of a net and the steps of its construction, in the order in which they run. Layers are
// told by their place among those of the prototxt, Split layers included and others expanded.
struct Net::Impl {
  struct Blob {
    std::string name;
    std::unique_ptr<Tensor> tensor;
  };
  struct SlotRange {
    std::size_t begin = 0, end = 0;

    bool is_empty() const { return begin == end; }
  };
  // What a pass asks for before a node runs, and reports after it ran backward: ranges of slots, of
  // the node's own layer last, first one first.
  struct NodeSlots {
    std::vector<SlotRange> needed, final;
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
    std::vector<std::size_t> slots;         // placed, of each number, once they have places

    int parameter_count() const;
    SlotUse user_of(int parameter) const;
  };

  struct KeptInput {
    Tensor* blob;
    std::vector<float> values;
  };

  explicit Impl(const NetOptions& net_options);

  Result<void> build(const caffe::NetParameter& parameter);

  // net_expand.cpp: layers that become several.
  const ExpandLayer* find_expansion(const std::string& type) const;
  Result<void> write_graph(const caffe::LayerParameter& message, const caffe::LayerParameter& local,
                           caffe::NetParameter& expanded) const;
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
  Result<void> choose_backward();
  void collect_outputs();

  // net_log.cpp: Caffe's lines, those of layers as each of them is done.
  void log_set_up(const caffe::LayerParameter& message, std::size_t first);
  void log_end_of_set_up() const;

  // net_plan.cpp: from shapes to a net that can run, by the plans of core/plan; again after shapes
  // changed.
  Result<void> plan();
  void forget_plan();
  Result<void> reshape();
  Result<void> follow_batches();
  std::vector<KeptInput> keep_inputs() const;
  bool batches_vary() const;
  std::string batch_shapes() const;
  void note_shapes();
  bool is_looked_at(std::size_t blob) const;
  void fuse_layers();
  void part_in_place_layers();
  void leave_out_slopes();
  void note_slots();
  Result<void> prepare_layers();
  BlobsToKeep blobs_to_keep() const;
  Result<void> place_blobs();
  Result<void> follow_shapes(std::size_t node);

  // net_layouts.cpp: the layers of the planned nodes, shaped for the layouts that they have.
  Result<void> lay_out_blobs();
  LayerView view_of(const GraphNode& node) const;
  LayerView add_reorder(const GraphNode& node);
  Result<void> set_up_reorder(const LayerView& view) const;
  void check_layouts() const;

  // net_parameters.cpp: places in the arena, sharing by name, first values.
  Result<void> place_parameters();
  Result<std::size_t> place_parameter(std::size_t layer, int index);
  std::pair<std::string, int> stored_place(std::size_t layer, int index) const;
  Result<void> share_with(const Net& owner);
  Result<void> check_alone(std::size_t layer, const Impl& source) const;
  static bool has_layer(const Impl& net, const std::string& layer);
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
  Result<float> weighted_loss(std::size_t node);
  void report_gradients(std::size_t node);

  // net_gradients.cpp: sums of them begin.
  void note_sole_writers();
  void clear_gradients();

  // net_queue.cpp: passes on a device that computes beside the host.
  std::size_t source_count() const;
  bool is_term(std::size_t node, std::size_t top) const;
  Result<void> queue_forward(DeviceSteps& steps, std::size_t node);
  void queue_terms(DeviceSteps& steps, std::size_t node);

  Result<void> ask_for_weights(std::size_t node);
  Bucket bucket_of(SlotRange range) const;
  void count_layer() {
    if (layer_counter != nullptr) layer_counter->fetch_add(1, std::memory_order_relaxed);
  }

  NetOptions options;
  std::string name;
  bool is_forced = false;
  bool is_rehearsal = false;  // the pass under way: layers that write outside are left out
  std::int64_t logged_elements = 0;  // of all tops of the layers that have been logged
  // As the prototxt has it.
  std::vector<caffe::LayerParameter> messages;  // of layers
  std::vector<Expansion> expansions;            // in net order
  std::vector<std::unique_ptr<Layer>> layers;
  std::vector<LayerView> built;  // of layers, before any plan
  NetGraph graph;                // a node for each of these
  std::vector<Blob> blobs;       // of the graph; then of the planned one
  std::vector<std::string> blob_names, output_names;
  std::unordered_map<std::string, std::size_t> blob_index;
  std::set<std::string> unread;  // blobs that no layer has read yet

  // As it runs, once there is a plan.
  NetGraph planned;
  FusionPlan fusion;                                // of layers
  std::vector<LayerView> views;                     // of its nodes
  std::vector<std::unique_ptr<Layer>> reorders;     // of its Reorder nodes
  std::vector<NodeSlots> node_slots;                // of its nodes
  std::vector<std::pair<std::size_t, Layer*>> sole_writers;  // by slot, in order
  std::vector<std::vector<Shape>> followed_shapes;  // of its nodes' bottoms when prepared
  Buffer blob_memory;
  Memory memory;  // of blobs

  std::shared_ptr<NetParameters> parameters;
  // The same, or in a net that shares another's those of layers that the other lacks.
  std::shared_ptr<NetParameters> placed;
  std::vector<std::vector<std::size_t>> placed_slots;  // by layer
  std::vector<std::unique_ptr<Tensor>> parameter_tensors;
  std::vector<SlotRange> own_slots;  // by layer: of parameters that it is the first to use
  std::vector<SlotUse> slot_uses;    // of what is placed
  std::unordered_map<std::string, std::size_t> slot_of_name;  // likewise

  float gradient_scale = 1.0F;
  Random random;
  BatchCursor cursor{BatchSpan{}};
  GradientReady gradient_ready;
  WeightsNeeded weights_needed;
  std::atomic<std::uint64_t>* layer_counter = nullptr;
};

// Bad data are found where they are used, far from the layer that brought them.
Error with_sources(Error error, const std::vector<caffe::LayerParameter>& layers);
// "layer 'NAME' (TYPE): what".
Error layer_error(const caffe::LayerParameter& message, const std::string& what,
                  ErrorCode code = ErrorCode::kConfig);
Error too_many_params(const caffe::LayerParameter& message, std::size_t parameter_count);
Result<void> check_propagate_down(const caffe::LayerParameter& message);
Error wrong_loss_weights(const caffe::LayerParameter& message, std::size_t top_count);

}  // namespace speedo
