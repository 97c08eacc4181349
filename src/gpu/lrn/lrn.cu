// With s = k + w (sum of the squares of an element's neighbours, itself among them), where w is
// alpha / size or alpha / size^2:
//
//   dst = src s^-beta
//   src_grad = dst_grad s^-beta - 2 beta w src (sum over the neighbours of dst_grad src
//   s^(-beta-1))
//
// since an element is a neighbour of its neighbours. The backward pass makes the terms of that sum
// first, for all elements.

#include "gpu/lrn/lrn.hpp"

#include <cmath>

#include "gpu/launch/launch.hpp"
#include "gpu/support/array_index.hpp"

namespace speedo::gpu {
namespace {

// Which elements are an element's neighbours.
struct Neighbours {
  ArrayIndex index;
  bool is_within;
  std::int64_t reach;  // half the size
  std::int64_t h;
  Divisor w;

  // The sum of term(i) over the neighbours of a place.
  template <class Term>
  SPEEDO_HOST_DEVICE float sum(const ArrayIndex::Place& place, const Term& term) const {
    return is_within ? sum_within(place, term) : sum_across(place, term);
  }

 private:
  template <class Term>
  SPEEDO_HOST_DEVICE float sum_across(const ArrayIndex::Place& place, const Term& term) const {
    const std::int64_t c = place.channel, end = c + reach + 1;
    const std::int64_t last = end < index.channels() ? end : index.channels();
    float sum = 0.0F;
    for (std::int64_t i = c > reach ? c - reach : 0; i < last; ++i) {
      sum += term(index.at({place.sample, i, place.position}));
    }
    return sum;
  }
  template <class Term>
  SPEEDO_HOST_DEVICE float sum_within(const ArrayIndex::Place& place, const Term& term) const {
    const std::int64_t y = w.quotient(place.position), x = w.remainder(place.position);
    const std::int64_t last_y = y + reach < h ? y + reach : h - 1;
    const std::int64_t last_x = x + reach < w.value() ? x + reach : w.value() - 1;
    float sum = 0.0F;
    for (std::int64_t j = y > reach ? y - reach : 0; j <= last_y; ++j) {
      for (std::int64_t i = x > reach ? x - reach : 0; i <= last_x; ++i) {
        sum += term(index.at({place.sample, place.channel, j * w.value() + i}));
      }
    }
    return sum;
  }
};

struct LrnTerms {
  std::int64_t n;
  Neighbours neighbours;
  float k, weight, beta;

  SPEEDO_HOST_DEVICE float scale(const ArrayIndex::Place& place, const float* src) const {
    return k + weight * neighbours.sum(place, [&](std::int64_t i) { return src[i] * src[i]; });
  }
  // Calls body(i, place) for the lane's elements, and makes the padding of `target` zero.
  template <class Body>
  SPEEDO_HOST_DEVICE void for_each(const Lane& lane, float* target, const Body& body) const {
    for (std::int64_t i = lane.first(); i < n; i += lane.stride()) {
      const ArrayIndex::Place place = neighbours.index.place(i);
      if (place.channel < neighbours.index.channels()) {
        body(i, place);
      } else {
        target[i] = 0.0F;
      }
    }
  }
};

struct LrnForwardKernel {
  static constexpr const char* kName = "lrn_forward";
  LrnTerms terms;
  const float* src;
  float* dst;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    terms.for_each(lane, dst, [&](std::int64_t i, const ArrayIndex::Place& place) {
      dst[i] = src[i] * std::pow(terms.scale(place, src), -terms.beta);
    });
  }
};

struct LrnRatioKernel {
  static constexpr const char* kName = "lrn_ratios";
  LrnTerms terms;
  const float* src;
  const float* dst_grad;
  float* ratios;    // dst_grad src s^(-beta-1)
  float* src_grad;  // dst_grad s^-beta

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    terms.for_each(lane, src_grad, [&](std::int64_t i, const ArrayIndex::Place& place) {
      const float scale = terms.scale(place, src);
      const float grad = dst_grad[i] * std::pow(scale, -terms.beta);
      src_grad[i] = grad;
      ratios[i] = grad * src[i] / scale;
    });
  }
};

struct LrnBackwardKernel {
  static constexpr const char* kName = "lrn_backward";
  LrnTerms terms;
  const float* src;
  const float* ratios;
  float* src_grad;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    terms.for_each(lane, src_grad, [&](std::int64_t i, const ArrayIndex::Place& place) {
      const float sum = terms.neighbours.sum(place, [&](std::int64_t j) { return ratios[j]; });
      src_grad[i] -= 2.0F * terms.beta * terms.weight * src[i] * sum;
    });
  }
};

ArrayShape array_of(const LrnShape& shape) {
  return {shape.batch, shape.channels, shape.h * shape.w};
}

LrnTerms terms_of(const LrnShape& shape) {
  const bool is_within = shape.region == LrnShape::Region::kWithin;
  const auto size = static_cast<float>(shape.size);
  return {array_of(shape).storage_count(shape.layout),
          {ArrayIndex(array_of(shape), shape.layout), is_within, (shape.size - 1) / 2, shape.h,
           Divisor(shape.w)},
          is_within ? 1.0F : shape.k,
          shape.alpha / (is_within ? size * size : size),
          shape.beta};
}

class QueuedLrn final : public Lrn {
 public:
  QueuedLrn(Queue& queue, Workspace& workspace, const LrnShape& shape)
      : queue_(queue), workspace_(workspace), shape_(shape) {
    if (shape.trains) workspace_.reserve(bytes());
  }

  OperationInfo info() const override { return {.kernel = "cuda"}; }

  void forward(const float* src, float* dst) override {
    if (bytes() == 0) return;
    const LrnTerms terms = terms_of(shape_);
    launch(queue_, grid_for(terms.n), LrnForwardKernel{terms, src, dst});
  }

  void backward(const float* src, const float* /*dst*/, const float* dst_grad,
                float* src_grad) override {
    if (bytes() == 0) return;
    const LrnTerms terms = terms_of(shape_);
    const auto memory = workspace_.take(bytes());
    if (!memory) return queue_.driver.fail(memory.error());
    auto* const ratios = static_cast<float*>(memory->data);
    const Grid grid = grid_for(terms.n);
    launch(queue_, grid, LrnRatioKernel{terms, src, dst_grad, ratios, src_grad});
    launch(queue_, grid, LrnBackwardKernel{terms, src, ratios, src_grad});
  }

 private:
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
