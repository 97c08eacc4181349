#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include <speedo/core/net.hpp>

#include "core/memory_packing.hpp"

namespace speedo {

// When each blob's values and gradients are written and read in one forward and one backward pass.
//
// Steps: layer i of n runs forward at step i and backward at step 2n - i; step n writes the loss
// weights into gradients. Tensors that share memory are one array. Call in the order of steps.
class BlobTimeline {
 public:
  explicit BlobTimeline(std::size_t layer_count) : layer_count_(layer_count) {}

  void forward(std::size_t layer, const Net::LayerView& view,
               const std::vector<float>& loss_weights);
  void begin_backward(const Net::LayerView& view, const std::vector<float>& loss_weights);
  void backward(std::size_t layer, const Net::LayerView& view);

  // For a tensor that others look at: it is there from before the first step, or from when it is
  // written, until after the last.
  void keep(Tensor& tensor, bool with_grad);
  void keep_from_now(Tensor& tensor, bool is_grad);

  // Lets a bottom and a top of a layer that allows it have their values, or gradients, in one
  // memory. To be called when all steps are known, for all layers in the order of the pass.
  void share_values(std::size_t layer, const Net::LayerView& view);
  void share_gradients(std::size_t layer, const Net::LayerView& view);

  // The memory of all, in elements of blocks that a cache line divides. place() puts the tensors
  // into `memory`, which must hold zeros; afterwards nothing more may be told.
  struct Sizes {
    std::int64_t elements = 0, unshared_elements = 0;
  };
  Sizes pack_arrays();
  void place(float* memory);

 private:
  struct Use {
    int step;
    bool is_write;
  };
  struct Array {
    Tensor* tensor = nullptr;
    bool is_grad = false, is_kept = false;
    std::vector<Use> uses;
    std::size_t group = 0;
  };
  // Arrays in one memory.
  struct Group {
    std::int64_t elements = 0;
    int first = 0, last = 0;
    bool is_fixed = false;  // cannot be shared with others
    std::int64_t offset = 0;
  };

  int last_step() const { return 2 * static_cast<int>(layer_count_); }
  std::size_t array_of(Tensor& tensor, bool is_grad);
  void use(Tensor& tensor, bool is_grad, int step, bool is_write);
  void make_groups();
  bool may_join(std::size_t before, std::size_t after, int step) const;
  void join(std::size_t before, std::size_t after);
  static bool is_read_first(const Array& array) { return !array.uses.front().is_write; }
  static bool is_written(const Array& array);

  std::size_t layer_count_;
  std::vector<Array> arrays_;
  std::vector<Group> groups_;
  std::unordered_map<const void*, std::size_t> index_;
};

}  // namespace speedo
