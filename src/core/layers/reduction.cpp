#include "core/layers/reduction.hpp"

#include "caffe.pb.h"

namespace speedo {

Result<void> ReductionLayer::reshape(Tensors bottoms, Tensors tops) {
  const auto& options = parameter_message().reduction_param();
  const Shape& bottom = bottoms[0]->shape();
  const auto axis = bottom.canonical_axis(options.axis());
  if (!axis) return error(axis.error().message);
  const auto first = bottom.dims().begin();
  auto top = Shape::create({first, first + *axis});
  if (!top) return error(top.error().message);
  tops[0]->reshape(*top);
  shape_ = {bottom.count(0, *axis), bottom.count(*axis)};
  op_ = ReduceOp::kSum;
  if (options.operation() == caffe::ReductionParameter::ASUM) op_ = ReduceOp::kAbsSum;
  if (options.operation() == caffe::ReductionParameter::SUMSQ) op_ = ReduceOp::kSquareSum;
  coefficient_ = options.coeff();
  if (options.operation() == caffe::ReductionParameter::MEAN) {
    coefficient_ /= static_cast<float>(shape_.columns);
  }
  return {};
}

Result<void> ReductionLayer::forward(Tensors bottoms, Tensors tops) {
  backend().reduce_rows(op_, shape_, coefficient_, bottoms[0]->data(), tops[0]->data());
  return {};
}

void ReductionLayer::backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) {
  const std::int64_t count = shape_.rows * shape_.columns;
  if (!propagate[0] || count == 0) return;
  float* const grad = bottoms[0]->grad();
  const float factor = op_ == ReduceOp::kSquareSum ? 2.0F : 1.0F;
  backend().fill(count, factor * coefficient_, grad);
  const ChannelView rows{{1, shape_.rows, shape_.columns}, {}};
  backend().scale_channels(rows, {.gamma = tops[0]->grad()}, grad, grad);
  if (op_ == ReduceOp::kAbsSum) {
    backend().map_backward({UnaryKind::kAbs}, count, bottoms[0]->data(), nullptr, grad, grad);
  }
  if (op_ == ReduceOp::kSquareSum) {
    backend().zip({BinaryKind::kProduct}, count, {bottoms[0]->data(), grad, grad});
  }
}

}  // namespace speedo
