#include "cpu/recurrent/lstm.hpp"

#include <algorithm>

#include "cpu/support/simd.hpp"
#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/recurrent/lstm.cpp"
#endif
#include <hwy/foreach_target.h>

#include "cpu/support/vector_math.inl"

HWY_BEFORE_NAMESPACE();
namespace speedo::cpu::HWY_NAMESPACE {
namespace {

// Of streams first .. last-1.
HWY_FLATTEN void lstm_forward_kernel(std::int64_t cells, const LstmForward& step,
                                     std::int64_t first, std::int64_t last) {
  const F32 d;
  const LstmForward at = step;
  for (std::int64_t n = first; n < last; ++n) {
    const float* sums = at.sums + 4 * n * cells;
    float* gates = at.gates + 4 * n * cells;
    const float* c_before = at.c_before + n * cells;
    float *c = at.c + n * cells, *h = at.h + n * cells;
    const auto cont = hn::Set(d, at.cont[n]);
    const bool begins = at.cont[n] == 0.0F;
    for_each_vector(d, cells, [&](std::int64_t k, auto access) {
      const auto i = sigmoid(d, access.load(d, sums + k));
      const auto f =
          begins ? hn::Zero(d) : hn::Mul(cont, sigmoid(d, access.load(d, sums + cells + k)));
      const auto o = sigmoid(d, access.load(d, sums + 2 * cells + k));
      const auto g = hyperbolic_tangent(d, access.load(d, sums + 3 * cells + k));
      const auto cell = hn::MulAdd(f, access.load(d, c_before + k), hn::Mul(i, g));
      access.store(i, d, gates + k);
      access.store(f, d, gates + cells + k);
      access.store(o, d, gates + 2 * cells + k);
      access.store(g, d, gates + 3 * cells + k);
      access.store(cell, d, c + k);
      access.store(hn::Mul(o, hyperbolic_tangent(d, cell)), d, h + k);
    });
  }
}

HWY_FLATTEN void lstm_backward_kernel(std::int64_t cells, const LstmBackward& step,
                                      std::int64_t first, std::int64_t last) {
  const F32 d;
  const LstmBackward at = step;
  const auto one = hn::Set(d, 1.0F);
  // y (1 - y) for a sigmoid's value.
  const auto slope = [one](auto y) { return hn::Mul(y, hn::Sub(one, y)); };
  for (std::int64_t n = first; n < last; ++n) {
    const std::int64_t row = n * cells;
    const float* gates = at.gates + 4 * row;
    float* sums_grad = at.sums_grad == nullptr ? nullptr : at.sums_grad + 4 * row;
    for_each_vector(d, cells, [&](std::int64_t k, auto access) {
      const auto i = access.load(d, gates + k);
      const auto f = access.load(d, gates + cells + k);
      const auto o = access.load(d, gates + 2 * cells + k);
      const auto g = access.load(d, gates + 3 * cells + k);
      const auto tanh_c = hyperbolic_tangent(d, access.load(d, at.c + row + k));
      const auto h_grad = access.load(d, at.h_grad + row + k);
      const auto later = at.c_grad == nullptr ? hn::Zero(d) : access.load(d, at.c_grad + row + k);
      const auto through_h = hn::Mul(hn::Mul(h_grad, o), hn::NegMulAdd(tanh_c, tanh_c, one));
      const auto c_grad = hn::Add(later, through_h);
      const auto c_before = access.load(d, at.c_before + row + k);
      if (at.c_before_grad != nullptr) {
        access.store(hn::Mul(c_grad, f), d, at.c_before_grad + row + k);
      }
      if (sums_grad == nullptr) return;
      access.store(hn::Mul(hn::Mul(c_grad, g), slope(i)), d, sums_grad + k);
      access.store(hn::Mul(hn::Mul(c_grad, c_before), slope(f)), d, sums_grad + cells + k);
      access.store(hn::Mul(hn::Mul(h_grad, tanh_c), slope(o)), d, sums_grad + 2 * cells + k);
      access.store(hn::Mul(hn::Mul(c_grad, i), hn::NegMulAdd(g, g, one)), d,
                   sums_grad + 3 * cells + k);
    });
  }
}

}  // namespace
}  // namespace speedo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace speedo::cpu {
namespace {

HWY_EXPORT(lstm_forward_kernel);
HWY_EXPORT(lstm_backward_kernel);

// Cells that make it worth waking another thread: each takes five exponential functions.
constexpr std::int64_t kGrainCells = 1024;

std::int64_t lstm_grain(const LstmShape& shape) {
  return std::max<std::int64_t>(1, kGrainCells / std::max<std::int64_t>(1, shape.cells));
}

}  // namespace

void lstm_forward(ThreadPool& pool, const LstmShape& shape, const LstmForward& step) {
  pool.split(shape.streams, lstm_grain(shape), [&](std::int64_t first, std::int64_t last, int) {
    HWY_DYNAMIC_DISPATCH(lstm_forward_kernel)(shape.cells, step, first, last);
  });
}

void lstm_backward(ThreadPool& pool, const LstmShape& shape, const LstmBackward& step) {
  pool.split(shape.streams, lstm_grain(shape), [&](std::int64_t first, std::int64_t last, int) {
    HWY_DYNAMIC_DISPATCH(lstm_backward_kernel)(shape.cells, step, first, last);
  });
}

}  // namespace speedo::cpu
#endif
