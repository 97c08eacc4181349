#include "golden/random_layers.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "caffe.pb.h"
#include "golden/exact_blobs.hpp"
#include "golden/golden_case.hpp"

namespace speedo::golden {
namespace {

// Six standard deviations: a sound generator fails less than once in 10^8 checks.
constexpr double kSigmas = 6.0;

struct Moments {
  double mean = 0.0, deviation = 0.0, largest = 0.0, zeros = 0.0;
};

Moments moments_of(const std::vector<float>& values) {
  Moments m;
  const auto n = static_cast<double>(values.size());
  for (const double x : values) {
    m.mean += x / n;
    m.largest = std::max(m.largest, std::abs(x));
    m.zeros += x == 0.0 ? 1.0 / n : 0.0;
  }
  for (const double x : values) m.deviation += (x - m.mean) * (x - m.mean) / n;
  m.deviation = std::sqrt(m.deviation);
  return m;
}

void check_sample(const std::string& name, const std::vector<float>& got,
                  const std::vector<float>& reference, Comparison& comparison) {
  comparison.require(got.size() == reference.size(), name + " has another size");
  const Moments a = moments_of(got);
  const Moments b = moments_of(reference);
  const auto n = static_cast<double>(std::max<std::size_t>(got.size(), 1));
  const double spread = std::hypot(a.deviation, b.deviation);
  comparison.require(std::abs(a.mean - b.mean) <= kSigmas * spread / std::sqrt(n),
                     fmt::format("{} has the mean {:.3g}, not {:.3g}", name, a.mean, b.mean));
  comparison.require(
      std::abs(a.deviation - b.deviation) <= kSigmas * spread / std::sqrt(2.0 * n),
      fmt::format("{} has the deviation {:.3g}, not {:.3g}", name, a.deviation, b.deviation));
  comparison.require(a.largest <= 2.0 * b.largest,
                     fmt::format("{} reaches {:.3g}, not {:.3g}", name, a.largest, b.largest));
  const double share = (a.zeros + b.zeros) / 2.0;
  const double slack = kSigmas * std::sqrt(2.0 * share * (1.0 - share) / n);
  comparison.require(std::abs(a.zeros - b.zeros) <= slack,
                     fmt::format("{} has {:.3g} zeros, not {:.3g}", name, a.zeros, b.zeros));
}

// Bounds that the filler promises whatever was drawn.
void check_range(const std::string& name, const caffe::FillerParameter& filler, const Shape& shape,
                 const std::vector<float>& values, Comparison& comparison) {
  if (filler.type() == "uniform") {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    comparison.require(*low >= filler.min() && *high <= filler.max(), name + " leaves its range");
  }
  if (filler.type() == "positive_unitball" && shape.axes() > 0 && shape[0] > 0) {
    const auto row = static_cast<std::size_t>(shape.count() / shape[0]);
    for (std::size_t begin = 0; begin + row <= values.size(); begin += row) {
      double sum = 0.0;
      for (std::size_t i = begin; i < begin + row; ++i) sum += values[i];
      comparison.require(std::abs(sum - 1.0) < 1e-5, name + " has a row that does not sum to 1");
    }
  }
}

Result<void> check_dummy_data(const Net::LayerView& view, const caffe::LayerParameter& layer,
                              Backend& backend, const Hdf5Reader& io, Comparison& comparison) {
  const auto& fillers = layer.dummy_data_param().data_filler();
  for (std::size_t i = 0; i < view.tops.size(); ++i) {
    const std::string dataset = "fwd/" + view.top_names[i];
    const int index = fillers.size() > 1 ? static_cast<int>(i) : 0;
    const caffe::FillerParameter filler =
        fillers.empty() ? caffe::FillerParameter() : fillers.Get(index);
    const Tensor& top = *view.tops[i];
    const std::vector<float> got = top.values(backend);
    SPEEDO_ASSIGN(const std::vector<float> reference, io.read_floats(dataset));
    if (filler.type() == "constant" || filler.type() == "bilinear") {
      comparison.values(dataset, got, reference, kExact);
    } else {
      check_sample(dataset, got, reference, comparison);
      check_range(dataset, filler, top.shape(), got, comparison);
    }
  }
  return {};
}

// Every element is 0 or in / (1 - ratio), and its gradient is treated likewise.
void check_mask(const Net::LayerView& view, float ratio, Backend& backend,
                Comparison& comparison) {
  const Tensor& bottom = *view.bottoms[0];
  const Tensor& top = *view.tops[0];
  const std::vector<float> in = bottom.values(backend);
  const std::vector<float> out = top.values(backend);
  const float scale = 1.0F / (1.0F - ratio);
  std::vector<float> kept(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) kept[i] = out[i] == 0.0F ? 0.0F : in[i] * scale;
  comparison.values("out of '" + view.layer->name() + "'", out, kept);
  if (!view.needs_backward || !view.propagate[0]) return;
  const std::vector<float> out_grad = top.gradients(backend);
  const std::vector<float> in_grad = bottom.gradients(backend);
  std::vector<float> passed(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    const bool zeroed = out[i] == 0.0F && in[i] != 0.0F;
    passed[i] = zeroed ? 0.0F : out_grad[i] * scale;
  }
  comparison.values("gradient of '" + view.layer->name() + "'", in_grad, passed);
}

Result<void> check_dropout(const Net::LayerView& view, const caffe::LayerParameter& layer,
                           Backend& backend, const Hdf5Reader& io, Comparison& comparison) {
  const float ratio = layer.dropout_param().dropout_ratio();
  const Tensor& top = *view.tops[0];
  if (view.bottoms[0]->data() != top.data()) check_mask(view, ratio, backend, comparison);
  const std::string dataset = "fwd/" + view.top_names[0];
  if (!io.has(dataset)) return {};
  const std::vector<float> got = top.values(backend);
  SPEEDO_ASSIGN(const std::vector<float> reference, io.read_floats(dataset));
  // What both programs kept must agree; what one of them zeroed cannot.
  std::vector<float> common(got.size());
  std::vector<float> expected(got.size());
  for (std::size_t i = 0; i < got.size() && i < reference.size(); ++i) {
    const bool both = got[i] != 0.0F && reference[i] != 0.0F;
    common[i] = both ? got[i] : 0.0F;
    expected[i] = both ? reference[i] : 0.0F;
  }
  comparison.values(dataset, common, expected);
  const double zeros = moments_of(got).zeros - moments_of(reference).zeros;
  const auto n = static_cast<double>(std::max<std::size_t>(got.size(), 1));
  comparison.require(std::abs(zeros) <= kSigmas * std::sqrt(2.0 * ratio * (1.0 - ratio) / n),
                     dataset + " has another share of zeros");
  return {};
}

}  // namespace

Result<void> check_random_layers(const Net& net, const caffe::NetParameter& message,
                                 const Hdf5Reader& io, Comparison& comparison) {
  for (const Net::LayerView& view : net.layers()) {
    const caffe::LayerParameter* layer = find_layer(message, view.layer->name());
    if (layer == nullptr) continue;
    if (layer->type() == "DummyData") {
      SPEEDO_TRY(check_dummy_data(view, *layer, net.backend(), io, comparison));
    } else if (layer->type() == "Dropout" && net.phase() == Phase::kTrain) {
      SPEEDO_TRY(check_dropout(view, *layer, net.backend(), io, comparison));
    }
  }
  return {};
}

}  // namespace speedo::golden
