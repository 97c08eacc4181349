#include <speedo/core/net.hpp>

#include <set>
#include <string>
#include <vector>

#include "net_support.hpp"

namespace speedo {
namespace {

const std::string kTwoRecords = input("data", "dim: 2 dim: 4");
const std::string kThreeTargets = input("label", "dim: 2 dim: 3");

void expect(const std::string& text, const std::string& part,
            const NetOptions& options = net_options(), ErrorCode code = ErrorCode::kConfig) {
  const Error error = net_error(text, options);
  CHECK(error.code == code);
  CHECK_THAT(error.message, Catch::Contains(part));
}

TEST_CASE("a net that cannot be built is a named error", "[net]") {
  expect(kTwoRecords + "layer { name: 'x' type: 'Rellu' bottom: 'data' top: 'y' }", "Rellu");
  expect(kTwoRecords + product("x", "dta"), "did you mean 'data'");
  expect(kTwoRecords + product("x", "data") +
             "layer { name: 'y' type: 'ReLU' bottom: 'x' top: 'data' }",
         "top blob 'data'");
  expect(kTwoRecords + product("x", "data") +
             "layer { name: 'r' type: 'ReLU' bottom: 'data' top: 'data' }" + product("y", "data"),
         "top blob 'data'");
  expect(kTwoRecords + "layer { name: 'x' type: 'ReLU' bottom: 'data' bottom: 'data' top: 'y' }",
         "bottom");
  expect(kTwoRecords + product("x", "data", "propagate_down: true propagate_down: true"),
         "propagate_down");
  expect(kTwoRecords + product("x", "data", "param { } param { } param { }"), "param");
  expect(kTwoRecords + product("x", "data", "loss_weight: 1 loss_weight: 2"), "loss_weight");
  std::string many;
  for (int i = 0; i < 50001; ++i) many += "layer { }\n";
  expect(many, "has 50001 layers, 50000 are the most");
  expect(kTwoRecords + product("x", "data", "loss_weight: nan"), "loss_weight is not a finite");
  expect(kTwoRecords + product("x", "data") + loss("x", "data"), "layer 'loss'");
  expect(input("data", "dim: 2147483647 dim: 4"), "data");
  expect(input("data", "dim: 65536 dim: 16384") + product("x", "data", "", 2147483647),
         "layer 'x'");
  expect(kTwoRecords + product("x", "data", "include { phase: TEST }") + product("y", "x"), "'x'");
  expect("name: 'none' layer { name: 'x' include { phase: TEST } }", "no layers");
  expect(kTwoRecords + product("x", "data") +
             "layer { name: 'x' type: 'InnerProduct' bottom: 'x' top: 'z'"
             " inner_product_param { num_output: 2 } }",
         "same name");
}

TEST_CASE("the loss is the weighted sum of loss tops", "[net]") {
  const auto net =
      make_net(kTwoRecords + kThreeTargets + product("x", "data") + loss("x", "label"));
  const auto weighted = make_net(kTwoRecords + kThreeTargets + product("x", "data") +
                                 loss("x", "label", "loss_weight: 0.25"));
  const auto shared =
      make_net(kTwoRecords + kThreeTargets + product("x", "data", "loss_weight: 2"));
  const std::vector<float> ones(8, 1.0F);
  for (Net* each : {net.get(), weighted.get(), shared.get()}) {
    test_backend().device().upload(each->blob("data")->data(), ones);
  }
  const float loss_value = *net->forward();
  CHECK(loss_value > 0.0F);
  CHECK(loss_value == values_of(net->blob("loss")->data(), 1)[0]);
  CHECK(*weighted->forward() == Approx(loss_value / 4));
  CHECK(net->loss_weight("loss") == 1.0F);
  CHECK(weighted->loss_weight("loss") == 0.25F);
  CHECK(net->loss_weight("x") == 0.0F);
  // A weight on a top of many elements counts every element.
  float sum = 0.0F;
  const float value = *shared->forward();
  for (const float element : values_of(shared->blob("x")->data(), 6)) sum += element;
  CHECK(value == Approx(2 * sum));
}

TEST_CASE("outputs are the unread blobs, in the order of their names", "[net]") {
  const auto net = make_net(kThreeTargets + kTwoRecords + product("z", "data") + product("b", "z") +
                            product("a", "z"));
  CHECK(net->output_names() == std::vector<std::string>{"a", "b", "label"});
  CHECK(net->blob("nothing") == nullptr);
}

TEST_CASE("in-place layers work on their bottom's memory", "[net]") {
  const auto net = make_net(kTwoRecords + product("x", "data") +
                            "layer { name: 'r' type: 'ReLU' bottom: 'x' top: 'x' }");
  const auto& view = layer_of(*net, "r");
  CHECK(view.bottoms[0] == view.tops[0]);
  CHECK(net->blob_names() == std::vector<std::string>{"data", "x"});
}

TEST_CASE("a loss layer without tops gets one", "[net]") {
  const auto net =
      make_net(kTwoRecords + kThreeTargets + product("x", "data") +
               "layer { name: 'l' type: 'EuclideanLoss' bottom: 'x' bottom: 'label' }");
  REQUIRE(layer_of(*net, "l").tops.size() == 1);
  CHECK(net->output_names().empty());
  test_backend().device().upload(net->blob("data")->data(), std::vector<float>(8, 1.0F));
  CHECK(*net->forward() > 0.0F);
}

TEST_CASE("backward stops where nothing is trained", "[net][backward]") {
  const std::string base = kTwoRecords + kThreeTargets;
  const auto net =
      make_net(base + product("frozen", "data", "param { lr_mult: 0 } param { lr_mult: 0 }") +
               product("x", "frozen") + loss("x", "label") + product("side", "data"));
  CHECK_FALSE(layer_of(*net, "frozen").needs_backward);
  CHECK(layer_of(*net, "x").needs_backward);
  CHECK_FALSE(layer_of(*net, "x").propagate[0]);
  // Trained, but under no loss.
  CHECK_FALSE(layer_of(*net, "side").needs_backward);
  CHECK_FALSE(net->blob("frozen")->has_grad());
  CHECK(net->blob("x")->has_grad());
  CHECK(layer_of(*net, "loss").propagate == std::vector<bool>{true, false});
}

TEST_CASE("what is trained before a layer that cannot be differentiated is refused", "[net]") {
  const std::string step = "layer { name: 's' type: 'Threshold' bottom: 'x' top: 's' ";
  const std::string before = kTwoRecords + kThreeTargets + product("x", "data") + step;
  const std::string after = "}\n" + product("y", "s") + loss("y", "label");
  expect(before + after, "cannot propagate a gradient to it; set propagate_down: false");
  make_net(before + "propagate_down: false " + after);
}

TEST_CASE("a wish for a gradient that cannot be is refused as a wish", "[net][backward]") {
  const std::string text = input("word", "dim: 2") + kThreeTargets +
                           "layer { name: 'e' type: 'Embed' bottom: 'word' top: 'e' "
                           "embed_param { num_output: 3 input_dim: 2 } propagate_down: true }\n" +
                           loss("e", "label");
  expect(text, "propagate_down is true for bottom 'word', which cannot have a gradient");
}

TEST_CASE("propagate_down: false cuts off what lies before", "[net][backward]") {
  const auto net = make_net(kTwoRecords + kThreeTargets + product("x", "data") +
                            product("y", "x", "propagate_down: false") + loss("y", "label"));
  CHECK_FALSE(layer_of(*net, "x").needs_backward);
  CHECK(layer_of(*net, "y").needs_backward);
  CHECK_FALSE(layer_of(*net, "y").propagate[0]);
}

TEST_CASE("force_backward reaches every input but the labels", "[net][backward]") {
  const auto net = make_net("force_backward: true " + kTwoRecords + input("label", "dim: 2") +
                            product("x", "data", "param { lr_mult: 0 }") +
                            "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'x' bottom: 'label' "
                            "top: 'l' }");
  CHECK(layer_of(*net, "x").propagate[0]);
  CHECK(net->blob("data")->has_grad());
  CHECK(layer_of(*net, "l").propagate == std::vector<bool>{true, false});
}

TEST_CASE("a training net that would differentiate a label is refused", "[net][backward]") {
  const std::string text =
      kTwoRecords + product("x", "data") + product("y", "data", "", 1) +
      "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'x' bottom: 'y' top: 'l' }";
  expect(text, "'y'");
  const auto tested = make_net(text, net_options(Phase::kTest));
  CHECK(layer_of(*tested, "l").propagate == std::vector<bool>{true, false});
}

TEST_CASE("gradients are reported once, last layer first, and cover the arena", "[net][backward]") {
  const auto net = make_net(
      kTwoRecords + kThreeTargets + product("a", "data", "param { name: 'w' }", 4) +
      product("b", "a", "param { name: 'w' }", 4) + product("c", "b") + loss("c", "label"));
  std::vector<Bucket> buckets;
  net->on_gradient_ready(
      [&](const Bucket& bucket, const StreamEvent&) { buckets.push_back(bucket); });
  REQUIRE(net->forward().has_value());
  net->clear_gradients();
  net->backward();
  REQUIRE(buckets.size() == 3);
  std::int64_t end = net->layout().element_count();
  for (const Bucket& bucket : buckets) {
    CHECK(bucket.end() == end);
    end = bucket.offset;
  }
  CHECK(end == 0);
}

TEST_CASE("weights are asked for before they are used, first layer first", "[net][forward]") {
  const auto net = make_net(
      kTwoRecords + kThreeTargets + product("a", "data", "param { name: 'w' }", 4) +
      product("b", "a", "param { name: 'w' }", 4) + product("c", "b") + loss("c", "label"));
  std::vector<Bucket> buckets;
  bool is_there = true;
  net->on_weights_needed([&](const Bucket& bucket) -> Result<void> {
    buckets.push_back(bucket);
    if (is_there) return {};
    return Error{ErrorCode::kNotFound, "gone"};
  });
  REQUIRE(net->forward().has_value());
  std::int64_t begin = 0;
  for (const Bucket& bucket : buckets) {
    CHECK(bucket.offset == begin);
    begin = bucket.end();
  }
  CHECK(begin == net->layout().element_count());
  is_there = false;
  const auto ended = net->forward();
  REQUIRE_FALSE(ended.has_value());
  CHECK(ended.error().message == "gone");
  net->on_weights_needed(nullptr);
  CHECK(net->forward().has_value());
}

TEST_CASE("backward adds to parameter gradients, and begins anew behind clear_gradients",
          "[net][backward]") {
  NetOptions options = net_options();
  options.keep_blobs = true;  // One forward pass serves two backward passes.
  const auto net =
      make_net(kTwoRecords + kThreeTargets + product("x", "data") + loss("x", "label"), options);
  test_backend().device().upload(net->blob("data")->data(), std::vector<float>(8, 1.0F));
  REQUIRE(net->forward().has_value());
  const std::int64_t size = net->layout().element_count();
  net->backward();
  const auto once = values_of(net->gradients().data(), size);
  net->backward();
  const auto twice = values_of(net->gradients().data(), size);
  for (std::size_t i = 0; i < once.size(); ++i) {
    CHECK(twice[i] == Approx(2 * once[i]).margin(1e-6));
  }
  net->clear_gradients();
  net->backward();
  CHECK(values_of(net->gradients().data(), size) == once);
  net->backward();
  CHECK(values_of(net->gradients().data(), size) == twice);
}

TEST_CASE("gradients that nobody writes, or several layers add to, are zero behind clear_gradients",
          "[net][backward]") {
  const std::string shared = "param { name: 'w' } param { name: 'b' }";
  const std::string fixed = "param { lr_mult: 0 } param { lr_mult: 0 }";
  const auto net = make_net(kTwoRecords + product("x", "data", fixed, 4) +
                            product("y", "x", shared, 4) + product("z", "y", shared, 4) +
                            product("ip", "z") + kThreeTargets + loss("ip", "label"));
  test_backend().device().upload(net->blob("data")->data(), std::vector<float>(8, 1.0F));
  Arena& gradients = net->gradients();
  const auto pass = [&] {
    net->clear_gradients();
    REQUIRE(net->forward().has_value());
    net->backward();
    return values_of(gradients.data(), gradients.size());
  };
  const auto expected = pass();
  test_backend().fill(gradients.size(), std::nanf(""), gradients.data());
  CHECK(pass() == expected);
  const ParameterSlot& fixed_weights = net->layout().slots()[layer_of(*net, "x").slots[0]];
  CHECK(values_of(gradients.data() + fixed_weights.offset, fixed_weights.count()) ==
        std::vector<float>(static_cast<std::size_t>(fixed_weights.count()), 0.0F));
}

TEST_CASE("an input can be reshaped", "[net]") {
  const auto net = make_net(kTwoRecords + product("x", "data"));
  net->blob("data")->reshape({7, 4});
  REQUIRE(net->reshape().has_value());
  CHECK(net->blob("x")->shape() == Shape{7, 3});
  CHECK(net->forward().has_value());
  net->blob("data")->reshape({7, 5});
  CHECK_FALSE(net->reshape().has_value());
}

TEST_CASE("what a pass computed outlives the shapes that it was computed with", "[net]") {
  const auto gradients_of = [](bool reshapes) {
    const auto net = make_net(kTwoRecords + kThreeTargets + product("x", "data") +
                              product("label_like", "x") + loss("label_like", "label"));
    net->blob("data")->set_values(net->backend(), std::vector<float>(8, 1.0F));
    REQUIRE(net->forward().has_value());
    net->backward();
    if (reshapes) {
      net->blob("data")->reshape({7, 4});
      net->blob("label")->reshape({7, 3});
      REQUIRE(net->reshape().has_value());
    }
    return values_of(net->gradients().data(), net->gradients().size());
  };
  CHECK(gradients_of(true) == gradients_of(false));
}

TEST_CASE("randomness depends on seed, phase and batch only", "[net][random]") {
  const std::string text =
      input("data", "dim: 50") + "layer { name: 'd' type: 'Dropout' bottom: 'data' top: 'd' }";
  const auto pass = [](Net& net) {
    test_backend().device().upload(net.blob("data")->data(), std::vector<float>(50, 1.0F));
    REQUIRE(net.forward().has_value());
    return values_of(net.blob("d")->data(), 50);
  };
  const auto a = make_net(text);
  const auto b = make_net(text);
  const auto first = pass(*a);
  const auto second = pass(*a);
  CHECK(first != second);
  b->set_batch_span({1, 1, 0});
  CHECK(pass(*b) == second);
  CHECK(pass(*b) == first);
  NetOptions other = net_options();
  other.seed = 6;
  CHECK(pass(*make_net(text, other)) != first);
}

TEST_CASE("a layer's own phase goes before the net's", "[net]") {
  const std::vector<float> ones(50, 1.0F);
  const auto dropped = [&](const std::string& phase, Phase net_phase) {
    const auto net =
        make_net(input("data", "dim: 50") + "layer { name: 'd' type: 'Dropout' bottom: 'data' " +
                     "top: 'd' " + phase + " }",
                 net_options(net_phase));
    net->blob("data")->set_values(net->backend(), ones);
    REQUIRE(net->forward().has_value());
    return values_of(net->blob("d")->data(), 50) != ones;
  };
  CHECK(dropped("", Phase::kTrain));
  CHECK_FALSE(dropped("phase: TEST", Phase::kTrain));
  CHECK(dropped("phase: TRAIN", Phase::kTest));
  CHECK_FALSE(dropped("", Phase::kTest));
}

TEST_CASE("memory counts shared tensors once", "[net]") {
  const auto net =
      make_net(input("data", "dim: 2 dim: 3 dim: 4") +
               "layer { name: 'f' type: 'Flatten' bottom: 'data' top: 'f' }" + product("x", "f"));
  const auto memory = net->memory();
  // In whole cache lines: 24 and 6 values, no gradients.
  CHECK(memory.blob_bytes == (32 + 16) * 4);
  CHECK(memory.unshared_bytes == memory.blob_bytes);
  CHECK(memory.workspace_bytes == 0);
  CHECK(memory.parameter_bytes == (48 + 16) * 4);
  CHECK(memory.parameter_grad_bytes == memory.parameter_bytes);
}

}  // namespace
}  // namespace speedo
