#include "formats/deploy_net.hpp"

#include "core/prototxt.hpp"
#include "support/catch.hpp"

namespace speedo {
namespace {

caffe::NetParameter net_from(const std::string& text) {
  const auto net = parse_net_prototxt(text, "net");
  if (!net) FAIL(net.error().message);
  return *net;
}

caffe::NetParameter deployed(const std::string& text, const DeployOptions& options = {}) {
  const auto net = deploy_net(net_from(text), options);
  if (!net) FAIL(net.error().message);
  return *net;
}

// "NAME:TYPE" of each layer.
std::vector<std::string> layers_of(const caffe::NetParameter& net) {
  std::vector<std::string> layers;
  for (const caffe::LayerParameter& layer : net.layer()) {
    layers.push_back(layer.name() + ":" + layer.type());
  }
  return layers;
}

using Layers = std::vector<std::string>;

constexpr const char* kTrainVal = R"(
  name: "small"
  layer { name: "train" type: "Data" top: "data" top: "label" include { phase: TRAIN } }
  layer { name: "val" type: "Data" top: "data" top: "label" include { phase: TEST } }
  layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" param { lr_mult: 1 }
          inner_product_param { num_output: 3 } }
  layer { name: "drop" type: "Dropout" bottom: "ip" top: "ip" }
  layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy"
          include { phase: TEST } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss"
          loss_weight: 2 softmax_param { axis: -1 } })";

TEST_CASE("a training net without data, labels and losses, with probabilities") {
  const caffe::NetParameter net = deployed(kTrainVal, {.shapes = {{"data", {5, 4}}}});
  CHECK(net.name() == "small");
  CHECK(layers_of(net) == Layers{"data:Input", "ip:InnerProduct", "drop:Dropout", "prob:Softmax"});
  const caffe::BlobShape& shape = net.layer(0).input_param().shape(0);
  CHECK(std::vector<std::int64_t>(shape.dim().begin(), shape.dim().end()) ==
        std::vector<std::int64_t>{5, 4});
  CHECK(net.layer(3).bottom(0) == "ip");
  CHECK(net.layer(3).softmax_param().axis() == -1);
  CHECK(net.layer(3).loss_weight_size() == 0);
}

TEST_CASE("a Python layer that reads data is one of them; another stays, to be refused by name") {
  const caffe::NetParameter net = deployed(R"(
    layer { name: "data" type: "Python" top: "data" top: "label" }
    layer { name: "crop" type: "Python" bottom: "data" top: "crop" }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "crop" bottom: "label" })",
                                           {.shapes = {{"data", {1, 3, 5, 5}}}});
  CHECK(layers_of(net) == Layers{"data:Input", "crop:Python", "prob:Softmax"});
}

TEST_CASE("a shape that is not known is an error that tells the option") {
  const auto net = deploy_net(net_from(kTrainVal), {});
  REQUIRE_FALSE(net.has_value());
  CHECK(net.error().code == ErrorCode::kConfig);
  CHECK(net.error().message ==
        "layer 'val' (Data): the shape of its top 'data' is not known; give it with --shape "
        "data=N,C,H,W");
}

TEST_CASE("of losses that compute nothing stays what they compare") {
  const caffe::NetParameter siamese = deployed(R"(
    layer { name: "pairs" type: "Data" top: "pairs" top: "sim" }
    layer { name: "cut" type: "Slice" bottom: "pairs" top: "a" top: "b" }
    layer { name: "fa" type: "InnerProduct" bottom: "a" top: "fa" }
    layer { name: "fb" type: "InnerProduct" bottom: "b" top: "fb" }
    layer { name: "loss" type: "ContrastiveLoss" bottom: "fa" bottom: "fb" bottom: "sim" })",
                                               {.shapes = {{"pairs", {2, 2}}}});
  CHECK(layers_of(siamese) ==
        Layers{"pairs:Input", "cut:Slice", "fa:InnerProduct", "fb:InnerProduct"});

  const caffe::NetParameter coder = deployed(R"(
    layer { name: "data" type: "HDF5Data" top: "data" top: "wanted" }
    layer { name: "flat" type: "Flatten" bottom: "wanted" top: "flat" }
    layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" }
    layer { name: "one" type: "EuclideanLoss" bottom: "ip" bottom: "flat" top: "one" }
    layer { name: "two" type: "SigmoidCrossEntropyLoss" bottom: "ip" bottom: "flat" })",
                                             {.shapes = {{"data", {2, 2}}}});
  CHECK(layers_of(coder) == Layers{"data:Input", "ip:InnerProduct", "prob:Sigmoid"});
}

TEST_CASE(
    "of EuclideanLoss stays what is learned, on whichever side, and of no loss what is given") {
  const auto from =
      [](const std::string& loss) {
        return layers_of(deployed(R"(
      layer { name: "in" type: "Data" top: "data" top: "label" }
      layer { name: "fc" type: "InnerProduct" bottom: "data" top: "fc" }
      layer { name: "act" type: "TanH" bottom: "fc" top: "act" }
      layer { name: "other" type: "Convolution" bottom: "data" top: "other" }
      layer { name: "half" type: "Power" bottom: "label" top: "half" }
      layer { name: "unused" type: "Silence" bottom: "act" bottom: "other" bottom: "half" }
      layer { name: "given" type: "Accuracy" bottom: "label" bottom: "data" }
      layer { name: "l" )" + loss + " }",
                                  {.shapes = {{"data", {2, 2}}, {"label", {2, 2}}}}));
      };
  const Layers one = {"data:Input", "fc:InnerProduct", "act:TanH"};
  const Layers both = {"data:Input", "fc:InnerProduct", "act:TanH", "other:Convolution"};
  CHECK(from("type: 'EuclideanLoss' bottom: 'act' bottom: 'label'") == one);
  CHECK(from("type: 'EuclideanLoss' bottom: 'label' bottom: 'act'") == one);
  CHECK(from("type: 'EuclideanLoss' bottom: 'half' bottom: 'act'") == one);
  CHECK(from("type: 'EuclideanLoss' bottom: 'data' bottom: 'act'") == one);
  CHECK(from("type: 'EuclideanLoss' bottom: 'act' bottom: 'other'") == both);
}

TEST_CASE("the probabilities of a loss stay, whoever that goes reads them") {
  const caffe::NetParameter heads = deployed(R"(
    layer { name: "data" type: "Data" top: "data" top: "label" }
    layer { name: "a" type: "InnerProduct" bottom: "data" top: "a" }
    layer { name: "b" type: "InnerProduct" bottom: "data" top: "b" }
    layer { name: "c" type: "InnerProduct" bottom: "data" top: "c" }
    layer { name: "la" type: "SoftmaxWithLoss" bottom: "a" bottom: "label" top: "la" top: "pa" }
    layer { name: "lb" type: "SoftmaxWithLoss" bottom: "b" bottom: "label" top: "lb" top: "pb" }
    layer { name: "lc" type: "InfogainLoss" bottom: "c" bottom: "label" top: "lc" top: "pc" }
    layer { name: "unused" type: "Silence" bottom: "pa" bottom: "pc" }
    layer { name: "file" type: "HDF5Output" bottom: "pb" bottom: "label" })",
                                             {.shapes = {{"data", {2, 2}}}});
  CHECK(layers_of(heads) == Layers{"data:Input", "a:InnerProduct", "b:InnerProduct",
                                   "c:InnerProduct", "prob:Softmax", "lb/prob:Softmax",
                                   "lc/prob:Softmax"});
}

TEST_CASE("a net of which nothing but inputs is left is none") {
  const auto net = deploy_net(net_from(R"(
    layer { name: "in" type: "Input" top: "a" top: "b" input_param { shape { dim: 2 } } }
    layer { name: "loss" type: "EuclideanLoss" bottom: "a" bottom: "b" })"),
                              {});
  REQUIRE_FALSE(net);
  CHECK(net.error().code == ErrorCode::kConfig);
}

TEST_CASE("a Softmax over another axis gives no probabilities of a loss") {
  const caffe::NetParameter net = deployed(R"(
    layer { name: "data" type: "Data" top: "data" top: "label" }
    layer { name: "fc" type: "InnerProduct" bottom: "data" top: "fc" }
    layer { name: "batch" type: "Softmax" bottom: "fc" top: "batch" softmax_param { axis: 0 } }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "fc" bottom: "label" top: "loss" })",
                                           {.shapes = {{"data", {2, 2}}}});
  CHECK(layers_of(net) == Layers{"data:Input", "fc:InnerProduct", "batch:Softmax", "prob:Softmax"});
}

TEST_CASE("probabilities that the net has are not computed twice, others have names of their own") {
  const caffe::NetParameter net = deployed(R"(
    layer { name: "data" type: "Input" top: "x" top: "y" input_param { shape { dim: 2 dim: 3 } } }
    layer { name: "prob" type: "Softmax" bottom: "x" top: "prob" }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "x" bottom: "label" top: "loss" }
    layer { name: "loss2" type: "SoftmaxWithLoss" bottom: "y" bottom: "label" top: "loss2" })",
                                           {.shapes = {{"y", {7, 3}}}});
  CHECK(layers_of(net) == Layers{"data:Input", "prob:Softmax", "loss2/prob:Softmax"});
  CHECK(net.layer(0).input_param().shape(0).dim(0) == 2);
  CHECK(net.layer(0).input_param().shape(1).dim(0) == 7);
}

TEST_CASE("probabilities that a loss hands on are there under its top's name") {
  const std::string text = R"(
    layer { name: "data" type: "Data" top: "data" top: "label" }
    layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss"
            top: "probs" }
    layer { name: "best" type: "ArgMax" bottom: "probs" top: "best" })";
  const caffe::NetParameter net = deployed(text, {.shapes = {{"data", {2, 2}}}});
  CHECK(layers_of(net) ==
        Layers{"data:Input", "ip:InnerProduct", "prob:Softmax", "best:ArgMax"});
  CHECK(net.layer(2).top(0) == "probs");
  CHECK(layers_of(deployed(text, {.outputs = {"probs"}, .shapes = {{"data", {2, 2}}}})) ==
        Layers{"data:Input", "ip:InnerProduct", "prob:Softmax"});
}

TEST_CASE("layers that reckon with losses go with them") {
  const caffe::NetParameter net = deployed(R"(
    layer { name: "data" type: "Data" top: "data" top: "label" }
    layer { name: "a" type: "InnerProduct" bottom: "data" top: "a" }
    layer { name: "b" type: "InnerProduct" bottom: "data" top: "b" }
    layer { name: "one" type: "SoftmaxWithLoss" bottom: "a" bottom: "label" top: "one" }
    layer { name: "two" type: "HingeLoss" bottom: "b" bottom: "label" top: "two" }
    layer { name: "sum" type: "Eltwise" bottom: "one" bottom: "two" top: "sum" }
    layer { name: "half" type: "Power" bottom: "sum" top: "sum" loss_weight: 1 })",
                                           {.shapes = {{"data", {2, 2}}}});
  CHECK(layers_of(net) ==
        Layers{"data:Input", "a:InnerProduct", "b:InnerProduct", "prob:Softmax"});
}

TEST_CASE("what the outputs that are asked for do not need is left out") {
  const std::string text = R"(
    layer { name: "data" type: "Data" top: "data" top: "label" }
    layer { name: "a" type: "InnerProduct" bottom: "data" top: "a" }
    layer { name: "relu" type: "ReLU" bottom: "a" top: "a" }
    layer { name: "b" type: "InnerProduct" bottom: "a" top: "b" }
    layer { name: "aux" type: "InnerProduct" bottom: "a" top: "aux" }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "b" bottom: "label" top: "loss" })";
  const DeployOptions options{.outputs = {"a"}, .shapes = {{"data", {2, 2}}}};
  CHECK(layers_of(deployed(text, options)) == Layers{"data:Input", "a:InnerProduct", "relu:ReLU"});
  const auto wrong = deploy_net(net_from(text), {.outputs = {"auxx"}});
  REQUIRE_FALSE(wrong.has_value());
  CHECK(wrong.error().message.find("no blob 'auxx' to be an output (did you mean 'aux'?)") !=
        std::string::npos);
  CHECK_FALSE(deploy_net(net_from("name: 'none'"), {}).has_value());
}

}  // namespace
}  // namespace speedo
