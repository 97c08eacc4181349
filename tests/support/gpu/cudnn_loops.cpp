#include "support/gpu/cudnn_loops.hpp"

#include <functional>

#include "support/gpu/stored_elements.hpp"

namespace speedo::test {
namespace {

using Visit = std::function<void(std::int64_t src, std::int64_t weight, std::int64_t dst)>;

std::int64_t count_from(const std::vector<int>& dims, std::size_t first) {
  std::int64_t count = 1;
  for (std::size_t i = first; i < dims.size(); ++i) count *= dims[i];
  return count;
}

// Where the elements of axes 2 and on lie, in row-major order.
std::vector<int> position_in(const std::vector<int>& dims, std::int64_t index) {
  std::vector<int> position(dims.size() - 2);
  for (std::size_t i = dims.size(); i-- > 2;) {
    position[i - 2] = static_cast<int>(index % dims[i]);
    index /= dims[i];
  }
  return position;
}

std::int64_t place_of(const CudnnTensor& tensor, std::int64_t n, std::int64_t c,
                      const std::vector<int>& position) {
  std::int64_t place = n * tensor.strides[0] + c * tensor.strides[1];
  for (std::size_t i = 0; i < position.size(); ++i) {
    place += std::int64_t{position[i]} * tensor.strides[i + 2];
  }
  return place;
}

// Where a window's element lies; false: in the padding.
bool look_into(const CudnnProblem& all, const std::vector<int>& dst, const std::vector<int>& tap,
               std::vector<int>& src) {
  for (std::size_t i = 0; i < dst.size(); ++i) {
    src[i] = dst[i] * all.windows.stride[i] - all.windows.pad[i] + tap[i] * all.windows.dilation[i];
    if (src[i] < 0 || src[i] >= all.src.dims[i + 2]) return false;
  }
  return true;
}

// Calls visit(place in src, in the weights, in dst) for every product of the definition.
void for_each_product(const CudnnProblem& all, const Visit& visit) {
  const std::int64_t taps = count_from(all.weights, 2);
  const int channels = all.weights[1];
  const int outputs = all.weights[0] / all.windows.groups;
  std::vector<int> src(all.src.dims.size() - 2);
  for (std::int64_t p = 0; p < count_from(all.dst.dims, 2); ++p) {
    const std::vector<int> dst = position_in(all.dst.dims, p);
    for (std::int64_t t = 0; t < taps; ++t) {
      if (!look_into(all, dst, position_in(all.weights, t), src)) continue;
      for (int n = 0; n < all.dst.dims[0]; ++n) {
        for (int o = 0; o < all.weights[0]; ++o) {
          const std::int64_t dst_place = place_of(all.dst, n, o, dst);
          for (int c = 0; c < channels; ++c) {
            visit(place_of(all.src, n, o / outputs * channels + c, src),
                  all.weights_last ? (o * taps + t) * channels + c
                                   : (std::int64_t{o} * channels + c) * taps + t,
                  dst_place);
          }
        }
      }
    }
  }
}

// What is between a tensor's elements stays as it is.
void store(const CudnnTensor& tensor, const std::vector<double>& sums, double scale, double kept,
           float* values) {
  for (std::int64_t p = 0; p < count_from(tensor.dims, 2); ++p) {
    const std::vector<int> position = position_in(tensor.dims, p);
    for (int n = 0; n < tensor.dims[0]; ++n) {
      for (int c = 0; c < tensor.dims[1]; ++c) {
        const std::int64_t at = place_of(tensor, n, c, position);
        const double before = kept == 0.0 ? 0.0 : kept * values[at];
        values[at] = static_cast<float>(scale * sums[static_cast<std::size_t>(at)] + before);
      }
    }
  }
}

}  // namespace

std::int64_t CudnnTensor::extent() const {
  std::int64_t last = 0;
  for (std::size_t i = 0; i < dims.size(); ++i) last += (std::int64_t{dims[i]} - 1) * strides[i];
  return last + 1;
}

std::int64_t CudnnProblem::weight_count() const { return count_from(weights, 0); }

void convolve(const CudnnProblem& all, const void* src, const void* weights, double scale,
              double kept, void* dst) {
  std::vector<double> sums(static_cast<std::size_t>(all.dst.extent()));
  const Rounding& rounding = all.windows.rounding;
  const std::vector<float> x = read_elements(src, all.src.extent(), all.type);
  const std::vector<float> factors = read_elements(weights, all.weight_count(), all.type);
  for_each_product(all, [&](std::int64_t s, std::int64_t w, std::int64_t d) {
    sums[static_cast<std::size_t>(d)] += double{rounding(x[static_cast<std::size_t>(s)])} *
                                         rounding(factors[static_cast<std::size_t>(w)]);
  });
  std::vector<float> y = read_elements(dst, all.dst.extent(), all.type);
  store(all.dst, sums, scale, kept, y.data());
  write_elements(y, dst, all.type);
}

void convolve_back(const CudnnProblem& all, const void* dst, const void* weights, double scale,
                   double kept, void* src) {
  std::vector<double> sums(static_cast<std::size_t>(all.src.extent()));
  const Rounding& rounding = all.windows.rounding;
  const std::vector<float> y = read_elements(dst, all.dst.extent(), all.type);
  const std::vector<float> factors = read_elements(weights, all.weight_count(), all.type);
  for_each_product(all, [&](std::int64_t s, std::int64_t w, std::int64_t d) {
    sums[static_cast<std::size_t>(s)] += double{rounding(y[static_cast<std::size_t>(d)])} *
                                         rounding(factors[static_cast<std::size_t>(w)]);
  });
  std::vector<float> x = read_elements(src, all.src.extent(), all.type);
  store(all.src, sums, scale, kept, x.data());
  write_elements(x, src, all.type);
}

void convolve_for_weights(const CudnnProblem& all, const void* src, const void* dst, double scale,
                          double kept, void* weights) {
  std::vector<double> sums(static_cast<std::size_t>(all.weight_count()));
  const Rounding& rounding = all.windows.rounding;
  const std::vector<float> x = read_elements(src, all.src.extent(), all.type);
  const std::vector<float> y = read_elements(dst, all.dst.extent(), all.type);
  for_each_product(all, [&](std::int64_t s, std::int64_t w, std::int64_t d) {
    sums[static_cast<std::size_t>(w)] += double{rounding(x[static_cast<std::size_t>(s)])} *
                                         rounding(y[static_cast<std::size_t>(d)]);
  });
  std::vector<float> factors = read_elements(weights, all.weight_count(), all.type);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const double before = kept == 0.0 ? 0.0 : kept * factors[i];
    factors[i] = static_cast<float>(scale * sums[i] + before);
  }
  write_elements(factors, weights, all.type);
}

}  // namespace speedo::test
