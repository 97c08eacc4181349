#include "formats/onnx/onnx_file.hpp"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

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

struct Sharer {
  const Tensor* tensor;
  std::string blob;
};
using Sharers = std::vector<Sharer>;

// Goes over a net's layers, with the value that each blob is at that point. Blobs are known by
// their tensors: a layer may read a copy of what has its bottom's name.
class NetWriter {
 public:
  NetWriter(const Net& net, ::onnx::GraphProto& graph) : net_(net), graph_(graph), builder_(graph) {
    for (const std::string& blob : net.blob_names()) builder_.reserve(blob);
    for (std::size_t i = 0; i < net.layers().size(); ++i) note_tops(i);
  }

  Result<void> write(const Names& outputs) {
    graph_.set_name(net_.name().empty() ? "net" : net_.name());
    for (std::size_t i = 0; i < net_.layers().size(); ++i) {
      const Net::LayerView& view = net_.layers()[i];
      if (view.is_reorder) {
        copy_values(view);
        continue;
      }
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
  void note_tops(std::size_t layer) {
    const Net::LayerView& view = net_.layers()[layer];
    for (std::size_t i = 0; i < view.tops.size(); ++i) {
      Sharers& sharers = sharers_[view.tops[i]->data_identity()];
      const auto is_top = [&](const auto& sharer) { return sharer.tensor == view.tops[i]; };
      last_writer_[view.top_names[i]] = layer;
      if (std::none_of(sharers.begin(), sharers.end(), is_top)) {
        sharers.push_back({view.tops[i], view.top_names[i]});
      } else {
        for (const auto& [tensor, blob] : sharers) last_writer_[blob] = layer;
      }
    }
  }

  void copy_values(const Net::LayerView& view) {
    for (std::size_t i = 0; i < view.tops.size(); ++i) {
      values_[view.tops[i]] = values_.at(view.bottoms[i]);
    }
  }

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
      values_[view.tops[i]] = blob;
      inputs_.insert(blob);
    }
  }

  Result<void> write_layer(std::size_t index) {
    const Net::LayerView& view = net_.layers()[index];
    Names bottoms;
    for (const Tensor* bottom : view.bottoms) bottoms.push_back(values_.at(bottom));
    LayerWriter layer(net_, view, std::move(bottoms), builder_);
    const WriteLayer writer = find_writer(view.layer->type());
    if (writer == nullptr) return layer.unsupported("there is no form of this type");
    SPEEDO_TRY(writer(layer));
    for (std::size_t i = 0; i < view.tops.size(); ++i) {
      const std::string value = named(layer.tops()[i], index, view.top_names[i]);
      const auto [place, is_new] = values_.try_emplace(view.tops[i], value);
      if (is_new || place->second == value) continue;
      place->second = value;
      change_sharers(*view.tops[i], value, index);
    }
    return {};
  }

  // Of what has the memory of a tensor that a layer has overwritten.
  void change_sharers(const Tensor& changed, const std::string& value, std::size_t layer) {
    for (const auto& [tensor, blob] : sharers_.at(changed.data_identity())) {
      const auto place = values_.find(tensor);
      if (tensor == &changed || place == values_.end()) continue;
      place->second = value;
      if (tensor->shape() == changed.shape()) continue;
      const Names inputs{value, builder_.constants(tensor->shape().dims())};
      place->second = named(builder_.add({"Reshape", inputs}), layer, blob);
    }
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
    std::set<std::string> declared;
    for (const std::string& blob : outputs) {
      if (!declared.insert(blob).second) continue;
      std::string value = values_.at(net_.blob(blob));
      const bool is_taken = inputs_.count(blob) != 0;
      // Not made by a node under a name of its own: another blob's value, an input or a constant;
      // or made by a layer before those in place that change nothing.
      const bool is_own = is_taken ? value.rfind(blob + "@", 0) == 0 : value == blob;
      if (!is_own) {
        const std::string copy = builder_.add({"Identity", {value}});
        const std::string name = is_taken ? builder_.free_name(blob + "@output") : blob;
        value = builder_.rename(copy, name) ? name : copy;
      }
      declare(value, net_.blob(blob)->shape().dims(), *graph_.add_output());
    }
  }

  const Net& net_;
  ::onnx::GraphProto& graph_;
  GraphBuilder builder_;
  std::map<std::string, std::size_t> last_writer_;  // of each blob: a layer's place
  std::map<const void*, Sharers> sharers_;          // by memory, in the net's order
  std::map<const Tensor*, std::string> values_;
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
