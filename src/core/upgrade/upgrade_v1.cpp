#include "core/upgrade/upgrade_v1.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/log.hpp"

namespace speedo {
namespace {

namespace protobuf = google::protobuf;
using V1 = caffe::V1LayerParameter;

// The current type string of each V1 type; NONE has none.
constexpr std::array kTypeNames = std::to_array<std::pair<V1::LayerType, const char*>>({
    {V1::ABSVAL, "AbsVal"},
    {V1::ACCURACY, "Accuracy"},
    {V1::ARGMAX, "ArgMax"},
    {V1::BNLL, "BNLL"},
    {V1::CONCAT, "Concat"},
    {V1::CONTRASTIVE_LOSS, "ContrastiveLoss"},
    {V1::CONVOLUTION, "Convolution"},
    {V1::DATA, "Data"},
    {V1::DECONVOLUTION, "Deconvolution"},
    {V1::DROPOUT, "Dropout"},
    {V1::DUMMY_DATA, "DummyData"},
    {V1::ELTWISE, "Eltwise"},
    {V1::EUCLIDEAN_LOSS, "EuclideanLoss"},
    {V1::EXP, "Exp"},
    {V1::FLATTEN, "Flatten"},
    {V1::HDF5_DATA, "HDF5Data"},
    {V1::HDF5_OUTPUT, "HDF5Output"},
    {V1::HINGE_LOSS, "HingeLoss"},
    {V1::IM2COL, "Im2col"},
    {V1::IMAGE_DATA, "ImageData"},
    {V1::INFOGAIN_LOSS, "InfogainLoss"},
    {V1::INNER_PRODUCT, "InnerProduct"},
    {V1::LRN, "LRN"},
    {V1::MEMORY_DATA, "MemoryData"},
    {V1::MULTINOMIAL_LOGISTIC_LOSS, "MultinomialLogisticLoss"},
    {V1::MVN, "MVN"},
    {V1::POOLING, "Pooling"},
    {V1::POWER, "Power"},
    {V1::RELU, "ReLU"},
    {V1::SIGMOID, "Sigmoid"},
    {V1::SIGMOID_CROSS_ENTROPY_LOSS, "SigmoidCrossEntropyLoss"},
    {V1::SILENCE, "Silence"},
    {V1::SLICE, "Slice"},
    {V1::SOFTMAX, "Softmax"},
    {V1::SOFTMAX_LOSS, "SoftmaxWithLoss"},
    {V1::SPLIT, "Split"},
    {V1::TANH, "TanH"},
    {V1::THRESHOLD, "Threshold"},
    {V1::WINDOW_DATA, "WindowData"},
});

const char* type_name(V1::LayerType type) {
  const auto* found = std::find_if(kTypeNames.begin(), kTypeNames.end(),
                                   [type](const auto& known) { return known.first == type; });
  return found == kTypeNames.end() ? "" : found->second;
}

caffe::ParamSpec& spec(caffe::LayerParameter& layer, int index) {
  while (layer.param_size() <= index) {
    layer.add_param();
  }
  return *layer.mutable_param(index);
}

// The lists of names, modes and multipliers, each as long as it was written, become one list.
void collect_param_specs(const V1& old, caffe::LayerParameter& layer) {
  for (int i = 0; i < old.param_size(); ++i) {
    spec(layer, i).set_name(old.param(i));
  }
  for (int i = 0; i < old.blob_share_mode_size(); ++i) {
    spec(layer, i).set_share_mode(old.blob_share_mode(i) == V1::PERMISSIVE
                                      ? caffe::ParamSpec::PERMISSIVE
                                      : caffe::ParamSpec::STRICT);
  }
  for (int i = 0; i < old.blobs_lr_size(); ++i) {
    spec(layer, i).set_lr_mult(old.blobs_lr(i));
  }
  for (int i = 0; i < old.weight_decay_size(); ++i) {
    spec(layer, i).set_decay_mult(old.weight_decay(i));
  }
}

// The options of layer types kept their names: every ..._param message that is set.
void copy_options(const V1& old, caffe::LayerParameter& layer) {
  std::vector<const protobuf::FieldDescriptor*> fields;
  old.GetReflection()->ListFields(old, &fields);
  for (const auto* field : fields) {
    const auto* target = caffe::LayerParameter::descriptor()->FindFieldByName(field->name());
    if (field->cpp_type() != protobuf::FieldDescriptor::CPPTYPE_MESSAGE || field->is_repeated() ||
        target == nullptr) {
      continue;
    }
    layer.GetReflection()
        ->MutableMessage(&layer, target)
        ->CopyFrom(old.GetReflection()->GetMessage(old, field));
  }
}

caffe::LayerParameter upgraded(V1& old) {
  caffe::LayerParameter layer;
  if (old.has_layer()) {
    SPEEDO_WARN("old layer '{}': options in the older form beside it are ignored", old.name());
  }
  if (old.has_name()) {
    layer.set_name(old.name());
  }
  if (old.has_type()) {
    layer.set_type(type_name(old.type()));
  }
  layer.mutable_bottom()->Swap(old.mutable_bottom());
  layer.mutable_top()->Swap(old.mutable_top());
  layer.mutable_include()->Swap(old.mutable_include());
  layer.mutable_exclude()->Swap(old.mutable_exclude());
  layer.mutable_blobs()->Swap(old.mutable_blobs());
  layer.mutable_loss_weight()->Swap(old.mutable_loss_weight());
  collect_param_specs(old, layer);
  copy_options(old, layer);
  return layer;
}

template <class Options>
void move_to(Options& options, caffe::TransformationParameter& transform) {
  if (options.has_scale()) {
    transform.set_scale(options.scale());
    options.clear_scale();
  }
  if (options.has_mean_file()) {
    transform.set_mean_file(options.mean_file());
    options.clear_mean_file();
  }
  if (options.has_crop_size()) {
    transform.set_crop_size(options.crop_size());
    options.clear_crop_size();
  }
  if (options.has_mirror()) {
    transform.set_mirror(options.mirror());
    options.clear_mirror();
  }
}

template <class Options>
bool has_any(const Options& options) {
  return options.has_scale() || options.has_mean_file() || options.has_crop_size() ||
         options.has_mirror();
}

bool has_transformation_fields(const V1& layer) {
  switch (layer.type()) {
    case V1::DATA:
      return has_any(layer.data_param());
    case V1::IMAGE_DATA:
      return has_any(layer.image_data_param());
    case V1::WINDOW_DATA:
      return has_any(layer.window_data_param());
    default:
      return false;
  }
}

}  // namespace

void move_transformation_fields(caffe::NetParameter& net) {
  for (V1& layer : *net.mutable_layers()) {
    if (!has_transformation_fields(layer)) {
      continue;
    }
    auto& transform = *layer.mutable_transform_param();
    if (layer.type() == V1::DATA) {
      move_to(*layer.mutable_data_param(), transform);
    } else if (layer.type() == V1::IMAGE_DATA) {
      move_to(*layer.mutable_image_data_param(), transform);
    } else {
      move_to(*layer.mutable_window_data_param(), transform);
    }
  }
}

Result<void> upgrade_v1_to_current(caffe::NetParameter& net) {
  if (net.layer_size() > 0) {
    return Error{ErrorCode::kConfig,
                 "the net has both 'layer' and the old 'layers'; write all of them as "
                 "layer { type: \"Name\" ... }"};
  }
  for (V1& old : *net.mutable_layers()) {
    *net.add_layer() = upgraded(old);
  }
  net.clear_layers();
  return {};
}

}  // namespace speedo
