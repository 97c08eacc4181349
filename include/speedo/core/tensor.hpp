#pragma once

#include <memory>
#include <span>
#include <vector>

#include <speedo/backend/buffer.hpp>
#include <speedo/backend/layout.hpp>
#include <speedo/core/shape.hpp>

namespace speedo {

class Backend;

// Caffe's blob: values (data) and their gradient (grad) of one shape, in the memory of a backend's
// device, where only that backend's operations may follow the pointers: to float32, or to what the
// layout says.
//
// A tensor first gets its shape, then its layout, then its memory: layers reshape and share while a
// net is set up, the net plans layouts, and allocate() (or the net's memory plan) provides what is
// missing afterwards. Tensors that share storage see the same memory. Thread safety: one thread at
// a time.
class Tensor {
 public:
  Tensor();
  explicit Tensor(Shape shape);

  const Shape& shape() const { return shape_; }
  std::int64_t count() const { return count_; }

  // How data and grad lie in memory; the shape is always N x C x ..., whatever the layout.
  Layout layout() const { return layout_; }
  // Requires: 2 axes or more, or a plain layout.
  void set_layout(Layout layout);
  // Elements in memory, with padding. What elementwise operations pass over.
  std::int64_t storage_count() const { return storage_count_; }
  Elements elements() const { return {storage_count_, layout_.type}; }
  // The memory that they take, in floats.
  std::int64_t storage_floats() const { return elements().memory_floats(); }
  // The first two axes and the product of the others; {1, 1, count} with fewer.
  ArrayShape array_shape() const;

  // Values on the host in plain order, whatever the layout; these wait for the backend.
  // Requires: memory for them, and as many `plain` values as count().
  std::vector<float> values(Backend& backend) const;
  std::vector<float> gradients(Backend& backend) const;
  void set_values(Backend& backend, std::span<const float> plain);
  void set_gradients(Backend& backend, std::span<const float> plain);

  // Changes the shape; the layout becomes plain. Memory is kept if it suffices; allocate() must be
  // called again otherwise.
  void reshape(const Shape& shape);

  // From now on this tensor's data (grad) is the other's. Requires: they take as much memory when
  // it is provided.
  void share_data(const Tensor& other);
  void share_grad(const Tensor& other);
  // From now on gradients() are the other's, however they lie. Requires: `other` lives as long.
  void show_gradients_of(const Tensor& other) { shown_ = &other; }
  // Equal for tensors that share data (grad), and only for them.
  const void* data_identity() const { return data_.get(); }
  const void* grad_identity() const { return grad_.get(); }

  // Gives this tensor's data (grad), and with it that of all that share it, memory that it does not
  // own and that outlives its use. Null: takes memory away.
  void place_data(float* memory);
  void place_grad(float* memory);

  // Makes the tensor a view of memory it does not own: a range of a parameter arena.
  void bind(float* data, float* grad);

  // Provides memory for data and, if wanted, grad. New memory is zero. Error: out of memory.
  Result<void> allocate(Backend& backend, bool with_grad = true);

  // Requires: allocated (has_data / has_grad).
  float* data();
  const float* data() const;
  float* grad();
  const float* grad() const;
  bool has_data() const;
  bool has_grad() const;

 private:
  struct Storage {
    Buffer owned;
    float* view = nullptr;
    std::int64_t capacity = 0;  // floats
  };
  static float* pointer(const Storage& storage);
  Result<void> ensure(Storage& storage, Backend& backend) const;
  void place(Storage& storage, float* memory) const;
  std::vector<float> download(Backend& backend, const float* memory) const;
  void upload(Backend& backend, std::span<const float> plain, float* memory) const;

  Shape shape_;
  Layout layout_;
  std::int64_t count_ = 1, storage_count_ = 1;
  std::shared_ptr<Storage> data_;
  std::shared_ptr<Storage> grad_;
  const Tensor* shown_ = nullptr;  // whose gradients are shown; null: its own
};

// The bottoms or the tops of a layer, in prototxt order. Not owned.
using Tensors = std::span<Tensor* const>;

}  // namespace speedo
