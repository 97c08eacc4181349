#include "tools/net_graph.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "caffe.pb.h"

namespace speedo {

namespace {

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') result += '\\';
    result += letter == '\n' ? ' ' : letter;
  }
  return result + "\"";
}

// Text in a label of the shape "record", where braces, bars and angles have a meaning.
std::string in_record(const std::string& text) {
  std::string result;
  for (const char letter : text) {
    if (std::string_view("\"\\{}|<>").find(letter) != std::string_view::npos) result += '\\';
    result += letter == '\n' ? ' ' : letter;
  }
  return result;
}

const char* fill_color(const std::string& type) {
  if (type == "Convolution" || type == "Deconvolution") return "#FF5050";
  if (type == "Pooling") return "#FF9900";
  if (type == "InnerProduct") return "#CC33FF";
  return "#6495ED";
}

bool is_in_phase(const caffe::LayerParameter& layer, std::optional<Phase> phase) {
  if (!phase) return true;
  const caffe::Phase wanted = *phase == Phase::kTrain ? caffe::TRAIN : caffe::TEST;
  const auto names_it = [wanted](const caffe::NetStateRule& rule) {
    return rule.has_phase() && rule.phase() == wanted;
  };
  const bool any = layer.include_size() == 0;
  return (any || std::any_of(layer.include().begin(), layer.include().end(), names_it)) &&
         std::none_of(layer.exclude().begin(), layer.exclude().end(), names_it);
}

std::uint32_t first_or(const google::protobuf::RepeatedField<std::uint32_t>& values,
                       std::uint32_t otherwise) {
  return values.empty() ? otherwise : values.Get(0);
}

std::string window_text(std::uint32_t kernel, std::uint32_t stride, std::uint32_t pad,
                        const std::string& gap) {
  return fmt::format("{0}kernel size: {1}{0}stride: {2}{0}pad: {3}", gap, kernel, stride, pad);
}

std::string label_of(const caffe::LayerParameter& layer, const NetGraphOptions& options) {
  const bool upright = options.direction == "TB" || options.direction == "BT";
  const std::string gap = upright ? " " : "\\n";
  std::string label = in_record(layer.name()) + gap + "(" + in_record(layer.type());
  if (layer.has_convolution_param()) {
    const caffe::ConvolutionParameter& conv = layer.convolution_param();
    label += ")" + window_text(first_or(conv.kernel_size(), conv.kernel_h()),
                               first_or(conv.stride(), std::max(conv.stride_h(), 1U)),
                               first_or(conv.pad(), conv.pad_h()), gap);
  } else if (layer.has_pooling_param()) {
    const caffe::PoolingParameter& pool = layer.pooling_param();
    label +=
        " " + caffe::PoolingParameter::PoolMethod_Name(pool.pool()) + ")" +
        window_text(std::max(pool.kernel_size(), pool.kernel_h()), pool.stride(), pool.pad(), gap);
  } else {
    label += ")";
  }
  if (options.learning_rates) {
    for (int i = 0; i < layer.param_size(); ++i) {
      label += fmt::format("{}lr_mult: {:g}", gap, layer.param(i).lr_mult());
    }
  }
  return "\"" + label + "\"";
}

// What a layer's edges to its tops say.
std::string edge_text(const caffe::LayerParameter& layer) {
  if (layer.type() == "Data") return fmt::format("Batch {}", layer.data_param().batch_size());
  if (layer.has_convolution_param()) return std::to_string(layer.convolution_param().num_output());
  if (layer.has_inner_product_param()) {
    return std::to_string(layer.inner_product_param().num_output());
  }
  return "";
}

}  // namespace

std::string net_graph(const caffe::NetParameter& net, const NetGraphOptions& options) {
  std::string text =
      fmt::format("digraph {} {{\n  rankdir={};\n", quoted(net.name().empty() ? "Net" : net.name()),
                  options.direction);
  std::set<std::string> blobs;
  const auto blob_node = [&](const std::string& blob) {
    if (blobs.insert(blob).second) {
      text += fmt::format("  {} [label={}, shape=octagon, style=filled, fillcolor=\"#E0E0E0\"];\n",
                          quoted(blob + "_blob"), quoted(blob));
    }
    return quoted(blob + "_blob");
  };
  for (const caffe::LayerParameter& layer : net.layer()) {
    if (!is_in_phase(layer, options.phase)) continue;
    const bool in_place =
        layer.bottom_size() == 1 && layer.top_size() == 1 && layer.bottom(0) == layer.top(0);
    const std::string node = quoted(layer.name() + "_" + layer.type());
    text += fmt::format("  {} [label={}, shape=record, style=filled, fillcolor=\"{}\"];\n", node,
                        label_of(layer, options), in_place ? "#90EE90" : fill_color(layer.type()));
    for (const std::string& bottom : layer.bottom()) {
      const std::string blob = blob_node(bottom);
      text += fmt::format("  {} -> {};\n", blob, node);
    }
    for (const std::string& top : layer.top()) {
      const std::string blob = blob_node(top);
      text += fmt::format("  {} -> {} [label={}];\n", node, blob, quoted(edge_text(layer)));
    }
  }
  return text + "}\n";
}

}  // namespace speedo
