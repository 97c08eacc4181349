#include "core/fillers.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <speedo/base/assert.hpp>

#include "caffe.pb.h"

namespace speedo {
namespace {

using Filler = caffe::FillerParameter;

Error bad_filler(const Filler& filler, const std::string& what) {
  return {ErrorCode::kConfig, fmt::format("filler '{}': {}", filler.type(), what)};
}

void fill_uniform(float low, float high, Random& random, std::span<float> values) {
  for (float& value : values) {
    value = random.uniform(low, high);
  }
}

void fill_gaussian(float mean, float deviation, Random& random, std::span<float> values) {
  for (float& value : values) {
    value = random.gaussian(mean, deviation);
  }
}

// Fan-in counts the inputs of one output, fan-out the outputs of one input, each times the kernel.
float fan(const Filler& filler, const Shape& shape) {
  const auto count = static_cast<float>(shape.count());
  const float in = shape.axes() > 0 ? count / static_cast<float>(shape[0]) : count;
  const float out = shape.axes() > 1 ? count / static_cast<float>(shape[1]) : count;
  switch (filler.variance_norm()) {
    case Filler::FAN_OUT:
      return out;
    case Filler::AVERAGE:
      return (in + out) / 2.0F;
    default:
      return in;
  }
}

// Each weight survives with the probability that leaves `sparse` of them per output.
void thin_out(const Filler& filler, const Shape& shape, Random& random, std::span<float> values) {
  const float outputs = shape.axes() > 0 ? static_cast<float>(shape[0]) : 1.0F;
  const float survival = static_cast<float>(filler.sparse()) / outputs;
  for (float& value : values) {
    if (random.uniform() >= survival) {
      value = 0.0F;
    }
  }
}

// The weights of each output are positive and sum to one.
void fill_unit_ball(const Shape& shape, Random& random, std::span<float> values) {
  fill_uniform(0.0F, 1.0F, random, values);
  const auto outputs = static_cast<std::size_t>(shape.axes() > 0 ? shape[0] : 1);
  const std::size_t inputs = values.size() / outputs;
  for (std::size_t output = 0; output < outputs; ++output) {
    const auto row = values.subspan(output * inputs, inputs);
    const float sum = std::accumulate(row.begin(), row.end(), 0.0F);
    for (float& value : row) {
      // All draws of a short row can be zero.
      value = sum > 0.0F ? value / sum : 1.0F / static_cast<float>(inputs);
    }
  }
}

// The kernel of bilinear interpolation, for upsampling by deconvolution.
void fill_bilinear(const Shape& shape, std::span<float> values) {
  const auto width = static_cast<std::size_t>(shape[3]);
  const float factor = std::ceil(static_cast<float>(width) / 2.0F);
  const float centre = (static_cast<float>(width) - 1.0F) / (2.0F * factor);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto x = static_cast<float>(i % width);
    const auto y = static_cast<float>((i / width) % width);
    values[i] = (1.0F - std::fabs(x / factor - centre)) * (1.0F - std::fabs(y / factor - centre));
  }
}

constexpr std::array kFillerTypes{"constant", "uniform",           "gaussian", "xavier",
                                  "msra",     "positive_unitball", "bilinear"};

}  // namespace

Result<void> check_filler(const Filler& filler, const Shape& shape) {
  if (std::find(kFillerTypes.begin(), kFillerTypes.end(), filler.type()) == kFillerTypes.end()) {
    return Error{ErrorCode::kConfig, fmt::format("unknown filler '{}'; known: {}", filler.type(),
                                                 fmt::join(kFillerTypes, ", "))};
  }
  if (filler.type() == "gaussian") {
    if (filler.sparse() < -1) {
      return bad_filler(filler,
                        fmt::format("sparse is {}; give a count, or -1 for none", filler.sparse()));
    }
    if (!(filler.std() >= 0.0F)) {
      return bad_filler(filler, fmt::format("std is {}; it cannot be negative", filler.std()));
    }
  } else if (filler.sparse() != -1) {
    return bad_filler(filler, "sparse is only for gaussian");
  }
  if (filler.type() == "uniform" && !(filler.min() <= filler.max())) {
    return bad_filler(filler, fmt::format("min {} is above max {}", filler.min(), filler.max()));
  }
  if (filler.type() == "bilinear" && (shape.axes() != 4 || shape[2] != shape[3])) {
    return bad_filler(filler,
                      fmt::format("needs square kernels, not the shape {}", to_string(shape)));
  }
  return {};
}

Result<void> fill(const Filler& filler, const Shape& shape, Random& random,
                  std::span<float> values) {
  SPEEDO_ASSERT(static_cast<std::int64_t>(values.size()) == shape.count());
  SPEEDO_TRY(check_filler(filler, shape));
  const std::string& type = filler.type();
  if (type == "constant") {
    std::fill(values.begin(), values.end(), filler.value());
  } else if (type == "uniform") {
    fill_uniform(filler.min(), filler.max(), random, values);
  } else if (type == "gaussian") {
    fill_gaussian(filler.mean(), filler.std(), random, values);
    if (filler.sparse() >= 0) {
      thin_out(filler, shape, random, values);
    }
  } else if (type == "xavier") {
    const float bound = std::sqrt(3.0F / fan(filler, shape));
    fill_uniform(-bound, bound, random, values);
  } else if (type == "msra") {
    fill_gaussian(0.0F, std::sqrt(2.0F / fan(filler, shape)), random, values);
  } else if (type == "positive_unitball") {
    if (!values.empty()) {
      fill_unit_ball(shape, random, values);
    }
  } else {
    fill_bilinear(shape, values);
  }
  return {};
}

}  // namespace speedo
