#pragma once

#include <cstdint>

#include <speedo/backend/binary_op.hpp>
#include <speedo/backend/reduce_op.hpp>
#include <speedo/backend/unary_op.hpp>
#include <speedo/backend/update_step.hpp>

namespace speedo {

// Whether f(x) needs no more than comparisons and one product, so that all devices agree on it.
bool is_rounded_by_no_device(const UnaryOp& op);

// f(x) and f'(x) as UnaryKind says. For the slope, what backward_reads(op) does not name is NaN.
double reference_value(const UnaryOp& op, double x);
double reference_slope(const UnaryOp& op, double x, double y);

// f(x, y) as BinaryKind says, without the activation.
float reference_value(const BinaryOp& op, double x, double y);

// As ReduceOp says.
double reference_reduction(ReduceOp op, std::int64_t n, const float* x, const float* y);

// The gradient of an update rule's step: scaled, with decay.
double reference_gradient(const SgdStep& step, float weight, float gradient);
// As AdaptiveKind says; leaves the update, with its sign, where the gradient was.
void reference_adaptive(std::int64_t n, const AdaptiveStep& step, const float* weights,
                        AdaptiveHistories histories, float* grad);

}  // namespace speedo
