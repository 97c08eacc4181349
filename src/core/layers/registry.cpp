#include "core/layers/registry.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <speedo/base/assert.hpp>

#include "caffe.pb.h"
#include "core/layers/abs_val.hpp"
#include "core/layers/accuracy.hpp"
#include "core/layers/arg_max.hpp"
#include "core/layers/batch_norm.hpp"
#include "core/layers/batch_reindex.hpp"
#include "core/layers/bias.hpp"
#include "core/layers/bnll.hpp"
#include "core/layers/clip.hpp"
#include "core/layers/concat.hpp"
#include "core/layers/contrastive_loss.hpp"
#include "core/layers/convolution.hpp"
#include "core/layers/crop.hpp"
#include "core/layers/dropout.hpp"
#include "core/layers/dummy_data.hpp"
#include "core/layers/eltwise.hpp"
#include "core/layers/elu.hpp"
#include "core/layers/embed.hpp"
#include "core/layers/euclidean_loss.hpp"
#include "core/layers/exp.hpp"
#include "core/layers/feed.hpp"
#include "core/layers/filter.hpp"
#include "core/layers/flatten.hpp"
#include "core/layers/hinge_loss.hpp"
#include "core/layers/im2col.hpp"
#include "core/layers/infogain_loss.hpp"
#include "core/layers/inner_product.hpp"
#include "core/layers/input.hpp"
#include "core/layers/log.hpp"
#include "core/layers/lrn.hpp"
#include "core/layers/lstm.hpp"
#include "core/layers/lstm_unit.hpp"
#include "core/layers/memory_data.hpp"
#include "core/layers/multinomial_loss.hpp"
#include "core/layers/mvn.hpp"
#include "core/layers/parameter.hpp"
#include "core/layers/pooling.hpp"
#include "core/layers/power.hpp"
#include "core/layers/prelu.hpp"
#include "core/layers/reduction.hpp"
#include "core/layers/relu.hpp"
#include "core/layers/reshape.hpp"
#include "core/layers/rnn.hpp"
#include "core/layers/scale.hpp"
#include "core/layers/sigmoid.hpp"
#include "core/layers/sigmoid_loss.hpp"
#include "core/layers/silence.hpp"
#include "core/layers/sink.hpp"
#include "core/layers/slice.hpp"
#include "core/layers/softmax.hpp"
#include "core/layers/softmax_loss.hpp"
#include "core/layers/split.hpp"
#include "core/layers/spp.hpp"
#include "core/layers/swish.hpp"
#include "core/layers/tanh.hpp"
#include "core/layers/threshold.hpp"
#include "core/layers/tile.hpp"
#include "core/suggest.hpp"

namespace speedo {
namespace {

template <class T>
std::unique_ptr<Layer> make(const caffe::LayerParameter& parameter) {
  return std::make_unique<T>(parameter);
}

struct Entry {
  std::string_view type;
  std::unique_ptr<Layer> (*make)(const caffe::LayerParameter&);
};

constexpr auto kLayers = std::to_array<Entry>({
    {"AbsVal", make<AbsValLayer>},
    {"Accuracy", make<AccuracyLayer>},
    {"ArgMax", make<ArgMaxLayer>},
    {"BNLL", make<BnllLayer>},
    {"BatchNorm", make<BatchNormLayer>},
    {"BatchReindex", make<BatchReindexLayer>},
    {"Bias", make<BiasLayer>},
    {"Clip", make<ClipLayer>},
    {"Concat", make<ConcatLayer>},
    {"ContrastiveLoss", make<ContrastiveLossLayer>},
    {"Convolution", make<ConvolutionLayer>},
    {"Crop", make<CropLayer>},
    {"Data", make<FeedLayer>},
    {"Deconvolution", make<ConvolutionLayer>},
    {"Dropout", make<DropoutLayer>},
    {"DummyData", make<DummyDataLayer>},
    {"ELU", make<EluLayer>},
    {"Eltwise", make<EltwiseLayer>},
    {"Embed", make<EmbedLayer>},
    {"EuclideanLoss", make<EuclideanLossLayer>},
    {"Exp", make<ExpLayer>},
    {"Filter", make<FilterLayer>},
    {"Flatten", make<FlattenLayer>},
    {"HDF5Data", make<FeedLayer>},
    {"HDF5Output", make<SinkLayer>},
    {"HingeLoss", make<HingeLossLayer>},
    {"Im2col", make<Im2colLayer>},
    {"ImageData", make<FeedLayer>},
    {"InfogainLoss", make<InfogainLossLayer>},
    {"InnerProduct", make<InnerProductLayer>},
    {"Input", make<InputLayer>},
    {"LRN", make<LrnLayer>},
    {"LSTM", make<LstmLayer>},
    {"LSTMUnit", make<LstmUnitLayer>},
    {"Log", make<LogLayer>},
    {"MVN", make<MvnLayer>},
    {"MemoryData", make<MemoryDataLayer>},
    {"MultinomialLogisticLoss", make<MultinomialLossLayer>},
    {"PReLU", make<PreluLayer>},
    {"Parameter", make<ParameterLayer>},
    {"Pooling", make<PoolingLayer>},
    {"Power", make<PowerLayer>},
    {"ReLU", make<ReluLayer>},
    {"Reduction", make<ReductionLayer>},
    {"Reshape", make<ReshapeLayer>},
    {"RNN", make<RnnLayer>},
    {"Scale", make<ScaleLayer>},
    {"Sigmoid", make<SigmoidLayer>},
    {"SigmoidCrossEntropyLoss", make<SigmoidLossLayer>},
    {"Silence", make<SilenceLayer>},
    {"Slice", make<SliceLayer>},
    {"Softmax", make<SoftmaxLayer>},
    {"SoftmaxWithLoss", make<SoftmaxWithLossLayer>},
    {"Split", make<SplitLayer>},
    {"Swish", make<SwishLayer>},
    {"TanH", make<TanhLayer>},
    {"Threshold", make<ThresholdLayer>},
    {"Tile", make<TileLayer>},
    {"WindowData", make<FeedLayer>},
});

struct ExpandedEntry {
  std::string_view type;
  Result<void> (*expand)(const caffe::LayerParameter&, std::span<const Shape>,
                         caffe::NetParameter&);
};

// Types that become several of the above before they are built.
constexpr auto kExpanded = std::to_array<ExpandedEntry>({
    {"SPP", expand_spp},
});

}  // namespace

std::vector<std::string_view> layer_types() {
  std::vector<std::string_view> types;
  for (const Entry& entry : kLayers) types.push_back(entry.type);
  for (const ExpandedEntry& entry : kExpanded) types.push_back(entry.type);
  std::sort(types.begin(), types.end());
  return types;
}

const ExpandLayer* registered_expansion(std::string_view type) {
  static const std::map<std::string_view, ExpandLayer> kByType = [] {
    std::map<std::string_view, ExpandLayer> by_type;
    for (const ExpandedEntry& entry : kExpanded) by_type.emplace(entry.type, entry.expand);
    return by_type;
  }();
  const auto found = kByType.find(type);
  return found == kByType.end() ? nullptr : &found->second;
}

Result<void> check_layer_type(const caffe::LayerParameter& parameter) {
  const std::string& type = parameter.type();
  const auto known = layer_types();
  if (std::find(known.begin(), known.end(), type) != known.end()) return {};
  if (type == "Python") {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("layer '{}': layer type Python runs code of the module '{}', which "
                             "this program cannot; put layers of other types in its place",
                             parameter.name(), parameter.python_param().module())};
  }
  if (type.empty()) {
    return Error{ErrorCode::kConfig, fmt::format("layer '{}': it has no type", parameter.name())};
  }
  const std::vector<std::string> names(known.begin(), known.end());
  return Error{ErrorCode::kConfig,
               fmt::format("layer '{}': unknown layer type '{}'{}; known: {}", parameter.name(),
                           type, did_you_mean(type, names), fmt::join(names, ", "))};
}

Result<std::unique_ptr<Layer>> make_layer(const caffe::LayerParameter& parameter) {
  SPEEDO_TRY(check_layer_type(parameter));
  for (const Entry& entry : kLayers) {
    if (entry.type == parameter.type()) return entry.make(parameter);
  }
  SPEEDO_ASSERT(!"a layer that is expanded is made");
  return std::unique_ptr<Layer>();
}

}  // namespace speedo
