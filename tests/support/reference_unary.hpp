#pragma once

#include <speedo/backend/unary_op.hpp>

namespace speedo {

// Whether f(x) needs no more than comparisons and one product, so that all devices agree on it.
bool is_rounded_by_no_device(const UnaryOp& op);

// f(x) and f'(x) as UnaryKind says. For the slope, what backward_reads(op) does not name is NaN.
// f(x) and f'(x) as UnaryKind says. For the slope, what backward_reads(op) does not name is NaN.
double reference_value(const UnaryOp& op, double x);
double reference_slope(const UnaryOp& op, double x, double y);

}  // namespace speedo
