#pragma once

#include <speedo/backend/unary_op.hpp>

namespace speedo {

// f(x) and f'(x) as UnaryKind says. For the slope, what backward_reads(op) does not name is NaN.
double reference_value(const UnaryOp& op, double x);
double reference_slope(const UnaryOp& op, double x, double y);

}  // namespace speedo
