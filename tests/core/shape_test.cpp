#include <string>

#include <speedo/core/parameter_arena.hpp>
#include <speedo/core/shape.hpp>
#include <speedo/core/tensor.hpp>

#include "support/catch.hpp"
#include "support/device_values.hpp"
#include "support/kernels.hpp"

namespace speedo {
namespace {

TEST_CASE("a shape is refused when negative, too long or too large", "[shape]") {
  CHECK(Shape::create({}).has_value());
  CHECK(Shape::create({0, 5})->count() == 0);
  CHECK(Shape::create({2147483647})->count() == 2147483647);
  CHECK_FALSE(Shape::create({2147483648}).has_value());
  CHECK_FALSE(Shape::create({65536, 32768}).has_value());
  CHECK_FALSE(Shape::create({3, -1}).has_value());
  // The product would wrap round to a small number.
  CHECK_FALSE(Shape::create({INT64_MAX, 4, 4}).has_value());
  CHECK_FALSE(Shape::create({0, INT64_MAX}).has_value());
  CHECK(Shape::create(std::vector<std::int64_t>(32, 1)).has_value());
  CHECK_FALSE(Shape::create(std::vector<std::int64_t>(33, 1)).has_value());
}

TEST_CASE("counts and axes follow Caffe", "[shape]") {
  const Shape shape{2, 3, 4};
  CHECK(shape.count() == 24);
  CHECK(shape.count(1) == 12);
  CHECK(shape.count(1, 1) == 1);
  CHECK(*shape.canonical_axis(-1) == 2);
  CHECK(*shape.canonical_axis(0) == 0);
  CHECK_FALSE(shape.canonical_axis(3).has_value());
  CHECK_FALSE(shape.canonical_axis(-4).has_value());
  CHECK(to_string(shape) == "2 3 4 (24)");
  CHECK(to_string(Shape{}) == "(1)");
}

TEST_CASE("an old four-axis shape matches after leading ones", "[shape]") {
  const Shape old{1, 1, 4, 6};
  CHECK(old.matches_legacy({4, 6}));
  CHECK(old.matches_legacy({1, 4, 6}));
  CHECK_FALSE(old.matches_legacy({4, 6, 1}));
  CHECK_FALSE(old.matches_legacy({6}));
  CHECK((Shape{1, 1, 1, 1}).matches_legacy({}));
}

TEST_CASE("tensors that share memory see the same values", "[tensor]") {
  const auto backend = test::make_backend(1);
  Tensor a(Shape{2, 3});
  Tensor b(Shape{6});
  b.share_data(a);
  CHECK_FALSE(a.has_data());
  REQUIRE(a.allocate(*backend, false).has_value());
  CHECK(b.has_data());
  CHECK(a.data() == b.data());
  CHECK_FALSE(a.has_grad());
  REQUIRE(b.allocate(*backend).has_value());
  CHECK(b.has_grad());
  CHECK_FALSE(a.has_grad());
}

TEST_CASE("a tensor keeps memory that suffices and gets more when it grows", "[tensor]") {
  const auto backend = test::make_backend(1);
  Tensor tensor(Shape{4});
  REQUIRE(tensor.allocate(*backend).has_value());
  const float* before = tensor.data();
  tensor.reshape({2});
  REQUIRE(tensor.allocate(*backend).has_value());
  CHECK(tensor.data() == before);
  tensor.reshape({1000});
  CHECK_FALSE(tensor.has_data());
  REQUIRE(tensor.allocate(*backend).has_value());
  CHECK(test::value_at(backend->device(), tensor.data() + 999) == 0.0F);
}

TEST_CASE("values are told in plain order, whatever the layout", "[tensor]") {
  const auto backend = test::make_backend(1);
  const Shape shape{2, 5, 3, 2};
  std::vector<float> values(60);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + 1);
  for (const std::int64_t block : {1, 2, 5, 8}) {
    Tensor tensor(shape);
    tensor.set_layout({block});
    const std::int64_t channels = (5 + block - 1) / block * block;
    CHECK(tensor.count() == 60);
    CHECK(tensor.storage_count() == 2 * channels * 6);
    REQUIRE(tensor.allocate(*backend).has_value());
    tensor.set_values(*backend, values);
    tensor.set_gradients(*backend, values);
    CHECK(tensor.values(*backend) == values);
    CHECK(tensor.gradients(*backend) == values);
    // Channel 1 of image 1 at position 4 lies beside channel 0 in its block.
    const std::int64_t place = channels * 6 + (block == 1 ? 6 + 4 : 4 * block + 1);
    const auto stored = test::values_at(backend->device(), tensor.data(), tensor.storage_count());
    CHECK(stored[static_cast<std::size_t>(place)] == values[(5 + 1) * 6 + 4]);
    if (block == 8) CHECK(stored[7] == 0.0F);
  }
  Tensor labels(Shape{7});
  CHECK(labels.array_shape().spatial == 7);
  Tensor reshaped(shape);
  reshaped.set_layout({8});
  reshaped.reshape(shape);
  CHECK(reshaped.layout().is_plain());
}

TEST_CASE("a place serves all tensors that share", "[tensor]") {
  Tensor a(Shape{2, 3});
  Tensor b(Shape{6});
  b.share_data(a);
  CHECK(a.data_identity() == b.data_identity());
  CHECK(a.grad_identity() != b.grad_identity());
  std::vector<float> memory(6);
  a.place_data(memory.data());
  CHECK(b.data() == memory.data());
  CHECK_FALSE(a.has_grad());
  a.place_data(nullptr);
  CHECK_FALSE(b.has_data());
}

ParameterSlot slot(const std::string& layer, int index, Shape shape) {
  return {layer, index, "", std::move(shape), 0, 1.0F, 1.0F};
}

TEST_CASE("parameters start on 64-byte boundaries and the padding counts", "[arena]") {
  ParameterLayout layout;
  CHECK(layout.add(slot("conv", 0, {3, 5})) == 0);
  CHECK(layout.add(slot("conv", 1, {3})) == 1);
  CHECK(layout.add(slot("ip", 0, {16})) == 2);
  CHECK(layout.slots()[1].offset == 16);
  CHECK(layout.slots()[2].offset == 32);
  CHECK(layout.element_count() == 48);
  CHECK(layout.parameter_count() == 34);
}

TEST_CASE("the digest tells layouts apart, not multipliers", "[arena]") {
  ParameterLayout a;
  a.add(slot("ip", 0, {4, 2}));
  ParameterLayout b = a;
  b.slot(0).lr_mult = 7.0F;
  CHECK(a.digest() == b.digest());
  ParameterLayout transposed;
  transposed.add(slot("ip", 0, {2, 4}));
  CHECK(a.digest() != transposed.digest());
  ParameterLayout renamed;
  renamed.add(slot("fc", 0, {4, 2}));
  CHECK(a.digest() != renamed.digest());
  ParameterLayout longer = a;
  longer.add(slot("ip", 1, {4}));
  CHECK(a.digest() != longer.digest());
}

TEST_CASE("an arena is aligned, zero, and may be empty", "[arena]") {
  const auto backend = test::make_backend(1);
  auto arena = Arena::create(*backend, 48);
  REQUIRE(arena.has_value());
  CHECK(reinterpret_cast<std::uintptr_t>(arena->data()) % 64 == 0);
  CHECK(test::value_at(backend->device(), arena->data() + 47) == 0.0F);
  CHECK(Arena::create(*backend, 0)->size() == 0);
}

}  // namespace
}  // namespace speedo
