#pragma once

#include <cstdint>

#include <speedo/backend/operations.hpp>

namespace speedo {

// Operations on windows as Backend defines them, element by element.

void reference_unfold(const ConvolutionShape& shape, const float* src, float* matrices);
void reference_fold(const ConvolutionShape& shape, const float* matrices, float* src);

void reference_sample_windows(const PoolingShape& shape, std::uint64_t seed, const float* src,
                              float* dst, float* winners);
void reference_sample_windows_backward(const PoolingShape& shape, const float* winners,
                                       const float* dst_grad, float* src_grad);
void reference_weigh_windows(const PoolingShape& shape, const float* src, float* dst);
void reference_weigh_windows_backward(const PoolingShape& shape, const float* src, const float* dst,
                                      const float* dst_grad, float* src_grad);

}  // namespace speedo
