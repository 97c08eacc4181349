#include <cmath>
#include <string>
#include <vector>

#include "core/blob_proto.hpp"
#include "core/weight_file.hpp"
#include "net_support.hpp"

namespace speedo {
namespace {

const std::string kFourInputs = input("data", "dim: 2 dim: 4");
const std::string kFourTargets = input("label", "dim: 2 dim: 4");

std::string shared(const std::string& name, const std::string& bottom, const std::string& spec = "",
                   int outputs = 4) {
  return product(name, bottom, "param { name: 'w' " + spec + " }", outputs);
}

TEST_CASE("parameters lie in net order and padding stays zero", "[parameters]") {
  const auto net = make_net(kFourInputs + product("a", "data") + product("b", "a", "", 2));
  const auto slots = net->layout().slots();
  REQUIRE(slots.size() == 4);
  CHECK(slots[0].layer == "a");
  CHECK(slots[0].shape == Shape{3, 4});
  CHECK(slots[2].layer == "b");
  CHECK(slots[3].index == 1);
  const auto weights = values_of(net->weights().data(), net->weights().size());
  CHECK(weights[0] != 0.0F);
  for (std::size_t i = 12; i < 16; ++i) CHECK(weights[i] == 0.0F);
  CHECK(layer_of(*net, "b").slots == std::vector<std::size_t>{2, 3});
}

TEST_CASE("a shared parameter has one place and its first user owns it", "[parameters]") {
  const auto net = make_net(kFourInputs + kFourTargets + shared("a", "data", "lr_mult: 2") +
                            shared("b", "a", "lr_mult: 2 decay_mult: 3") + loss("b", "label"));
  CHECK(net->layout().slots().size() == 3);
  CHECK(layer_of(*net, "a").slots == std::vector<std::size_t>{0, 1});
  CHECK(layer_of(*net, "b").slots == std::vector<std::size_t>{0, 2});
  const ParameterSlot& slot = net->layout().slots()[0];
  CHECK(slot.layer == "a");
  CHECK(slot.name == "w");
  CHECK(slot.lr_mult == 2.0F);
  CHECK(slot.decay_mult == 3.0F);
  CHECK(layer_of(*net, "a").layer->parameters()[0]->data() ==
        layer_of(*net, "b").layer->parameters()[0]->data());
}

// The net's gradient by all its parameters, after one pass.
std::vector<float> gradient_of(Net& net) {
  test_backend().device().upload(net.blob("data")->data(), {{1, 2, -1, 0.5F, 0.3F, -2, 1, 1}});
  REQUIRE(net.forward().has_value());
  net.clear_gradients();
  net.backward();
  return values_of(net.gradients().data(), net.gradients().size());
}

// By finite differences that are exact for a polynomial of the fourth degree, as this loss is.
TEST_CASE("gradients of a shared parameter add up", "[parameters]") {
  const auto net = make_net(kFourInputs + kFourTargets + shared("a", "data") + shared("b", "a") +
                            loss("b", "label"));
  const auto gradient = gradient_of(*net);
  const auto weights = values_of(net->weights().data(), 16);
  for (std::size_t i = 0; i < 16; ++i) {
    const auto loss_at = [&](float step) {
      auto moved = weights;
      moved[i] += step;
      test_backend().device().upload(net->weights().data(), moved);
      return double{*net->forward()};
    };
    const double numeric =
        (8.0 * (loss_at(0.5F) - loss_at(-0.5F)) - (loss_at(1.0F) - loss_at(-1.0F))) / 6.0;
    CHECK(double{gradient[i]} == Approx(numeric).epsilon(1e-5).margin(1e-5));
  }
}

TEST_CASE("each user's part is in the gradient of a shared parameter", "[parameters]") {
  const auto one = make_net(kFourInputs + kFourTargets + shared("a", "data") + shared("b", "a") +
                            loss("b", "label"));
  const auto two = make_net(kFourInputs + kFourTargets + product("a", "data", "", 4) +
                            product("b", "a", "", 4) + loss("b", "label"));
  const auto weights = values_of(one->weights().data(), 16);
  for (const std::size_t slot : {0, 2}) {
    test_backend().device().upload(two->weights().data() + two->layout().slots()[slot].offset,
                                   weights);
  }
  const auto sum = gradient_of(*one), parts = gradient_of(*two);
  const auto second = static_cast<std::size_t>(two->layout().slots()[2].offset);
  for (std::size_t i = 0; i < 16; ++i) {
    CAPTURE(i);
    CHECK(std::fabs(parts[i]) > 1e-3F);
    CHECK(std::fabs(parts[second + i]) > 1e-3F);
    CHECK(sum[i] == Approx(parts[i] + parts[second + i]).epsilon(1e-5).margin(1e-5));
  }
}

TEST_CASE("users of a shared parameter must agree", "[parameters]") {
  using Catch::Contains;
  CHECK_THAT(
      net_error(kFourInputs + shared("a", "data", "lr_mult: 1") + shared("b", "a", "lr_mult: 2"))
          .message,
      Contains("lr_mult"));
  CHECK_THAT(net_error(kFourInputs + shared("a", "data", "decay_mult: 1") +
                       shared("b", "a", "decay_mult: 0"))
                 .message,
             Contains("decay_mult"));
  const std::string narrow = kFourInputs + shared("a", "data", "", 2);  // 2 x 4, then 4 x 2
  CHECK_THAT(net_error(narrow + shared("b", "a", "", 4)).message, Contains("shape"));
  CHECK(make_net(narrow + shared("b", "a", "share_mode: PERMISSIVE", 4)) != nullptr);
  CHECK_THAT(net_error(narrow + shared("b", "a", "share_mode: PERMISSIVE", 5)).message,
             Contains("shape"));
}

TEST_CASE("first weights depend on the seed and the place only", "[parameters]") {
  const std::string text = kFourInputs + product("a", "data") + product("b", "a");
  const auto weights = [&](std::uint64_t seed) {
    NetOptions options = net_options();
    options.seed = seed;
    const auto net = make_net(text, options);
    return values_of(net->weights().data(), net->weights().size());
  };
  CHECK(weights(1) == weights(1));
  CHECK(weights(1) != weights(2));
  const auto values = weights(1);
  CHECK(std::vector<float>(values.begin(), values.begin() + 9) !=
        std::vector<float>(values.begin() + 32, values.begin() + 41));
}

TEST_CASE("a filler that fails names its layer", "[parameters]") {
  const Error error =
      net_error(kFourInputs +
                "layer { name: 'x' type: 'InnerProduct' bottom: 'data' top: 'x' "
                "inner_product_param { num_output: 2 weight_filler { type: 'no' } } }");
  CHECK(error.message.find("layer 'x'") != std::string::npos);
}

TEST_CASE("what forward passes keep is not shared with what is learned", "[parameters]") {
  const std::string normalized = kFourInputs +
                                 "layer { name: 'bn' type: 'BatchNorm' bottom: 'data' top: 'n' "
                                 "param { name: 'm' lr_mult: 0 } }\n";
  const std::string scaled =
      "layer { name: 's' type: 'Scale' bottom: 'n' top: 's' param { name: 'm' lr_mult: 0 } }\n";
  const Error error = net_error(normalized + scaled);
  CHECK(error.message.find("layer 's'") != std::string::npos);
  CHECK(error.message.find("'m'") != std::string::npos);
}

TEST_CASE("a test net uses the training net's weights", "[parameters]") {
  const std::string text = kFourInputs + product("a", "data");
  const auto train = make_net(text);
  NetOptions options = net_options(Phase::kTest);
  options.share_parameters = train.get();
  options.seed = 99;
  const auto test = make_net(text, options);
  CHECK(test->weights().data() == train->weights().data());
  CHECK(layer_of(*test, "a").layer->parameters()[0]->data() == train->weights().data());
  const auto refused = [&](const std::string& other) {
    return net_error(other, options).code == ErrorCode::kMismatch;
  };
  CHECK(refused(kFourInputs + product("a", "data", "", 5)));
  CHECK(refused(input("in", "dim: 2 dim: 4") + product("data", "in")));  // there an Input
}

// What the layer computes from the same input in every call.
std::vector<float> output_of(Net& net, const std::string& top) {
  test_backend().device().upload(net.blob("data")->data(), {{1, 2, -1, 0.5F, 0.3F, -2, 1, 1}});
  REQUIRE(net.forward().has_value());
  return values_of(net.blob(top)->data(), net.blob(top)->count());
}

TEST_CASE("a layer of the test net alone has weights of its own", "[parameters]") {
  const auto train = make_net(kFourInputs + product("a", "data"));
  NetOptions options = net_options(Phase::kTest);
  options.share_parameters = train.get();
  options.trains = false;
  options.keep_blobs = true;
  const std::string text = kFourInputs + product("a", "data") + product("alone", "data");
  const auto test = make_net(text, options);
  CHECK(test->weights().data() == train->weights().data());
  CHECK(test->layout().slots().size() == 2);
  CHECK(layer_of(*test, "alone").slots.empty());
  CHECK(test->memory().parameter_bytes == 32 * 4);  // 12 and 3 floats, and what fills 64 bytes
  CHECK(test->memory().parameter_grad_bytes == 0);

  const auto shared_before = output_of(*test, "a"), before = output_of(*test, "alone");
  CHECK(before[0] != 0.0F);
  CHECK(before != shared_before);
  CHECK(output_of(*make_net(text, options), "alone") == before);  // the seed's
  options.seed += 1;
  CHECK(output_of(*make_net(text, options), "alone") != before);

  test_backend().fill(train->weights().size(), 1.0F, train->weights().data());
  CHECK(output_of(*test, "a") != shared_before);
  CHECK(output_of(*test, "alone") == before);
}

TEST_CASE("a file gives weights to what a test net has alone, and to nothing that it shares",
          "[weights]") {
  const auto train = make_net(kFourInputs + product("a", "data"));
  NetOptions options = net_options(Phase::kTest);
  options.share_parameters = train.get();
  options.keep_blobs = true;
  const std::string text = kFourInputs + product("a", "data") + product("alone", "data");
  const auto test = make_net(text, options);
  const auto weights = values_of(train->weights().data(), train->weights().size());
  NetOptions other = net_options(Phase::kTest);
  other.seed = 77;
  other.keep_blobs = true;
  const auto source = make_net(text, other);
  caffe::NetParameter file;
  source->to_proto(file, false);
  REQUIRE(test->copy_weights_from(file).has_value());
  CHECK(values_of(train->weights().data(), train->weights().size()) == weights);
  CHECK(output_of(*test, "alone") == output_of(*source, "alone"));
  caffe::NetParameter written;
  test->to_proto(written, false);
  CHECK(written.layer(3).SerializeAsString() == file.layer(3).SerializeAsString());
  file.mutable_layer(3)->mutable_blobs(0)->mutable_shape()->set_dim(0, 9);
  CHECK(test->copy_weights_from(file).error().code == ErrorCode::kMismatch);
}

TEST_CASE("a layer of the test net alone cannot share what is trained", "[parameters]") {
  const auto train = make_net(kFourInputs + shared("a", "data"));
  NetOptions options = net_options(Phase::kTest);
  options.share_parameters = train.get();
  const Error error = net_error(kFourInputs + shared("a", "data") + shared("b", "a"), options);
  CHECK(error.code == ErrorCode::kMismatch);
  CHECK(error.message.find("layer 'b'") != std::string::npos);
  CHECK(error.message.find("'w'") != std::string::npos);
  const std::string among_themselves =
      product("b", "data", "param { name: 'v' }", 4) + product("c", "b", "param { name: 'v' }", 4);
  const auto test = make_net(kFourInputs + shared("a", "data") + among_themselves, options);
  CHECK(layer_of(*test, "b").layer->parameters()[0]->data() ==
        layer_of(*test, "c").layer->parameters()[0]->data());
}

TEST_CASE("a test net shares what layers of other shapes share in the training net",
          "[parameters]") {
  const std::string text = kFourInputs + shared("a", "data", "", 2) +
                           shared("b", "a", "share_mode: PERMISSIVE", 4);
  const auto train = make_net(text);
  NetOptions options = net_options(Phase::kTest);
  options.share_parameters = train.get();
  CHECK(make_net(text, options)->weights().data() == train->weights().data());
}

// The weights of a two-layer net as a message to be changed.
caffe::NetParameter stored(const std::string& text) {
  caffe::NetParameter weights;
  make_net(text)->to_proto(weights, false);
  return weights;
}

TEST_CASE("weights are copied by layer name or not at all", "[weights]") {
  const std::string text = kFourInputs + product("a", "data") + product("b", "a");
  NetOptions other = net_options();
  other.seed = 77;
  const auto net = make_net(text, other);
  const auto before = values_of(net->weights().data(), net->weights().size());
  const caffe::NetParameter good = stored(text);

  const auto refused = [&](const caffe::NetParameter& weights, ErrorCode code) {
    const auto result = net->copy_weights_from(weights);
    return !result.has_value() && result.error().code == code &&
           result.error().message.find("layer 'b'") != std::string::npos &&
           values_of(net->weights().data(), net->weights().size()) == before;
  };
  // Layer a is fine in all of these, and must not be taken when b is not.
  caffe::NetParameter bad = good;
  bad.mutable_layer(2)->mutable_blobs()->RemoveLast();
  CHECK(refused(bad, ErrorCode::kMismatch));
  bad = good;
  *bad.mutable_layer(2)->add_blobs() = good.layer(1).blobs(0);
  CHECK(refused(bad, ErrorCode::kMismatch));
  bad = good;
  bad.mutable_layer(2)->mutable_blobs(0)->mutable_shape()->set_dim(0, 9);
  CHECK(refused(bad, ErrorCode::kMismatch));
  bad = good;
  bad.mutable_layer(2)->mutable_blobs(0)->mutable_data()->RemoveLast();
  CHECK(refused(bad, ErrorCode::kData));

  caffe::NetParameter partial = good;
  partial.mutable_layer(2)->set_name("somewhere else");
  REQUIRE(net->copy_weights_from(partial).has_value());
  const auto after = values_of(net->weights().data(), net->weights().size());
  CHECK(after != before);
  CHECK(std::equal(after.begin() + 32, after.end(), before.begin() + 32));
  REQUIRE(net->copy_weights_from(good).has_value());
  caffe::NetParameter now;
  net->to_proto(now, false);
  CHECK(now.SerializeAsString() == good.SerializeAsString());
}

TEST_CASE("shared weights are stored for every user, and may be stored for the owner only",
          "[weights]") {
  const std::string text = kFourInputs + shared("a", "data") + shared("b", "a");
  caffe::NetParameter weights = stored(text);
  REQUIRE(weights.layer(2).blobs_size() == 2);
  CHECK(weights.layer(2).blobs(0).SerializeAsString() ==
        weights.layer(1).blobs(0).SerializeAsString());
  const auto net = make_net(text);
  weights.mutable_layer(2)->mutable_blobs(0)->Clear();
  CHECK(net->copy_weights_from(weights).has_value());
  weights.mutable_layer(1)->mutable_blobs(0)->Clear();
  CHECK_FALSE(net->copy_weights_from(weights).has_value());
}

TEST_CASE("weights inside the net's own message win over fillers", "[weights]") {
  const std::string text = kFourInputs + product("a", "data");
  caffe::NetParameter whole = stored(text);
  NetOptions other = net_options();
  other.seed = 1234;
  const auto net = Net::create(whole, other);
  REQUIRE(net.has_value());
  caffe::NetParameter again;
  (*net)->to_proto(again, false);
  CHECK(again.SerializeAsString() == whole.SerializeAsString());
  whole.mutable_layer(1)->mutable_blobs()->RemoveLast();
  CHECK_FALSE(Net::create(whole, other).has_value());
}

TEST_CASE("diffs are written when asked for", "[weights]") {
  const auto net =
      make_net(kFourInputs + kFourTargets + product("x", "data", "", 4) + loss("x", "label"));
  test_backend().device().upload(net->blob("data")->data(), std::vector<float>(8, 1.0F));
  REQUIRE(net->forward().has_value());
  net->backward();
  caffe::NetParameter weights;
  net->to_proto(weights, true);
  CHECK(weights.layer(2).blobs(0).diff_size() == 16);
  CHECK(weights.layer(2).blobs(0).diff(0) == values_of(net->gradients().data(), 1)[0]);
}

// A model that Caffe wrote, read into our net and written again, is the same bytes.
TEST_CASE("a model goes round as Caffe wrote it", "[weights]") {
  const std::string folder = "tests/golden/data/nets/inception_mini_test/";
  const auto message = read_net_prototxt(folder + "net.prototxt");
  const auto model = read_caffemodel(folder + "weights.caffemodel");
  REQUIRE(message.has_value());
  REQUIRE(model.has_value());
  const auto net = Net::create(*message, net_options(Phase::kTest));
  REQUIRE(net.has_value());
  REQUIRE((*net)->copy_weights_from(*model).has_value());
  caffe::NetParameter written;
  (*net)->to_proto(written, false);
  CHECK(written.SerializeAsString() == model->SerializeAsString());
}

}  // namespace
}  // namespace speedo
