#pragma once

#include <memory>
#include <span>
#include <vector>

#include <speedo/backend/buffer.hpp>
#include <speedo/core/shape.hpp>

namespace speedo {

class Backend;

// Caffe's blob: values (data) and their gradient (grad) of one shape, float32, in a backend's
// memory, where only that backend's operations may follow the pointers.
//
// A tensor first gets its shape, then its memory: layers reshape and share while a net is set up,
// and allocate() provides what is missing afterwards. Tensors that share storage see the same
// memory. Thread safety: one thread at a time.
class Tensor {
 public:
  Tensor();
  explicit Tensor(Shape shape);

  const Shape& shape() const { return shape_; }
  std::int64_t count() const { return count_; }

  // Changes the shape. Memory is kept if it suffices; allocate() must be called again otherwise.
  void reshape(const Shape& shape);

  // From now on this tensor's data (grad) is the other's. Requires: equal counts at allocate().
  void share_data(const Tensor& other);
  void share_grad(const Tensor& other);

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
    std::int64_t capacity = 0;  // elements
  };
  static float* pointer(const Storage& storage);
  Result<void> ensure(Storage& storage, Backend& backend) const;

  Shape shape_;
  std::int64_t count_ = 1;
  std::shared_ptr<Storage> data_;
  std::shared_ptr<Storage> grad_;
};

// The bottoms or the tops of a layer, in prototxt order. Not owned.
using Tensors = std::span<Tensor* const>;

}  // namespace speedo
