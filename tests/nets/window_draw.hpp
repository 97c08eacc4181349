#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include <speedo/base/random.hpp>

namespace speedo::nets {

using Sizes = std::vector<std::int64_t>;
std::int64_t count_of(const Sizes& dims);

// Draws of single values.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  std::int64_t between(std::int64_t low, std::int64_t high);  // both ends included
  std::size_t below(std::size_t bound) { return random_.below(bound); }
  bool chance(float share) { return random_.uniform() < share; }
  template <class T>
  T pick(std::initializer_list<T> choices) {
    return choices.begin()[random_.below(choices.size())];
  }
  std::int64_t channels();  // 1 to 40, small ones and multiples of a vector's length more often

 private:
  Random random_;
};

// A layer over windows: the parameters as text, and what it makes of its bottom.
struct Windows {
  std::string options;
  Sizes dims;  // of the top
};

// A convolution of any kind over `bottom` (N x C x ...): general, 1x1 with a stride, as large as
// its image, 3x3 as Winograd's method takes it, by channel. None if what was drawn does not fit,
// or takes more than `products_max` products.
std::optional<Windows> draw_convolution(Draw& draw, const Sizes& bottom, std::int64_t products_max);
// A transposed one, of each channel by itself or general.
std::optional<Windows> draw_deconvolution(Draw& draw, const Sizes& bottom,
                                          std::int64_t products_max);
// One with stride 1 whose top has the bottom's images' size.
std::optional<Windows> draw_same_size_convolution(Draw& draw, const Sizes& bottom,
                                                  std::int64_t products_max);
// Max or mean over `bottom` (N x C x H x W) by Caffe's rules of rounding and clipping.
std::optional<Windows> draw_pooling(Draw& draw, const Sizes& bottom);

}  // namespace speedo::nets
