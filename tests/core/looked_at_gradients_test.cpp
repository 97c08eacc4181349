// Gradients of blobs that in-place layers write, where someone looks at them: the same in every
// layout, whatever layouts the plan gives to the parts of such a blob. And where nobody does:
// the same gradients of parameters.

#include "net_run.hpp"
#include "net_support.hpp"

namespace speedo {
namespace {

std::string in_place_chain(const std::string& blob, const std::vector<std::string>& types) {
  std::string text;
  for (std::size_t i = 0; i < types.size(); ++i) {
    text += "layer { name: '" + types[i] + std::to_string(i) + "' type: '" + types[i] +
            "' bottom: '" + blob + "' top: '" + blob + "' }\n";
  }
  return text;
}

// A convolution, layers in its place, and a sum with what the convolution reads.
std::string net_of(int channels, const std::vector<std::string>& types,
                   const std::string& convolution_options = "") {
  const std::string size = std::to_string(channels);
  return input("label", "dim: 2") + input("data", "dim: 2 dim: " + size + " dim: 6 dim: 6") +
         layer("a", "Convolution", {"data"},
               "convolution_param { num_output: " + size +
                   " kernel_size: 3 pad: 1 weight_filler { type: 'msra' } }" +
                   convolution_options) +
         in_place_chain("a", types) + layer("sum", "Eltwise", {"a", "data"}) +
         product("score", "sum") + layer("loss", "SoftmaxWithLoss", {"score", "label"});
}

void require_same_everywhere(const std::string& text) {
  NetOptions options;
  options.keep_blobs = GENERATE(true, false);
  options.may_fuse = GENERATE(true, false);
  check_in_all_layouts(text, options);
}

TEST_CASE("a blob that in-place layers write shows one gradient in every layout") {
  const int channels = GENERATE(5, 16, 30, 32);
  const std::vector<std::string> types =
      GENERATE(values<std::vector<std::string>>({{"Scale"},
                                                 {"BatchNorm", "Scale"},
                                                 {"BatchNorm", "Scale", "ReLU"},
                                                 {"PReLU", "Scale", "PReLU"},
                                                 {"Scale", "BatchNorm", "TanH", "Power"},
                                                 {"BatchNorm", "BatchNorm", "Bias", "Sigmoid"}}));
  require_same_everywhere(net_of(channels, types));
}

TEST_CASE("a layer that hands no gradient on leaves that of its top to be seen") {
  const std::string frozen = "param { lr_mult: 0 } param { lr_mult: 0 }";
  const int channels = GENERATE(16, 30);
  require_same_everywhere(net_of(channels, {"BatchNorm", "Scale"}, frozen));
  require_same_everywhere(net_of(channels, {"PReLU", "ReLU"}, frozen));
}

}  // namespace
}  // namespace speedo
