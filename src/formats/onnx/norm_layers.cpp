// BatchNorm, Bias, LRN, MVN, Scale and Softmax.

#include <cstdint>
#include <vector>

#include "formats/onnx/layer_writer.hpp"

namespace speedo::onnx_export {

namespace {

Attributes over_axes(const Ints& axes) { return {{"axes", axes}, {"keepdims", std::int64_t{1}}}; }

// y = x (k + alpha / size * sum of x^2 over the window)^-beta. Within a channel k is 1 and windows
// are squares, whose count of elements divides alpha.
Result<void> write_lrn(LayerWriter& layer) {
  const caffe::LRNParameter& options = layer.message().lrn_param();
  const std::string& x = layer.bottom(0);
  const auto size = static_cast<std::int64_t>(options.local_size());
  if (options.norm_region() == caffe::LRNParameter::ACROSS_CHANNELS) {
    layer.set_top(0, layer.add("LRN", {x},
                               {{"alpha", options.alpha()},
                                {"beta", options.beta()},
                                {"bias", options.k()},
                                {"size", size}}));
    return {};
  }
  const std::int64_t pad = (size - 1) / 2;
  const std::string means = layer.add("AveragePool", {layer.add("Mul", {x, x})},
                                      {{"kernel_shape", Ints{size, size}},
                                       {"pads", Ints{pad, pad, pad, pad}},
                                       {"count_include_pad", std::int64_t{1}}});
  const std::string scale = layer.plus(layer.times(means, options.alpha()), 1.0F);
  const std::string power = layer.add("Pow", {scale, layer.constant(options.beta())});
  layer.set_top(0, layer.add("Div", {x, power}));
  return {};
}

// By the statistics of the batch itself.
void normalize_batch(LayerWriter& layer, float epsilon) {
  Ints axes{0};
  for (int i = 2; i < layer.bottom_shape(0).axes(); ++i) axes.push_back(i);
  const std::string mean = layer.add("ReduceMean", {layer.bottom(0)}, over_axes(axes));
  const std::string rest = layer.add("Sub", {layer.bottom(0), mean});
  const std::string variance =
      layer.add("ReduceMean", {layer.add("Mul", {rest, rest})}, over_axes(axes));
  const std::string deviation = layer.add("Sqrt", {layer.plus(variance, epsilon)});
  layer.set_top(0, layer.add("Div", {rest, deviation}));
}

// Weight files have sums, and a third parameter by which they are divided, if it is not 0.
Result<void> write_batch_norm(LayerWriter& layer) {
  const caffe::BatchNormParameter& options = layer.message().batch_norm_param();
  if (options.has_use_global_stats() && !options.use_global_stats()) {
    normalize_batch(layer, options.eps());
    return {};
  }
  const float weight = layer.weight_values(2).front();
  const float factor = weight == 0.0F ? 0.0F : 1.0F / weight;
  std::vector<float> mean = layer.weight_values(0), variance = layer.weight_values(1);
  for (float& value : mean) value *= factor;
  for (float& value : variance) value *= factor;
  const Ints channels{static_cast<std::int64_t>(mean.size())};
  const std::vector<float> ones(mean.size(), 1.0F), zeros(mean.size(), 0.0F);
  const Shape& shape = layer.bottom_shape(0);
  const bool folds = shape.axes() < 2;
  const std::string x =
      folds ? layer.reshape(layer.bottom(0), {shape.count(), 1}) : layer.bottom(0);
  const std::string y =
      layer.add("BatchNormalization",
                {x, layer.array("ones", channels, ones), layer.array("zeros", channels, zeros),
                 layer.array("mean", channels, mean), layer.array("variance", channels, variance)},
                {{"epsilon", options.eps()}});
  layer.set_top(0, folds ? layer.reshape(y, shape.dims()) : y);
  return {};
}

// Rows minus their means, divided by their deviation plus eps.
Result<void> write_mvn(LayerWriter& layer) {
  const caffe::MVNParameter& options = layer.message().mvn_param();
  const Ints& dims = layer.top_shape(0).dims();
  const std::string x =
      dims == layer.bottom_shape(0).dims() ? layer.bottom(0) : layer.reshape(layer.bottom(0), dims);
  const Ints axes = options.across_channels() ? Ints{1, 2, 3} : Ints{2, 3};
  std::string y = layer.add("Sub", {x, layer.add("ReduceMean", {x}, over_axes(axes))});
  if (options.normalize_variance()) {
    const std::string variance =
        layer.add("ReduceMean", {layer.add("Mul", {y, y})}, over_axes(axes));
    y = layer.add("Div", {y, layer.plus(layer.add("Sqrt", {variance}), options.eps())});
  }
  layer.set_top(0, y);
  return {};
}

// A factor's or term's dims with ones behind them, so that they lie on the bottom's axes from
// `axis` on.
Result<Ints> aligned(const Shape& bottom, int axis, const Shape& factor) {
  Ints dims = factor.dims();
  if (dims.empty()) return Ints{1};
  SPEEDO_ASSIGN(const int begin, bottom.canonical_axis(axis));
  dims.resize(static_cast<std::size_t>(bottom.axes() - begin), 1);
  return dims;
}

// What lies on the first bottom: a parameter, or the second bottom.
Result<std::string> factor_of(LayerWriter& layer, int axis, int weight) {
  const bool is_learned = weight >= 0;
  const Shape& shape = is_learned ? layer.weight_shape(weight) : layer.bottom_shape(1);
  SPEEDO_ASSIGN(const Ints dims, aligned(layer.bottom_shape(0), axis, shape));
  if (is_learned) return layer.weight(weight, dims);
  return dims == shape.dims() ? layer.bottom(1) : layer.reshape(layer.bottom(1), dims);
}

Result<void> write_scale(LayerWriter& layer) {
  const caffe::ScaleParameter& options = layer.message().scale_param();
  const bool is_learned = layer.bottom_count() == 1;
  SPEEDO_ASSIGN(const std::string factor, factor_of(layer, options.axis(), is_learned ? 0 : -1));
  std::string y = layer.add("Mul", {layer.bottom(0), factor});
  if (options.bias_term()) {
    SPEEDO_ASSIGN(const std::string bias, factor_of(layer, options.axis(), is_learned ? 1 : 0));
    y = layer.add("Add", {y, bias});
  }
  layer.set_top(0, y);
  return {};
}

Result<void> write_bias(LayerWriter& layer) {
  const bool is_learned = layer.bottom_count() == 1;
  SPEEDO_ASSIGN(const std::string bias,
                factor_of(layer, layer.message().bias_param().axis(), is_learned ? 0 : -1));
  layer.set_top(0, layer.add("Add", {layer.bottom(0), bias}));
  return {};
}

Result<void> write_softmax(LayerWriter& layer) {
  SPEEDO_ASSIGN(const int axis,
                layer.bottom_shape(0).canonical_axis(layer.message().softmax_param().axis()));
  layer.set_top(0, layer.add("Softmax", {layer.bottom(0)}, {{"axis", std::int64_t{axis}}}));
  return {};
}

}  // namespace

const LayerTable& norm_layers() {
  static const LayerTable all = {{"BatchNorm", write_batch_norm},
                                 {"Bias", write_bias},
                                 {"LRN", write_lrn},
                                 {"MVN", write_mvn},
                                 {"Scale", write_scale},
                                 {"Softmax", write_softmax}};
  return all;
}

}  // namespace speedo::onnx_export
