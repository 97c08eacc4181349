#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/graph.hpp"
#include "core/plan/memory_plan.hpp"

namespace speedo {

// When each blob's values and gradients are written and read in one forward and one backward pass.
//
// Steps: node i of n runs forward at step i and backward at step 2n - i; step n writes the loss
// weights into gradients. Blobs that share memory are one array. Call in the order of steps.
class BlobTimeline {
 public:
  // Requires: the graph outlives this.
  explicit BlobTimeline(const NetGraph& graph);

  void forward(std::size_t node, const MemoryTraits& traits);
  void begin_backward(std::size_t node);
  void backward(std::size_t node, const MemoryTraits& traits);

  // For a blob that others look at: it is there from before the first step, or from when it is
  // written, until after the last.
  void keep(std::size_t blob, bool with_grad);
  void keep_from_now(std::size_t blob, bool is_grad);

  // Lets a bottom and a top of a node that allows it have their values, or gradients, in one
  // memory. To be called when all steps are known, for all nodes in the order of the pass.
  void share_values(std::size_t node, const MemoryTraits& traits);
  void share_gradients(std::size_t node, const MemoryTraits& traits);

  // Places for all, in floats of blocks that a cache line divides. Afterwards nothing more may be
  // told.
  MemoryPlan pack_arrays();

 private:
  static constexpr std::size_t kNone = SIZE_MAX;

  struct Use {
    int step;
    bool is_write;
  };
  struct Array {
    std::size_t blob = 0;  // the largest that is in it
    bool is_grad = false, is_kept = false;
    std::vector<Use> uses;
    std::size_t group = 0;
  };
  // Arrays in one memory.
  struct Group {
    std::int64_t floats = 0;
    int first = 0, last = 0;
    bool is_fixed = false;  // cannot be shared with others
    std::int64_t offset = 0;
  };

  int last_step() const { return 2 * static_cast<int>(graph_.nodes.size()); }
  int backward_step(std::size_t node) const { return last_step() - static_cast<int>(node); }
  std::int64_t size_of(const Array& array) const {
    return graph_.blobs[array.blob].storage_floats();
  }
  std::size_t& known_array(std::size_t blob, bool is_grad);
  std::size_t array_of(std::size_t blob, bool is_grad);
  void use(std::size_t blob, bool is_grad, int step, bool is_write);
  void make_groups();
  bool may_join(std::size_t before, std::size_t after, int step) const;
  void join(std::size_t before, std::size_t after);
  void place_groups(const std::vector<bool>& is_used, MemoryPlan& plan);
  static bool is_read_first(const Array& array) { return !array.uses.front().is_write; }
  static bool is_written(const Array& array);

  const NetGraph& graph_;
  std::vector<Array> arrays_;
  std::vector<Group> groups_;
  std::vector<std::size_t> of_values_, of_gradients_;  // arrays, by GraphBlob's numbers
};

}  // namespace speedo
