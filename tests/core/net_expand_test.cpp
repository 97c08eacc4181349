// Layers that become several: the same numbers as those of the graph written by hand, and one layer
// for weight files and test nets.

#include <algorithm>
#include <cmath>

#include "net_support.hpp"

namespace speedo {
namespace {

// A layer of the text's type with a number for each of its parameters.
caffe::LayerParameter& add(caffe::NetParameter& graph, const std::string& text) {
  const caffe::NetParameter one = net_message("layer { " + text + " }");
  return *graph.add_layer() = one.layer(0);
}

// tanh(W (W x + b) + c) for every one of as many steps as the message's num_output says, where all
// steps have the same parameters W, b, c.
Result<void> expand_steps(const caffe::LayerParameter& layer, std::span<const Shape> bottoms,
                          caffe::NetParameter& graph) {
  if (bottoms[0].axes() != 2) return Error{ErrorCode::kConfig, "needs a bottom of 2 axes"};
  const std::string size = std::to_string(bottoms[0][1]);
  const int steps = static_cast<int>(layer.inner_product_param().num_output());
  const auto product_of = [&](const std::string& name, const std::string& bottom,
                              const std::string& bias) {
    add(graph, "name: '" + name + "' type: 'InnerProduct' bottom: '" + bottom + "' top: '" + name +
                   "' param { name: '0' } param { name: '" + bias +
                   "' } inner_product_param { num_output: " + size +
                   " weight_filler { type: 'gaussian' std: 0.5 } }");
  };
  std::string sum = "name: 'sum' type: 'Eltwise' top: 'sum'";
  for (int step = 0; step < steps; ++step) {
    const std::string number = std::to_string(step);
    product_of("in" + number, "bottom0", "1");
    product_of("out" + number, "in" + number, "2");
    sum += " bottom: 'out" + number + "'";
  }
  add(graph, sum);
  add(graph, "name: 'tanh' type: 'TanH' bottom: 'sum' top: 'top0'");
  return {};
}

NetOptions steps_options() {
  NetOptions options = net_options();
  options.keep_blobs = true;
  options.expansions["Steps"] = expand_steps;
  return options;
}

std::string start() {
  return input("data", "dim: 4 dim: 3") + input("label", "dim: 4 dim: 3") + product("ip", "data");
}

std::string steps_layer(int steps, const std::string& more = "") {
  return "layer { name: 'steps' type: 'Steps' bottom: 'ip' top: 'y' inner_product_param { "
         "num_output: " +
         std::to_string(steps) + " } " + more + " }\n";
}

std::string by_hand() {
  const std::string options =
      " inner_product_param { num_output: 3 weight_filler { type: 'gaussian' std: 0.5 } } }\n";
  const auto one = [&](const std::string& name, const std::string& bottom, const char* bias) {
    return "layer { name: '" + name + "' type: 'InnerProduct' bottom: '" + bottom + "' top: '" +
           name + "' param { name: 'W' } param { name: '" + bias + "' }" + options;
  };
  return start() + one("in0", "ip", "b") + one("out0", "in0", "c") + one("in1", "ip", "b") +
         one("out1", "in1", "c") +
         "layer { name: 'sum' type: 'Eltwise' bottom: 'out0' bottom: 'out1' top: 'sum' }\n"
         "layer { name: 'tanh' type: 'TanH' bottom: 'sum' top: 'y' }\n" +
         loss("y", "label");
}

void set_inputs(Net& net) {
  float next = 0.0F;
  for (const char* name : {"data", "label"}) {
    std::vector<float> values(12);
    for (float& value : values) value = std::sin(next += 1.0F);
    net.blob(name)->set_values(net.backend(), values);
  }
}

std::vector<float> gradients_after_pass(Net& net, float& loss) {
  set_inputs(net);
  net.clear_gradients();
  auto passed = net.forward();
  REQUIRE(passed.has_value());
  loss = *passed;
  net.backward();
  return values_of(net.gradients().data(), net.gradients().size());
}

TEST_CASE("an expanded layer computes what the graph written by hand computes") {
  const auto expanded = make_net(start() + steps_layer(2) + loss("y", "label"), steps_options());
  const auto hand = make_net(by_hand(), steps_options());
  REQUIRE(expanded->weights().size() == hand->weights().size());
  CHECK(values_of(expanded->weights().data(), hand->weights().size()) ==
        values_of(hand->weights().data(), hand->weights().size()));
  float loss = 0.0F, hand_loss = 0.0F;
  const std::vector<float> gradients = gradients_after_pass(*expanded, loss);
  CHECK(gradients == gradients_after_pass(*hand, hand_loss));
  CHECK(loss == hand_loss);
  CHECK(std::any_of(gradients.begin(), gradients.end(), [](float each) { return each != 0.0F; }));
}

TEST_CASE("a layer inside an expansion and its blobs begin with the layer's name") {
  const auto net = make_net(start() + steps_layer(2) + loss("y", "label"), steps_options());
  CHECK(net->blob("steps/sum") != nullptr);
  CHECK(layer_of(*net, "steps/in1").bottom_names[0] == "steps/bottom0_input_0_split_1");
  CHECK(net->blob("y") != nullptr);
  CHECK(net->output_names() == std::vector<std::string>{"loss"});
}

TEST_CASE("weight files have an expanded layer as one, whatever it became") {
  const auto net = make_net(start() + steps_layer(2) + loss("y", "label"), steps_options());
  caffe::NetParameter stored;
  net->to_proto(stored, true);
  const auto layer = std::find_if(stored.layer().begin(), stored.layer().end(),
                                  [](const auto& each) { return each.name() == "steps"; });
  REQUIRE(layer != stored.layer().end());
  CHECK(layer->type() == "Steps");
  CHECK(layer->blobs_size() == 3);
  for (const auto& each : stored.layer()) CHECK(each.name().find('/') == std::string::npos);

  NetOptions options = steps_options();
  options.seed = 99;
  const auto other = make_net(start() + steps_layer(3) + loss("y", "label"), options);
  const auto weights = [](const Net& from) {
    return values_of(from.weights().data(), from.weights().size());
  };
  CHECK(weights(*other) != weights(*net));
  REQUIRE(other->copy_weights_from(stored).has_value());
  CHECK(weights(*other) == weights(*net));

  // Weights that come inside the net's own message go before the fillers.
  caffe::NetParameter with_weights = net_message(start() + steps_layer(2) + loss("y", "label"));
  for (auto& each : *with_weights.mutable_layer()) {
    if (each.name() == "steps") *each.mutable_blobs() = layer->blobs();
  }
  const auto filled = Net::create(with_weights, options);
  REQUIRE(filled.has_value());
  REQUIRE((*filled)->copy_weights_from(stored).has_value());

  stored.mutable_layer(static_cast<int>(layer - stored.layer().begin()))
      ->mutable_blobs()
      ->RemoveLast();
  const auto refused = other->copy_weights_from(stored);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message ==
        "layer 'steps' (Steps): the weights hold 2 parameters for it, the net has 3");
}

TEST_CASE("a test net shares the weights of an expanded layer that has other steps there") {
  const auto net = make_net(start() + steps_layer(2) + loss("y", "label"), steps_options());
  NetOptions options = steps_options();
  options.phase = Phase::kTest;
  options.trains = false;
  options.share_parameters = net.get();
  const auto test = make_net(start() + steps_layer(3) + loss("y", "label"), options);
  CHECK(layer_of(*test, "steps/out2").layer->parameters()[0]->data() ==
        layer_of(*net, "steps/out0").layer->parameters()[0]->data());
}

TEST_CASE("an expanded layer of the test net alone has weights of its own") {
  const auto net = make_net(start() + loss("ip", "label"), steps_options());
  NetOptions options = steps_options();
  options.phase = Phase::kTest;
  options.trains = false;
  options.share_parameters = net.get();
  const auto test = make_net(start() + steps_layer(2) + loss("y", "label"), options);
  const auto first_of = [&](Net& it) {
    return layer_of(it, "steps/out0").layer->parameters()[0]->data();
  };
  CHECK(first_of(*test) == layer_of(*test, "steps/out1").layer->parameters()[0]->data());
  CHECK(values_of(first_of(*test), 1)[0] != 0.0F);
  caffe::NetParameter weights;
  test->to_proto(weights, false);
  options.seed += 1;
  const auto other = make_net(start() + steps_layer(3) + loss("y", "label"), options);
  CHECK(values_of(first_of(*other), 9) != values_of(first_of(*test), 9));
  REQUIRE(other->copy_weights_from(weights).has_value());
  CHECK(values_of(first_of(*other), 9) == values_of(first_of(*test), 9));
}

TEST_CASE("multipliers and loss weights of an expanded layer reach its parts") {
  const std::string more =
      "param { lr_mult: 0 } param { lr_mult: 2 name: 'mine' } loss_weight: 0.5";
  const auto net = make_net(start() + steps_layer(2, more), steps_options());
  const auto slots = net->layout().slots();
  REQUIRE(slots.size() == 5);
  CHECK(slots[2].layer == "steps");
  CHECK(slots[2].index == 0);
  CHECK(slots[2].lr_mult == 0.0F);
  CHECK(slots[3].lr_mult == 2.0F);
  CHECK(slots[3].name == "mine");
  CHECK(slots[4].index == 2);
  CHECK(net->loss_weight("y") == 0.5F);
  set_inputs(*net);
  const auto value = net->forward();
  REQUIRE(value.has_value());
  CHECK(*value != 0.0F);
}

TEST_CASE("what is wrong with an expanded layer is told with its name") {
  const auto message = [](const std::string& text) {
    return net_error(text, steps_options()).message;
  };
  CHECK(message(input("ip", "dim: 2 dim: 3 dim: 1") + steps_layer(2)) ==
        "layer 'steps' (Steps): needs a bottom of 2 axes");
  CHECK(message(start() + steps_layer(2, "param {} param {} param {} param {}")) ==
        "layer 'steps' (Steps): has 4 param entries, but only 3 parameters");
  CHECK(message(start() + steps_layer(2, "loss_weight: 1 loss_weight: 1")) ==
        "layer 'steps' (Steps): loss_weight must be given for all 1 tops or for none, not 2 times");
  CHECK(message(start() + steps_layer(2, "propagate_down: true propagate_down: true")) ==
        "layer 'steps' (Steps): propagate_down must be given for all 1 bottoms or for none, not 2 "
        "times");
  CHECK(message(start() + "layer { name: 's' type: 'Steps' bottom: 'ip' top: 'ip' }") ==
        "layer 's' (Steps): cannot work in place; give its top a name of its own");
  CHECK(message(start() + steps_layer(2) +
                "layer { name: 'steps' type: 'InnerProduct' bottom: 'y' top: 'z' "
                "inner_product_param { num_output: 2 } }")
            .find("another layer with parameters has the same name") != std::string::npos);
}

TEST_CASE("an expanded layer takes another batch, but not a shape that it was not made for") {
  const auto net = make_net(input("data", "dim: 2 dim: 1 dim: 8 dim: 8") +
                            "layer { name: 'spp' type: 'SPP' bottom: 'data' top: 'y' "
                            "spp_param { pyramid_height: 2 } }");
  CHECK(net->blob("y")->shape() == Shape{2, 5});
  net->blob("data")->reshape({3, 1, 8, 8});
  REQUIRE(net->reshape().has_value());
  CHECK(net->blob("y")->shape() == Shape{3, 5});
  net->blob("data")->reshape({3, 1, 10, 8});
  const auto refused = net->reshape();
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message.find("layer 'spp' (SPP): stands for layers that were made for "
                                     "other shapes") == 0);
}

TEST_CASE("propagate_down of an expanded layer is that of the layers that read its bottoms") {
  const auto text = [](const std::string& spp) {
    return input("data", "dim: 2 dim: 1 dim: 8 dim: 8") + input("label", "dim: 2 dim: 3") +
           "layer { name: 'c' type: 'Convolution' bottom: 'data' top: 'c' convolution_param { "
           "num_output: 2 kernel_size: 3 weight_filler { type: 'xavier' } } }\n"
           "layer { name: 'spp' type: 'SPP' bottom: 'c' top: 'y' " +
           spp + " }\n" + product("x", "y") + loss("x", "label");
  };
  for (const std::string levels : {"1", "3"}) {
    const std::string pyramid = "spp_param { pyramid_height: " + levels + " }";
    CHECK(layer_of(*make_net(text(pyramid)), "c").needs_backward);
    CHECK(layer_of(*make_net(text(pyramid + " propagate_down: true")), "c").needs_backward);
    const auto cut = make_net(text(pyramid + " propagate_down: false"));
    CHECK_FALSE(layer_of(*cut, "c").needs_backward);
    CHECK(layer_of(*cut, "x").needs_backward);
    REQUIRE(cut->forward().has_value());
    cut->backward();
  }
}

TEST_CASE("SPP refuses what it cannot pool") {
  const auto message = [](const std::string& dims, const std::string& options) {
    return net_error(input("data", dims) +
                     "layer { name: 'spp' type: 'SPP' bottom: 'data' "
                     "top: 'y' spp_param { " +
                     options + " } }")
        .message;
  };
  const std::string image = "dim: 1 dim: 1 dim: 4 dim: 6";
  CHECK(message(image, "").find("pyramid_height from 1") != std::string::npos);
  CHECK(message(image, "pyramid_height: 4").find("8 x 8 windows") != std::string::npos);
  CHECK(message("dim: 1 dim: 1 dim: 5 dim: 6", "pyramid_height: 2 pool: STOCHASTIC")
            .find("STOCHASTIC takes no padding") != std::string::npos);
  CHECK(message("dim: 1 dim: 4", "pyramid_height: 1").find("4 axes") != std::string::npos);
}

}  // namespace
}  // namespace speedo
