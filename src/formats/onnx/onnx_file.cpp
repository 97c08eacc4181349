#include "formats/onnx/onnx_file.hpp"

#include <set>
#include <utility>

#include <fmt/format.h>

#include <speedo/base/file.hpp>
#include <speedo/base/limits.hpp>

#include "formats/onnx/graph_builder.hpp"
#include "formats/onnx/layer_writer.hpp"

namespace speedo {

namespace onnx_export {
namespace {

constexpr std::int64_t kIrVersion = 8;
constexpr std::int64_t kOpset = 17;

WriteLayer find_writer(const std::string& type) {
  for (const LayerTable* table : {&window_layers(), &norm_layers(), &element_layers(),
                                  &shape_layers(), &sum_layers(), &recurrent_layers()}) {
    const auto found = table->find(type);
    if (found != table->end()) return found->second;
  }
  return nullptr;
}

// Goes over a net's layers, with the value that each blob is at that point.
class NetWriter {
 public:
  NetWriter(const Net& net, ::onnx::GraphProto& graph) : net_(net), graph_(graph), builder_(graph) {
    for (const std::string& blob : net.blob_names()) builder_.reserve(blob);
    for (std::size_t i = 0; i < net.layers().size(); ++i) {
      for (const std::string& top : net.layers()[i].top_names) last_writer_[top] = i;
    }
  }

  Result<void> write(const Names& outputs) {
    graph_.set_name(net_.name().empty() ? "net" : net_.name());
    for (std::size_t i = 0; i < net_.layers().size(); ++i) {
      const Net::LayerView& view = net_.layers()[i];
      if (view.is_reorder) continue;
      SPEEDO_TRY(check_shapes(view));
      builder_.begin_layer(view.layer->name());
      if (view.layer->type() == "Input") {
        declare_inputs(view);
      } else {
        SPEEDO_TRY(write_layer(i));
      }
    }
    declare_outputs(outputs);
    return {};
  }

 private:
  static Result<void> check_shapes(const Net::LayerView& view) {
    for (std::size_t i = 0; i < view.tops.size(); ++i) {
      if (view.tops[i]->count() > 0) continue;
      return config_error(fmt::format("layer '{}' ({}): its top '{}' has no elements: {}",
                                      view.layer->name(), view.layer->type(), view.top_names[i],
                                      to_string(view.tops[i]->shape())));
    }
    return {};
  }

  void declare_inputs(const Net::LayerView& view) {
    for (std::size_t i = 0; i < view.tops.size(); ++i) {
      const std::string& blob = view.top_names[i];
      declare(blob, view.tops[i]->shape().dims(), *graph_.add_input());
      values_[blob] = blob;
      inputs_.insert(blob);
    }
  }

  Result<void> write_layer(std::size_t index) {
    const Net::LayerView& view = net_.layers()[index];
    Names bottoms;
    for (const std::string& blob : view.bottom_names) bottoms.push_back(values_.at(blob));
    LayerWriter layer(net_, view, std::move(bottoms), builder_);
    const WriteLayer writer = find_writer(view.layer->type());
    if (writer == nullptr) return layer.unsupported("there is no form of this type");
    SPEEDO_TRY(writer(layer));
    for (std::size_t i = 0; i < view.tops.size(); ++i) {
      values_[view.top_names[i]] = named(layer.tops()[i], index, view.top_names[i]);
    }
    return {};
  }

  // A value that the layer made gets its blob's name; one that was there keeps its own.
  std::string named(const std::string& value, std::size_t layer, const std::string& blob) {
    const bool is_last = last_writer_.at(blob) == layer && inputs_.count(blob) == 0;
    if (is_last) return builder_.rename(value, blob) ? blob : value;
    const std::string name =
        builder_.free_name(fmt::format("{}@{}", blob, net_.layers()[layer].layer->name()));
    return builder_.rename(value, name) ? name : value;
  }

  void declare_outputs(const Names& outputs) {
    builder_.begin_layer("outputs");
    for (const std::string& blob : outputs) {
      std::string value = values_.at(blob);
      // Not made by a node under its own name: another blob's value, an input or a constant.
      if (value != blob && value.rfind(blob + "@", 0) != 0) {
        const std::string copy = builder_.add({"Identity", {value}});
        value = blob;
        builder_.rename(copy, blob);
      } else if (inputs_.count(value) != 0) {
        const std::string copy = builder_.add({"Identity", {value}});
        const std::string name = builder_.free_name(blob + "@output");
        value = builder_.rename(copy, name) ? name : copy;
      }
      declare(value, net_.blob(blob)->shape().dims(), *graph_.add_output());
    }
  }

  const Net& net_;
  ::onnx::GraphProto& graph_;
  GraphBuilder builder_;
  std::map<std::string, std::size_t> last_writer_;  // of each blob: a layer's place
  std::map<std::string, std::string> values_;       // of blobs
  std::set<std::string> inputs_;
};

}  // namespace
}  // namespace onnx_export

Result<onnx::ModelProto> to_onnx(const Net& net, const OnnxOptions& options) {
  onnx::ModelProto model;
  model.set_ir_version(onnx_export::kIrVersion);
  model.add_opset_import()->set_version(onnx_export::kOpset);
  model.mutable_opset_import(0)->set_domain("");
  model.set_producer_name("SpeeDO");
  for (const auto& [key, value] : options.metadata) {
    onnx::StringStringEntryProto& entry = *model.add_metadata_props();
    entry.set_key(key);
    entry.set_value(value);
  }
  SPEEDO_TRY(onnx_export::NetWriter(net, *model.mutable_graph())
                 .write(options.outputs.empty() ? net.output_names() : options.outputs));
  return model;
}

Result<void> write_onnx(const std::filesystem::path& path, const Net& net,
                        const OnnxOptions& options) {
  SPEEDO_ASSIGN(const onnx::ModelProto model, to_onnx(net, options));
  if (model.ByteSizeLong() > kProtobufBytesMax) {
    return Error{ErrorCode::kCannotWrite,
                 fmt::format("{}: {} bytes are more than a file of ONNX can hold (2 GiB)",
                             path.string(), model.ByteSizeLong())};
  }
  return write_file_atomically(path, model.SerializeAsString());
}

}  // namespace speedo
