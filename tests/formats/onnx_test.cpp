// The structure of ONNX models, read back by protobuf alone. That they compute what the net does is
// for runtimes.py, with onnxruntime.

#include "formats/onnx/onnx_file.hpp"

#include <algorithm>
#include <cstring>
#include <set>

#include <speedo/base/file.hpp>

#include "core/net_support.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

onnx::ModelProto model_of(const std::string& text, const std::vector<std::string>& outputs = {}) {
  const auto net = make_net(text, net_options(Phase::kTest));
  const TempDir folder;
  const std::filesystem::path path = folder / "net.onnx";
  const auto written =
      write_onnx(path, *net, {.metadata = {{"iteration", "7"}}, .outputs = outputs});
  if (!written) FAIL(written.error().message);
  onnx::ModelProto model;
  REQUIRE(model.ParseFromString(*read_file(path)));
  return model;
}

Error onnx_error(const std::string& text) {
  const auto net = make_net(text, net_options(Phase::kTest));
  const auto model = to_onnx(*net, {});
  REQUIRE_FALSE(model.has_value());
  return model.error();
}

const onnx::NodeProto& node_of(const onnx::ModelProto& model, const std::string& op) {
  for (const onnx::NodeProto& node : model.graph().node()) {
    if (node.op_type() == op) return node;
  }
  FAIL("there is no " << op);
  return model.graph().node(0);
}

std::vector<std::int64_t> ints(const onnx::NodeProto& node, const std::string& name) {
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.name() == name) return {attribute.ints().begin(), attribute.ints().end()};
  }
  return {};
}

const onnx::TensorProto& initializer(const onnx::ModelProto& model, const std::string& name) {
  for (const onnx::TensorProto& tensor : model.graph().initializer()) {
    if (tensor.name() == name) return tensor;
  }
  FAIL("there is no " << name);
  return model.graph().initializer(0);
}

std::vector<float> floats(const onnx::TensorProto& tensor) {
  std::vector<float> values(tensor.raw_data().size() / sizeof(float));
  std::memcpy(values.data(), tensor.raw_data().data(), tensor.raw_data().size());
  return values;
}

// Each value is made once, before it is read, and every output is made. `known`: from outside.
void check_order(const onnx::GraphProto& graph, std::set<std::string> known) {
  const auto make = [&](const std::string& name) {
    INFO(name);
    CHECK(known.insert(name).second);
  };
  for (const onnx::ValueInfoProto& input : graph.input()) make(input.name());
  for (const onnx::TensorProto& tensor : graph.initializer()) make(tensor.name());
  for (const onnx::NodeProto& node : graph.node()) {
    for (const std::string& input : node.input()) {
      INFO(node.name() << " reads " << input);
      CHECK(known.count(input) == 1);
    }
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.has_g()) check_order(attribute.g(), known);
    }
    for (const std::string& output : node.output()) make(output);
  }
  for (const onnx::ValueInfoProto& output : graph.output()) CHECK(known.count(output.name()) == 1);
}

constexpr const char* kInput =
    "layer { name: 'in' type: 'Input' top: 'data' "
    "input_param { shape { dim: 2 dim: 4 dim: 8 dim: 8 } } }\n";

TEST_CASE("a convolution with layers in place: names, weights, attributes") {
  const onnx::ModelProto model = model_of(std::string("name: 'small'\n") + kInput + R"(
    layer { name: 'conv' type: 'Convolution' bottom: 'data' top: 'conv'
            convolution_param { num_output: 6 kernel_size: 3 pad: 1 stride: 2 group: 2 dilation: 2
                                weight_filler { type: 'xavier' } } }
    layer { name: 'norm' type: 'BatchNorm' bottom: 'conv' top: 'conv' }
    layer { name: 'relu' type: 'ReLU' bottom: 'conv' top: 'conv' }
    layer { name: 'ip' type: 'InnerProduct' bottom: 'conv' top: 'ip'
            inner_product_param { num_output: 3 } })");
  CHECK(model.ir_version() == 8);
  CHECK(model.opset_import(0).version() == 17);
  CHECK(model.metadata_props(0).key() == "iteration");
  CHECK(model.graph().name() == "small");
  check_order(model.graph(), {});

  const onnx::NodeProto& conv = node_of(model, "Conv");
  CHECK(conv.output(0) == "conv@conv");
  CHECK(conv.input(1) == "conv.weight");
  CHECK(ints(conv, "kernel_shape") == std::vector<std::int64_t>{3, 3});
  CHECK(ints(conv, "pads") == std::vector<std::int64_t>{1, 1, 1, 1});
  CHECK(ints(conv, "strides") == std::vector<std::int64_t>{2, 2});
  CHECK(ints(conv, "dilations") == std::vector<std::int64_t>{2, 2});
  CHECK(node_of(model, "BatchNormalization").output(0) == "conv@norm");
  CHECK(node_of(model, "Relu").output(0) == "conv");
  CHECK(node_of(model, "Gemm").output(0) == "ip");
  const onnx::TensorProto& weights = initializer(model, "conv.weight");
  CHECK(std::vector<std::int64_t>(weights.dims().begin(), weights.dims().end()) ==
        std::vector<std::int64_t>{6, 2, 3, 3});
  CHECK(floats(weights).size() == 108);
  CHECK(model.graph().input_size() == 1);
  CHECK(model.graph().output_size() == 1);
  CHECK(model.graph().output(0).type().tensor_type().shape().dim(1).dim_value() == 3);
}

TEST_CASE("averages over windows that are cut off divide by what Caffe counts") {
  // 8 + 2 x 1 in windows of 4 by threes: 3 of them, the last begins at 5 and reaches to 9.
  const onnx::ModelProto whole = model_of(std::string(kInput) + R"(
    layer { name: 'pool' type: 'Pooling' bottom: 'data' top: 'pool'
            pooling_param { pool: AVE kernel_size: 4 stride: 3 pad: 1 } })");
  CHECK(whole.graph().node_size() == 1);
  CHECK(ints(whole.graph().node(0), "pads") == std::vector<std::int64_t>{1, 1, 1, 1});
  // 8 in windows of 3 by twos: 4 of them, the last has two rows of three.
  const onnx::ModelProto cut = model_of(std::string(kInput) + R"(
    layer { name: 'pool' type: 'Pooling' bottom: 'data' top: 'pool'
            pooling_param { pool: AVE kernel_size: 3 stride: 2 } })");
  CHECK(ints(node_of(cut, "AveragePool"), "pads") == std::vector<std::int64_t>{0, 0, 1, 1});
  const std::vector<float> factors = floats(initializer(cut, node_of(cut, "Mul").input(1)));
  REQUIRE(factors.size() == 16);
  CHECK(factors[0] == 1.0F);
  CHECK(factors[3] == 1.5F);
  CHECK(factors[15] == 2.25F);
}

TEST_CASE("layers that share weights share the array; a step of an LSTM is a graph of its own") {
  const onnx::ModelProto shared = model_of(R"(
    layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 3 } } }
    layer { name: 'a' type: 'InnerProduct' bottom: 'x' top: 'a' param { name: 'w' }
            inner_product_param { num_output: 3 bias_term: false } }
    layer { name: 'b' type: 'InnerProduct' bottom: 'a' top: 'b' param { name: 'w' }
            inner_product_param { num_output: 3 bias_term: false } })");
  CHECK(shared.graph().initializer_size() == 1);
  check_order(shared.graph(), {});

  const onnx::ModelProto lstm = model_of(R"(
    layer { name: 'in' type: 'Input' top: 'x' top: 'cont'
            input_param { shape { dim: 5 dim: 2 dim: 3 } shape { dim: 5 dim: 2 } } }
    layer { name: 'lstm' type: 'LSTM' bottom: 'x' bottom: 'cont' top: 'h'
            recurrent_param { num_output: 4 } })");
  check_order(lstm.graph(), {});
  CHECK(node_of(lstm, "Scan").output_size() == 3);
}

std::vector<std::int64_t> dims_of(const onnx::TensorProto& tensor) {
  return {tensor.dims().begin(), tensor.dims().end()};
}

TEST_CASE("layers of one name have arrays of their own") {
  const onnx::ModelProto model = model_of(std::string(kInput) + R"(
    layer { name: 'pool' type: 'Pooling' bottom: 'data' top: 'a'
            pooling_param { pool: AVE kernel_size: 3 stride: 2 } }
    layer { name: 'pool' type: 'Pooling' bottom: 'data' top: 'b'
            pooling_param { pool: AVE kernel_size: 4 stride: 3 pad: 2 } })");
  check_order(model.graph(), {});
  std::set<std::string> factors;
  for (const onnx::NodeProto& node : model.graph().node()) {
    if (node.op_type() == "Mul") factors.insert(node.input(1));
  }
  REQUIRE(factors.size() == 2);
  CHECK(floats(initializer(model, *factors.begin())) !=
        floats(initializer(model, *factors.rbegin())));
}

TEST_CASE("a parameter that layers share in several shapes is an array in each") {
  const onnx::ModelProto model = model_of(R"(
    layer { name: 'in' type: 'Input' top: 'x' top: 'y'
            input_param { shape { dim: 2 dim: 6 dim: 3 dim: 3 } shape { dim: 2 dim: 6 } } }
    layer { name: 'conv' type: 'Convolution' bottom: 'x' top: 'conv'
            param { name: 'w' share_mode: PERMISSIVE }
            convolution_param { num_output: 4 kernel_size: 1 bias_term: false
                                weight_filler { type: 'xavier' } } }
    layer { name: 'ip' type: 'InnerProduct' bottom: 'y' top: 'ip'
            param { name: 'w' share_mode: PERMISSIVE }
            inner_product_param { num_output: 4 bias_term: false } })");
  const onnx::TensorProto& kernels = initializer(model, node_of(model, "Conv").input(1));
  CHECK(dims_of(kernels) == std::vector<std::int64_t>{4, 6, 1, 1});
  const onnx::TensorProto& matrix = initializer(model, node_of(model, "Gemm").input(1));
  CHECK(dims_of(matrix) == std::vector<std::int64_t>{4, 6});
  CHECK(floats(matrix) == floats(kernels));
}

TEST_CASE("outputs have their blobs' names, also those that no node makes by itself") {
  const onnx::ModelProto model = model_of(R"(
    layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 3 } } }
    layer { name: 'relu' type: 'ReLU' bottom: 'x' top: 'x' }
    layer { name: 'cut' type: 'Slice' bottom: 'x' top: 'y' }
    layer { name: 'p' type: 'Parameter' top: 'p' parameter_param { shape { dim: 2 } } })");
  check_order(model.graph(), {});
  CHECK(model.graph().input(0).name() == "x");
  CHECK(node_of(model, "Relu").output(0) == "x@relu");
  std::set<std::string> outputs;
  for (const onnx::ValueInfoProto& output : model.graph().output()) outputs.insert(output.name());
  CHECK(outputs == std::set<std::string>{"y", "p"});
}

TEST_CASE("an input that is an output, too, has a name there that says which it is") {
  const onnx::ModelProto model = model_of(R"(
    layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 3 } } }
    layer { name: 'a' type: 'TanH' bottom: 'x' top: 'a' })",
                                          {"x", "a"});
  check_order(model.graph(), {});
  CHECK(model.graph().input(0).name() == "x");
  CHECK(model.graph().output(0).name() == "x@output");
  CHECK(model.graph().output(1).name() == "a");
}

TEST_CASE("outputs may be blobs that layers read, each once") {
  const onnx::ModelProto model = model_of(R"(
    layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 3 } } }
    layer { name: 'a' type: 'TanH' bottom: 'x' top: 'a' }
    layer { name: 'b' type: 'TanH' bottom: 'a' top: 'b' })",
                                          {"a", "b"});
  check_order(model.graph(), {});
  REQUIRE(model.graph().output_size() == 2);
  CHECK(model.graph().output(0).name() == "a");
  CHECK(model.graph().output(1).name() == "b");
}

const onnx::NodeProto& maker_of(const onnx::ModelProto& model, const std::string& value) {
  for (const onnx::NodeProto& node : model.graph().node()) {
    for (const std::string& output : node.output()) {
      if (output == value) return node;
    }
  }
  FAIL("nothing makes " << value);
  return model.graph().node(0);
}

TEST_CASE("a layer in place changes what shares its memory for those that read it later") {
  const std::string text = R"(
    layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 12 } } }
    layer { name: 'c' type: 'InnerProduct' bottom: 'x' top: 'c'
            inner_product_param { num_output: 8 bias_term: false } }
    layer { name: 'f' type: 'Reshape' bottom: 'c' top: 'f'
            reshape_param { shape { dim: 4 dim: 4 } } }
    layer { name: 'act' type: 'Sigmoid' bottom: 'f' top: 'f' }
    layer { name: 'p' type: 'Softmax' bottom: 'c' top: 'p' })";
  const onnx::ModelProto model = model_of(text);
  check_order(model.graph(), {});
  const onnx::NodeProto& back = maker_of(model, node_of(model, "Softmax").input(0));
  CHECK(back.op_type() == "Reshape");
  CHECK(maker_of(model, back.input(0)).op_type() == "Sigmoid");

  const onnx::ModelProto asked = model_of(text, {"c", "f", "p"});
  check_order(asked.graph(), {});
  CHECK(asked.graph().output(0).name() == "c");
  CHECK(maker_of(asked, "c").op_type() == "Reshape");
  CHECK(maker_of(asked, "f").op_type() == "Sigmoid");

  // Of one shape, and of an input, whose name is taken.
  const onnx::ModelProto input = model_of(R"(
    layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 12 } } }
    layer { name: 'cut' type: 'Slice' bottom: 'x' top: 'y' }
    layer { name: 'act' type: 'TanH' bottom: 'y' top: 'y' }
    layer { name: 'p' type: 'Softmax' bottom: 'x' top: 'p' })",
                                          {"x", "y", "p"});
  check_order(input.graph(), {});
  CHECK(maker_of(input, node_of(input, "Softmax").input(0)).op_type() == "Tanh");
  CHECK(input.graph().output(0).name() == "x@output");
  CHECK(maker_of(input, maker_of(input, "x@output").input(0)).op_type() == "Tanh");
}

TEST_CASE("an output that a layer in place leaves as it is has its blob's name") {
  const onnx::ModelProto model = model_of(R"(
    layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 3 } } }
    layer { name: 'a' type: 'TanH' bottom: 'x' top: 'a' }
    layer { name: 'drop' type: 'Dropout' bottom: 'a' top: 'a' })");
  check_order(model.graph(), {});
  CHECK(model.graph().output(0).name() == "a");
}

TEST_CASE("an output that is asked for twice is there once") {
  const onnx::ModelProto model = model_of(R"(
    layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 3 } } }
    layer { name: 'a' type: 'TanH' bottom: 'x' top: 'a' })",
                                          {"a", "x", "a", "x"});
  check_order(model.graph(), {});
  CHECK(model.graph().output_size() == 2);
}

TEST_CASE("what ONNX cannot say is an error that names the layer") {
  const Error filter = onnx_error(R"(
    layer { name: 'in' type: 'Input' top: 'x' top: 's'
            input_param { shape { dim: 2 dim: 3 } shape { dim: 2 } } }
    layer { name: 'choose' type: 'Filter' bottom: 'x' bottom: 's' top: 'y' })");
  CHECK(filter.code == ErrorCode::kUnsupported);
  CHECK(filter.message.starts_with("layer 'choose' (Filter): cannot be written as ONNX: how many"));
  const Error loss = onnx_error(R"(
    layer { name: 'in' type: 'Input' top: 'x' top: 'l'
            input_param { shape { dim: 2 dim: 3 } shape { dim: 2 dim: 3 } } }
    layer { name: 'loss' type: 'EuclideanLoss' bottom: 'x' bottom: 'l' top: 'loss' })");
  CHECK(loss.message.starts_with("layer 'loss' (EuclideanLoss): cannot be written as ONNX"));
}

}  // namespace
}  // namespace speedo
