#include <speedo/core/tensor.hpp>

#include <utility>

#include <speedo/backend/backend.hpp>
#include <speedo/base/assert.hpp>

namespace speedo {

Tensor::Tensor() : data_(std::make_shared<Storage>()), grad_(std::make_shared<Storage>()) {}

Tensor::Tensor(Shape shape) : Tensor() { reshape(shape); }

void Tensor::reshape(const Shape& shape) {
  shape_ = shape;
  count_ = shape.count();
}

void Tensor::share_data(const Tensor& other) { data_ = other.data_; }

void Tensor::share_grad(const Tensor& other) { grad_ = other.grad_; }

void Tensor::bind(float* data, float* grad) {
  data_ = std::make_shared<Storage>(Storage{Buffer(), data, count_});
  grad_ = std::make_shared<Storage>(Storage{Buffer(), grad, grad == nullptr ? 0 : count_});
}

Result<void> Tensor::allocate(Backend& backend, bool with_grad) {
  SPEEDO_TRY(ensure(*data_, backend));
  if (with_grad) {
    SPEEDO_TRY(ensure(*grad_, backend));
  }
  return {};
}

float* Tensor::pointer(const Storage& storage) {
  // Storage is shared between tensors, so constness of one tensor says nothing about it.
  return storage.view != nullptr ? storage.view : const_cast<float*>(storage.owned.as_floats());
}

Result<void> Tensor::ensure(Storage& storage, Backend& backend) const {
  if (pointer(storage) != nullptr && storage.capacity >= count_) {
    return {};
  }
  // A view has exactly the room it was bound with.
  SPEEDO_ASSERT(storage.view == nullptr);
  // An empty tensor gets one element, so that "allocated" and "has a pointer" are the same.
  const std::int64_t elements = count_ > 0 ? count_ : 1;
  SPEEDO_ASSIGN(storage.owned,
                backend.allocate(static_cast<std::size_t>(elements) * sizeof(float)));
  storage.capacity = elements;
  return {};
}

float* Tensor::data() {
  SPEEDO_ASSERT(has_data());
  return pointer(*data_);
}

const float* Tensor::data() const {
  SPEEDO_ASSERT(has_data());
  return pointer(*data_);
}

float* Tensor::grad() {
  SPEEDO_ASSERT(has_grad());
  return pointer(*grad_);
}

const float* Tensor::grad() const {
  SPEEDO_ASSERT(has_grad());
  return pointer(*grad_);
}

bool Tensor::has_data() const { return pointer(*data_) != nullptr && data_->capacity >= count_; }

bool Tensor::has_grad() const { return pointer(*grad_) != nullptr && grad_->capacity >= count_; }

}  // namespace speedo
