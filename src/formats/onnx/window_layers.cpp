// Convolution, Deconvolution, Im2col and Pooling.

#include <algorithm>
#include <cfloat>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/layers/window_options.hpp"
#include "formats/onnx/layer_writer.hpp"

namespace speedo::onnx_export {

namespace {

using caffe::PoolingParameter;

// Padding in ONNX' order: all beginnings, then all ends.
Ints both_sides(const Ints& pad) {
  Ints pads = pad;
  pads.insert(pads.end(), pad.begin(), pad.end());
  return pads;
}

// A bottom as ONNX' windows need it, batch x channels x spatial axes, at least one.
Ints folded(const Shape& shape, int axis) {
  Ints dims{shape.count(0, axis)};
  dims.insert(dims.end(), shape.dims().begin() + axis, shape.dims().end());
  if (dims.size() == 2) dims.push_back(1);
  return dims;
}

// What the nodes of all bottoms have in common.
struct Windows {
  const char* op;
  Names weights;
  Attributes attributes;
  int axis;
};

Result<void> write_windows(LayerWriter& layer, const Windows& windows) {
  for (int i = 0; i < layer.bottom_count(); ++i) {
    const Shape& shape = layer.bottom_shape(i);
    const Ints dims = folded(shape, windows.axis);
    const bool folds = dims != shape.dims();
    Names inputs{folds ? layer.reshape(layer.bottom(i), dims) : layer.bottom(i)};
    inputs.insert(inputs.end(), windows.weights.begin(), windows.weights.end());
    const std::string value = layer.add(windows.op, inputs, windows.attributes);
    layer.set_top(i, folds ? layer.reshape(value, layer.top_shape(i).dims()) : value);
  }
  return {};
}

Attributes attributes_of(WindowGeometry geometry, std::int64_t groups) {
  if (geometry.kernel.empty()) geometry = {{1}, {1}, {0}, {1}};
  return {{"kernel_shape", geometry.kernel},
          {"strides", geometry.stride},
          {"pads", both_sides(geometry.pad)},
          {"dilations", geometry.dilation},
          {"group", groups}};
}

Result<void> write_convolution(LayerWriter& layer) {
  const caffe::ConvolutionParameter& options = layer.message().convolution_param();
  SPEEDO_ASSIGN(const int axis, layer.bottom_shape(0).canonical_axis(options.axis()));
  const int spatial = layer.bottom_shape(0).axes() - axis - 1;
  SPEEDO_ASSIGN(WindowGeometry geometry, read_window_options(options, spatial));
  Ints dims = layer.weight_shape(0).dims();
  if (spatial == 0) dims.push_back(1);
  Names weights{layer.weight(0, dims)};
  if (options.bias_term()) weights.push_back(layer.weight(1));
  const bool is_transposed = layer.message().type() == "Deconvolution";
  return write_windows(layer, {is_transposed ? "ConvTranspose" : "Conv", std::move(weights),
                               attributes_of(std::move(geometry), options.group()), axis});
}

// Each channel is convolved with kernels that have a single one, at each of their places.
Result<void> write_im2col(LayerWriter& layer) {
  constexpr std::int64_t kValuesMax = std::int64_t{1} << 26U;
  const caffe::ConvolutionParameter& options = layer.message().convolution_param();
  const Shape& bottom = layer.bottom_shape(0);
  SPEEDO_ASSIGN(const int axis, bottom.canonical_axis(options.axis()));
  SPEEDO_ASSIGN(WindowGeometry geometry, read_window_options(options, bottom.axes() - axis - 1));
  std::int64_t places = 1;
  for (const std::int64_t size : geometry.kernel) places *= size;
  const std::int64_t channels = bottom[axis];
  if (channels * places > kValuesMax / places) {
    return layer.unsupported("its windows are too large for a convolution of single ones");
  }
  std::vector<float> values(static_cast<std::size_t>(channels * places * places), 0.0F);
  for (std::int64_t i = 0; i < channels * places; ++i) {
    values[static_cast<std::size_t>(i * places + i % places)] = 1.0F;
  }
  Ints dims{channels * places, 1};
  dims.insert(dims.end(), geometry.kernel.begin(), geometry.kernel.end());
  return write_windows(layer, {"Conv",
                               {layer.array("places", dims, values)},
                               attributes_of(std::move(geometry), channels),
                               axis});
}

// Pooling's windows along one axis, as Caffe lays them: the last may reach beyond the padding,
// where it is cut off.
struct PoolingAxis {
  std::int64_t size, kernel, stride, pad, windows;

  // So much padding behind the image lets all windows fit, and no more of them.
  std::int64_t end_pad() const {
    return std::max<std::int64_t>(0, (windows - 1) * stride + kernel - size - pad);
  }
  bool is_cut() const { return end_pad() > pad; }
  // Elements of a window that an average counts: padding too, up to the cut.
  std::int64_t counted(std::int64_t window) const {
    const std::int64_t begin = window * stride - pad;
    return std::min(begin + kernel, size + pad) - begin;
  }
};

struct PoolingWindows {
  PoolingAxis h, w;

  Attributes attributes() const {
    return {{"kernel_shape", Ints{h.kernel, w.kernel}},
            {"strides", Ints{h.stride, w.stride}},
            {"pads", Ints{h.pad, w.pad, h.end_pad(), w.end_pad()}}};
  }
  Attributes averaging() const {
    Attributes all = attributes();
    all.push_back({"count_include_pad", std::int64_t{1}});
    return all;
  }
};

PoolingWindows windows_of(const LayerWriter& layer, const WindowGeometry& geometry) {
  const Shape& bottom = layer.bottom_shape(0);
  const Shape& top = layer.top_shape(0);
  const bool is_global = layer.message().pooling_param().global_pooling();
  const auto axis = [&](int number) {
    const auto i = static_cast<std::size_t>(number);
    const std::int64_t size = bottom[number + 2];
    return PoolingAxis{size, is_global ? size : geometry.kernel[i], geometry.stride[i],
                       geometry.pad[i], top[number + 2]};
  };
  return {axis(0), axis(1)};
}

// ONNX divides by the whole kernel. Where Caffe divides by less, that is made good.
std::string average(LayerWriter& layer, const PoolingWindows& windows) {
  const std::string means = layer.add("AveragePool", {layer.bottom(0)}, windows.averaging());
  if (!windows.h.is_cut() && !windows.w.is_cut()) return means;
  std::vector<float> factors;
  for (std::int64_t i = 0; i < windows.h.windows; ++i) {
    for (std::int64_t j = 0; j < windows.w.windows; ++j) {
      const std::int64_t counted = windows.h.counted(i) * windows.w.counted(j);
      factors.push_back(static_cast<float>(windows.h.kernel * windows.w.kernel) /
                        static_cast<float>(counted));
    }
  }
  const Ints dims{1, 1, windows.h.windows, windows.w.windows};
  return layer.add("Mul", {means, layer.array("cut windows", dims, factors)});
}

// In tests each window is the mean of its values, weighted by themselves.
std::string weigh(LayerWriter& layer, const PoolingWindows& windows) {
  const std::string& x = layer.bottom(0);
  const std::string sums = layer.add("AveragePool", {x}, windows.averaging());
  const std::string squares =
      layer.add("AveragePool", {layer.add("Mul", {x, x})}, windows.averaging());
  return layer.add("Div", {squares, layer.plus(sums, FLT_MIN)});
}

// The second top: where in its plane each largest value lies, as a float.
void write_maximum(LayerWriter& layer, const PoolingWindows& windows) {
  if (layer.top_count() == 1) {
    layer.set_top(0, layer.add("MaxPool", {layer.bottom(0)}, windows.attributes()));
    return;
  }
  const Names values =
      layer.graph().add_several({"MaxPool", {layer.bottom(0)}, windows.attributes()}, 2);
  const std::int64_t plane = windows.h.size * windows.w.size;
  const std::string places = layer.add("Mod", {values[1], layer.constants({plane})});
  layer.set_top(0, values[0]);
  layer.set_top(1, layer.add("Cast", {places}, {{"to", std::int64_t{::onnx::TensorProto::FLOAT}}}));
}

Result<void> write_pooling(LayerWriter& layer) {
  const PoolingParameter& options = layer.message().pooling_param();
  SPEEDO_ASSIGN(const WindowGeometry geometry, read_window_options(options));
  const PoolingWindows windows = windows_of(layer, geometry);
  switch (options.pool()) {
    case PoolingParameter::MAX:
      write_maximum(layer, windows);
      break;
    case PoolingParameter::AVE:
      layer.set_top(0, average(layer, windows));
      break;
    case PoolingParameter::STOCHASTIC:
      layer.set_top(0, weigh(layer, windows));
      break;
  }
  return {};
}

}  // namespace

const LayerTable& window_layers() {
  static const LayerTable all = {{"Convolution", write_convolution},
                                 {"Deconvolution", write_convolution},
                                 {"Im2col", write_im2col},
                                 {"Pooling", write_pooling}};
  return all;
}

}  // namespace speedo::onnx_export
