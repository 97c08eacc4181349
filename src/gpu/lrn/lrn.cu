// With s = k + w (sum of the squares of an element's neighbours, itself among them), where w is
// alpha / size or alpha / size^2:
//
//   dst = src s^-beta
//   src_grad = dst_grad s^-beta - 2 beta w src (sum over the neighbours of dst_grad src
//   s^(-beta-1))
//
// since an element is a neighbour of its neighbours. The backward pass makes the terms of that sum
// first, for all elements; or, where an array is channels last and windows are small, each thread
// makes those that it needs.

#include "gpu/lrn/lrn.hpp"

#include <cmath>

#include "gpu/launch/launch.hpp"
#include "gpu/support/divisor.hpp"
#include "gpu/support/elements.hpp"

namespace speedo::gpu {
namespace {

struct LrnPlace {
  std::int64_t i;  // of the element in the array; -1: there is none
  std::int64_t sample, channel, position;
  std::int64_t origin;  // the element of the channel's position 0
};

// The elements of an array, in an order in which neighbouring threads need the same neighbours: as
// they lie; of a plain array and channels, a few positions of one channel after the other.
class LrnElements {
 public:
  LrnElements(const ArrayShape& shape, Layout layout, bool by_channel)
      : channels_(shape.channels),
        spatial_(shape.spatial),
        area_(shape.spatial * layout.block),
        block_(layout.block),
        blocks_(layout.channels(shape.channels) / layout.block),
        tiles_((shape.spatial + kTile - 1) / kTile),
        is_tiled_(by_channel && layout.is_plain() && shape.spatial >= kTile),
        steps_(is_tiled_ ? shape.batch * shape.channels * tiles_.value() * kTile
                         : shape.storage_count(layout)) {}

  SPEEDO_HOST_DEVICE std::int64_t channels() const { return channels_; }
  SPEEDO_HOST_DEVICE std::int64_t block() const { return block_.value(); }
  std::int64_t steps() const { return steps_; }

  // Calls body(place) for the lane's elements, and makes the padding of `target` zero.
  template <class Body>
  SPEEDO_HOST_DEVICE void for_each(const Lane& lane, ArrayTo target, const Body& body) const {
    for (std::int64_t step = lane.first(); step < steps_; step += lane.stride()) {
      const LrnPlace place = is_tiled_ ? tiled(step) : as_it_lies(step);
      if (place.i < 0) continue;
      if (place.channel < channels_) {
        body(place);
      } else {
        target.put(place.i, 0.0F);
      }
    }
  }

  // The sum of term(i) over channels [first, last) at a place.
  template <class Term>
  SPEEDO_HOST_DEVICE float sum_channels(const LrnPlace& place, std::int64_t first,
                                        std::int64_t last, const Term& term) const {
    const std::int64_t k = block_.quotient(first), b = block_.value();
    std::int64_t room = b - (first - k * b);  // channels to the end of the block
    std::int64_t i =
        ((place.sample * blocks_.value() + k) * spatial_ + place.position) * b + b - room;
    float sum = 0.0F;
    for (std::int64_t c = first; c < last; ++c) {
      sum += term(i);
      const bool wraps = --room == 0;
      i += wraps ? (spatial_ - 1) * b + 1 : 1;
      if (wraps) room = b;
    }
    return sum;
  }

 private:
  static constexpr std::int64_t kTile = 32;

  SPEEDO_HOST_DEVICE LrnPlace as_it_lies(std::int64_t i) const {
    const std::int64_t n = area_.quotient(i), within = i - n * area_.value();
    const std::int64_t position = block_.quotient(within), b = block_.value();
    const std::int64_t sample = blocks_.quotient(n), c = within - position * b;
    return {i, sample, (n - sample * blocks_.value()) * b + c, position, n * area_.value() + c};
  }
  SPEEDO_HOST_DEVICE LrnPlace tiled(std::int64_t step) const {
    const std::int64_t line = step / kTile, tile = blocks_.quotient(line);
    const std::int64_t sample = tiles_.quotient(tile), c = line - tile * channels_;
    const std::int64_t position = (tile - sample * tiles_.value()) * kTile + step % kTile;
    const std::int64_t origin = (sample * channels_ + c) * spatial_;
    return {position < spatial_ ? origin + position : -1, sample, c, position, origin};
  }

  std::int64_t channels_, spatial_;
  Divisor area_, block_, blocks_;  // blocks: of a plain array the channels
  Divisor tiles_;
  bool is_tiled_;
  std::int64_t steps_;
};

// s^-beta.
SPEEDO_HOST_DEVICE inline float power_below(float scale, float beta) {
  if (beta == 0.75F) {
    const float root = std::sqrt(scale);
    return 1.0F / (root * std::sqrt(root));
  }
  if (beta == 0.5F) return 1.0F / std::sqrt(scale);
  return beta == 1.0F ? 1.0F / scale : std::pow(scale, -beta);
}

struct LrnTerms {
  LrnElements elements;
  bool is_within;
  std::int64_t reach;  // half the size
  std::int64_t h;
  Divisor w;
  float k, weight, beta;

  // The sum of term(i) over the neighbours of a place.
  template <class Term>
  SPEEDO_HOST_DEVICE float sum(const LrnPlace& place, const Term& term) const {
    return is_within ? sum_within(place, term) : sum_across(place, term);
  }
  template <ElementType kType>
  SPEEDO_HOST_DEVICE float scale(const LrnPlace& place, ArrayFrom src) const {
    return k + weight * sum(place, [&](std::int64_t i) {
             const float x = src.get<kType>(i);
             return x * x;
           });
  }

 private:
  template <class Term>
  SPEEDO_HOST_DEVICE float sum_across(const LrnPlace& place, const Term& term) const {
    const std::int64_t c = place.channel, end = c + reach + 1;
    return elements.sum_channels(place, c > reach ? c - reach : 0,
                                 end < elements.channels() ? end : elements.channels(), term);
  }
  template <class Term>
  SPEEDO_HOST_DEVICE float sum_within(const LrnPlace& place, const Term& term) const {
    const std::int64_t y = w.quotient(place.position), x = place.position - y * w.value();
    const std::int64_t last_y = y + reach < h ? y + reach : h - 1;
    const std::int64_t last_x = x + reach < w.value() ? x + reach : w.value() - 1;
    float sum = 0.0F;
    for (std::int64_t j = y > reach ? y - reach : 0; j <= last_y; ++j) {
      const std::int64_t row = place.origin + j * w.value() * elements.block();
      for (std::int64_t i = x > reach ? x - reach : 0; i <= last_x; ++i) {
        sum += term(row + i * elements.block());
      }
    }
    return sum;
  }
};

struct LrnForwardKernel {
  static constexpr const char* kName = "lrn_forward";
  LrnTerms terms;
  ArrayFrom src;
  ArrayTo dst;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    with_type(src.type, [&](auto is) { make<decltype(is)::value>(lane); });
  }

 private:
  template <ElementType kType>
  SPEEDO_HOST_DEVICE void make(const Lane& lane) const {
    terms.elements.for_each(lane, dst, [&](const LrnPlace& place) {
      const float scale = terms.scale<kType>(place, src);
      dst.put<kType>(place.i, src.get<kType>(place.i) * power_below(scale, terms.beta));
    });
  }
};

struct LrnRatioKernel {
  static constexpr const char* kName = "lrn_ratios";
  LrnTerms terms;
  ArrayFrom src, dst_grad;
  float* ratios;     // dst_grad src s^(-beta-1)
  ArrayTo src_grad;  // dst_grad s^-beta

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    with_type(src.type, [&](auto is) { make<decltype(is)::value>(lane); });
  }

 private:
  template <ElementType kType>
  SPEEDO_HOST_DEVICE void make(const Lane& lane) const {
    terms.elements.for_each(lane, src_grad, [&](const LrnPlace& place) {
      const float scale = terms.scale<kType>(place, src);
      const float grad = dst_grad.get<kType>(place.i) * power_below(scale, terms.beta);
      src_grad.put<kType>(place.i, grad);
      ratios[place.i] = grad * src.get<kType>(place.i) / scale;
    });
  }
};

struct LrnBackwardKernel {
  static constexpr const char* kName = "lrn_backward";
  LrnTerms terms;
  ArrayFrom src;
  const float* ratios;
  ArrayTo src_grad;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    with_type(src.type, [&](auto is) { make<decltype(is)::value>(lane); });
  }

 private:
  template <ElementType kType>
  SPEEDO_HOST_DEVICE void make(const Lane& lane) const {
    terms.elements.for_each(lane, src_grad, [&](const LrnPlace& place) {
      const float sum = terms.sum(place, [&](std::int64_t i) { return ratios[i]; });
      const float less = 2.0F * terms.beta * terms.weight * src.get<kType>(place.i) * sum;
      src_grad.put<kType>(place.i, ArrayFrom(src_grad).get<kType>(place.i) - less);
    });
  }
};

// Four neighbouring channels of a position, of an array that is channels last.
struct LrnFour {
  static constexpr int kNear = 12;  // with the four before and the four after them

  std::int64_t i;              // the first one in the array
  bool has_before, has_after;  // whether the position has more channels there

  // What an array holds there: zeros where there are no channels.
  template <ElementType kType>
  SPEEDO_HOST_DEVICE void load(ArrayFrom from, float (&near)[kNear]) const {
    put(has_before ? FourAt<kType>{i - 4}.load(from) : Floats4{}, near);
    put(FourAt<kType>{i}.load(from), near + 4);
    put(has_after ? FourAt<kType>{i + 4}.load(from) : Floats4{}, near + 8);
  }
  SPEEDO_HOST_DEVICE bool has(int n) const { return n < 4 ? has_before : n < 8 || has_after; }

 private:
  SPEEDO_HOST_DEVICE static void put(Floats4 four, float* to) {
    to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
  }
};

struct LrnFours {
  std::int64_t count;
  Divisor of_position;
  float k, weight, beta;

  template <class Body>
  SPEEDO_HOST_DEVICE void for_each(const Lane& lane, const Body& body) const {
    for (std::int64_t n = lane.first(); n < count; n += lane.stride()) {
      const std::int64_t place = of_position.remainder(n);
      body(LrnFour{4 * n, place > 0, place + 1 < of_position.value()});
    }
  }
};

// The sum of term(n) over the neighbours of one of near channels.
template <int kReach, class Term>
SPEEDO_HOST_DEVICE float sum_near(int channel, const Term& term) {
  float sum = 0.0F;
  for (int d = -kReach; d <= kReach; ++d) sum += term(channel + d);
  return sum;
}

template <int kReach>
struct LrnFoursForwardKernel {
  static constexpr const char* kName = "lrn_fours_forward";
  LrnFours fours;
  ArrayFrom src;
  ArrayTo dst;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    with_type(src.type, [&](auto is) { make<decltype(is)::value>(lane); });
  }

 private:
  template <ElementType kType>
  SPEEDO_HOST_DEVICE void make(const Lane& lane) const {
    fours.for_each(lane, [&](const LrnFour& four) {
      float x[LrnFour::kNear];
      four.load<kType>(src, x);
      const auto value = [&](int n) {
        const float sum = sum_near<kReach>(n, [&](int j) { return x[j] * x[j]; });
        return x[n] * power_below(fours.k + fours.weight * sum, fours.beta);
      };
      FourAt<kType>{four.i}.store(dst, {value(4), value(5), value(6), value(7)});
    });
  }
};

template <int kReach>
struct LrnFoursBackwardKernel {
  static_assert(2 * kReach <= 4, "neighbours' neighbours are near");
  static constexpr const char* kName = "lrn_fours_backward";
  LrnFours fours;
  ArrayFrom src, dst_grad;
  ArrayTo src_grad;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    with_type(src.type, [&](auto is) { make<decltype(is)::value>(lane); });
  }

 private:
  template <ElementType kType>
  SPEEDO_HOST_DEVICE void make(const Lane& lane) const {
    fours.for_each(lane, [&](const LrnFour& four) {
      float x[LrnFour::kNear], grads[LrnFour::kNear], ratios[LrnFour::kNear];
      four.load<kType>(src, x);
      four.load<kType>(dst_grad, grads);
      for (int n = 4 - kReach; n < 8 + kReach; ++n) {
        const float sum = sum_near<kReach>(n, [&](int j) { return x[j] * x[j]; });
        const float scale = fours.k + fours.weight * sum;
        grads[n] *= power_below(scale, fours.beta);
        // Where there is no channel the scale can be 0.
        ratios[n] = four.has(n) ? grads[n] * x[n] / scale : 0.0F;
      }
      const auto value = [&](int n) {
        const float sum = sum_near<kReach>(n, [&](int j) { return ratios[j]; });
        return grads[n] - 2.0F * fours.beta * fours.weight * x[n] * sum;
      };
      FourAt<kType>{four.i}.store(src_grad, {value(4), value(5), value(6), value(7)});
    });
  }
};

ArrayShape array_of(const LrnShape& shape) {
  return {shape.batch, shape.channels, shape.h * shape.w};
}

// Whether there are kernels for its fours, where the arrays are aligned too.
bool has_fours(const LrnShape& shape) {
  return shape.region == LrnShape::Region::kAcross && shape.channels % 4 == 0 &&
         shape.layout.block == shape.channels && (shape.size == 3 || shape.size == 5);
}

LrnTerms terms_of(const LrnShape& shape) {
  const bool is_within = shape.region == LrnShape::Region::kWithin;
  const auto size = static_cast<float>(shape.size);
  return {LrnElements(array_of(shape), shape.layout, !is_within),
          is_within,
          (shape.size - 1) / 2,
          shape.h,
          Divisor(shape.w),
          is_within ? 1.0F : shape.k,
          shape.alpha / (is_within ? size * size : size),
          shape.beta};
}

LrnFours fours_of(const LrnShape& shape) {
  const LrnTerms terms = terms_of(shape);
  return {array_of(shape).storage_count(shape.layout) / 4, Divisor(shape.channels / 4), terms.k,
          terms.weight, terms.beta};
}

class QueuedLrn final : public Lrn {
 public:
  QueuedLrn(Queue& queue, Workspace& workspace, const LrnShape& shape)
      : queue_(queue), workspace_(workspace), shape_(shape) {
    if (shape.trains && !has_fours(shape)) workspace_.reserve(bytes());
  }

  OperationInfo info() const override { return {.kernel = "cuda"}; }

  void forward(const float* src, float* dst) override {
    if (bytes() == 0) return;
    const ArrayFrom from = read(src);
    const ArrayTo to = written(dst);
    if (has_fours(shape_) && are_aligned(from, to)) {
      return shape_.size == 3 ? forward_fours<1>(from, to) : forward_fours<2>(from, to);
    }
    const LrnTerms terms = terms_of(shape_);
    launch(queue_, grid_for(queue_, terms.elements.steps()), LrnForwardKernel{terms, from, to});
  }

  void backward(const float* src, const float* /*dst*/, const float* dst_grad,
                float* src_grad) override {
    if (bytes() == 0) return;
    const ArrayFrom from = read(src), grad = read(dst_grad);
    const ArrayTo to = written(src_grad);
    if (has_fours(shape_) && are_aligned(from, grad, to)) {
      return shape_.size == 3 ? backward_fours<1>(from, grad, to)
                              : backward_fours<2>(from, grad, to);
    }
    workspace_.reserve(bytes());  // again; or now that it has fours, but not aligned
    const LrnTerms terms = terms_of(shape_);
    const auto memory = workspace_.take(bytes());
    if (!memory) return queue_.driver.fail(memory.error());
    auto* const ratios = static_cast<float*>(memory->data);
    const Grid grid = grid_for(queue_, terms.elements.steps());
    launch(queue_, grid, LrnRatioKernel{terms, from, grad, ratios, to});
    launch(queue_, grid, LrnBackwardKernel{terms, from, ratios, to});
  }

 private:
  template <int kReach>
  void forward_fours(ArrayFrom src, ArrayTo dst) {
    const LrnFours fours = fours_of(shape_);
    launch(queue_, grid_for(queue_, fours.count), LrnFoursForwardKernel<kReach>{fours, src, dst});
  }
  template <int kReach>
  void backward_fours(ArrayFrom src, ArrayFrom dst_grad, ArrayTo src_grad) {
    const LrnFours fours = fours_of(shape_);
    launch(queue_, grid_for(queue_, fours.count),
           LrnFoursBackwardKernel<kReach>{fours, src, dst_grad, src_grad});
  }

  ArrayFrom read(const float* array) const { return {array, shape_.layout.type}; }
  ArrayTo written(float* array) const { return {array, shape_.layout.type}; }
  // Of the ratios.
  std::size_t bytes() const {
    return static_cast<std::size_t>(array_of(shape_).storage_count(shape_.layout)) * sizeof(float);
  }

  Queue& queue_;
  Workspace& workspace_;
  const LrnShape shape_;
};

}  // namespace

BackwardReads lrn_reads(const LrnShape&) { return {.src = true}; }

std::unique_ptr<Lrn> make_lrn(Queue& queue, Workspace& workspace, const LrnShape& shape) {
  return std::make_unique<QueuedLrn>(queue, workspace, shape);
}

}  // namespace speedo::gpu
