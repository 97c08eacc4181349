// Gradients that a net leaves as factors: their product is the gradient.
#include <speedo/core/net.hpp>

#include "net_run.hpp"
#include "net_support.hpp"

namespace speedo {
namespace {

// Two inner products whose factors are smaller than they, one that is too small for that, one whose
// weights two layers share.
std::string factor_net() {
  return input("label", "dim: 2") + input("data", "dim: 2 dim: 5 dim: 4") +
         product("a", "data", "", 24) + in_place("ReLU", "a") +
         "layer { name: 'b' type: 'InnerProduct' bottom: 'a' top: 'b' inner_product_param {"
         " num_output: 16 transpose: true weight_filler { type: 'xavier' } } }\n" +
         product("c", "b", "param { name: 'w' } param { name: 'v' }", 16) +
         product("d", "c", "param { name: 'w' } param { name: 'v' }", 16) +
         product("e", "d", "", 2) + layer("loss", "SoftmaxWithLoss", {"e", "label"});
}

void fill_inputs(Net& net) {
  for (const char* name : {"data", "label"}) {
    Tensor& blob = *net.blob(name);
    std::vector<float> values(static_cast<std::size_t>(blob.count()));
    const bool is_label = std::string(name) == "label";
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = is_label ? static_cast<float>(i % 2) : static_cast<float>(i % 7) / 7.0F - 0.4F;
    }
    net.backend().device().upload(blob.data(), values);
  }
}

std::vector<float> gradients_of(Net& net) {
  fill_inputs(net);
  net.clear_gradients();
  REQUIRE(net.forward());
  net.backward();
  return values_of(net.gradients().data(), net.gradients().size());
}

// LᵀR, for a parameter's place.
std::vector<float> product_of(const FactorShape& shape, const float* factors) {
  std::vector<float> product(static_cast<std::size_t>(shape.height * shape.width));
  const float* const right = factors + shape.rows * shape.height;
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    for (std::int64_t y = 0; y < shape.height; ++y) {
      for (std::int64_t x = 0; x < shape.width; ++x) {
        product[static_cast<std::size_t>(y * shape.width + x)] +=
            factors[row * shape.height + y] * right[row * shape.width + x];
      }
    }
  }
  return product;
}

TEST_CASE("inner products of one layer that learns offer factors where those are smaller") {
  const auto net = make_net(factor_net());
  const std::vector<FactorShape> shapes = net->factor_shapes();
  REQUIRE(shapes.size() == 2);
  CHECK(shapes[0] == FactorShape{.slot = 0, .rows = 2, .height = 24, .width = 20});
  CHECK(shapes[1] == FactorShape{.slot = 2, .rows = 2, .height = 24, .width = 16});
  std::string frozen = factor_net();
  frozen.replace(frozen.find("name: 'a' type"), 9, "name: 'a' param { lr_mult: 0 } ");
  CHECK(make_net(frozen)->factor_shapes().size() == 1);
}

TEST_CASE("the product of the factors that are left is the gradient") {
  const auto net = make_net(factor_net());
  const std::vector<FactorShape> shapes = net->factor_shapes();
  const std::vector<float> whole = gradients_of(*net);
  const std::size_t left = GENERATE(std::size_t{0}, std::size_t{1}, std::size_t{2});
  net->leave_factors(std::span(shapes).first(left));
  const std::vector<float> with_factors = gradients_of(*net);
  const auto slots = net->layout().slots();
  for (std::size_t slot = 0; slot < slots.size(); ++slot) {
    CAPTURE(left, slot);
    const auto begin = static_cast<std::ptrdiff_t>(slots[slot].offset);
    const auto count = static_cast<std::ptrdiff_t>(slots[slot].count());
    const std::vector<float> expected(whole.begin() + begin, whole.begin() + begin + count);
    std::vector<float> got(with_factors.begin() + begin, with_factors.begin() + begin + count);
    for (std::size_t i = 0; i < left; ++i) {
      if (shapes[i].slot == slot) got = product_of(shapes[i], with_factors.data() + begin);
    }
    check_close("slot", got, expected);
  }
  net->leave_factors({});
  CHECK(gradients_of(*net) == whole);
}

}  // namespace
}  // namespace speedo
