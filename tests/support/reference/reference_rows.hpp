#pragma once

#include <speedo/backend/backend.hpp>

namespace speedo {

// Operations on the rows of a matrix, and losses, as Backend defines them, in plain loops with
// double sums.

void reference_reduce_rows(ReduceOp op, const Backend::RowsShape& shape, float scale,
                           const float* x, float* y);

void reference_normalize_rows(const Backend::RowNorm& norm, const float* x, float* y,
                              float* deviation);
void reference_normalize_rows_backward(const Backend::RowNorm& norm, const float* y,
                                       const float* deviation, const float* y_grad, float* x_grad);

Backend::LabelLoss reference_hinge_loss(const Backend::HingeShape& shape, const float* scores,
                                        const float* labels);
void reference_hinge_loss_backward(const Backend::HingeShape& shape, const float* scores,
                                   const float* labels, float scale, float* grad);

Backend::SigmoidLoss reference_sigmoid_loss(std::int64_t n, const float* x, const float* target,
                                            std::optional<int> ignored);
void reference_sigmoid_loss_backward(std::int64_t n, const float* x, const float* target,
                                     std::optional<int> ignored, float scale, float* grad);

}  // namespace speedo
