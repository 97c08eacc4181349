#include "core/upgrade/upgrade_v0.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/log.hpp"

namespace speedo {
namespace {

namespace protobuf = google::protobuf;
using V0 = caffe::V0LayerParameter;
using V1 = caffe::V1LayerParameter;

constexpr std::array<std::pair<std::string_view, V1::LayerType>, 24> kTypes = {{
    {"accuracy", V1::ACCURACY},
    {"bnll", V1::BNLL},
    {"concat", V1::CONCAT},
    {"conv", V1::CONVOLUTION},
    {"data", V1::DATA},
    {"dropout", V1::DROPOUT},
    {"euclidean_loss", V1::EUCLIDEAN_LOSS},
    {"flatten", V1::FLATTEN},
    {"hdf5_data", V1::HDF5_DATA},
    {"hdf5_output", V1::HDF5_OUTPUT},
    {"im2col", V1::IM2COL},
    {"images", V1::IMAGE_DATA},
    {"infogain_loss", V1::INFOGAIN_LOSS},
    {"innerproduct", V1::INNER_PRODUCT},
    {"lrn", V1::LRN},
    {"multinomial_logistic_loss", V1::MULTINOMIAL_LOGISTIC_LOSS},
    {"pool", V1::POOLING},
    {"relu", V1::RELU},
    {"sigmoid", V1::SIGMOID},
    {"softmax", V1::SOFTMAX},
    {"softmax_loss", V1::SOFTMAX_LOSS},
    {"split", V1::SPLIT},
    {"tanh", V1::TANH},
    {"window_data", V1::WINDOW_DATA},
}};

// Where a V0 field of a layer type went in V1: options.field. No type: every type.
struct Move {
  std::string_view type, old_field, options, field;
};

constexpr std::array kMoves = std::to_array<Move>({
    {"conv", "num_output", "convolution_param", "num_output"},
    {"conv", "biasterm", "convolution_param", "bias_term"},
    {"conv", "weight_filler", "convolution_param", "weight_filler"},
    {"conv", "bias_filler", "convolution_param", "bias_filler"},
    {"conv", "pad", "convolution_param", "pad"},
    {"conv", "kernelsize", "convolution_param", "kernel_size"},
    {"conv", "group", "convolution_param", "group"},
    {"conv", "stride", "convolution_param", "stride"},
    {"innerproduct", "num_output", "inner_product_param", "num_output"},
    {"innerproduct", "biasterm", "inner_product_param", "bias_term"},
    {"innerproduct", "weight_filler", "inner_product_param", "weight_filler"},
    {"innerproduct", "bias_filler", "inner_product_param", "bias_filler"},
    {"pool", "pool", "pooling_param", "pool"},
    {"pool", "pad", "pooling_param", "pad"},
    {"pool", "kernelsize", "pooling_param", "kernel_size"},
    {"pool", "stride", "pooling_param", "stride"},
    {"dropout", "dropout_ratio", "dropout_param", "dropout_ratio"},
    {"lrn", "local_size", "lrn_param", "local_size"},
    {"lrn", "alpha", "lrn_param", "alpha"},
    {"lrn", "beta", "lrn_param", "beta"},
    {"lrn", "k", "lrn_param", "k"},
    {"data", "source", "data_param", "source"},
    {"data", "batchsize", "data_param", "batch_size"},
    {"data", "rand_skip", "data_param", "rand_skip"},
    {"hdf5_data", "source", "hdf5_data_param", "source"},
    {"hdf5_data", "batchsize", "hdf5_data_param", "batch_size"},
    {"images", "source", "image_data_param", "source"},
    {"images", "batchsize", "image_data_param", "batch_size"},
    {"images", "rand_skip", "image_data_param", "rand_skip"},
    {"images", "shuffle_images", "image_data_param", "shuffle"},
    {"images", "new_height", "image_data_param", "new_height"},
    {"images", "new_width", "image_data_param", "new_width"},
    {"window_data", "source", "window_data_param", "source"},
    {"window_data", "batchsize", "window_data_param", "batch_size"},
    {"window_data", "det_fg_threshold", "window_data_param", "fg_threshold"},
    {"window_data", "det_bg_threshold", "window_data_param", "bg_threshold"},
    {"window_data", "det_fg_fraction", "window_data_param", "fg_fraction"},
    {"window_data", "det_context_pad", "window_data_param", "context_pad"},
    {"window_data", "det_crop_mode", "window_data_param", "crop_mode"},
    {"infogain_loss", "source", "infogain_loss_param", "source"},
    {"concat", "concat_dim", "concat_param", "concat_dim"},
    {"hdf5_output", "hdf5_output_param", "hdf5_output_param", ""},
    {"", "scale", "transform_param", "scale"},
    {"", "meanfile", "transform_param", "mean_file"},
    {"", "cropsize", "transform_param", "crop_size"},
    {"", "mirror", "transform_param", "mirror"},
});

// Copies one set field to a field of the same kind; a repeated target gets it as an element.
void copy_field(const protobuf::Message& from, const protobuf::FieldDescriptor& source,
                protobuf::Message& to, const protobuf::FieldDescriptor& target) {
  const auto& in = *from.GetReflection();
  const auto& out = *to.GetReflection();
  using Field = protobuf::FieldDescriptor;
  switch (source.cpp_type()) {
    case Field::CPPTYPE_UINT32:
      target.is_repeated() ? out.AddUInt32(&to, &target, in.GetUInt32(from, &source))
                           : out.SetUInt32(&to, &target, in.GetUInt32(from, &source));
      break;
    case Field::CPPTYPE_INT32:  // new_height and new_width are unsigned now
      out.SetUInt32(&to, &target, static_cast<std::uint32_t>(in.GetInt32(from, &source)));
      break;
    case Field::CPPTYPE_FLOAT:
      out.SetFloat(&to, &target, in.GetFloat(from, &source));
      break;
    case Field::CPPTYPE_BOOL:
      out.SetBool(&to, &target, in.GetBool(from, &source));
      break;
    case Field::CPPTYPE_ENUM:
      out.SetEnumValue(&to, &target, in.GetEnumValue(from, &source));
      break;
    case Field::CPPTYPE_STRING:
      out.SetString(&to, &target, in.GetString(from, &source));
      break;
    default:
      out.MutableMessage(&to, &target)->CopyFrom(in.GetMessage(from, &source));
  }
}

bool is_layer_field(std::string_view name) {
  return name == "name" || name == "type" || name == "blobs" || name == "blobs_lr" ||
         name == "weight_decay";
}

void move_options(const V0& old, V1& layer) {
  std::vector<const protobuf::FieldDescriptor*> fields;
  old.GetReflection()->ListFields(old, &fields);
  for (const auto* field : fields) {
    if (is_layer_field(field->name())) {
      continue;
    }
    const auto move = std::find_if(kMoves.begin(), kMoves.end(), [&](const Move& candidate) {
      return candidate.old_field == field->name() &&
             (candidate.type.empty() || candidate.type == old.type());
    });
    if (move == kMoves.end()) {
      SPEEDO_WARN("old layer '{}' of type '{}': {} has no meaning there and is ignored", old.name(),
                  old.type(), field->name());
      continue;
    }
    const auto* options = V1::descriptor()->FindFieldByName(std::string(move->options));
    if (move->field.empty()) {
      copy_field(old, *field, layer, *options);
      continue;
    }
    auto& target = *layer.GetReflection()->MutableMessage(&layer, options);
    copy_field(old, *field, target,
               *target.GetDescriptor()->FindFieldByName(std::string(move->field)));
  }
}

Result<void> upgrade_layer(V1& layer) {
  if (!layer.has_layer()) return {};  // One of V1, which has its own fields.
  const V0 old = layer.layer();
  layer.clear_layer();
  if (old.has_name()) {
    layer.set_name(old.name());
  }
  if (old.has_type()) {
    const auto type = std::find_if(kTypes.begin(), kTypes.end(),
                                   [&](const auto& known) { return known.first == old.type(); });
    if (type == kTypes.end()) {
      return Error{ErrorCode::kConfig,
                   fmt::format("old layer '{}': unknown type '{}'", old.name(), old.type())};
    }
    layer.set_type(type->second);
  }
  layer.mutable_blobs()->CopyFrom(old.blobs());
  layer.mutable_blobs_lr()->CopyFrom(old.blobs_lr());
  layer.mutable_weight_decay()->CopyFrom(old.weight_decay());
  move_options(old, layer);
  return {};
}

// Takes the pad of the padding layer `padding` that `layer` reads.
Result<void> absorb_padding(const V1& padding, V1& layer) {
  const std::string& type = layer.layer().type();
  if ((type != "conv" && type != "pool") || layer.bottom_size() != 1 ||
      padding.bottom_size() != 1 || padding.top_size() != 1) {
    return Error{ErrorCode::kConfig,
                 fmt::format("old layer '{}': a padding layer can only stand, with one bottom and "
                             "one top, before a conv or pool layer of one bottom",
                             padding.layer().name())};
  }
  layer.mutable_layer()->set_pad(padding.layer().pad());
  layer.set_bottom(0, padding.bottom(0));
  return {};
}

Result<void> remove_padding_layers(caffe::NetParameter& net) {
  std::map<std::string, const V1*> producers;  // of each blob; null for the net's inputs
  for (const std::string& input : net.input()) {
    producers[input] = nullptr;
  }
  const caffe::NetParameter original = net;
  net.clear_layers();
  for (const V1& layer : original.layers()) {
    V1 kept = layer;
    for (const std::string& bottom : layer.bottom()) {
      const auto producer = producers.find(bottom);
      if (producer == producers.end()) {
        return Error{ErrorCode::kConfig, fmt::format("old layer '{}': unknown bottom blob '{}'",
                                                     layer.layer().name(), bottom)};
      }
      if (producer->second != nullptr && producer->second->layer().type() == "padding") {
        SPEEDO_TRY(absorb_padding(*producer->second, kept));
      }
    }
    for (const std::string& top : layer.top()) {
      producers[top] = &layer;
    }
    if (layer.layer().type() != "padding") {
      *net.add_layers() = std::move(kept);
    }
  }
  return {};
}

}  // namespace

bool has_v0_layers(const caffe::NetParameter& net) {
  return std::any_of(net.layers().begin(), net.layers().end(),
                     [](const V1& layer) { return layer.has_layer(); });
}

Result<void> upgrade_v0_to_v1(caffe::NetParameter& net) {
  SPEEDO_TRY(remove_padding_layers(net));
  for (V1& layer : *net.mutable_layers()) {
    SPEEDO_TRY(upgrade_layer(layer));
  }
  return {};
}

}  // namespace speedo
