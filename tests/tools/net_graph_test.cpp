#include "tools/net_graph.hpp"

#include "core/prototxt.hpp"
#include "support/catch.hpp"

namespace speedo {
namespace {

caffe::NetParameter net_from(const std::string& text) {
  const auto net = parse_net_prototxt(text, "net");
  if (!net) FAIL(net.error().message);
  return *net;
}

TEST_CASE("names that the language of graphs would read otherwise are quoted") {
  const caffe::NetParameter net =
      net_from(R"(name: "a\"b" layer { name: "x|{y}" type: "ReLU" bottom: "in\\" top: "out" })");
  const std::string graph = net_graph(net, {});
  CHECK(graph.starts_with("digraph \"a\\\"b\" {\n"));
  CHECK(graph.find("label=\"x\\|\\{y\\}\\n(ReLU)\"") != std::string::npos);
  CHECK(graph.find("\"in\\\\_blob\" -> ") != std::string::npos);
}

TEST_CASE("layers of the phase asked for are drawn, with what they compute") {
  const caffe::NetParameter net = net_from(R"(
    layer { name: "d" type: "Data" top: "data" include { phase: TRAIN }
            data_param { source: "x" batch_size: 64 } }
    layer { name: "c" type: "Convolution" bottom: "data" top: "c" param { lr_mult: 2 }
            convolution_param { num_output: 20 kernel_size: 5 stride: 2 } }
    layer { name: "p" type: "Pooling" bottom: "c" top: "p" exclude { phase: TEST }
            pooling_param { pool: AVE kernel_size: 3 stride: 2 } })");
  const std::string train = net_graph(net, {.direction = "TB", .phase = Phase::kTrain});
  CHECK(train.find("rankdir=TB;") != std::string::npos);
  CHECK(train.find("[label=\"Batch 64\"]") != std::string::npos);
  CHECK(train.find("\"c (Convolution) kernel size: 5 stride: 2 pad: 0\"") != std::string::npos);
  CHECK(train.find("\"p (Pooling AVE) kernel size: 3 stride: 2 pad: 0\"") != std::string::npos);
  const std::string test = net_graph(net, {.phase = Phase::kTest, .learning_rates = true});
  CHECK(test.find("Batch") == std::string::npos);
  CHECK(test.find("Pooling") == std::string::npos);
  CHECK(test.find("\\nlr_mult: 2") != std::string::npos);
}

}  // namespace
}  // namespace speedo
