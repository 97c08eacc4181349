#include <speedo/core/tensor.hpp>

#include <cstddef>
#include <cstring>
#include <utility>

#include <speedo/backend/backend.hpp>
#include <speedo/base/assert.hpp>
#include <speedo/base/bfloat16.hpp>

#include "core/array_shape.hpp"

namespace speedo {
namespace {

// Calls visit(where in the layout, where in plain order) for every element.
template <class Visit>
void for_each_element(const ArrayShape& shape, Layout layout, const Visit& visit) {
  std::size_t plain = 0;
  for (std::int64_t n = 0; n < shape.batch; ++n) {
    for (std::int64_t c = 0; c < shape.channels; ++c) {
      const std::int64_t first = n * layout.channels(shape.channels) * shape.spatial +
                                 c / layout.block * layout.block * shape.spatial + c % layout.block;
      for (std::int64_t i = 0; i < shape.spatial; ++i) {
        visit(static_cast<std::size_t>(first + i * layout.block), plain++);
      }
    }
  }
}

// Element i of memory as it is on the device.
float stored_value(std::span<const float> memory, std::size_t i, ElementType type) {
  if (type == ElementType::kFloat32) return memory[i];
  std::uint16_t half = 0;
  std::memcpy(&half, reinterpret_cast<const std::byte*>(memory.data()) + i * sizeof half,
              sizeof half);
  return from_bfloat16(half);
}
void store_value(std::span<float> memory, std::size_t i, ElementType type, float value) {
  if (type == ElementType::kFloat32) {
    memory[i] = value;
    return;
  }
  const std::uint16_t half = to_bfloat16(value);
  std::memcpy(reinterpret_cast<std::byte*>(memory.data()) + i * sizeof half, &half, sizeof half);
}

}  // namespace

Tensor::Tensor() : data_(std::make_shared<Storage>()), grad_(std::make_shared<Storage>()) {}

Tensor::Tensor(Shape shape) : Tensor() { reshape(shape); }

void Tensor::reshape(const Shape& shape) {
  shape_ = shape;
  count_ = storage_count_ = shape.count();
  layout_ = {};
}

void Tensor::set_layout(Layout layout) {
  SPEEDO_ASSERT(layout.is_plain() || (shape_.axes() >= 2 && layout.block > 0));
  layout_ = layout;
  storage_count_ = array_shape().storage_count(layout);
}

ArrayShape Tensor::array_shape() const { return array_shape_of(shape_); }

void Tensor::share_data(const Tensor& other) { data_ = other.data_; }

void Tensor::share_grad(const Tensor& other) { grad_ = other.grad_; }

void Tensor::bind(float* data, float* grad) {
  data_ = std::make_shared<Storage>();
  grad_ = std::make_shared<Storage>();
  place_data(data);
  place_grad(grad);
}

void Tensor::place_data(float* memory) { place(*data_, memory); }

void Tensor::place_grad(float* memory) { place(*grad_, memory); }

void Tensor::place(Storage& storage, float* memory) const {
  storage = {Buffer(), memory, memory == nullptr ? 0 : storage_floats()};
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
  if (pointer(storage) != nullptr && storage.capacity >= storage_floats()) {
    return {};
  }
  // A view has exactly the room it was bound with.
  SPEEDO_ASSERT(storage.view == nullptr);
  // What is queued may use the memory that goes.
  if (pointer(storage) != nullptr) backend.device().synchronize();
  // An empty tensor gets one element, so that "allocated" and "has a pointer" are the same.
  const std::int64_t floats = storage_count_ > 0 ? storage_floats() : 1;
  SPEEDO_ASSIGN(storage.owned,
                backend.device().allocate(static_cast<std::size_t>(floats) * sizeof(float)));
  storage.capacity = floats;
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

bool Tensor::has_data() const {
  return pointer(*data_) != nullptr && data_->capacity >= storage_floats();
}

bool Tensor::has_grad() const {
  return pointer(*grad_) != nullptr && grad_->capacity >= storage_floats();
}

std::vector<float> Tensor::values(Backend& backend) const { return download(backend, data()); }

std::vector<float> Tensor::gradients(Backend& backend) const {
  return shown_ != nullptr ? shown_->gradients(backend) : download(backend, grad());
}

void Tensor::set_values(Backend& backend, std::span<const float> plain) {
  upload(backend, plain, data());
}

void Tensor::set_gradients(Backend& backend, std::span<const float> plain) {
  upload(backend, plain, grad());
}

// The order changes on the host, which needs no memory of the backend.

std::vector<float> Tensor::download(Backend& backend, const float* memory) const {
  std::vector<float> stored(static_cast<std::size_t>(storage_floats()));
  backend.device().download(stored, memory);
  if (layout_.is_plain()) return stored;
  std::vector<float> plain(static_cast<std::size_t>(count_));
  for_each_element(array_shape(), layout_, [&](std::size_t from, std::size_t to) {
    plain[to] = stored_value(stored, from, layout_.type);
  });
  return plain;
}

void Tensor::upload(Backend& backend, std::span<const float> plain, float* memory) const {
  SPEEDO_ASSERT(static_cast<std::int64_t>(plain.size()) == count_);
  if (layout_.is_plain()) return backend.device().upload(memory, plain);
  std::vector<float> stored(static_cast<std::size_t>(storage_floats()), 0.0F);
  for_each_element(array_shape(), layout_, [&](std::size_t to, std::size_t from) {
    store_value(stored, to, layout_.type, plain[from]);
  });
  backend.device().upload(memory, stored);
}

}  // namespace speedo
